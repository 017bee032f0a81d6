"""Choose the evidence about what is doubtful, by shared words, where not all of it can be shown.

Rare words count more than common ones. Pure; what is done with the selection is decided elsewhere
(``excerpts``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from truthlens.text.sentences import sentences
from truthlens.text.word_forms import content_words

# Evidence beyond this is not looked at: it comes in its order, after what was chosen.
_MOST_READ_CHARS = 500_000
# The best sentences get this share of the space, their neighbours the rest.
_SENTENCE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Relevant:
    """Passages by index, most relevant first, each with the ranges of its relevant sentences."""

    passages: list[int] = field(default_factory=list)
    sentences: dict[int, list[tuple[int, int]]] = field(default_factory=dict)


def relevant(texts: Sequence[str], about: Sequence[str], *, most_chars: int) -> Relevant:
    """Return the passages and sentences that share most with ``about``, as many as fit.

    It is none where nothing is shared.

    Args:
        texts: the passages.
        about: the flagged sentences and the question.
        most_chars: characters that can be shown.
    """
    wanted = {word for each in about for word in content_words(each)}
    read: list[tuple[int, tuple[int, int], set[str]]] = []
    to_read = _MOST_READ_CHARS
    for index, text in enumerate(texts):
        part = text[:to_read]
        to_read -= len(part)
        for start, end in sentences(part):
            read.append((index, (start, end), wanted.intersection(content_words(part[start:end]))))
    counts = Counter(word for _, _, words in read for word in words)
    weights = {word: math.log(1.0 + len(read) / count) for word, count in counts.items()}
    scored = [(sum(weights[word] for word in words), index, place) for index, place, words in read if words]
    # The order of the evidence decides between equals.
    scored.sort(key=lambda each: -each[0])
    found = Relevant()
    left, space = int(most_chars * _SENTENCE_SHARE), most_chars
    for _, index, (start, end) in scored:
        if index not in found.sentences:
            if found.passages and len(texts[index]) > space:
                continue
            space -= min(len(texts[index]), space)
            found.passages.append(index)
        if end - start > left:
            break
        left -= end - start
        found.sentences.setdefault(index, []).append((start, end))
    return found

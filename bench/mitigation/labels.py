"""Label which parts of a text people (or its script) called unsupported, by where its words come from.

No detector is asked. Sources are the real answers with their human marks, the evidence (all supported), and
invented sentences (all unsupported). A sentence that occurs in a source has that source's labels; what is
left is tiled with the longest runs of at least three words that are in a source. Of equal matches that in
the earlier source counts. What no source holds is *unknown*: counted by itself, neither supported nor
unsupported. Lengths are characters of words, without white space and punctuation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.mitigation.data import Given
from truthlens.text.sentences import sentences
from truthlens.text.words import Word, words

_LEAST_RUN = 3


@dataclass(frozen=True, slots=True)
class Tally:
    """Characters of words in a text: all, unsupported (``invented`` among them), and of unknown origin.

    ``wrong`` is whether a word with content of its own is unsupported: an article left over from a marked
    span is no unsupported answer.
    """

    characters: int = 0
    unsupported: int = 0
    invented: int = 0
    unknown: int = 0
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """What a final text lost of the supported text of the first answer.

    ``characters`` of ``of_characters`` are no longer there word by word; ``sentences`` of ``of_sentences``
    wholly supported sentences lost more than half of theirs; ``content`` of ``of_content`` distinct content
    words occur nowhere in the final text.
    """

    characters: int
    of_characters: int
    sentences: int
    of_sentences: int
    content: int
    of_content: int


class Sources:
    """The texts that a final answer may be made of, the first answer foremost."""

    def __init__(self, first: Given, others: Sequence[Given], passages: Sequence[str]) -> None:
        self._first = _Source(first.text, first.spans)
        self._answers = [self._first, *(_Source(other.text, other.spans) for other in others)]
        self._invented: list[_Source] = []
        self._evidence = [_Source(passage) for passage in passages]

    def invent(self, sentence: str) -> None:
        """Note a sentence that a script made up."""
        self._invented.append(_Source(sentence, ((0, len(sentence)),), invented=True))

    def tally(self, text: str) -> Tally:
        """Return what of ``text`` is unsupported."""
        wanted = _Source(text)
        total = unsupported = invented = unknown = 0
        wrong = False
        origins = _tile(wanted, [*self._answers, *self._evidence, *self._invented])
        for word, length, origin in zip(wanted.words, wanted.lengths, origins, strict=True):
            total += length
            if origin is None:
                unknown += length
                continue
            source, place = origin
            if source.bad[place]:
                unsupported += length
                invented += length * source.invented
                wrong = wrong or not word.stop
        return Tally(total, unsupported, invented, unknown, wrong)

    def loss(self, text: str) -> Loss:
        """Return what ``text`` lost of the supported part of the first answer."""
        first, final = self._first, _Source(text)
        good = [not bad for bad in first.bad]
        kept = [origin is not None for origin in _tile(first, [final])]
        whole = [
            (start, end) for start, end in pairwise(first.borders) if end > start and all(good[start:end])
        ]
        stems = {word.stem for word, fine in zip(first.words, good, strict=True) if fine and not word.stop}
        left = {word.stem for word in final.words}
        return Loss(
            characters=sum(
                length
                for length, fine, stays in zip(first.lengths, good, kept, strict=True)
                if fine and not stays
            ),
            of_characters=sum(length for length, fine in zip(first.lengths, good, strict=True) if fine),
            sentences=sum(2 * sum(kept[start:end]) < end - start for start, end in whole),
            of_sentences=len(whole),
            content=len(stems - left),
            of_content=len(stems),
        )


class _Source:
    """A text as words, list marks left out.

    ``bad`` says of each whether a marked span holds it or a part of it.
    """

    def __init__(self, text: str, spans: Sequence[tuple[int, int]] = (), *, invented: bool = False) -> None:
        self.invented = invented
        self.words: list[Word] = [
            word for word in words(text) if not (word.stop and text[word.start].isdigit())
        ]
        self.keys = [text[word.start : word.end].casefold() for word in self.words]
        self.lengths = [word.end - word.start for word in self.words]
        self.bad = [any(word.start < end and start < word.end for start, end in spans) for word in self.words]
        self.borders = _borders(text, self.words)
        self._starts: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place in range(len(self.keys) - _LEAST_RUN + 1):
            self._starts[tuple(self.keys[place : place + _LEAST_RUN])].append(place)
        self._whole: dict[tuple[str, ...], int] = {}
        for start, end in pairwise(self.borders):
            self._whole.setdefault(tuple(self.keys[start:end]), start)

    def whole(self, sentence: tuple[str, ...]) -> int:
        """Return where the same sentence is here, or -1."""
        return self._whole.get(sentence, -1) if sentence else -1

    def longest(self, keys: Sequence[str], at: int, limit: int) -> tuple[int, int]:
        """Return length and place of the longest run here that ``keys`` has from ``at``, up to ``limit``."""
        best = (0, 0)
        if at + _LEAST_RUN > limit:
            return best
        for place in self._starts.get(tuple(keys[at : at + _LEAST_RUN]), ()):
            length = _LEAST_RUN
            most = min(limit - at, len(self.keys) - place)
            while length < most and keys[at + length] == self.keys[place + length]:
                length += 1
            if length > best[0]:
                best = (length, place)
        return best


def _borders(text: str, listed: Sequence[Word]) -> list[int]:
    """Return the first word of every sentence, and the number of words."""
    found, place = [], 0
    for _, end in sentences(text):
        found.append(place)
        while place < len(listed) and listed[place].start < end:
            place += 1
    return [*found, len(listed)] if found else [0, len(listed)]


def _tile(wanted: _Source, sources: Sequence[_Source]) -> list[tuple[_Source, int] | None]:
    """Return every word of ``wanted`` with its source and place there. Whole sentences first, then runs."""
    origins: list[tuple[_Source, int] | None] = [None] * len(wanted.keys)
    for start, end in pairwise(wanted.borders):
        sentence = tuple(wanted.keys[start:end])
        found = next(((source, place) for source in sources if (place := source.whole(sentence)) >= 0), None)
        if found is not None:
            origins[start:end] = [(found[0], found[1] + step) for step in range(end - start)]
    at = 0
    while at < len(wanted.keys):
        if origins[at] is not None:
            at += 1
            continue
        limit = at + 1
        while limit < len(wanted.keys) and origins[limit] is None:
            limit += 1
        length, place, chosen = 0, 0, None
        for source in sources:
            run, where = source.longest(wanted.keys, at, limit)
            if run > length:
                length, place, chosen = run, where, source
        if chosen is not None:
            origins[at : at + length] = [(chosen, place + step) for step in range(length)]
        at += max(length, 1)
    return origins

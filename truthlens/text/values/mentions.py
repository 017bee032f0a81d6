"""Find the values, names and citations of a text: the things that two sentences may disagree on. Pure.

Values are those of ``values.quantities``; names and citations are told by capitals and marks, without a
dictionary of people or places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.core.records.explanation import DifferenceKind
from truthlens.text.values.comparison import same_value
from truthlens.text.values.quantities import typed_values
from truthlens.text.values.typed import TypedValue, ValueKind
from truthlens.text.words import Word, stem

_CITATION = re.compile(
    r"[A-Z][\w’'-]+(?:(?: (?:and|&) [A-Z][\w’'-]+)|,? et al\.?),? ?[(\[]?(?:1[89]|20)\d\d[a-z]?[)\]]?"
    r"|https?://[^\s)>\]]+|\bwww\.[^\s)>\]]+|\bdoi:\s?\S+|\barXiv:\s?\S+"
)
_COUNTED = re.compile(r"[\s-](?P<noun>[^\W\d_]+s|people|men|women|children|feet|teeth|mice|cup)\b")
_SIGNS = frozenset(" -−%％°£$€¥￥₹₩'\"′″x×<>~≈≤≥")
"""What of a value at the edge of a sentence belongs to no word."""
_NO_NAMES = frozenset(
    {"passage", "passages", "step", "note", "document", "source", "context", "section", "part"}
)


@dataclass(frozen=True, slots=True)
class Mention:
    """One value, name or citation at characters ``start`` to ``end``.

    ``value`` is that of numbers and dates; ``keys`` are the stems of a name's words, or a citation's words.
    """

    kind: DifferenceKind
    start: int
    end: int
    value: TypedValue | None = None
    keys: tuple[str, ...] = ()


def mentions(text: str, listed: Sequence[Word], *, names: frozenset[str] = frozenset()) -> list[Mention]:
    """What stands in a part of ``text``, by position; mentions do not overlap.

    Args:
        text: the whole text that the words' offsets point into.
        listed: consecutive words of it, as a rule one sentence's.
        names: stems known to be names, so that one is recognised at the start of a sentence too.
    """
    if not listed:
        return []
    start, end = listed[0].start, listed[-1].end
    found = _citations(text, start, end)
    found += [each for each in _values(text, start, end) if not _overlaps(each, found)]
    found += _names(text, [word for word in listed if not _overlaps(word, found)], names)
    return sorted(found, key=lambda mention: mention.start)


def same_mention(one: Mention, other: Mention) -> bool | None:
    """Return whether ``one`` says what ``other`` does; ``None`` where they are of two sorts."""
    if one.kind is not other.kind:
        return None
    if one.value is not None and other.value is not None:
        return same_value(one.value, other.value)
    few, many = sorted((set(one.keys), set(other.keys)), key=len)
    if one.kind is DifferenceKind.NAME:
        return bool(few & many) and (few <= many or one.keys[-1] == other.keys[-1])
    return few == many


def _overlaps(place: Word | Mention, others: Sequence[Mention]) -> bool:
    return any(place.start < other.end and other.start < place.end for other in others)


def _citations(text: str, start: int, end: int) -> list[Mention]:
    # "et al." may have ended the sentence, so a citation may reach beyond it
    return [
        Mention(DifferenceKind.CITATION, *match.span(), keys=(match[0].rstrip(".,;").lower(),))
        for match in _CITATION.finditer(text, start, end + 12)
        if match.start() < end
    ]


def _values(text: str, start: int, end: int) -> list[Mention]:
    first, behind = start, end
    while first and text[first - 1] in _SIGNS:
        first -= 1
    while behind < len(text) and text[behind] in _SIGNS:
        behind += 1
    dated = (ValueKind.DATE, ValueKind.TIME)
    return [
        Mention(DifferenceKind.DATE if value.kind in dated else DifferenceKind.NUMBER,
                value.start + first, _with_noun(text, value, value.end + first), value)
        for value in typed_values(text[first:behind])
    ]  # fmt: skip


def _with_noun(text: str, value: TypedValue, end: int) -> int:
    """Return the end of a count with what it counts where that is told by its plural: "40 rooms"."""
    noun = _COUNTED.match(text, end) if value.nouns and value.kind is ValueKind.COUNT else None
    return noun.end() if noun is not None and stem(noun["noun"].lower()) == value.nouns[0] else end


def _names(text: str, listed: Sequence[Word], known: frozenset[str]) -> list[Mention]:
    runs: list[list[Word]] = []
    before: Word | None = None
    for word in listed:
        first, before = before, word
        named = word.entity or (
            word.stem in known and not word.stop and text[word.start].isupper() and not word.numbers
        )
        if not named or word.stem in _NO_NAMES:
            continue
        if runs and text[runs[-1][-1].end : word.start] in {" ", "-", ". "}:
            runs[-1].append(word)
        elif first is not None and _begins_name(text, first, word):
            runs.append([first, word])
        else:
            runs.append([word])
    return [
        Mention(DifferenceKind.NAME, run[0].start, run[-1].end, keys=tuple(word.stem for word in run))
        for run in runs
    ]


def _begins_name(text: str, first: Word, second: Word) -> bool:
    """Whether ``first``, which stands where any word has a capital, belongs to the name ``second``."""
    capital = text[first.start].isupper() and not first.stop and first.stem not in _NO_NAMES
    return capital and text[first.end : second.start] == " "

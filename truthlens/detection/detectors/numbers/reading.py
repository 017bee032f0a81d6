"""Read texts into places and values: each sentence, row and key with the words that say what its values are of. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from truthlens.core.cancellation import checkpoint
from truthlens.detection.detectors.numbers.places import KNOWN, Item, Place, Text
from truthlens.detection.detectors.numbers.segments import Cutter, Segment, spaced
from truthlens.detection.detectors.numbers.sources import KnownValue
from truthlens.text.values.quantities import beginnings, typed_values, values_of
from truthlens.text.values.tokens import BREAK, HAN, HAN_NUMBER, WORD, Token, language_of, tokens
from truthlens.text.values.typed import TypedValue, ValueKind
from truthlens.text.values.units import (
    CURRENCIES,
    PERCENT,
    SHORT_KEYS,
    UNITS,
)
from truthlens.text.word_forms import STOP_WORDS, word_set
from truthlens.text.words import NEGATIONS, stem
from truthlens.text.words import STOP_WORDS as ENGLISH_STOPS

_STOPS = (STOP_WORDS | ENGLISH_STOPS) - NEGATIONS
_CLAUSE_MARKS = frozenset(",;:()—–、，；：（）|/")
_CLAUSE_WORDS = word_set(
    "and but while whereas although or with which who whereby und aber während et mais tandis y pero mientras"
)
_CLAUSE_CUTS = _CLAUSE_MARKS | _CLAUSE_WORDS
_LEAST_WORDS = 2
_FEW_CHARS = 160


_LONGEST = 80  # tokens; longer sentences are texts without full stops
_MOST_SHARED = 150  # words that the values of one record share
_LONGEST_LABEL = 60
_LETTERS = frozenset(("h", "l", "m", "g", "w", "mw"))
_SHARES_AND_SUMS = {
    **{word: ("%", Decimal(1), ValueKind.PERCENTAGE) for word in PERCENT},
    **{word: (currency, Decimal(1), ValueKind.CURRENCY) for word, currency in CURRENCIES.items()},
}
_NO_WORDS = frozenset[str]()
_NOTHING = frozenset(("",))
_WIDE = frozenset((HAN, HAN_NUMBER))


def read(texts: Sequence[tuple[str, str]], *, most_items: int, most_chars: int, most_places: int) -> Text:
    """Return the places and values of texts, each with its title, up to a number of values, characters and places."""
    found = Text()
    room, record = most_chars, 0
    for number, (whole, title) in enumerate(texts):
        if room <= 0 or len(found.items) >= most_items or len(found.places) >= most_places:
            found.complete = False
            break
        text = whole[:room]
        found.complete = found.complete and len(text) == len(whole)
        room -= len(text)
        record = _TextReading(found, number, text, most_items=most_items, most_places=most_places).read(
            title, record
        )
    return found


def add_known(found: Text, known: Iterable[KnownValue]) -> None:
    """Add the values of a source, each as a record of its own that its label names."""
    record = max((place.record for place in found.places), default=0)
    for each in known:
        record += 1
        words = frozenset(_label_words(spaced(each.label)))
        value = TypedValue(each.kind, 0, 0, tuple(each.amounts), each.unit, parts=each.parts)
        found.places.append(
            Place(
                KNOWN, 0, 0, words, frozenset(), record, (spaced(each.label),), each.confidence, each.source
            )
        )
        found.items.append(Item(value, len(found.places) - 1, words, len(found.items)))


class _TextReading:
    """Reads one text.

    Args:
        found: gets its places and values.
        passage: its number.
        text: all of it.
        most_items: values at which reading ends.
        most_places: sentences, cells and keys at which it ends.
    """

    def __init__(self, found: Text, passage: int, text: str, *, most_items: int, most_places: int) -> None:
        self._found, self._passage, self._text = found, passage, text
        self._most_items, self._most_places = most_items, most_places
        found.sources[passage] = text
        self._segments = Cutter(text, most=most_places - len(found.places) + 1).segments()
        self._listed = tokens(text[: max((segment.end for segment in self._segments), default=0)])
        self._starts = [start for _, start, _, _ in self._listed]
        self._language = language_of(self._listed, most=600)
        self._wide = not text.isascii() and any(sort in _WIDE for sort, _, _, _ in self._listed)
        # Of each token; "" for what is no word that says anything.
        self._stems = [""] * len(self._listed) if self._wide else _word_stems(self._listed)
        self._beginnings = beginnings(self._listed, self._language)

    def read(self, title: str, record: int) -> int:
        """Add the places and values; returns the number for the next text's records.

        Args:
            title: words that count for all of the text.
            record: the number of its first record.
        """
        segments = self._segments
        titled = frozenset(_label_words(title)) if title else _NO_WORDS
        shared = self._shared_words(segments)
        before = titled
        for segment in segments:
            checkpoint()
            if self._is_full():
                self._found.complete = False
                break
            in_record = segment.record >= 0
            context = shared.get(segment.record, _NO_WORDS) | titled if in_record else before
            number = segment.record + record if in_record else -1
            own = self._part_of(segment)
            for part in own.parts():
                if self._is_full():
                    self._found.complete = False
                    break
                words = self._add(segment, part, context, number)
                if not in_record:
                    before = words | titled
        return record + max((segment.record for segment in segments), default=0) + 1

    def _is_full(self) -> bool:
        found = self._found
        return len(found.items) >= self._most_items or len(found.places) >= self._most_places

    def _part_of(self, segment: Segment) -> _SegmentTokens:
        low, high = bisect_left(self._starts, segment.start), bisect_left(self._starts, segment.end)
        listed = self._listed
        if (low and listed[low - 1].end > segment.start) or (
            high > low and listed[high - 1].end > segment.end
        ):
            # A cell of a table: "860,32" are two of them.
            own = [
                token._replace(start=token.start + segment.start, end=token.end + segment.start)
                for token in tokens(self._text[segment.start : segment.end])
            ]
            return _SegmentTokens(
                own, _word_stems(own), wide=True, holds=bool(beginnings(own, self._language))
            )
        at = bisect_left(self._beginnings, low)
        holds = at < len(self._beginnings) and self._beginnings[at] < high
        return _SegmentTokens(listed[low:high], self._stems[low:high], wide=self._wide, holds=holds)

    def _shared_words(self, segments: Sequence[Segment]) -> dict[int, frozenset[str]]:
        """Return per record the words of its short texts and its keys: its name, its kind, its state."""
        found: dict[int, set[str]] = {}
        for segment in segments:
            if segment.record < 0 or segment.end - segment.start > _FEW_CHARS:
                continue
            words = found.setdefault(segment.record, set())
            if len(words) < _MOST_SHARED:
                words.update(self._part_of(segment).words)
                words.update(word for label in segment.labels for word in _label_words(label))
        return {record: frozenset(words) for record, words in found.items()}

    def _add(
        self, segment: Segment, part: _SegmentTokens, context: frozenset[str], record: int
    ) -> frozenset[str]:
        """Add a place with its values; returns its words."""
        found, place, own = self._found, len(self._found.places), part.listed
        named = (*segment.labels, segment.row) if segment.row else segment.labels
        labels = frozenset([word for label in named for word in _label_words(label)]) if named else _NO_WORDS
        words = labels | part.words
        start, end = (own[0].start, own[-1].end) if len(own) >= _LONGEST else (segment.start, segment.end)
        found.places.append(Place(self._passage, start, end, words, context, record, segment.labels))
        for label in named:
            # What keys and headings give is stated, too: "visits 2023", "Mon".
            for value in _values_of_label(label) if len(label) <= _LONGEST_LABEL else ():
                stated = replace(value, start=segment.start, end=segment.end)
                found.items.append(Item(stated, place, labels, len(found.items), is_label=True))
        if not part.holds:
            return words
        values = values_of(self._text, own, self._language)
        given = next((unit for label in segment.labels if (unit := unit_of_label(label)) is not None), None)
        near_of = _near_words(values, part) if values else {}
        for value in values:
            near = labels | near_of[value.first]
            measured = _measured(value, given)
            found.items.append(
                Item(measured, place, near if len(near) >= _LEAST_WORDS else words, len(found.items))
            )
        return words


@dataclass(frozen=True, slots=True)
class _SegmentTokens:
    """Tokens of one segment with the stem of each; of ``wide`` scripts stems are not of tokens. ``holds``: a value may begin there."""

    listed: Sequence[Token]
    stems: Sequence[str]
    wide: bool
    holds: bool

    def parts(self) -> Iterator[_SegmentTokens]:
        """Yield the parts of a sentence: one, unless it is a text without full stops."""
        if 0 < len(self.listed) <= _LONGEST:
            yield self
            return
        for at in range(0, len(self.listed), _LONGEST):
            behind = at + _LONGEST
            yield _SegmentTokens(self.listed[at:behind], self.stems[at:behind], self.wide, self.holds)

    @property
    def words(self) -> frozenset[str]:
        """The stems of its words."""
        return frozenset(_stems(self.listed)) if self.wide else frozenset(self.stems) - _NOTHING


def _near_words(values: Sequence[TypedValue], part: _SegmentTokens) -> dict[int, frozenset[str]]:
    """Return for each value, by its first token, the words of its clause that belong to no value."""
    own = part.listed
    taken = [False] * len(own)
    for value in values:
        for at in range(value.first, value.behind):
            taken[at] = True
    found: dict[int, frozenset[str]] = {}
    for low, high in _clauses(own):
        inside = [value.first for value in values if low <= value.first < high]
        if inside:
            if part.wide:
                words = frozenset(_stems(own[at] for at in range(low, high) if not taken[at]))
            else:
                stems = part.stems
                words = frozenset([stems[at] for at in range(low, high) if not taken[at]]) - _NOTHING
            found |= dict.fromkeys(inside, words)
    return found


def _measured(value: TypedValue, given: tuple[str, Decimal, ValueKind] | None) -> TypedValue:
    """Return a bare number with the unit that its key or heading gives."""
    bare = value.kind is ValueKind.COUNT and not value.unit and not value.nouns
    if given is None or not (bare or (value.unsure and value.parts.keys() == {"year"})):
        return value
    unit, factor, kind = given
    return replace(
        value,
        kind=kind,
        unit=unit,
        amounts=tuple(each * factor for each in value.amounts),
        place=value.place * factor,
        factor=value.factor * factor,
        parts={},
        unsure=False,
    )


@lru_cache(maxsize=8192)
def _label_words(label: str) -> tuple[str, ...]:
    return tuple(_stems(tokens(label)))


@lru_cache(maxsize=1 << 16)
def _word_stem(low: str) -> str:
    return "" if low in _STOPS else stem(low)


def _word_stems(listed: Iterable[Token]) -> list[str]:
    return [_word_stem(low) if sort == WORD else "" for sort, _, _, low in listed]


def _stems(listed: Iterable[Token]) -> list[str]:
    found: list[str] = []
    for sort, _, _, low in listed:
        if sort == WORD:
            if word := _word_stem(low):
                found.append(word)
        elif sort in _WIDE:
            found += [low[at : at + 2] for at in range(len(low) - 1)] or [low]
    return found


@lru_cache(maxsize=8192)
def unit_of_label(label: str) -> tuple[str, Decimal, ValueKind] | None:
    """Return the unit that a key or a heading gives its values: "distance km", "cost gbp", "net (£)", "change pct"."""
    words = [token.low for token in tokens(label)]
    if (last := label.rpartition(" ")[2]) in UNITS and last[-1:].isdigit():
        return UNITS[last].sort, UNITS[last].factor, ValueKind.MEASURE
    for at, word in enumerate(reversed(words)):
        if at + 1 < len(words) and words[-at - 2] in ("per", "/"):
            continue  # "rent per week" gives no weeks
        if word in _SHARES_AND_SUMS:
            return _SHARES_AND_SUMS[word]
        if word in UNITS and (word not in SHORT_KEYS or (at == 0 and word in _LETTERS)):
            if "".join(words[:-1]).endswith("mol"):
                return None
            if at == 0 or _measures(words, at):
                return UNITS[word].sort, UNITS[word].factor, ValueKind.MEASURE
    return None


def _measures(words: Sequence[str], at: int) -> bool:
    """Return whether a unit before the last word is that of a label: "net (km)", "km run"."""
    time_behind = UNITS[words[-at - 1]].sort == "time" and at == 1
    return time_behind or words[-1] in (")", "]") or len(words) < 3


@lru_cache(maxsize=8192)
def _values_of_label(label: str) -> tuple[TypedValue, ...]:
    # Names of months and days have capitals, signs of units their own letters.
    named = " ".join(each.title() if len(each) > 2 and each.isalpha() else each for each in label.split())
    return tuple(replace(each, start=0, end=0) for each in typed_values(named, language="en"))


def _clauses(own: Sequence[Token]) -> list[tuple[int, int]]:
    """Return ranges of tokens: clauses by marks and conjunctions, not within numbers."""
    cuts = [at for at, (sort, _, _, low) in enumerate(own) if low in _CLAUSE_CUTS or sort == BREAK]
    return [(low, high) for low, high in pairwise((0, *cuts, len(own))) if low < high]

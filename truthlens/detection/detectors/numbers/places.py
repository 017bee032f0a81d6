"""Index the values of texts by amount, by part of a date and by the words around them. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from truthlens.text.values.comparison import completed
from truthlens.text.values.typed import TypedValue, ValueKind

PASSAGE_CONFIDENCE = 0.8
"""How sure a finding from a passage is (numeric-claims: 0.8 for documents, 1.0 for the database)."""
KNOWN = -1
"""The passage of a value that a source knows."""


@dataclass(frozen=True, slots=True)
class Place:
    """A segment of one text: its words, and those of what surrounds it (headings, labels, the sentence before).

    ``passage`` is ``KNOWN`` for a value of a source, whose name is ``source``; ``confidence`` is the source's, 0..1.
    """

    passage: int
    start: int
    end: int
    words: frozenset[str]
    context: frozenset[str]
    record: int = -1
    labels: tuple[str, ...] = ()
    confidence: float = PASSAGE_CONFIDENCE
    source: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A value where it stands: ``near`` are the stems of its clause, or of its keys; ``place`` numbers its segment."""

    value: TypedValue
    place: int
    near: frozenset[str]
    number: int = 0
    is_label: bool = False


@dataclass(slots=True)
class Text:
    """The places and values of one or several texts; ``sources`` are the texts by the number of their passage."""

    places: list[Place] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    complete: bool = True
    sources: dict[int, str] = field(default_factory=dict)


def _amounts(value: TypedValue) -> list[float]:
    """Return all amounts of a value, with and without its unit."""
    found = [float(amount) for amount in value.amounts]
    return found if value.factor == 1 else [*found, *map(float, value.written)]


class Index:
    """Finds items by amount, by part of a date, and places by words.

    Args:
        text: what was read.
    """

    def __init__(self, text: Text) -> None:
        self.text = text
        self.places, self.items = text.places, text.items
        amounts = sorted({(amount, item.number) for item in text.items for amount in _amounts(item.value)})
        self._amounts = [amount for amount, _ in amounts]
        self._owners = [number for _, number in amounts]
        self._by_part: dict[tuple[str, int], list[int]] = {}
        self._versions: dict[str, list[int]] = {}
        self.of_place: dict[int, list[int]] = {}
        self.of_record: dict[int, list[int]] = {}
        self.of_column: dict[tuple[int, str], list[int]] = {}
        for item in text.items:
            self.of_place.setdefault(item.place, []).append(item.number)
            place = text.places[item.place]
            if place.record >= 0 and not item.is_label:
                self.of_record.setdefault(place.record, []).append(item.number)
                if place.labels:
                    self.of_column.setdefault((place.passage, place.labels[0]), []).append(item.number)
            for part in completed(item.value.parts).items():
                self._by_part.setdefault(part, []).append(item.number)
            if item.value.kind is ValueKind.VERSION:
                self._versions.setdefault(item.value.unit, []).append(item.number)
        postings: defaultdict[str, list[int]] = defaultdict(list)
        for number, place in enumerate(text.places):
            for word in place.words | place.context if place.record >= 0 else place.words:
                postings[word].append(number)
        self.postings: Mapping[str, list[int]] = dict(postings)

    def between(self, low: float, high: float, *, most: int = 40) -> list[Item]:
        """Return the items with an amount of ``low`` to ``high``, both included: of many, those nearest to the middle."""
        first, last = bisect_left(self._amounts, low), bisect_right(self._amounts, high)
        if last - first > most:
            middle = bisect_left(self._amounts, (low + high) / 2)
            first, last = max(first, middle - most // 2), min(last, middle + most // 2)
        return [self.items[number] for number in self._owners[first:last]]

    def dated(self, value: TypedValue, *, most: int = 60) -> list[Item]:
        """Return the items that share a part with a date, or one that follows from their parts: the decade of a year."""
        numbers = {number for part in value.parts.items() for number in self._by_part.get(part, ())[:most]}
        return [self.items[number] for number in sorted(numbers)]

    def versions(self, version: str) -> list[Item]:
        """Return the items that are this version."""
        return [self.items[number] for number in self._versions.get(version, ())]

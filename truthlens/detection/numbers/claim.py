"""Align one value of an answer with the places of the evidence, by shared words weighted by their rarity. Pure."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from truthlens.detection.numbers.comparison import Comparer, comparable
from truthlens.detection.numbers.places import Index, Item, Place
from truthlens.detection.numbers.risk import Signs
from truthlens.text.values.quantities import Bound, TypedValue, ValueKind

# How much a shared word says by where it stands: in the same clause or among the keys, in the same sentence, in the same record,
# around it.
_NEAR, _PLACE, _RECORD, _CONTEXT = 1.0, 0.55, 0.45, 0.25
_REST, _BEFORE = (
    0.35,
    0.2,
)  # of the claim's own sentence beyond the clause of the value, and of the sentence before
_UNKNOWN_WORDS = 0.3
_MOST_PLACES = 12
_MOST_POSTINGS = 400
_MOST_OF_PLACE = 30
_MISPLACED, _CLEARLY = (
    0.5,
    0.55,
)  # alignment of the other value, and how much better than that of the same one
_SWAPPED, _SWAPPED_IN_RECORD, _SWAPPED_BY = (
    0.7,
    0.55,
    0.08,
)  # the same, where the words that tell two items apart stand with the other one
_SMALL = 13
_COMPARES = re.compile(
    r"\b(?:than|more|less|fewer|later|earlier|longer|shorter|dearer|cheaper|higher|lower|bigger|further|extra|difference|gap|left"
    r"|remain\w*|by|mehr|weniger|als|länger|plus|moins|más|menos)\b|比|多|少",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"\b(?:total|altogether|in all|sum|combined|together|comes? to|adds? up|both|overall|between them|makes?|would|saves?|twice|half"
    r"|double|insgesamt|zusammen|gesamt|au total|ensemble|en total|juntos)\b|[=+]|总共|共计|合计|一共|合計",
    re.IGNORECASE,
)
_EACH = re.compile(
    r"\b(?:each|every|per|for (?:two|three|four|five|six|seven|a)|of (?:these|those|them|which)|je|pro|chaque|cada)\b",
    re.IGNORECASE,
)
_LIMITS = re.compile(
    r"\b(?:limit\w*|maximum|minimum|most|least|longest|shortest|largest|smallest|highest|biggest|latest|earliest|ceiling|cap|deadline"
    r"|last day|ends?|ended|begins?|began|starts?|started|expires?|effect"
    r"|period|up to|no (?:more|less|later|fewer)|höchstens|mindestens|maximal|spätestens|au plus|au moins"
    r"|máximo|mínimo|plazo)\b|最多|至少|上限|不超过",
    re.IGNORECASE,
)
_STRICTLY = re.compile(
    r"\b(?:before|after|than|vor|nach|avant|après|antes de|después de)(?: the)? *$", re.IGNORECASE
)
_SUPPOSES = re.compile(
    r"\b(?:would|could|someone|somebody|anyone|if|for instance|example|suppose|whoever|wenn|würde|si|ejemplo)\b|如果|例如",
    re.IGNORECASE,
)


def _cues(sentence: str) -> tuple[bool, bool, bool, bool]:
    """Return whether a sentence compares, sums up, speaks of each, and supposes something."""
    compares, total, each, supposes = (
        pattern.search(sentence) is not None for pattern in (_COMPARES, _TOTAL, _EACH, _SUPPOSES)
    )
    return compares, total, each, supposes


@dataclass(frozen=True, slots=True)
class Found:
    """What the evidence gives of an answer's values.

    ``equals`` are the equal values of the evidence by the number of the answer's, ``taken`` the numbers of all of them;
    ``of_place`` are the answer's values by their place; ``cues`` keeps what was read of each place's sentence.
    """

    equals: Mapping[int, Sequence[Item]]
    taken: frozenset[int]
    of_place: Mapping[int, Sequence[Item]]
    cues: dict[int, tuple[bool, bool, bool, bool]] = field(default_factory=dict)


class Claim:
    """One value of the answer with what its sentence says, and the places of the evidence that are nearest to it.

    Args:
        item: the value.
        place: its sentence, row or key.
        sentence: the text of it.
        evidence: the values and places of the passages.
        comparer: says whether two values are equal.
        found: what the evidence gives of the answer's values.
    """

    def __init__(
        self, item: Item, place: Place, sentence: str, *, evidence: Index, comparer: Comparer, found: Found
    ) -> None:
        self.item, self._place = item, place
        self._evidence, self._comparer, self._equals, self._taken = (
            evidence,
            comparer,
            found.equals,
            found.taken,
        )
        self._siblings = [each for each in found.of_place[item.place] if each is not item]
        if item.place not in found.cues:
            found.cues[item.place] = _cues(sentence)
        self.compares, self.total, self.each, self.supposes = found.cues[item.place]
        said = item.value.start - place.start
        self.limits = _LIMITS.search(sentence) is not None
        self._is_strict = (
            bool(item.value.parts) and _STRICTLY.search(sentence[max(0, said - 16) : said]) is not None
        )
        self.is_points = item.value.kind is ValueKind.PERCENTAGE and "point" in sentence
        self._weigh()

    @property
    def start(self) -> int:
        """The character at which its sentence begins."""
        return self._place.start

    @property
    def is_bare(self) -> bool:
        """Whether it is the only value, and no sentence stands before its own."""
        return not (self._siblings or self._place.context)

    def _idf(self, word: str) -> float:
        """Return the rarity of a word among the places of the evidence, > 0."""
        postings = self._evidence.postings.get(word)
        return math.log(1.0 + max(1, len(self._evidence.places)) / (len(postings) if postings else 1))

    def _weigh(self) -> None:
        near = self.item.near
        postings = self._evidence.postings
        self._known: dict[str, float] = {}
        self._missing = 0.0
        for word in self._place.words:
            weight = self._idf(word) * (1.0 if word in near else _REST)
            if word in postings:
                self._known[word] = weight
            elif word in near:
                self._missing += weight
        for word in self._place.context - self._place.words:
            if word in postings:
                self._known[word] = _BEFORE * self._idf(word)
        self._sum = sum(self._known.values())
        scores: dict[int, float] = {}
        for word, weight in self._known.items():
            for number in postings[word][:_MOST_POSTINGS]:
                scores[number] = scores.get(number, 0.0) + weight
        # Rounded, and earlier places first: no verdict hangs on the order of a set.
        self._nearest = heapq.nlargest(
            _MOST_PLACES, scores, key=lambda number: (round(scores[number], 9), -number)
        )

    def _aligned(self, item: Item) -> float:
        """Return the share of the claim's words that stand with a value of the evidence, 0..1."""
        place, near = self._evidence.places[item.place], item.near
        around = _CONTEXT if place.record < 0 else _RECORD
        held = 0.0
        for word, weight in self._known.items():
            if word in near:
                held += weight * _NEAR
            elif word in place.words:
                held += weight * _PLACE
            elif word in place.context:
                held += weight * around
        whole = self._sum + _UNKNOWN_WORDS * self._missing
        return held / whole if whole > 0.0 else 0.0

    def same(self) -> tuple[float, Item] | None:
        """Return the best aligned of the equal values, with its alignment."""
        found = self._equals[self.item.number]
        return max(((self._aligned(each), each) for each in found), key=lambda pair: pair[0], default=None)

    def others(self) -> list[tuple[float, Item]]:
        """Return the values that could stand in its place and differ, in the nearest places, best aligned first."""
        value, evidence, comparer = self.item.value, self._evidence, self._comparer
        found = [
            (self._aligned(each), each)
            for number in self._nearest
            for each in map(
                evidence.items.__getitem__, evidence.of_place.get(number, ())[: 2 * _MOST_OF_PLACE]
            )
            if not each.is_label and self._comparable(value, each) and not comparer.equal(value, each.value)
        ]
        return sorted(found, key=lambda pair: -pair[0])

    def _comparable(self, value: TypedValue, item: Item) -> bool:
        if comparable(value, item.value):
            return True
        bare = item.value.kind is ValueKind.COUNT and not item.value.nouns and not item.value.unsure
        if bare and self._evidence.places[item.place].record >= 0:
            return value.kind in (ValueKind.CURRENCY, ValueKind.MEASURE, ValueKind.RATIO)
        return False

    def is_misplaced(self, same: tuple[float, Item], other: tuple[float, Item]) -> bool:
        """Return whether the evidence gives the value for another item, and another value for this one."""
        if other[0] < _MISPLACED or other[0] - same[0] < _CLEARLY or not self._may_be_elsewhere(other[1]):
            return False
        return same[1].place != other[1].place

    def _may_be_elsewhere(self, other: Item) -> bool:
        value = self.item.value
        exact = value.bound is Bound.EXACT or (bool(value.parts) and not self._is_strict)
        plain = not value.unsure and value.unit != "share" and exact
        return plain and other.number not in self._taken

    def is_swapped(self, same: tuple[float, Item], other: tuple[float, Item]) -> bool:
        """Return whether the claim has what tells the other value's clause, row or key from this one's, and nothing of this one's."""
        record = self._evidence.places[other[1].place].record >= 0
        if other[0] < (_SWAPPED_IN_RECORD if record else _SWAPPED) or other[0] - same[0] < _SWAPPED_BY:
            return False
        if not self._may_be_elsewhere(other[1]) or self.compares or self.supposes:
            return False
        value = self.item.value
        if value.kind in (ValueKind.COUNT, ValueKind.LABEL) and not set(value.nouns) & set(
            other[1].value.nouns
        ):
            return False
        places = self._evidence.places
        mine, theirs = places[same[1].place], places[other[1].place]
        own = same[1].near if mine is theirs else same[1].near | mine.words
        told = any(word in other[1].near and word not in own for word in self.item.near)
        # In another sentence, what only stands around the value tells nothing of this one.
        around = frozenset() if mine is theirs else theirs.words - other[1].near
        kept = any(
            word in same[1].near and word not in other[1].near and word not in around
            for word in self._place.words
        )
        return told and not kept and bool(same[1].near & other[1].near) and bool(same[1].near - other[1].near)

    @property
    def operands(self) -> list[Item]:
        """The values from which the claim may follow: of the nearest places, their records and columns."""
        evidence = self._evidence
        numbers: dict[int, None] = {}
        for at, number in enumerate(self._nearest[:6]):
            place = evidence.places[number]
            numbers |= dict.fromkeys(evidence.of_place.get(number, ())[:_MOST_OF_PLACE])
            if place.record >= 0 and at < 3:
                numbers |= dict.fromkeys(evidence.of_record.get(place.record, ())[:_MOST_OF_PLACE])
                if place.labels:
                    numbers |= dict.fromkeys(
                        evidence.of_column.get((place.passage, place.labels[0]), ())[:_MOST_OF_PLACE]
                    )
        return [evidence.items[number] for number in numbers if not evidence.items[number].is_label]

    def signs(self, others: Sequence[tuple[float, Item]], *, sums: bool) -> Signs:
        """Return what speaks for and against an error, for a value that stands nowhere."""
        value, evidence, comparer = self.item.value, self._evidence, self._comparer
        other = others[0] if others else None
        second = next(
            (pair for pair in others[1:] if other and not comparer.equal(pair[1].value, other[1].value)), None
        )
        aligned = other[0] if other else 0.0
        at = other[1].place if other else self._nearest[0] if self._nearest else -1
        there = [any(each.place == at for each in self._equals[sibling.number]) for sibling in self._siblings]
        whole = self._sum + self._missing
        nearest = 0.0
        if self._nearest and whole:
            words = evidence.places[self._nearest[0]].words
            nearest = sum(weight for word, weight in self._known.items() if word in words) / whole
        small = bool(value.amounts) and value.written[0] < _SMALL
        kind = value.kind
        return Signs(
            aligned=aligned,
            aligned_nearest=nearest
            if other and self._nearest and other[1].place == self._nearest[0]
            else 0.0,
            nearest=nearest,
            margin=aligned - (second[0] if second else 0.0),
            missing=min(3, sum(not self._equals[sibling.number] for sibling in self._siblings)),
            values=min(5, len(self._siblings) + 1),
            others_there=sum(there) / len(there) if there else 0.5,
            total=self.total,
            compares=self.compares,
            supposes=self.supposes,
            sums=sums,
            small_count=small and kind is ValueKind.COUNT,
            small_span=small and kind is ValueKind.MEASURE and value.unit in ("time", "months"),
            month_or_day=value.parts.keys() in ({"month"}, {"weekday"}),
            percent=kind is ValueKind.PERCENTAGE and value.unit != "share",
            date=kind is ValueKind.DATE,
            time=kind is ValueKind.TIME,
            count=kind is ValueKind.COUNT,
            taken=other is not None and other[1].number in self._taken,
            unknown_words=self._missing / whole if whole else 1.0,
            unsure=value.unsure,
            share=value.unit == "share",
            record=other is not None and evidence.places[other[1].place].record >= 0,
        )

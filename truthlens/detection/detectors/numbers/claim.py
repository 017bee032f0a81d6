"""Align one value of an answer with the places of the evidence, by shared words weighted by their rarity. Pure."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from truthlens.detection.detectors.numbers.derivation import applied, times
from truthlens.detection.detectors.numbers.listing import could_be
from truthlens.detection.detectors.numbers.places import Index, Item, Place
from truthlens.detection.detectors.numbers.risk import Signs
from truthlens.text.values.comparison import (
    ValueComparer,
    comparable,
    counts_same,
    is_other_unit,
    lies_within,
    says_same,
)
from truthlens.text.values.typed import Bound, ValueKind

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
_OTHER_SORT = 0.3  # alignment from which a bare number is taken for a measure, or the other way round
_PROVES, _PROVES_OTHER_SORT = 0.3, 0.56  # alignment from which an equal value is the claim's own
_OTHER_UNIT, _OTHER_SMALL_UNIT = (
    0.35,
    0.6,
)  # alignment from which the same figure with another unit is what the claim should say
_SMALL = 13
_MOST_JOINED = 3
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
_EVENT = "before|after|vor|nach|avant|après|antes de|después de"
_STRICTLY = re.compile(rf"\b(?:{_EVENT}|than)(?: the)? *$", re.IGNORECASE)
_TO_EVENT = re.compile(rf" *(?:{_EVENT})\b", re.IGNORECASE)
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
class EqualValues:
    """What the evidence gives of an answer's values.

    ``equals`` are the equal values of the evidence by the number of the answer's, ``taken`` the numbers of all of them,
    ``claimed`` of those of which nothing says another thing than the answer;
    ``of_place`` are the answer's values by their place; ``cues`` keeps what was read of each place's sentence.
    """

    equals: Mapping[int, Sequence[Item]]
    taken: frozenset[int]
    claimed: frozenset[int]
    of_place: Mapping[int, Sequence[Item]]
    cues: dict[int, tuple[bool, bool, bool, bool]] = field(default_factory=dict)


class AlignedClaim:
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
        self,
        item: Item,
        place: Place,
        sentence: str,
        *,
        evidence: Index,
        comparer: ValueComparer,
        found: EqualValues,
    ) -> None:
        self.item, self._place = item, place
        self._evidence, self._comparer, self._equals = evidence, comparer, found.equals
        self._taken, self._claimed = found.taken, found.claimed
        # "Every month 39 dollars": how often is said of the other values.
        self._siblings = [
            each
            for each in found.of_place[item.place]
            if each is not item and not each.value.unit.startswith("every")
        ]
        if item.place not in found.cues:
            found.cues[item.place] = _cues(sentence)
        self.compares, self.total, self.each, self.supposes = found.cues[item.place]
        said = item.value.start - place.start
        self.limits = _LIMITS.search(sentence) is not None
        self._is_strict = (
            bool(item.value.parts) and _STRICTLY.search(sentence[max(0, said - 16) : said]) is not None
        )
        # "32 years after it was built"
        self.is_span = (
            item.value.kind is ValueKind.MEASURE
            and item.value.unit in ("time", "months")
            and _TO_EVENT.match(sentence, item.value.end - place.start) is not None
        )
        self._is_small = bool(item.value.amounts) and item.value.written[0] < _SMALL
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
        # Rounded: it is summed in the order of a set, and no verdict hangs on that.
        return round(held / whole, 9) if whole > 0.0 else 0.0

    @cached_property
    def same(self) -> tuple[float, Item] | None:
        """The best aligned of the equal values, with its alignment; one of another sort has to be well aligned.

        A bare number is as often one of something else: "one label in twenty" gives no twenty days.
        """
        return max(self._same, key=lambda pair: pair[0], default=None)

    @cached_property
    def _same(self) -> list[tuple[float, Item]]:
        aligned = ((self._aligned(each), each) for each in self._equals[self.item.number])
        return [
            (share, each)
            for share, each in aligned
            if share >= _OTHER_SORT or comparable(self.item.value, each.value)
        ]

    @cached_property
    def others(self) -> list[tuple[float, Item]]:
        """The values that could stand in its place and differ, in the nearest places, best aligned first."""
        value, evidence, comparer = self.item.value, self._evidence, self._comparer
        found = [
            (self._aligned(each), each)
            for number in self._nearest
            for each in map(
                evidence.items.__getitem__, evidence.of_place.get(number, ())[: 2 * _MOST_OF_PLACE]
            )
            if not each.is_label
            and could_be(value, each, evidence)
            and not comparer.equal(value, each.value)
            and not lies_within(value, each.value)
        ]
        return sorted(found, key=lambda pair: (-pair[0], pair[1].number))

    def proving(self) -> tuple[float, Item] | None:
        """Return the best aligned of the equal values that are of what the claim speaks of."""
        return max(filter(self._proves, self._same), key=lambda pair: pair[0], default=None)

    def _proves(self, same: tuple[float, Item]) -> bool:
        aligned, item = same
        value, given = self.item.value, item.value
        plain = comparable(value, given) and self._names_counted(item)
        return says_same(value, given) and aligned >= (_PROVES if plain else _PROVES_OTHER_SORT)

    def _names_counted(self, item: Item) -> bool:
        """Return whether the noun of one of two counts is among the words of the other; true otherwise."""
        value, given = self.item.value, item.value
        if not value.kind is given.kind is ValueKind.COUNT or bool(value.nouns) == bool(given.nouns):
            return True
        if given.nouns:  # "forty", and {"rooms": 40}
            return self._place.record < 0 or not self._place.words.isdisjoint(given.nouns)
        place = self._evidence.places[item.place]
        if not (item.near | place.words).isdisjoint(value.nouns):
            return True
        if place.record >= 0:  # another key or heading may have the noun
            return place.context.isdisjoint(value.nouns)
        return value.nouns[0] not in self._evidence.postings or not place.context.isdisjoint(value.nouns)

    def counted_instead(self, same: tuple[float, Item]) -> tuple[float, Item] | None:
        """Return how many there are of what the claim counts, where its number is of something else there."""
        value, given = self.item.value, same[1].value
        if not value.kind is given.kind is ValueKind.COUNT or counts_same(value, given):
            return None
        reckons = self.compares or self.supposes or self.each or self.total
        if reckons or not (value.plural and given.plural and self._is_plain_value()):
            return None
        return next(
            (
                (aligned, each)
                for aligned, each in self.others
                if aligned >= _SWAPPED_IN_RECORD
                and each.place == same[1].place
                and each.value.plural
                and counts_same(value, each.value)
                and each.number not in self._claimed
            ),
            None,
        )

    def with_other_unit(self) -> tuple[float, Item] | None:
        """Return the value of the same thing in the evidence that has the claim's figure and another unit."""
        if self.compares or self.supposes or self.item.value.bound is not Bound.EXACT:
            return None
        # Spans of few days and of few weeks have one number by chance.
        value, small = self.item.value, self._is_small
        if small and value.spelled and value.unit in ("time", "months"):
            return None
        best = self.others[0][0] if self.others else 0.0
        least = max(best, _OTHER_SMALL_UNIT if small else _OTHER_UNIT)
        near = ((self._aligned(each), each) for each in self.near_items)
        return next(
            (
                (aligned, each)
                for aligned, each in (*self.others, *near)
                if aligned >= least
                and (not small or each.place in self._nearest[:1])
                and self._differs_by_unit(each)
            ),
            None,
        )

    def _differs_by_unit(self, other: Item) -> bool:
        value, given = self.item.value, other.value
        exact = given.bound is Bound.EXACT and is_other_unit(value, given)
        return exact and not self._comparer.equal(value, given)

    def is_misplaced(self, same: tuple[float, Item], other: tuple[float, Item]) -> bool:
        """Return whether the evidence gives the value for another item, and another value for this one."""
        if other[0] < _MISPLACED or other[0] - same[0] < _CLEARLY or not self._may_be_elsewhere(other[1]):
            return False
        return same[1].place != other[1].place

    def _may_be_elsewhere(self, other: Item) -> bool:
        return self._is_plain_value() and other.number not in self._taken

    def _is_plain_value(self) -> bool:
        value = self.item.value
        exact = value.bound is Bound.EXACT or (bool(value.parts) and not self._is_strict)
        return not value.unsure and value.unit != "share" and exact

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
        return self._stands_with(other[1], same[1])

    def _stands_with(self, other: Item, same: Item) -> bool:
        """Return whether the sentence has what tells one value of the evidence from another, and not the reverse."""
        places = self._evidence.places
        mine, theirs = places[same.place], places[other.place]
        own = same.near if mine is theirs else same.near | mine.words
        # In another sentence, what only stands around the value tells nothing of this one.
        around = frozenset[str]() if mine is theirs else theirs.words - other.near
        told = self.item.near & (other.near - own)
        kept = self._place.words & (same.near - other.near - around)
        return bool(told) and not kept and bool(same.near & other.near) and bool(same.near - other.near)

    def names(self, item: Item) -> bool:
        """Return whether the claim's sentence names what a value of the evidence is of."""
        return bool((frozenset(item.value.nouns) or item.near) & self._place.words)

    @cached_property
    def operands(self) -> list[Item]:
        """The values from which the claim may follow: those near it that its sentence names."""
        return [item for item in self.near_items if self.names(item)]

    @cached_property
    def near_items(self) -> list[Item]:
        """The values of the nearest places, of their records and columns."""
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

    def applied(self) -> bool | None:
        """Return what ``derivation.applied`` says of the sentences of the evidence that are nearest."""
        evidence = self._evidence
        value, near = self.item.value, self._nearest[:_MOST_JOINED]
        told = []
        for number in near:
            items = [evidence.items[each] for each in evidence.of_place.get(number, ())[:_MOST_OF_PLACE]]
            told.append(applied(value, items))
            told.append(None if times(value, items, [each.value for each in self._siblings]) else False)
        return True if True in told else None if None in told else False

    def _missing_values(self, other: tuple[float, Item] | None) -> int:
        """Return how many other values of the sentence the evidence lacks, those aside that stand in place of one of its own.

        A sentence that reckons has values that the evidence does not give. One that repeats a sentence of it with other figures has as
        many of each sort as that: then each of them is as wrong as if it stood alone.
        """
        lacking = [each for each in self._siblings if not self._equals[each.number]]
        if other is None or not lacking:
            return len(lacking)
        left = [
            each
            for place in {other[1].place: None} | dict.fromkeys(self._nearest[:_MOST_JOINED])
            for each in map(self._evidence.items.__getitem__, self._evidence.of_place.get(place, ()))
            if each is not other[1] and not each.is_label and each.number not in self._taken
        ]
        missing = 0
        for sibling in lacking:
            instead = next((each for each in left if comparable(sibling.value, each.value)), None)
            if instead is None:
                missing += 1
            else:
                left.remove(instead)
        return missing

    def signs(self, *, sums: bool) -> Signs:
        """Return what speaks for and against an error, for a value that stands nowhere."""
        value, kind, other = self.item.value, self.item.value.kind, self.others[0] if self.others else None
        at = other[1].place if other else self._nearest[0] if self._nearest else -1
        there = [any(each.place == at for each in self._equals[sibling.number]) for sibling in self._siblings]
        whole = self._sum + self._missing
        signs = Signs(
            nearest=self._share_of_nearest(whole),
            missing=min(3, self._missing_values(other)),
            values=min(5, len(self._siblings) + 1),
            others_there=sum(there) / len(there) if there else 0.5,
            total=self.total,
            compares=self.compares,
            supposes=self.supposes,
            sums=sums,
            small_count=self._is_small and kind is ValueKind.COUNT,
            small_span=self._is_small and kind is ValueKind.MEASURE and value.unit in ("time", "months"),
            month_or_day=value.parts.keys() in ({"month"}, {"weekday"}),
            percent=kind is ValueKind.PERCENTAGE and value.unit != "share",
            date=kind is ValueKind.DATE,
            time=kind is ValueKind.TIME,
            count=kind is ValueKind.COUNT,
            unknown_words=self._missing / whole if whole else 1.0,
            unsure=value.unsure,
            share=value.unit == "share",
        )
        return signs if other is None else self._with_other(signs, *other)

    def _share_of_nearest(self, whole: float) -> float:
        """Return which share of the claim's words stands in the nearest place."""
        if not self._nearest or not whole:
            return 0.0
        words = self._evidence.places[self._nearest[0]].words
        return sum(weight for word, weight in self._known.items() if word in words) / whole

    def _with_other(self, signs: Signs, aligned: float, other: Item) -> Signs:
        """Return the signs with what the best aligned of the other values adds."""
        equal = self._comparer.equal
        second = next((share for share, each in self.others[1:] if not equal(each.value, other.value)), 0.0)
        is_nearest = bool(self._nearest) and other.place == self._nearest[0]
        return replace(
            signs,
            aligned=aligned,
            aligned_nearest=signs.nearest if is_nearest else 0.0,
            margin=aligned - second,
            small_count=signs.small_count and not set(self.item.value.nouns) & set(other.value.nouns),
            taken=other.number in self._taken,
            record=self._evidence.places[other.place].record >= 0,
        )

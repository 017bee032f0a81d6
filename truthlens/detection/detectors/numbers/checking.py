"""Check each value of an answer against the place of the evidence that speaks of the same thing. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from truthlens.core.cancellation import checkpoint
from truthlens.detection.detectors.numbers.claim import AlignedClaim, EqualValues
from truthlens.detection.detectors.numbers.derivation import follows, lies_between
from truthlens.detection.detectors.numbers.listing import Lists, members
from truthlens.detection.detectors.numbers.places import Index, Item, Place
from truthlens.detection.detectors.numbers.precedence import DECIDED_SCORE, Decider, SourceDecision, stems
from truthlens.detection.detectors.numbers.risk import (
    BARE_SCORE,
    CITED_SCORE,
    MISPLACED_SCORE,
    REPORTED,
    STRICT_SCORE,
    SWAPPED_SCORE,
    probability,
    score_of,
)
from truthlens.text.values.comparison import ValueComparer, says_same
from truthlens.text.values.typed import Bound, TypedValue, ValueKind
from truthlens.text.values.units import UNITS


class ValueOutcome(StrEnum):
    """What was found of a value."""

    VERIFIED = "verified"
    DERIVED = "derived"
    CONTRADICTED = "contradicted"
    MISPLACED = "misplaced"
    ABSENT = "absent"
    UNKNOWN = "unknown"


SUPPORTED = frozenset((ValueOutcome.VERIFIED, ValueOutcome.DERIVED))
FLAGGED = frozenset((ValueOutcome.CONTRADICTED, ValueOutcome.MISPLACED, ValueOutcome.ABSENT))


@dataclass(frozen=True, slots=True)
class ValueFinding:
    """What was found of one value of the answer.

    ``evidence`` is the value of the evidence that decides, ``sureness`` how sure the outcome is, 0..1, ``similarity`` the share of
    the claim's words that stand with that value. ``score`` is 0 unless the value is flagged. ``decided`` says that a source
    decided against a passage.
    """

    item: Item
    outcome: ValueOutcome
    evidence: Item | None = None
    sureness: float = 1.0
    similarity: float = 0.0
    score: float = 0.0
    decided: bool = False


_OTHER = re.compile(
    r"\b(?:other|another|not|no|neither|except|excluding|without|before|after|was once)\b|n't\b",
    re.IGNORECASE,
)
# What a year behind it is of: a work that the answer cites.
_CITED = re.compile(r"(?:\bet al\.?|\baccording to [^.;()]{1,60}),?\s*\($", re.IGNORECASE)
_HOURS = range(25)
_BESIDE = 3  # tokens from one end of a range to the other
_CONTRADICTS = 0.35  # alignment at which another value of the same sort is what the evidence says instead


class ValueChecker:
    """Judges values against one body of evidence.

    Args:
        evidence: the values and places of the passages.
        comparer: says whether two values are equal.
        query: the values of the question: what comes from it is not the answer's claim.
        strict: whether every value that stands nowhere and does not follow is flagged.
    """

    def __init__(
        self,
        evidence: Index,
        comparer: ValueComparer,
        query: Sequence[TypedValue] = (),
        *,
        strict: bool = False,
    ) -> None:
        self._evidence, self._comparer, self._query, self._strict = evidence, comparer, query, strict
        self._decider = Decider(evidence, comparer)
        self._lists = Lists(evidence, comparer)
        self._keys: Counter[frozenset[str]] = Counter()

    def findings(self, text: str, items: Sequence[Item], places: Sequence[Place]) -> list[ValueFinding]:
        """Return what is found of the values of an answer.

        Args:
            text: the answer.
            items: its values.
            places: its sentences, rows and keys.
        """
        stated = [item for item in items if not item.is_label]
        by_place: dict[int, list[Item]] = {}
        for item in stated:
            by_place.setdefault(item.place, []).append(item)
        equals = {
            item.number: [
                *self._equal(item.value),
                *self._hours(item, places[item.place], by_place[item.place]),
            ]
            for item in stated
        }
        taken = frozenset(each.number for found in equals.values() for each in found)
        claimed = frozenset(
            each.number
            for item in stated
            for each in equals[item.number]
            if says_same(item.value, each.value)
        )
        known = EqualValues(equals, taken, claimed, by_place)
        self._keys = Counter(places[number].words for number in by_place)
        found: list[ValueFinding] = []
        for item in stated:
            checkpoint()
            place = places[item.place]
            sentence = text[place.start : place.end]
            claim = AlignedClaim(
                item, place, sentence, evidence=self._evidence, comparer=self._comparer, found=known
            )
            siblings = [each for each in by_place[item.place] if each is not item]
            found.append(
                self._decided(claim, siblings, sentence)
                or self._listed(claim, place, siblings, equals[item.number], text)
                or self._finding(claim, siblings, equals, sentence)
            )
        return found

    def _decided(self, claim: AlignedClaim, siblings: Sequence[Item], sentence: str) -> ValueFinding | None:
        """Return the finding where a source surely speaks of the same thing, whatever passages say."""
        item, same = claim.item, claim.same
        given = [same[1]] if same is not None else []
        decision = self._decider.decide(item, siblings, plain=_is_plain(claim, sentence))
        if decision is None:
            return None
        if not decision.agrees:
            decided = self._decider.disagrees(given)
            return (
                _against(item, decision, decided=decided) if decided or self._decider.knows(given) else None
            )
        rivals = [each for aligned, each in claim.others if aligned >= _CONTRADICTS]
        return ValueFinding(
            item, ValueOutcome.VERIFIED, decision.item, 1.0, 1.0, decided=self._decider.disagrees(rivals)
        )

    def _listed(
        self, claim: AlignedClaim, place: Place, siblings: Sequence[Item], equals: Sequence[Item], text: str
    ) -> ValueFinding | None:
        """Return the finding where the evidence lists the value for something else than the answer does."""
        item = claim.item
        sentence = text[place.start : place.end]
        in_records = all(self._evidence.places[each.place].record >= 0 for each in equals)
        if not equals or not _is_plain(claim, sentence) or (in_records and claim.total):
            return None
        if place.record >= 0:
            # Of objects that have the same keys, what else they hold says which is which.
            told = place.words if self._keys[place.words] < 2 else place.words | place.context
        elif siblings:
            listed = members(text, place.start, place.end, [item, *siblings]).get(item.number)
            clause = item.near if in_records and item.near != place.words else frozenset[str]()
            told = listed or clause
        else:
            first, behind = item.value.start - place.start, item.value.end - place.start
            told = stems(f"{sentence[:first]} {sentence[behind:]}")
        instead = self._lists.instead(item, told, equals) if told else None
        if instead is None:
            return None
        return ValueFinding(item, ValueOutcome.MISPLACED, instead, 1.0, 1.0, SWAPPED_SCORE)

    def _finding(
        self,
        claim: AlignedClaim,
        siblings: Sequence[Item],
        equals: Mapping[int, Sequence[Item]],
        sentence: str,
    ) -> ValueFinding:
        same, others = claim.same, claim.others
        item, value, other = claim.item, claim.item.value, others[0] if others else None
        if same is not None:
            return _of_equal(claim, same)
        before, after = sentence[: value.start - claim.start], sentence[value.end - claim.start :]
        asked = any(self._comparer.equal(value, each) for each in self._query)
        # What it would contradict, the sentence has already said: "no more than six hens (118)" cites a rule.
        said = other is not None and any(other[1] in equals[each.number] for each in siblings)
        if asked or (said and _is_bracketed(value, before, after)):
            return ValueFinding(item, ValueOutcome.UNKNOWN)
        if (instead := claim.with_other_unit()) is not None:
            return ValueFinding(
                item, ValueOutcome.CONTRADICTED, instead[1], instead[0], instead[0], SWAPPED_SCORE
            )
        sums = follows(value, claim.operands, cued=True)
        if (derived := self._derived(claim, sums=sums)) is not None:
            return ValueFinding(item, derived)
        return (
            self._against_source(claim, siblings, equals, sentence)
            or self._of_date(claim, before, after)
            or self._by_chance(claim, other, sums=sums)
        )

    def _against_source(
        self,
        claim: AlignedClaim,
        siblings: Sequence[Item],
        equals: Mapping[int, Sequence[Item]],
        sentence: str,
    ) -> ValueFinding | None:
        """Return the finding where a source gives another value, or is of another period."""
        item, before = claim.item, sentence[: claim.item.value.start - claim.start]
        decision = self._decider.decide(item, siblings, plain=_is_plain(claim, sentence))
        if decision is not None and not decision.agrees:
            return _against(item, decision, decided=False)
        period = self._decider.other_period(item.value, before, [equals[each.number] for each in siblings])
        if period is None:
            return None
        return ValueFinding(item, ValueOutcome.CONTRADICTED, period, 1.0, 1.0, DECIDED_SCORE)

    def _of_date(self, claim: AlignedClaim, before: str, after: str) -> ValueFinding | None:
        """Return the finding on a date that is the whole answer, and on the year of a work that is cited."""
        item, date = claim.item, self._instead(claim, before + after)
        if date is not None:
            return ValueFinding(item, ValueOutcome.CONTRADICTED, date, 1.0, 0.0, BARE_SCORE)
        if _CITED.search(before) and item.value.parts.keys() == {"year"}:
            return ValueFinding(item, ValueOutcome.ABSENT, None, 1.0, 0.0, CITED_SCORE)
        return None

    def _by_chance(
        self, claim: AlignedClaim, other: tuple[float, Item] | None, *, sums: bool
    ) -> ValueFinding:
        """Return the finding by how probable it is that the value is wrong."""
        item = claim.item
        if _is_case(claim, other) or _may_follow(claim):
            return ValueFinding(item, ValueOutcome.UNKNOWN)
        chance = probability(claim.signs(sums=sums))
        if chance < REPORTED and not self._strict:
            return ValueFinding(item, ValueOutcome.UNKNOWN)
        score = max(score_of(chance), STRICT_SCORE if self._strict else 0.0)
        if other is not None and other[0] >= _CONTRADICTS:
            return ValueFinding(item, ValueOutcome.CONTRADICTED, other[1], chance, other[0], score)
        return ValueFinding(
            item, ValueOutcome.ABSENT, None, chance, 0.0 if other is None else other[0], score
        )

    def _instead(self, claim: AlignedClaim, rest: str) -> Item | None:
        """Return a date of the evidence where the answer is a date of its sort and says nothing else: "Wednesday"."""
        value = claim.item.value
        if not claim.is_bare or stems(rest) or value.kind not in (ValueKind.DATE, ValueKind.TIME):
            return None
        keys = value.parts.keys()
        return next((each for each in self._evidence.items if each.value.parts.keys() == keys), None)

    def _derived(self, claim: AlignedClaim, *, sums: bool) -> ValueOutcome | None:
        """Return ``DERIVED`` where the value follows, ``UNKNOWN`` where it may by words that are not read."""
        value = claim.item.value
        if claim.is_span and lies_between(value, claim.near_items):
            # Between which two dates, only words tell that both sentences have.
            return ValueOutcome.DERIVED if lies_between(value, claim.operands) else ValueOutcome.UNKNOWN
        reckons = claim.compares or claim.total or value.kind is ValueKind.RATIO
        cued = reckons or claim.each or claim.supposes
        if (sums and (reckons or claim.is_points)) or (cued and follows(value, claim.operands, cued=False)):
            return ValueOutcome.DERIVED
        applied = claim.applied()
        return ValueOutcome.DERIVED if applied else ValueOutcome.UNKNOWN if applied is None else None

    def _equal(self, value: TypedValue) -> list[Item]:
        if value.kind is ValueKind.VERSION:
            return self._evidence.versions(value.unit)
        found: dict[int, Item] = {}
        if value.parts:
            found = {each.number: each for each in self._evidence.dated(value)}
        reach = self._comparer.reach(value)
        for amount in {*value.amounts, *value.written}:
            for low, high in _ranges(value, float(amount), reach):
                found |= {each.number: each for each in self._evidence.between(low, high)}
        return [each for each in found.values() if self._comparer.equal(value, each.value)]

    def _hours(self, item: Item, place: Place, siblings: Sequence[Item]) -> list[Item]:
        """Return the times of day that a bare number of a record may be: 18 of ``{"closes": 18}`` for 6 p.m.

        Two hours in a row are as often those between which something is open: "Monday: 9–18 h".
        """
        value = item.value
        bare = value.kind is ValueKind.COUNT and not value.nouns
        hours = value.named == "h" and any(
            each is not item and each.value.named == "h" and abs(each.value.first - value.first) <= _BESIDE
            for each in siblings
        )
        if place.record < 0 or not (bare or hours) or value.written[0] not in _HOURS:
            return []
        hour = int(value.written[0])
        halves = (0, 1) if 0 < hour <= 12 else (int(hour > 12),)
        wanted = replace(value, parts={"time": hour % 12 * 60})
        times = (each for each in self._evidence.dated(wanted) if each.value.kind is ValueKind.TIME)
        return [each for each in times if each.value.parts.get("half", halves[0]) in halves]


def _of_equal(claim: AlignedClaim, same: tuple[float, Item]) -> ValueFinding:
    """Return the finding where the evidence has an equal value, of the same thing or of another one."""
    item, other = claim.item, claim.others[0] if claim.others else None
    if other is not None and claim.is_swapped(same, other):
        return ValueFinding(item, ValueOutcome.CONTRADICTED, other[1], other[0], other[0], SWAPPED_SCORE)
    if other is not None and claim.is_misplaced(same, other):
        return ValueFinding(item, ValueOutcome.MISPLACED, other[1], other[0], other[0], MISPLACED_SCORE)
    if (instead := claim.counted_instead(same)) is not None:
        return ValueFinding(
            item, ValueOutcome.CONTRADICTED, instead[1], instead[0], instead[0], SWAPPED_SCORE
        )
    # The same figure of something else is no proof, and nothing against the claim.
    proving = claim.proving()
    known = ValueOutcome.UNKNOWN if proving is None else ValueOutcome.VERIFIED
    aligned, given = proving or same
    return ValueFinding(item, known, given, aligned, aligned)


def _is_plain(claim: AlignedClaim, sentence: str) -> bool:
    """Return whether a sentence says what is, and neither compares nor supposes nor speaks of something else."""
    return not (claim.compares or claim.each or claim.supposes or _OTHER.search(sentence))


def _is_case(claim: AlignedClaim, other: tuple[float, Item] | None) -> bool:
    """Return whether the claim may be a case that a rule of the evidence is applied to.

    "At least 350 mm" says nothing against a seat at 370 mm; "the limit is" states the rule.
    """
    if other is None or claim.limits or claim.item.value.bound is not Bound.EXACT:
        return False
    return other[1].value.bound in (Bound.ABOVE, Bound.BELOW)


def _may_follow(claim: AlignedClaim) -> bool:
    """Return whether a share, a multiple or a gap of points is of something that the sentence does not name."""
    value = claim.item.value
    return value.kind in (ValueKind.PERCENTAGE, ValueKind.RATIO) and follows(
        value, claim.near_items, cued=claim.is_points
    )


def _against(item: Item, decision: SourceDecision, *, decided: bool) -> ValueFinding:
    return ValueFinding(
        item, ValueOutcome.CONTRADICTED, decision.item, 1.0, 1.0, DECIDED_SCORE, decided=decided
    )


def _is_bracketed(value: TypedValue, before: str, after: str) -> bool:
    """Return whether a number without a unit stands alone in brackets behind words."""
    bracketed = (before[-1:], after[:1]) in (("(", ")"), ("[", "]")) and bool(before[:-1].strip())
    return bracketed and value.kind is ValueKind.COUNT and not value.nouns


def _ranges(value: TypedValue, amount: float, reach: float) -> list[tuple[float, float]]:
    """Return where the amounts of equal values may lie, over units that are converted."""
    factors = [1.0]
    if value.unit == "time":
        factors.append(1 / (30.4375 * 86400))
    elif value.unit == "months":
        factors.append(30.4375 * 86400)
    elif value.kind is ValueKind.PERCENTAGE:
        factors.append(0.01)
    elif value.kind is ValueKind.RATIO or (value.kind is ValueKind.COUNT and not value.nouns):
        factors.append(100.0)
    if value.per is not None:
        sort, own = value.per
        factors += {
            float(unit.factor / own) for unit in UNITS.values() if unit.sort == sort and unit.factor != own
        }
    found = []
    for factor in factors:
        slack = float(value.place) / 2 * factor
        low, high = sorted((amount * factor * (1 - reach), amount * factor * (1 + reach)))
        found.append((low - slack, high + slack))
        if amount:
            found.append((-high, -low))
    if value.unit in ("degree", "fahrenheit"):
        found += [(amount * 1.8 + 30, amount * 1.8 + 34), ((amount - 34) / 1.8, (amount - 30) / 1.8)]
    return found

"""Judge each value of an answer by the place of the evidence that speaks of the same thing. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from truthlens.core.cancellation import checkpoint
from truthlens.detection.numbers.claim import Claim, Found
from truthlens.detection.numbers.comparison import Comparer
from truthlens.detection.numbers.derivation import count_follows, follows, reckoned
from truthlens.detection.numbers.listing import Lists, members
from truthlens.detection.numbers.places import KNOWN, Index, Item, Place
from truthlens.detection.numbers.precedence import DECIDED_SCORE, Decider, Decision, stems
from truthlens.detection.numbers.risk import (
    BARE_SCORE,
    CITED_SCORE,
    MISPLACED_SCORE,
    REPORTED,
    STRICT_SCORE,
    SWAPPED_SCORE,
    probability,
    score_of,
)
from truthlens.text.values.quantities import Bound, TypedValue, ValueKind


class Outcome(StrEnum):
    """What was found of a value."""

    VERIFIED = "verified"
    DERIVED = "derived"
    CONTRADICTED = "contradicted"
    MISPLACED = "misplaced"
    ABSENT = "absent"
    UNKNOWN = "unknown"


SUPPORTED = frozenset((Outcome.VERIFIED, Outcome.DERIVED))
FLAGGED = frozenset((Outcome.CONTRADICTED, Outcome.MISPLACED, Outcome.ABSENT))


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one value of the answer.

    ``evidence`` is the value of the evidence that decides, ``sureness`` how sure the outcome is, 0..1, ``similarity`` the share of
    the claim's words that stand with that value. ``score`` is 0 unless the value is flagged. ``decided`` says that a source
    decided against a passage.
    """

    item: Item
    outcome: Outcome
    evidence: Item | None = None
    sureness: float = 1.0
    similarity: float = 0.0
    score: float = 0.0
    decided: bool = False


_MOST_OPERANDS = 120
_OTHER = re.compile(
    r"\b(?:other|another|not|no|neither|except|excluding|without|before|after|was once)\b|n't\b",
    re.IGNORECASE,
)
# What a year behind it is of: a work that the answer cites.
_CITED = re.compile(r"(?:\bet al\.?|\baccording to [^.;()]{1,60}),?\s*\($", re.IGNORECASE)
_CONTRADICTS = 0.35  # alignment at which another value of the same sort is what the evidence says instead


class Judge:
    """Judges values against one body of evidence.

    Args:
        evidence: the values and places of the passages.
        comparer: says whether two values are equal.
        query: the values of the question: what comes from it is not the answer's claim.
        strict: whether every value that stands nowhere and does not follow is flagged.
    """

    def __init__(
        self, evidence: Index, comparer: Comparer, query: Sequence[TypedValue] = (), *, strict: bool = False
    ) -> None:
        self._evidence, self._comparer, self._query, self._strict = evidence, comparer, query, strict
        self._decider = Decider(evidence, comparer)
        self._lists = Lists(evidence, comparer)
        # Of a source with many figures of many things, anything comes in two steps.
        self._operands_of_all = [
            item
            for item in evidence.items
            if not item.is_label and evidence.places[item.place].passage != KNOWN
        ][:_MOST_OPERANDS]

    def findings(self, text: str, items: Sequence[Item], places: Sequence[Place]) -> list[Finding]:
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
        equals = {item.number: self._equal(item.value) for item in stated}
        taken = frozenset(each.number for found in equals.values() for each in found)
        known = Found(equals, taken, by_place)
        found: list[Finding] = []
        for item in stated:
            checkpoint()
            place = places[item.place]
            sentence = text[place.start : place.end]
            claim = Claim(
                item, place, sentence, evidence=self._evidence, comparer=self._comparer, found=known
            )
            siblings = [each for each in by_place[item.place] if each is not item]
            found.append(
                self._decided(claim, siblings, sentence)
                or self._listed(claim, place, siblings, equals[item.number], text)
                or self._finding(claim, siblings, equals, sentence)
            )
        return found

    def _decided(self, claim: Claim, siblings: Sequence[Item], sentence: str) -> Finding | None:
        """Return the finding where a source surely speaks of the same thing, whatever passages say."""
        item, same = claim.item, claim.same()
        given = [same[1]] if same is not None else []
        decision = self._decider.decide(item, siblings, plain=_is_plain(claim, sentence))
        if decision is None:
            return None
        if not decision.agrees:
            decided = self._decider.disagrees(given)
            return (
                _against(item, decision, decided=decided) if decided or self._decider.knows(given) else None
            )
        rivals = [each for aligned, each in claim.others() if aligned >= _CONTRADICTS]
        return Finding(
            item, Outcome.VERIFIED, decision.item, 1.0, 1.0, decided=self._decider.disagrees(rivals)
        )

    def _listed(
        self, claim: Claim, place: Place, siblings: Sequence[Item], equals: Sequence[Item], text: str
    ) -> Finding | None:
        """Return the finding where the evidence lists the value for something else than the answer does."""
        item = claim.item
        sentence = text[place.start : place.end]
        if not equals or place.record >= 0 or not _is_plain(claim, sentence):
            return None
        if siblings:
            words = members(text, place.start, place.end, [item, *siblings]).get(item.number, frozenset())
        else:
            words = stems(sentence)
        instead = self._lists.instead(item, words, equals) if words else None
        if instead is None:
            return None
        return Finding(item, Outcome.MISPLACED, instead, 1.0, 1.0, SWAPPED_SCORE)

    def _finding(
        self, claim: Claim, siblings: Sequence[Item], equals: Mapping[int, Sequence[Item]], sentence: str
    ) -> Finding:
        same, others = claim.same(), claim.others()
        item, value, other = claim.item, claim.item.value, others[0] if others else None
        if same is not None:
            if other is not None and claim.is_swapped(same, other):
                return Finding(item, Outcome.CONTRADICTED, other[1], other[0], other[0], SWAPPED_SCORE)
            if other is not None and claim.is_misplaced(same, other):
                return Finding(item, Outcome.MISPLACED, other[1], other[0], other[0], MISPLACED_SCORE)
            return Finding(item, Outcome.VERIFIED, same[1], same[0], same[0])
        before, after = sentence[: value.start - claim.start], sentence[value.end - claim.start :]
        asked = any(self._comparer.equal(value, each) for each in self._query)
        # What it would contradict, the sentence has already said: "no more than six hens (118)" cites a rule.
        said = other is not None and any(other[1] in equals[each.number] for each in siblings)
        if asked or (said and _is_bracketed(value, before, after)):
            return Finding(item, Outcome.UNKNOWN)
        sums = follows(value, claim.operands, cued=True)
        if self._derived(claim, sums=sums):
            return Finding(item, Outcome.DERIVED)
        decision = self._decider.decide(item, siblings, plain=_is_plain(claim, sentence))
        if decision is not None and not decision.agrees:
            return _against(item, decision, decided=False)
        period = self._decider.other_period(value, before, [equals[each.number] for each in siblings])
        if period is not None:
            return Finding(item, Outcome.CONTRADICTED, period, 1.0, 1.0, DECIDED_SCORE)
        instead = self._instead(claim, before + after)
        if instead is not None:
            return Finding(item, Outcome.CONTRADICTED, instead, 1.0, 0.0, BARE_SCORE)
        if _CITED.search(before) and value.parts.keys() == {"year"}:
            return Finding(item, Outcome.ABSENT, None, 1.0, 0.0, CITED_SCORE)
        if (
            other is not None
            and value.bound is Bound.EXACT
            and other[1].value.bound in (Bound.ABOVE, Bound.BELOW)
            and not claim.limits
        ):
            # A case that a rule is applied to: "at least 350 mm" says nothing against a seat at 370 mm. "The limit is" states the rule.
            return Finding(item, Outcome.UNKNOWN)
        chance = probability(claim.signs(others, sums=sums))
        if chance < REPORTED and not self._strict:
            return Finding(item, Outcome.UNKNOWN)
        score = max(score_of(chance), STRICT_SCORE if self._strict else 0.0)
        if other is not None and other[0] >= _CONTRADICTS:
            return Finding(item, Outcome.CONTRADICTED, other[1], chance, other[0], score)
        return Finding(item, Outcome.ABSENT, None, chance, 0.0 if other is None else other[0], score)

    def _instead(self, claim: Claim, rest: str) -> Item | None:
        """Return a date of the evidence where the answer is a date of its sort and says nothing else: "Wednesday"."""
        value = claim.item.value
        if not claim.is_bare or stems(rest) or value.kind not in (ValueKind.DATE, ValueKind.TIME):
            return None
        keys = value.parts.keys()
        return next((each for each in self._evidence.items if each.value.parts.keys() == keys), None)

    def _derived(self, claim: Claim, *, sums: bool) -> bool:
        value = claim.item.value
        reckons = claim.compares or claim.total
        if sums and (reckons or claim.is_points):
            return True
        if (reckons or claim.each or claim.supposes) and (
            follows(value, claim.operands, cued=False) or count_follows(value, self._evidence)
        ):
            return True
        return _is_precise(value) and reckoned(value, self._operands_of_all)

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


def _is_plain(claim: Claim, sentence: str) -> bool:
    """Return whether a sentence says what is, and neither compares nor supposes nor speaks of something else."""
    return not (claim.compares or claim.each or claim.supposes or _OTHER.search(sentence))


def _against(item: Item, decision: Decision, *, decided: bool) -> Finding:
    return Finding(item, Outcome.CONTRADICTED, decision.item, 1.0, 1.0, DECIDED_SCORE, decided=decided)


def _is_bracketed(value: TypedValue, before: str, after: str) -> bool:
    """Return whether a number without a unit stands alone in brackets behind words."""
    bracketed = (before[-1:], after[:1]) in (("(", ")"), ("[", "]")) and bool(before[:-1].strip())
    return bracketed and value.kind is ValueKind.COUNT and not value.nouns


def _is_precise(value: TypedValue) -> bool:
    """Return whether a number has three digits or more that were counted."""
    if not value.amounts or value.kind in (ValueKind.DATE, ValueKind.TIME, ValueKind.LABEL):
        return False
    return len(value.written[0].normalize().as_tuple().digits) >= 3


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

"""Score answers by their values, whole and while they are written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from truthlens.core.cancellation import StopCheck
from truthlens.core.records.enums import DetectorName
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import Coverage, DetectorResult, Span, ValueClaim
from truthlens.detection.detectors.numbers.checking import (
    FLAGGED,
    SUPPORTED,
    ValueChecker,
    ValueFinding,
    ValueOutcome,
)
from truthlens.detection.detectors.numbers.options import Options
from truthlens.detection.detectors.numbers.places import KNOWN, PASSAGE_CONFIDENCE, Index, Place, Text
from truthlens.detection.detectors.numbers.precedence import GENERAL, stems
from truthlens.detection.detectors.numbers.reading import add_known, read
from truthlens.detection.detectors.numbers.sources import Source
from truthlens.detection.rule_follower import RuleDetector, RuleFollower
from truthlens.text.values.comparison import ValueComparer
from truthlens.text.values.quantities import typed_values
from truthlens.text.values.typed import Bound, TypedValue, ValueKind

MOST_EVIDENCE_CHARS, MOST_EVIDENCE_VALUES, MOST_EVIDENCE_PLACES = 200_000, 8_000, 8_000
MOST_ANSWER_CHARS, MOST_ANSWER_VALUES, MOST_ANSWER_PLACES = 100_000, 400, 2_000
_MOST_QUERY_CHARS = 4_000
_MOST_SPANS = 100
# Characters before a part of a stream that say what its values are of.
_BEFORE = 400
_CHARS_PER_TOKEN = 4

_REASONS = {
    ValueOutcome.CONTRADICTED: "the evidence gives another value for the same thing",
    ValueOutcome.MISPLACED: "the evidence gives this value for something else, and another one for this",
    ValueOutcome.ABSENT: "the evidence does not give this value, and it does not follow from the values that it gives",
}
_KINDS = {
    ValueOutcome.CONTRADICTED: SpanKind.CONTRADICTED,
    ValueOutcome.MISPLACED: SpanKind.CONTRADICTED,
    ValueOutcome.ABSENT: SpanKind.UNSUPPORTED,
}
_NOTHING = "no value of the answer could be compared with the evidence"


class NumberDetector(RuleDetector):
    """Compares money, percentages, dates, times, ratios, measures and counts of answers with the evidence.

    Args:
        options: what the policy says.
        sources: what else is known, such as a database.
    """

    model = ""

    def __init__(self, options: Options, sources: Sequence[Source] = ()) -> None:
        self.options = options
        self._sources = sources
        self._comparer = ValueComparer(
            currency=options.currency_tolerance,
            percentage=options.percentage_tolerance,
            ratio=options.ratio_tolerance,
        )
        switched = {
            ValueKind.CURRENCY: options.verify_currency, ValueKind.PERCENTAGE: options.verify_percentages,
            ValueKind.DATE: options.verify_dates, ValueKind.TIME: options.verify_dates, ValueKind.RATIO: options.verify_ratios,
        }  # fmt: skip
        self._kinds = frozenset(kind for kind in ValueKind if switched.get(kind, options.verify_counts))

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the answer has a value: digits are read in every language, number words in six."""
        return bool(typed_values(answer.text[:MOST_ANSWER_CHARS]))

    def evidence(self, exchange: Exchange, *, stop: StopCheck) -> ValueEvidence:
        """Return the values of an exchange's passages, its question and the sources."""
        size = sum(len(passage.text) for passage in exchange.passages)
        query = typed_values(exchange.query[:_MOST_QUERY_CHARS])
        if not self._sources:
            return ValueEvidence(lambda: self._read(exchange), query, size)
        text = self._read(exchange)
        details: dict[str, float | str] = {}
        for source in self._sources:
            known = source.values(exchange, self._kinds, stop=stop)
            add_known(text, known)
            details |= getattr(known, "details", {})
        asked = stems(exchange.query[:_MOST_QUERY_CHARS])
        return ValueEvidence(lambda: text, query, size, details, asked)

    def _read(self, exchange: Exchange) -> Text:
        return read(
            [(passage.text, passage.title) for passage in exchange.passages],
            most_items=MOST_EVIDENCE_VALUES,
            most_chars=MOST_EVIDENCE_CHARS,
            most_places=MOST_EVIDENCE_PLACES,
        )

    def follow(self, exchange: Exchange) -> NumberFollower:
        """Return a follower of the exchange's answers."""
        return NumberFollower(self, exchange)

    def result(self, evidence: ValueEvidence, text: str, start: int, end: int) -> DetectorResult:
        """Return the result on the values that begin at characters ``start`` to ``end`` of an answer."""
        first = max(0, text.rfind("\n", 0, max(0, start - _BEFORE)) + 1) if start > _BEFORE else 0
        shown = text[first:end]
        own = read(
            [(shown, "")],
            most_items=MOST_ANSWER_VALUES,
            most_chars=MOST_ANSWER_CHARS,
            most_places=MOST_ANSWER_PLACES,
        )
        items = [
            item
            for item in own.items
            if item.value.kind in self._kinds and item.value.start + first >= start and not item.is_label
        ]
        if not items and own.complete:
            # Nothing to compare: the evidence need not be read.
            return _abstained(evidence)
        checker = ValueChecker(evidence.index, self._comparer, evidence.query, strict=self.options.strict)
        findings = checker.findings(shown, items, own.places)
        if not evidence.size:
            findings = [
                each if self._tells_alone(each) else ValueFinding(each.item, ValueOutcome.UNKNOWN)
                for each in findings
            ]
        coverage = _coverage(evidence, own, shown)
        told = [each for each in findings if each.outcome is not ValueOutcome.UNKNOWN]
        if not told and coverage is None:
            return _abstained(evidence)
        return self._told(evidence, findings, first, coverage, places=own.places, shown=shown)

    def _tells_alone(self, finding: ValueFinding) -> bool:
        """Return whether a finding stands without passages: a database knows what its labels name, and is silent of all else."""
        if finding.outcome not in FLAGGED or (finding.outcome is ValueOutcome.ABSENT and self.options.strict):
            return True
        return finding.evidence is not None and finding.sureness >= 1.0 and finding.similarity > 0.0

    def _told(
        self,
        evidence: ValueEvidence,
        findings: Sequence[ValueFinding],
        first: int,
        coverage: Coverage | None,
        *,
        places: Sequence[Place],
        shown: str,
    ) -> DetectorResult:
        restated = _restated(evidence, findings, places, shown)
        flagged = [each for each in findings if each.outcome in FLAGGED]
        spans = [self._span(evidence, each, first) for each in flagged[:_MOST_SPANS]]
        score = max((each.score for each in flagged), default=0.0)
        near = sum(self._is_within_tolerance(each) for each in findings)
        counts = Counter(each.outcome for each in findings)
        verified = sum(counts[outcome] for outcome in SUPPORTED)
        return DetectorResult(
            DetectorName.NUMBERS,
            score,
            spans=tuple(spans),
            coverage=coverage,
            floor=score if self.options.floor else 0.0,
            explanation=_summary(counts, near, sum(each.decided for each in findings)),
            details=MappingProxyType(
                {
                    "has_hallucinations": float(bool(flagged)),
                    "total_claims": verified + len(flagged),
                    "verified_claims": verified,
                    "unverified_claims": len(flagged),
                    "derived_claims": counts[ValueOutcome.DERIVED],
                    "unknown_claims": counts[ValueOutcome.UNKNOWN],
                    "within_tolerance": near,
                    "confidence_adjustment": self.options.confidence_penalty / 100 if flagged else 0.0,
                    **evidence.details,
                }
            ),
            claims=tuple(
                _claim(each, first, evidence, is_all=each.item.place in restated)
                for each in findings
                if each.outcome is not ValueOutcome.UNKNOWN
            ),
            for_review=bool(flagged) and self.options.auto_flag and self.options.review_queue,
        )

    def _is_within_tolerance(self, finding: ValueFinding) -> bool:
        """Return whether a verified value differs from the evidence's, both of them stated to the digit."""
        if finding.outcome is not ValueOutcome.VERIFIED or finding.evidence is None:
            return False
        value, actual = finding.item.value, finding.evidence.value
        exact = (
            self._comparer.tolerance(value.kind) > 0
            and value.kind is actual.kind
            and value.bound is actual.bound is Bound.EXACT
        )
        return exact and not self._comparer.stated_alike(value, actual)

    def _span(self, evidence: ValueEvidence, finding: ValueFinding, first: int) -> Span:
        value, other = finding.item.value, finding.evidence
        start, end = value.start + first, value.end + first
        place = evidence.index.places[other.place] if other is not None else None
        known = place is not None and place.passage != KNOWN
        there = (other.value.start, other.value.end) if known and other is not None else None
        dated = value.kind in (ValueKind.DATE, ValueKind.TIME)
        confidence = place.confidence if place is not None else PASSAGE_CONFIDENCE
        return Span(
            start,
            end,
            finding.score,
            DetectorName.NUMBERS,
            passage=place.passage if place is not None and known else None,
            explanation=Explanation(
                _KINDS[finding.outcome],
                confidence=round(confidence * finding.sureness, 4),
                reason=_reason(finding, place),
                sentence=(place.start, place.end) if place is not None and known else None,
                similarity=min(1.0, round(finding.similarity, 4)),
                differences=(
                    Difference(DifferenceKind.DATE if dated else DifferenceKind.NUMBER, start, end, there),
                ),
            ),
        )


class ValueEvidence:
    """What the answers of one exchange are compared with, read when an answer has a value.

    Args:
        text: gives the values of its passages and sources.
        query: the values of its question.
        size: characters of its passages.
        details: what a verdict says of its sources.
        query_words: the stems of its question.
    """

    def __init__(
        self,
        text: Callable[[], Text],
        query: Sequence[TypedValue],
        size: int,
        details: Mapping[str, float | str] = MappingProxyType({}),
        query_words: frozenset[str] = frozenset(),
    ) -> None:
        self.details, self.query, self.size = details, query, size
        self.query_words = query_words
        self._text = text

    @cached_property
    def index(self) -> Index:
        """The values and places by amount and word."""
        return Index(self._text())

    @property
    def complete(self) -> bool:
        """Whether all of the passages was read."""
        return self.index.text.complete


class NumberFollower(RuleFollower):
    """Checks the values of a growing answer, each part from the text near it; the evidence is read once."""

    def __init__(self, detector: NumberDetector, exchange: Exchange) -> None:
        self._detector, self._exchange = detector, exchange
        self._known: ValueEvidence | None = None

    def part(self, answer: Answer, start: int, end: int, *, stop: StopCheck) -> DetectorResult:
        """Return the result on a part; one without a value that can be compared abstains."""
        return self._detector.result(self._evidence(stop), answer.text, start, end)

    def _evidence(self, stop: StopCheck) -> ValueEvidence:
        if self._known is None:
            self._known = self._detector.evidence(self._exchange, stop=stop)
        return self._known


def _abstained(evidence: ValueEvidence) -> DetectorResult:
    return DetectorResult(
        DetectorName.NUMBERS, None, abstained=True, explanation=_NOTHING, details=evidence.details
    )


def _coverage(evidence: ValueEvidence, own: Text, shown: str) -> Coverage | None:
    """Return how much was read where not everything was, in tokens estimated by characters."""
    if evidence.complete and own.complete:
        return None
    answer, passages = _tokens(len(shown)), _tokens(evidence.size)
    seen = passages if evidence.complete else min(passages - 1, _tokens(MOST_EVIDENCE_CHARS))
    scored = (
        answer
        if own.complete
        else min(answer - 1, _tokens(max((each.end for each in own.places), default=0)))
    )
    return Coverage(answer, max(0, scored), passages, max(0, seen))


def _tokens(characters: int) -> int:
    return max(1, characters // _CHARS_PER_TOKEN)


def _restated(
    evidence: ValueEvidence, findings: Sequence[ValueFinding], places: Sequence[Place], shown: str
) -> frozenset[int]:
    """Return the numbers of the places of ``shown``, an answer, in which all values were verified, and all words stand with these values.

    What a database gives has the words of its labels, and the question says which record it is of. A passage has those of the
    values' clause, and the place must not leave out any of them: one may be a condition.
    """
    by_place: dict[int, list[ValueFinding]] = {}
    for each in findings:
        by_place.setdefault(each.item.place, []).append(each)
    return frozenset(
        number
        for number, members in by_place.items()
        if _is_restated(evidence, members, places[number].words, shown)
    )


def _is_restated(
    evidence: ValueEvidence, members: Sequence[ValueFinding], words: frozenset[str], shown: str
) -> bool:
    given = [each.evidence for each in members if each.outcome in SUPPORTED and each.evidence is not None]
    if len(given) < len(members):
        return False
    alike = all(each.item.value.bound is one.value.bound for each, one in zip(members, given, strict=True))
    from_source = any(evidence.index.places[one.place].source for one in given)
    free = GENERAL | evidence.query_words if from_source else frozenset[str]()
    units = (stems(shown[each.item.value.start : each.item.value.end]) for each in members)
    own, there = words - free.union(*units), frozenset[str]().union(*(one.near for one in given))
    return alike and own <= there and (from_source or there <= own)


def _claim(finding: ValueFinding, first: int, evidence: ValueEvidence, *, is_all: bool) -> ValueClaim:
    value = finding.item.value
    place = None if finding.evidence is None else evidence.index.places[finding.evidence.place]
    return ValueClaim(
        value.start + first,
        value.end + first,
        value.kind.value,
        _shown(value),
        finding.outcome.value,
        finding.outcome in SUPPORTED,
        passage=None if place is None or place.passage == KNOWN else place.passage,
        source="" if place is None else _database(place),
        given=_given(finding.evidence.value)
        if place is not None and place.source and finding.evidence
        else "",
        is_all=is_all,
    )


def _reason(finding: ValueFinding, place: Place | None) -> str:
    """Return why a value is wrong, and which value a database gives where one decides."""
    if place is None or not place.source or finding.evidence is None:
        return _REASONS[finding.outcome]
    told = f"the database {_database(place)} gives {_given(finding.evidence.value)} for the same thing"
    return f"{told}, and it decides, though a passage gives this one" if finding.decided else told


def _database(place: Place) -> str:
    """Return the name of the database of ``sql:NAME.TABLE.COLUMN``: what clients are told of it."""
    return place.source.removeprefix("sql:").partition(".")[0]


def _given(value: TypedValue) -> str:
    """Return a value of a database as people read it: ``1,200,000 dollar``, ``85%``, ``2024-10-15``."""
    parts = value.parts
    if parts.keys() >= {"year", "month", "day"}:
        return f"{parts['year']:04}-{parts['month']:02}-{parts['day']:02}"
    if parts or not value.amounts:
        return str(_shown(value))
    amount = f"{value.amounts[0]:,f}"
    amount = amount.rstrip("0").rstrip(".") if "." in amount else amount
    if value.kind is ValueKind.PERCENTAGE:
        return f"{amount}%"
    return f"{amount} {value.unit}" if value.kind is ValueKind.CURRENCY and value.unit else amount


def _shown(value: TypedValue) -> float | str:
    """Return a value in its base unit, or the parts of a date."""
    if value.amounts and not value.parts:
        amount = float(value.amounts[0])
        return amount if math.isfinite(amount) else f"{value.amounts[0]:.6E}"  # JSON has no infinity
    if value.kind is ValueKind.VERSION:
        return value.unit
    return " ".join(f"{part}={number}" for part, number in sorted(value.parts.items()))


def _summary(counts: Counter[ValueOutcome], near: int, decided: int) -> str:
    verified = sum(counts[outcome] for outcome in SUPPORTED)
    parts = [f"{_counted(verified, 'value')} verified"]
    parts += [
        f"{counts[outcome]} {told}"
        for outcome, told in (
            (ValueOutcome.CONTRADICTED, "contradicted by the evidence"),
            (ValueOutcome.MISPLACED, "given for something else"),
            (ValueOutcome.ABSENT, "not in the evidence"),
        )
        if counts[outcome]
    ]
    if near:
        parts.append(
            f"{_counted(near, 'verified value')} not the evidence's figure, but within its tolerance"
        )
    if decided:
        parts.append(f"{_counted(decided, 'value')} decided by the database, where a passage gives another")
    return "; ".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

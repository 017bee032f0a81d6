"""The frozen records of scoring: spans, coverage, what each detector said, and the verdict that is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

from truthlens.core.records.claims import ClaimOutcome, Finding, InAnswer, JudgedClaim
from truthlens.core.records.enums import Aggregation, DetectorName, LeftOut, Reason, Stage, Status
from truthlens.core.records.explanation import Difference, Explanation, SpanKind
from truthlens.core.risk import Decision
from truthlens.core.thresholds import EVEN_ODDS

OWN_VERIFIER_DETAIL = "own_verifier"
"""Member of a result's ``details`` where the model that was asked is the one that answered."""


@dataclass(frozen=True, slots=True)
class Span(InAnswer):
    """Characters ``start`` (inclusive) to ``end`` (exclusive) of the answer.

    They are what the detector marked, and what is measured. ``shown`` is the phrase or clause around them, for people and
    prompts, as (start, end); ``None`` where nobody looked for it, and then the marked characters are shown. ``score`` is
    in 0..1. ``passage`` is the index, in the exchange's passages, of the one that
    contradicts the span or comes nearest, or ``None``. ``explanation`` is ``None`` where nobody explained it. ``note`` is
    what a model said of it: a model's text, which may repeat what the answer or the evidence wanted it to say. ``kind`` is what
    its detector says is wrong, ``None`` where it does not say.
    """

    score: float
    detector: str = DetectorName.ENCODER
    passage: int | None = None
    explanation: Explanation | None = None
    shown: tuple[int, int] | None = None
    note: str = ""
    kind: SpanKind | None = None

    @property
    def sentence(self) -> tuple[int, int] | None:
        """The place of the nearest sentence in the passage, as (start, end), where one was found."""
        return self.explanation.sentence if self.explanation is not None else None

    def moved(self, start: Callable[[int], int], end: Callable[[int], int]) -> Span:
        """Return the span in a text in which its characters stand elsewhere; ``start`` and ``end`` map starts and ends."""
        explanation = self.explanation
        if explanation is not None:
            differences = tuple(
                replace(each, start=start(each.start), end=end(each.end)) for each in explanation.differences
            )
            explanation = replace(explanation, differences=differences)
        shown = None if self.shown is None else (start(self.shown[0]), end(self.shown[1]))
        return replace(self, start=start(self.start), end=end(self.end), explanation=explanation, shown=shown)


@dataclass(frozen=True, slots=True)
class Mark:
    """What is shown of spans, as one where it touches or overlaps: characters ``start`` to ``end``.

    ``score`` is the highest of the spans, 0..1.
    """

    start: int
    end: int
    score: float
    spans: tuple[Span, ...]

    @property
    def telling(self) -> Span:
        """The span that says most: explained ones first, then by highest score."""
        return max(self.spans, key=lambda span: (span.explanation is not None, span.score))

    def words(self, least: float = 0.0) -> tuple[tuple[int, int], ...]:
        """Return what detectors marked in it with a score of ``least`` or more, as (start, end) in order, not touching each other.

        It is what is wrong, where the mark is the phrase around it.
        """
        found: list[tuple[int, int]] = []
        for start, end in sorted(
            (max(span.start, self.start), min(span.end, self.end))
            for span in self.spans
            if span.score >= least
        ):
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], end))
            elif start < end:
                found.append((start, end))
        return tuple(found)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """What differs in any of the spans, each once, that of the surest span first; against the passage of the telling one alone."""
        if not self.spans:
            return ()
        passage = self.telling.passage
        return tuple(
            dict.fromkeys(
                each
                for span in sorted(self.spans, key=lambda span: -span.score)
                if span.explanation is not None
                for each in sorted(span.explanation.differences, key=lambda each: (each.start, each.end))
                if each.evidence is None or span.passage == passage
            )
        )


def marks_of(spans: Iterable[Span], *, length: int | None = None) -> tuple[Mark, ...]:
    """Return the marks of ``spans`` in a text of ``length`` characters, in order, not touching each other."""
    places = sorted(((span.shown or (span.start, span.end)), place, span) for place, span in enumerate(spans))
    found: list[tuple[int, int, list[Span]]] = []
    for (first, last), _, span in places:
        start, end = max(first, 0), last if length is None else min(last, length)
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            before, behind, joined = found[-1]
            joined.append(span)
            found[-1] = (before, max(behind, end), joined)
        else:
            found.append((start, end, [span]))
    return tuple(
        Mark(start, end, max(span.score for span in joined), tuple(joined)) for start, end, joined in found
    )


def marks_by_detector(spans: Sequence[Span], *, length: int | None = None) -> tuple[Mark, ...]:
    """Return the marks of each detector's spans, in order: detectors find different things in one place.

    Of those that begin in one place the surest comes first.
    """
    names = dict.fromkeys(span.detector for span in spans)
    found = [marks_of((span for span in spans if span.detector == name), length=length) for name in names]
    return tuple(sorted(chain(*found), key=lambda mark: (mark.start, -mark.score, mark.end)))


def differences_of(claim: JudgedClaim, spans: Iterable[Span]) -> tuple[Difference, ...]:
    """Return what differs in a contradicted or not stated claim, as ``spans`` explain it, in order.

    Evidence is in the passage of the claim's ``sentence``, or of its ``nearest`` where it has none. Of
    differences over the same characters that of the surest span stays.
    """
    if claim.outcome not in (ClaimOutcome.CONTRADICTED, ClaimOutcome.NOT_STATED):
        return ()
    named = claim.passage if claim.sentence is not None or claim.nearest is None else claim.nearest.passage
    found: list[Difference] = []
    for span in sorted(spans, key=lambda span: -span.score):
        for each in span.explanation.differences if span.explanation is not None else ():
            if not (each.start < claim.end and claim.start < each.end):
                continue
            if each.evidence is not None and span.passage != named:
                continue
            if not any(each.start < other.end and other.start < each.end for other in found):
                found.append(each)
    return tuple(sorted(found, key=lambda each: each.start))


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much was looked at, in the model's own tokens; estimated by characters where no tokenizer saw the text.

    ``evidence_tokens_seen`` counts evidence that was compared with the answer, by the sentence
    selector or by the encoder; ``evidence_tokens_read`` what stood in at least one encoder window. ``left_out`` are the
    answer tokens that were read and do not count, by what they are: ``phrases`` of the closed list of those that claim
    nothing, and, where nothing but such phrases stands beside them, ``signs`` without a letter or digit.
    """

    answer_tokens: int
    answer_tokens_scored: int
    evidence_tokens: int
    evidence_tokens_seen: int
    evidence_tokens_read: int = 0
    windows: int = 0
    left_out: tuple[tuple[LeftOut, int], ...] = ()

    @property
    def answer_ratio(self) -> float:
        """Share of answer tokens that were scored, 0..1; 1.0 for an answer without tokens."""
        return self.answer_tokens_scored / self.answer_tokens if self.answer_tokens else 1.0

    @property
    def left_out_ratio(self) -> float:
        """Share of answer tokens that are in ``left_out``, 0..1."""
        return self._left_out / self.answer_tokens if self.answer_tokens else 0.0

    @property
    def read_ratio(self) -> float:
        """Share of answer tokens that were scored or are in ``left_out``, 0..1; 1.0 for an answer without tokens."""
        return self.answer_ratio + self.left_out_ratio

    @property
    def _left_out(self) -> int:
        return sum(count for _, count in self.left_out)

    @property
    def evidence_ratio(self) -> float:
        """Share of evidence tokens that were seen, 0..1; 1.0 where there is no evidence."""
        return self.evidence_tokens_seen / self.evidence_tokens if self.evidence_tokens else 1.0

    @property
    def complete(self) -> bool:
        """Whether every answer token that counts was scored against all of the evidence."""
        return (
            self.answer_tokens_scored + self._left_out == self.answer_tokens
            and self.evidence_tokens_seen == self.evidence_tokens
        )


@dataclass(frozen=True, slots=True)
class ValueClaim(InAnswer):
    """A value that characters ``start`` to ``end`` of the answer state, and what was found of it.

    ``claim_type`` and ``outcome`` are from closed lists (``docs/detectors.md``); ``value`` is the number in its base unit, or the
    parts of a date. ``passage`` is the index of the exchange's passage that gives the value which decides, ``source`` the name of
    the database that does, ``given`` the value as that database gives it. ``is_all`` says that its sentence has no word that
    does not stand with that value there as well, so that who verified the value has read the whole of it.
    """

    claim_type: str
    value: float | str
    outcome: str
    verified: bool
    passage: int | None = None
    source: str = ""
    given: str = ""
    is_all: bool = False


@dataclass(frozen=True, slots=True)
class DetectorResult:
    """What one detector says of one answer, or (``reason`` set, ``score`` ``None``) why it did not run.

    ``abstained`` (``score`` and ``reason`` ``None``): there was nothing in the answer for this detector to check.
    ``floor`` (0..1) is what the fused score is at least, for findings that are facts and not estimates.
    ``details`` holds further figures that are safe to show (numbers and names from configuration,
    no text of users or models). ``claims`` are the values of the answer that were compared.
    ``revision`` is that of the model that scored, ``""`` where no model did or it has none. ``report`` is the detector's own
    object for the ``truthlens`` object: it may hold text of users and models, and is never logged. ``for_review`` asks for a person to
    look at the answer, whatever the fused score. ``decision`` is what a judge says is to be done with the answer.
    ``findings`` are what the detector says of whole claims; of one that gives none, its spans and values say it.
    """

    detector: str
    score: float | None
    spans: tuple[Span, ...] = ()
    coverage: Coverage | None = None
    reason: Reason | None = None
    explanation: str = ""
    duration_s: float = field(default=0.0, compare=False)
    weight: float = 1.0
    abstained: bool = False
    floor: float = 0.0
    details: Mapping[str, float | str] = field(default_factory=lambda: MappingProxyType({}))
    claims: tuple[ValueClaim, ...] = ()
    revision: str = ""
    report: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    for_review: bool = False
    decision: Decision | None = None
    findings: tuple[Finding, ...] = ()

    def moved(self, start: Callable[[int], int], end: Callable[[int], int]) -> DetectorResult:
        """Return the result with its spans, claims and findings in a text in which their characters stand elsewhere."""
        if not self.spans and not self.claims and not self.findings:
            return self
        return replace(
            self,
            spans=tuple(each.moved(start, end) for each in self.spans),
            claims=tuple(each.moved(start, end) for each in self.claims),
            findings=tuple(each.moved(start, end) for each in self.findings),
        )

    def shifted(self, by: int) -> DetectorResult:
        """Return the result in a text that has ``by`` more characters before it."""
        return self.moved(lambda place: place + by, lambda place: place + by)


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure an answer was, 0..1, before its values were compared, and after.

    ``original`` is 1 − the score of the other detectors; ``adjusted`` is less by the penalty where a value is wrong.
    """

    original: float
    adjusted: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fused result for one answer.

    ``score`` and ``threshold`` are at ``expected_rate``, the plan's, the scores of ``spans`` and ``results`` at even odds.
    ``score`` is ``None`` exactly where ``status`` is ``unchecked`` or ``pending``; ``reason`` is ``None``
    exactly where it is ``checked``. ``flagged`` is ``score >= threshold``. ``stage`` is the stage of the cascade that decided;
    ``first_score`` what the first one gave where models were asked after it. ``confidence`` is there where values were compared.
    ``claims`` are those of the answer, in order, with what is known of each.
    """

    status: Status
    reason: Reason | None = None
    score: float | None = None
    threshold: float = 0.0
    spans: tuple[Span, ...] = ()
    coverage: Coverage | None = None
    results: tuple[DetectorResult, ...] = ()
    expected_rate: float = EVEN_ODDS
    stage: Stage = Stage.FIRST
    first_score: float | None = None
    confidence: Confidence | None = None
    claims: tuple[JudgedClaim, ...] = ()

    @property
    def decision(self) -> Decision | None:
        """What a judge says is to be done with the answer, ``None`` where none was asked."""
        return next((result.decision for result in self.results if result.decision is not None), None)

    @property
    def flagged(self) -> bool:
        """Whether the answer was scored and the score reached the threshold."""
        return self.score is not None and self.score >= self.threshold

    @property
    def claims_nothing(self) -> bool:
        """Whether nothing was scored because the answer is blank or made of phrases that claim nothing.

        Signs ("✅") may claim something: nobody can tell.
        """
        signs = self.coverage is not None and any(why is LeftOut.SIGNS for why, _ in self.coverage.left_out)
        return self.status is Status.UNCHECKED and self.reason is Reason.EMPTY_ANSWER and not signs


def left_out_together(coverages: Iterable[Coverage]) -> tuple[tuple[LeftOut, int], ...]:
    """Return what several texts leave out, summed by what it is."""
    counts = dict.fromkeys(LeftOut, 0)
    for why, count in chain.from_iterable(coverage.left_out for coverage in coverages):
        counts[why] += count
    return tuple((why, count) for why, count in counts.items() if count)


def unchecked(reason: Reason, *, threshold: float = 0.0) -> Verdict:
    """The verdict of an answer that nothing was scored of."""
    return Verdict(status=Status.UNCHECKED, reason=reason, threshold=threshold)


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model a folder holds, as far as its scores go.

    ``sha256`` (hex) changes with whatever changes a score: weights, tokenizer, input format, calibration.
    ``aggregation`` is the model's own, for plans that name none.
    """

    name: str
    sha256: str
    aggregation: Aggregation

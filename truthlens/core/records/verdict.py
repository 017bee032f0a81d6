"""The frozen records of scoring: spans, coverage, what each detector said, and the verdict that is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

from truthlens.core.records.enums import Aggregation, DetectorName, Reason, Stage, Status
from truthlens.core.records.explanation import Difference, Explanation
from truthlens.core.thresholds import EVEN_ODDS


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start`` (inclusive) to ``end`` (exclusive) of the answer.

    They are what the detector marked, and what is measured. ``shown`` is the phrase or clause around them, for people and
    prompts, as (start, end); ``None`` where nobody looked for it, and then the marked characters are shown. ``score`` is
    in 0..1. ``passage`` is the index, in the exchange's passages, of the one that
    contradicts the span or comes nearest, or ``None``. ``explanation`` is ``None`` where nobody explained it. ``note`` is
    what a model said of it: a model's text, which may repeat what the answer or the evidence wanted it to say.
    """

    start: int
    end: int
    score: float
    detector: str = DetectorName.ENCODER
    passage: int | None = None
    explanation: Explanation | None = None
    shown: tuple[int, int] | None = None
    note: str = ""

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

    def shifted(self, by: int) -> Span:
        """Return the span in a text that has ``by`` more characters before it."""
        return self.moved(lambda place: place + by, lambda place: place + by)


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

    @property
    def differences(self) -> tuple[Difference, ...]:
        """What differs in any of the spans, in order, each once; against the passage of the telling one alone."""
        passage = self.telling.passage
        listed = dict.fromkeys(
            each
            for span in self.spans
            if span.explanation is not None
            for each in span.explanation.differences
            if each.evidence is None or span.passage == passage
        )
        return tuple(sorted(listed, key=lambda each: (each.start, each.end)))


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
    """Return the marks of each detector's spans, in order: detectors find different things in one place."""
    names = dict.fromkeys(span.detector for span in spans)
    found = [marks_of((span for span in spans if span.detector == name), length=length) for name in names]
    return tuple(sorted(chain(*found), key=lambda mark: (mark.start, mark.end)))


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much was looked at, in the model's own tokens; estimated by characters where no tokenizer saw the text.

    ``evidence_tokens_seen`` counts evidence that was compared with the answer, by the sentence
    selector or by the encoder; ``evidence_tokens_read`` what stood in at least one encoder window.
    """

    answer_tokens: int
    answer_tokens_scored: int
    evidence_tokens: int
    evidence_tokens_seen: int
    evidence_tokens_read: int = 0
    windows: int = 0

    @property
    def answer_ratio(self) -> float:
        """Share of answer tokens that were scored, 0..1; 1.0 for an answer without tokens."""
        return self.answer_tokens_scored / self.answer_tokens if self.answer_tokens else 1.0

    @property
    def evidence_ratio(self) -> float:
        """Share of evidence tokens that were seen, 0..1; 1.0 where there is no evidence."""
        return self.evidence_tokens_seen / self.evidence_tokens if self.evidence_tokens else 1.0

    @property
    def complete(self) -> bool:
        """Whether every answer token was scored against all of the evidence."""
        return (
            self.answer_tokens_scored == self.answer_tokens
            and self.evidence_tokens_seen == self.evidence_tokens
        )


@dataclass(frozen=True, slots=True)
class ValueClaim:
    """A value that characters ``start`` to ``end`` of the answer state, and what was found of it.

    ``claim_type`` and ``outcome`` are from closed lists (``docs/detectors.md``); ``value`` is the number in its base unit, or the
    parts of a date.
    """

    start: int
    end: int
    claim_type: str
    value: float | str
    outcome: str
    verified: bool

    def moved(self, start: Callable[[int], int], end: Callable[[int], int]) -> ValueClaim:
        """Return the claim in a text in which its characters stand elsewhere, as ``Span.moved`` does."""
        return replace(self, start=start(self.start), end=end(self.end))


@dataclass(frozen=True, slots=True)
class DetectorResult:
    """What one detector says of one answer, or (``reason`` set, ``score`` ``None``) why it did not run.

    ``abstained`` (``score`` and ``reason`` ``None``): there was nothing in the answer for this detector to check.
    ``floor`` (0..1) is what the fused score is at least, for findings that are facts and not estimates.
    ``details`` holds further figures that are safe to show (numbers and names from configuration,
    no text of users or models). ``claims`` are the values of the answer that were compared.
    ``revision`` is that of the model that scored, ``""`` where no model did or it has none. ``report`` is the detector's own
    object for the ``truthlens`` object: it may hold text of users and models, and is never logged. ``for_review`` asks for a person to
    look at the answer, whatever the fused score.
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

    def moved(self, start: Callable[[int], int], end: Callable[[int], int]) -> DetectorResult:
        """Return the result with its spans and claims in a text in which their characters stand elsewhere."""
        if not self.spans and not self.claims:
            return self
        spans = tuple(each.moved(start, end) for each in self.spans)
        return replace(self, spans=spans, claims=tuple(each.moved(start, end) for each in self.claims))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The fused result for one answer.

    ``score`` and ``threshold`` are at ``expected_rate``, the plan's, the scores of ``spans`` and ``results`` at even odds.
    ``score`` is ``None`` exactly where ``status`` is ``unchecked`` or ``pending``; ``reason`` is ``None``
    exactly where it is ``checked``. ``flagged`` is ``score >= threshold``. ``stage`` is the stage of the cascade that decided;
    ``first_score`` what the first one gave where models were asked after it.
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

    @property
    def flagged(self) -> bool:
        """Whether the answer was scored and the score reached the threshold."""
        return self.score is not None and self.score >= self.threshold


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

"""Turn the token scores of an answer, or of a part of it, into the encoder's result. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from truthlens.core.records.enums import Aggregation, DetectorName, Reason
from truthlens.core.records.verdict import Coverage, DetectorResult, Span
from truthlens.detection.encoder.aggregation import span_max, spans_of
from truthlens.detection.encoder.inputs.manifest import Manifest
from truthlens.detection.encoder.span_edges import evaluated_spans
from truthlens.detection.encoder.token_scores import Reading
from truthlens.llm.token_estimate import text_tokens
from truthlens.text.claims.non_claims import Query, is_abstention


@dataclass(frozen=True, slots=True)
class Scored:
    """The token scores of one text, and what they rest on.

    ``coverage`` is that of its windows; ``evidence_read`` the share of the evidence, by characters, in a
    script that the model reads. ``reason`` is set where only parts of the text are scored.
    """

    reading: Reading
    coverage: Coverage
    evidence_read: float
    reason: Reason | None


def result_of(
    scored: Scored, manifest: Manifest, aggregation: Aggregation, *, part: tuple[int, int] | None = None
) -> DetectorResult:
    """Return the result for the text, or for its characters ``part``, as if they were a text by themselves.

    Spans are characters of the text. Without a score the reason says why; see ``EncoderDetector.detect_all``.
    """
    if part is None and scored.reason is not None:
        return nothing(scored.reason)
    reading = scored.reading
    start, end = part or (0, len(reading.text))
    own = slice(None) if part is None else _tokens_of(reading.offsets, start, end)
    p = reading.probabilities(temperature=manifest.temperature)[own]
    read = reading.scored[own]
    foreign = any(first < end and last > start for first, last in reading.unread)
    if part is not None and not read.any():
        if foreign:
            coverage = replace(scored.coverage, answer_tokens=len(p), answer_tokens_scored=0)
            return replace(nothing(Reason.LANGUAGE), coverage=coverage)
        return nothing(Reason.TOO_LARGE if len(p) else Reason.EMPTY_ANSWER)
    runs = spans_of(p, reading.offsets[own], manifest.tau_span, reading.text)
    spans = evaluated_spans(runs, p, reading.offsets[own], reading.text)
    if part is not None:
        spans = tuple(_clipped(span, start, end) for span in spans)
    abstains = is_abstention(reading.text[start:end], Query(reading.query))
    details: dict[str, float | str] = {
        "model": manifest.name,
        "aggregation": aggregation.value,
        "max_token": float(p.max(initial=0.0)),
        "top_span": span_max(spans),
    }
    return DetectorResult(
        detector=DetectorName.ENCODER,
        score=manifest.scoring.score(aggregation, p=reading.counted(p, own), spans=runs),
        spans=spans,
        coverage=_coverage(scored, read),
        reason=Reason.LANGUAGE if foreign or scored.evidence_read < 1.0 else None,
        explanation="the answer only abstains" if abstains else "",
        details=MappingProxyType(details),
        revision=manifest.revision,
    )


def nothing(reason: Reason, *, text: str = "", evidence: Sequence[str] = ()) -> DetectorResult:
    """Return the result of a text that was not scored.

    Of one whose language the model does not read, or whose evidence's, the coverage counts all of it, estimated by its
    characters, as not looked at: other detectors may have a score.
    """
    coverage = None
    if reason is Reason.LANGUAGE and text:
        coverage = Coverage(text_tokens(text), 0, sum(map(text_tokens, evidence)), 0)
    return DetectorResult(DetectorName.ENCODER, None, coverage=coverage, reason=reason)


def claimless() -> DetectorResult:
    """Return the result of a part in which nothing can be false: keys and punctuation of JSON."""
    return DetectorResult(DetectorName.ENCODER, 0.0, coverage=Coverage(0, 0, 0, 0))


def shifted(result: DetectorResult, by: int) -> DetectorResult:
    """Return the result with its spans and claims shifted by ``by``: where the piece begins in its text."""
    return result.moved(lambda place: place + by, lambda place: place + by)


def _tokens_of(offsets: NDArray[np.int64], start: int, end: int) -> slice:
    """Return the tokens that end within these characters.

    Each token belongs to one of the adjoining ranges.
    """
    first, last = np.searchsorted(offsets[:, 1], [start, end], side="right")
    return slice(int(first), int(last))


def _clipped(span: Span, start: int, end: int) -> Span:
    return replace(span, start=max(span.start, start), end=min(span.end, end))


def _coverage(scored: Scored, read: NDArray[np.bool_]) -> Coverage:
    """Return the windows' coverage of these tokens, less text in a script that the model does not read."""
    coverage = scored.coverage
    seen = coverage.evidence_tokens_seen
    if scored.evidence_read < 1.0:
        # By characters, because tokenising what nobody reads would only cost; never all of it.
        seen = min(math.floor(seen * scored.evidence_read), coverage.evidence_tokens - 1)
    return replace(
        coverage,
        answer_tokens=len(read),
        answer_tokens_scored=int(read.sum()),
        evidence_tokens_seen=max(0, seen),
    )

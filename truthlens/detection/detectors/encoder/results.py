"""Turn the token scores of an answer, or of a part of it, into the encoder's result. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from truthlens.core.records.claims import Finding
from truthlens.core.records.enums import Aggregation, DetectorName, LeftOut, Reason
from truthlens.core.records.verdict import Coverage, DetectorResult, Span
from truthlens.detection.detectors.encoder.span_edges import evaluated_spans
from truthlens.detection.detectors.encoder.token_scores import Reading
from truthlens.detection.models.aggregation import span_max, spans_of
from truthlens.detection.models.inputs.manifest import Manifest
from truthlens.llm.token_estimate import text_tokens
from truthlens.text.claims.claims import scored_claims
from truthlens.text.spans import touching
from truthlens.text.values.quantities import figures


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
    scored: Scored,
    manifest: Manifest,
    aggregation: Aggregation,
    *,
    part: tuple[int, int] | None = None,
    claims: Sequence[tuple[int, int]] | None = None,
) -> DetectorResult:
    """Return the result for the text, or for its characters ``part``, as if they were a text by themselves.

    ``claims`` are where its claims stand, by default as the text itself is cut. Spans are characters of the text. Without a score the reason says why; see ``EncoderDetector.detect_all``.
    """
    if part is None and scored.reason is not None:
        return nothing(scored.reason)
    reading = scored.reading
    start, end = part or (0, len(reading.text))
    own = slice(None) if part is None else _tokens_of(reading.offsets, start, end)
    p = reading.probabilities(temperature=manifest.temperature)[own]
    foreign = any(first < end and last > start for first, last in reading.unread)
    coverage = _coverage(scored, own)
    if not coverage.answer_tokens_scored:
        all_read = coverage.read_ratio == 1.0
        why = Reason.LANGUAGE if foreign else Reason.EMPTY_ANSWER if all_read else Reason.TOO_LARGE
        return replace(nothing(why), coverage=coverage)
    runs = spans_of(p, reading.offsets[own], manifest.tau_span, reading.text)
    spans = evaluated_spans(runs, p, reading.offsets[own], reading.text)
    if part is not None:
        spans = tuple(_clipped(span, start, end) for span in spans)
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
        coverage=coverage,
        reason=Reason.LANGUAGE if foreign or scored.evidence_read < 1.0 else None,
        details=MappingProxyType(details),
        revision=manifest.revision,
        findings=_findings(reading, p, manifest, aggregation, (start, end), claims=claims),
    )


def _findings(
    reading: Reading,
    p: NDArray[np.float64],
    manifest: Manifest,
    aggregation: Aggregation,
    part: tuple[int, int],
    *,
    claims: Sequence[tuple[int, int]] | None,
) -> tuple[Finding, ...]:
    """Return the suspicion of each claim of ``part``, as if it were a text by itself; ``p`` are the probabilities of its tokens."""
    first = _tokens_of(reading.offsets, *part).start
    found: list[Finding] = []
    if claims is None:
        cut = scored_claims(reading.text[slice(*part)])
        claims = [(claim.start + part[0], claim.end + part[0]) for claim in cut]
    for start, end in claims:
        own = _tokens_of(reading.offsets, start, end)
        if not (reading.scored & reading.words)[own].any():
            continue
        offsets, risks = reading.offsets[own], p[own.start - first : own.stop - first]
        digits = np.array(touching(offsets.tolist(), figures(reading.text, start, end)))

        def risk_of(values: NDArray[np.float64]) -> float:
            runs = spans_of(values, offsets, manifest.tau_span, reading.text)  # noqa: B023 - called at once
            counted = reading.counted(values, own)  # noqa: B023 - called at once
            return manifest.scoring.score(aggregation, p=counted, spans=runs)

        some = digits.any() and not digits.all()
        apart = risk_of(np.where(digits, 0.0, risks)) if some else None
        found.append(Finding(start, end, risk_of(risks), apart=apart))
    return tuple(found)


def nothing(reason: Reason, *, text: str = "", evidence: Sequence[str] = ()) -> DetectorResult:
    """Return the result of a text that was not scored.

    Of one whose language the model does not read, or whose evidence's, the coverage counts all of it, estimated by its
    characters, as not looked at: other detectors may have a score.
    """
    coverage = None
    if reason is Reason.LANGUAGE and text:
        coverage = Coverage(text_tokens(text), 0, sum(map(text_tokens, evidence)), 0)
    return DetectorResult(DetectorName.ENCODER, None, coverage=coverage, reason=reason)


def _tokens_of(offsets: NDArray[np.int64], start: int, end: int) -> slice:
    """Return the tokens that end within these characters.

    Each token belongs to one of the adjoining ranges.
    """
    first, last = np.searchsorted(offsets[:, 1], [start, end], side="right")
    return slice(int(first), int(last))


def _clipped(span: Span, start: int, end: int) -> Span:
    return replace(span, start=max(span.start, start), end=min(span.end, end))


def _coverage(scored: Scored, own: slice) -> Coverage:
    """Return the windows' coverage of the tokens ``own``, less text in a script that the model does not read.

    Signs count as scored with the words around them; where there are none, nothing is known of them.
    """
    coverage, reading = scored.coverage, scored.reading
    seen = coverage.evidence_tokens_seen
    if scored.evidence_read < 1.0:
        # By characters, because tokenising what nobody reads would only cost; never all of it.
        seen = min(math.floor(seen * scored.evidence_read), coverage.evidence_tokens - 1)
    counts = reading.scored & ~reading.phrases & ~reading.inserted
    heard = (counts & reading.words).any()
    left_out = {
        LeftOut.PHRASES: int((reading.scored & reading.phrases)[own].sum()),
        LeftOut.SIGNS: 0 if heard else int(counts[own].sum()),
    }
    return replace(
        coverage,
        answer_tokens=int((~reading.inserted)[own].sum()),
        answer_tokens_scored=int(counts[own].sum()) if heard else 0,
        evidence_tokens_seen=max(0, seen),
        left_out=tuple((why, count) for why, count in left_out.items() if count),
    )

"""Fuse the results of a plan's detectors for one answer into one verdict. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.verdict import Coverage, DetectorResult, Verdict
from truthlens.core.thresholds import EVEN_ODDS, at_rate

_SURE = 4.8
"""Power of the highest score that the fused one is at least: 0.9 gives 0.603."""


def fuse(results: Sequence[DetectorResult], *, threshold: float, expected_rate: float = EVEN_ODDS) -> Verdict:
    """Fuse the results of a plan's detectors for one answer into one verdict.

    The score is the Noisy-OR of the detectors that ran, each with the exponent of its weight over the largest
    of their weights: one detector alone gives its own score, and a detector that finds nothing (0) changes
    nothing. A detector that is sure is not outweighed: at 0.9 it makes the score 0.6 at least, whatever its weight.
    Detectors' scores are at even odds; what is fused of them is shifted to ``expected_rate``, the share of
    unsupported answers that the operator expects, and is at least the highest ``floor``: a fact is no rarer where
    errors are rare. The status is

    - ``unchecked`` where none ran, with the reason of the first that failed, or ``no-context`` where there is none or all
      abstained: nothing in the answer could be compared with the evidence;
    - ``partial`` where one of them failed (its reason), or did not look at everything (its reason, or
      ``too-large`` where it gives none: bounds are what ends a search early);
    - ``checked`` otherwise.

    The coverage is that of the detector that looked at least, also where it could not score: of an answer in a language
    that the encoder does not read, rule detectors say something and the encoder saw nothing.

    Raises:
        ValueError: a weight that is not positive, or a score, floor or rate out of its range.
    """
    ran = [result for result in results if result.score is not None]
    reason = next((why for result in results if (why := _shortfall(result)) is not None), None)
    if not ran:
        return Verdict(
            status=Status.UNCHECKED,
            reason=reason or Reason.NO_CONTEXT,
            threshold=threshold,
            results=tuple(results),
            expected_rate=expected_rate,
        )
    return Verdict(
        status=Status.CHECKED if reason is None else Status.PARTIAL,
        reason=reason,
        score=_fused(ran, expected_rate),
        threshold=threshold,
        spans=tuple(
            sorted((span for result in ran for span in result.spans), key=lambda s: (s.start, s.end))
        ),
        coverage=_least([result.coverage for result in results if result.coverage is not None]),
        results=tuple(results),
        expected_rate=expected_rate,
    )


def _shortfall(result: DetectorResult) -> Reason | None:
    if result.reason is not None or result.abstained:
        return result.reason
    if result.score is None:
        return Reason.DETECTOR_ERROR
    return Reason.TOO_LARGE if result.coverage is not None and not result.coverage.complete else None


def _fused(ran: Sequence[DetectorResult], expected_rate: float) -> float:
    for result in ran:
        if not result.weight > 0.0:
            raise ValueError(f"detector {result.detector} has weight {result.weight}; expected above 0")
        if result.score is None or not 0.0 <= result.score <= 1.0:
            raise ValueError(f"detector {result.detector} gave score {result.score}; expected 0..1")
        if not 0.0 <= result.floor <= 1.0:
            raise ValueError(f"detector {result.detector} gave floor {result.floor}; expected 0..1")
    floor = max(result.floor for result in ran)
    if len(ran) == 1:
        return max(floor, at_rate(ran[0].score or 0.0, expected_rate))
    heaviest = max(result.weight for result in ran)
    clean = 1.0
    for result in ran:
        clean *= float((1.0 - (result.score or 0.0)) ** (result.weight / heaviest))
    sure = max(result.score or 0.0 for result in ran) ** _SURE
    return max(floor, at_rate(max(1.0 - clean, sure), expected_rate))


def _least(coverages: Sequence[Coverage]) -> Coverage | None:
    return min(coverages, key=lambda c: c.answer_ratio * c.evidence_ratio, default=None)

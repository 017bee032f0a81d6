"""Fuse the results of a plan's detectors for one answer into one verdict. Pure.

The risk of one claim is made in ``claims.claim_risk``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truthlens.core.records.claims import JudgedClaim
from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Confidence, Coverage, DetectorResult, Verdict
from truthlens.core.thresholds import EVEN_ODDS, at_rate
from truthlens.detection.claims.claim_risk import Quoted, answer_risk, is_by_claims, judged_claims
from truthlens.detection.claims.quotations import Quotations
from truthlens.detection.claims.shipped_coefficients import COEFFICIENTS
from truthlens.detection.plain_answers import PlainAnswers
from truthlens.text.without_citations import Unmarked

_PENALTY = "confidence_adjustment"
_SURE = 4.8
"""Power of the highest score that the fused one is at least: 0.9 gives 0.603."""


def _none(text: str, context: str) -> None:
    return None


def fuse(
    results: Sequence[DetectorResult],
    *,
    threshold: float,
    expected_rate: float = EVEN_ODDS,
    max_unscored: float = 1.0,
) -> Verdict:
    """Fuse the results of a plan's detectors for one answer into one verdict.

    The score is the Noisy-OR of the detectors that ran, each with the exponent of its weight over the largest
    of their weights: one detector alone gives its own score, and a detector that finds nothing (0) changes
    nothing. A detector that is sure is not outweighed: at 0.9 it makes the score 0.6 at least, whatever its weight.
    Detectors' scores are at even odds; what is fused of them is shifted to ``expected_rate``, the share of
    unsupported answers that the operator expects, and is at least the highest ``floor``: a fact is no rarer where
    errors are rare. The status is

    - ``unchecked`` where none ran, with the reason of the first that failed, or ``no-context`` where there is none or all
      abstained: nothing in the answer could be compared with the evidence;
    - ``partial``, ``empty-answer`` where more than ``max_unscored`` (0..1) of the answer claims nothing;
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
    coverages = [result.coverage for result in results if result.coverage is not None]
    if ran and reason is None and any(each.left_out_ratio > max_unscored for each in coverages):
        reason = Reason.EMPTY_ANSWER
    if not ran:
        return Verdict(
            status=Status.UNCHECKED,
            reason=reason or Reason.NO_CONTEXT,
            threshold=threshold,
            # Why nothing counts; of a text that nobody looked at there is nothing to tell.
            coverage=_least([each for each in coverages if each.left_out]),
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
        coverage=_least(coverages),
        results=tuple(results),
        expected_rate=expected_rate,
        confidence=_confidence(ran, expected_rate),
    )


def _confidence(ran: Sequence[DetectorResult], expected_rate: float) -> Confidence | None:
    """Return the confidence without the detectors that adjust it, and with. Source: numeric-claims, "confidence adjustment"."""
    penalties = [float(each.details[_PENALTY]) for each in ran if _PENALTY in each.details]
    if not penalties:
        return None
    others = [each for each in ran if _PENALTY not in each.details]
    original = 1.0 - (_fused(others, expected_rate) if others else 0.0)
    return Confidence(original, max(0.0, original - max(penalties)))


def claims_of(
    text: str,
    results: Sequence[DetectorResult],
    *,
    quoted: Quoted = _none,
    start: int = 0,
    reading: Unmarked | None = None,
    coefficients: Coefficients = COEFFICIENTS,
) -> tuple[JudgedClaim, ...]:
    """Return the claims of ``text`` with what ``results`` say of each; arguments as of ``fused``, ``coefficients`` those of the plan."""
    if reading is None:
        return judged_claims(text, results, coefficients, quoted=quoted, start=start)
    first, last = reading.place(start), reading.place(start + len(text))
    plain = [unmarked(each, reading) for each in results]
    cut = judged_claims(reading.text[first:last], plain, coefficients, quoted=quoted, start=first)
    return tuple(each.moved(reading.start, reading.end) for each in cut)


def fused(
    plan: Plan,
    text: str,
    results: Sequence[DetectorResult],
    *,
    quoted: Quoted = _none,
    start: int = 0,
    reading: Unmarked | None = None,
    lacking: Reason | None = None,
) -> Verdict:
    """Return the verdict on the answer ``text`` as the plan says: by its claims, unless the plan names an aggregation.

    ``quoted`` finds sentences of the evidence that the answer repeats; ``start`` is where a part of an answer begins in it.
    ``reading`` is the whole answer without its citation marks, by which claims are cut; ``None`` where it has none.
    ``lacking`` says why there is no text to compare the answer with, where databases alone were asked: then what they decide counts, and
    the answer is ``partial`` where claims are left, ``unchecked`` where all are.
    """
    coefficients = plan.coefficients or COEFFICIENTS
    verdict = _fuse(plan, results)
    found = claims_of(text, results, quoted=quoted, start=start, reading=reading, coefficients=coefficients)
    if lacking is not None:
        verdict = _by_sources(verdict, found, lacking)
    by_claims = lacking is not None or any(r.findings for r in results)
    if verdict.score is None or plan.aggregation is not None or not by_claims:
        return replace(_unless_unjudged(verdict, found), claims=found)
    scores = [each.score for each in results if each.score is not None and not is_by_claims(each)]
    risk = answer_risk(
        [each.risk for each in found if each.risk is not None], scores, idle_risk=coefficients.idle_risk
    )
    floor = max((each.floor for each in results if each.score is not None), default=0.0)
    return replace(verdict, score=max(floor, at_rate(risk, plan.expected_rate)), claims=found)


class Fusion:
    """Makes verdicts on the answers of one exchange, whose evidence is read once, when a claim first asks.

    CPU-bound, by the length of answer and evidence: nothing for the event loop.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.plain = PlainAnswers(exchange)
        """The answers without their citation marks."""
        self._lacking = exchange.not_checkable
        self._quotations = Quotations(exchange.passages)

    def verdict(
        self,
        plan: Plan,
        answer: Answer,
        results: Sequence[DetectorResult],
        part: tuple[int, int] | None = None,
    ) -> Verdict:
        """Return a plan's verdict on an answer, or on its characters ``part``, of which ``results`` tell."""
        start, end = part or (0, len(answer.text))
        return fused(
            plan,
            answer.text[start:end],
            results,
            quoted=self._quotations.find,
            start=start,
            reading=self.plain.reading(answer),
            lacking=self._lacking,
        )

    def late(self, plan: Plan, results: Sequence[DetectorResult]) -> Verdict:
        """Return a plan's verdict on an answer that there is no time left to cut into claims: by Noisy-OR over its detectors. Cheap."""
        verdict = _fuse(plan, results)
        return verdict if self._lacking is None else _by_sources(verdict, (), self._lacking)


def _fuse(plan: Plan, results: Sequence[DetectorResult]) -> Verdict:
    return fuse(
        results, threshold=plan.threshold, expected_rate=plan.expected_rate, max_unscored=plan.max_unscored
    )


def unmarked(result: DetectorResult, reading: Unmarked) -> DetectorResult:
    """Return a result in characters of the answer without marks; what was found of a mark stands at the character before it."""
    moved = result.moved(reading.place, reading.place)
    spans = (replace(each, start=max(0, min(each.start, each.end - 1))) for each in moved.spans)
    return replace(moved, spans=tuple(spans))


def _unless_unjudged(verdict: Verdict, claims: Sequence[JudgedClaim]) -> Verdict:
    """Return the verdict, ``unchecked`` where a detector is missing and the others know values alone, and could judge no claim by them."""
    judged = any(each.risk is not None for each in claims)
    of_values = all(each.claims for each in verdict.results if each.score is not None)
    if verdict.status is not Status.PARTIAL or verdict.score or not claims or judged or not of_values:
        return verdict
    return replace(verdict, status=Status.UNCHECKED, score=None, confidence=None)


def _by_sources(verdict: Verdict, claims: Sequence[JudgedClaim], lacking: Reason) -> Verdict:
    """Return the verdict on an answer without text to compare it with, by how many of its claims were decided all the same."""
    decided = [each.risk is not None for each in claims]
    if verdict.score is None or not any(decided):
        kept = verdict.reason not in (None, Reason.NO_CONTEXT)
        reason = verdict.reason if kept else lacking
        return replace(verdict, status=Status.UNCHECKED, reason=reason, score=None, spans=(), confidence=None)
    if all(decided):
        return verdict
    return replace(verdict, status=Status.PARTIAL, reason=verdict.reason or lacking)


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
    return min(coverages, key=lambda c: c.read_ratio * c.evidence_ratio, default=None)

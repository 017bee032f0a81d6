"""The second stage of detection: which answers models are asked about, and what they say, in one verdict.

The first stage asks nobody and scores every answer; models are dear, and are asked where they can change something.
Source: hallucination-guidelines, "multi-layer detection". Nothing here makes a call itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from truthlens.core.errors import CallError, DetectorError
from truthlens.core.records.calls import Ask, CallFailure, Completion, ModelRequest
from truthlens.core.records.claims import ClaimOutcome, Finding
from truthlens.core.records.enums import AskWhen, Reason, Stage
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.explanation import SpanKind
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import DetectorResult, Verdict
from truthlens.core.risk import LOW_RISK
from truthlens.detection.asking.failures import reason_of
from truthlens.detection.fusion import Fusion, fuse
from truthlens.detection.interfaces import AskingDetector, reason_not_to_run
from truthlens.text.claims.claims import scored_claims

SUPPORTED_RISK = 0.1
"""The least risk of a claim with which a model that was asked finds nothing wrong: about one in ten of such words is mistaken."""

Asking = Sequence[tuple[DetectorSpec, AskingDetector | None]]

# Of the time for asking; the rest is for what a detector makes of the replies that came.
_CALLS_SHARE = 0.95


def stage_of(
    plan: Plan,
    exchange: Exchange,
    answer: Answer,
    verdict: Verdict,
    *,
    draw: float,
    given: Stage | None = None,
) -> Stage:
    """Return why models are to be asked about ``answer``, or ``first`` where they are not.

    Args:
        plan: its detectors and its cascade.
        exchange: query and passages.
        answer: what was scored.
        verdict: of the first stage.
        draw: a random number in 0..1, for the sample.
        given: why every answer that can be judged is asked about, in place of what the cascade says.
    """
    settings = plan.cascade
    # Models read passages: what a database knows is no text to ask them about.
    if not plan.asking or exchange.not_checkable is not None or reason_not_to_run(plan, exchange, answer):
        return Stage.FIRST
    if given is not None:
        return given
    if settings.when is AskWhen.ALWAYS:
        return Stage.ALWAYS
    if verdict.claims_nothing:
        return Stage.FIRST
    if verdict.score is None:
        return Stage.UNSCORED
    if settings.band[0] <= verdict.score <= settings.band[1]:
        return Stage.BAND
    return Stage.SAMPLE if draw < settings.sample else Stage.FIRST


Shown = Callable[[Sequence[DetectorResult], Sequence[Answer]], Sequence[DetectorResult]]
"""Adds to the spans of results what is shown of them."""


async def examined(
    plan: Plan,
    exchange: Exchange,
    answer: Answer,
    verdict: Verdict,
    *,
    asking: Asking,
    ask: Ask,
    stage: Stage,
    time_s: float,
    shown: Shown,
) -> Verdict:
    """Return the verdict of both stages on ``answer``; never raises but for cancellation.

    The asking detectors run side by side. One that fails, or has not ended after ``time_s``, has no score, and the
    verdict is ``partial``: what the first stage said still counts. A claim that one was asked about and finds nothing wrong with has
    a lower risk.
    """
    asked = [
        (spec, detector) for spec, detector in asking if detector is None or detector.reads(exchange, answer)
    ]
    if not asked:
        return verdict
    within = _asking_within(ask, time_s * _CALLS_SHARE)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                _one(
                    spec,
                    partial(_examine, detector, exchange, answer, verdict.results, within),
                    len(answer.text),
                    time_s,
                )
            )
            for spec, detector in asked
        ]
    found = [task.result() for task in tasks]

    def joined() -> Verdict:
        told = shown(found, [answer] * len(found))
        results = {each.detector: each for each in verdict.results}
        results |= {
            each.detector: replace(each, findings=each.findings or findings_of(answer.text, each))
            for each in told
        }
        ordered = [results[spec.name] for spec in plan.detectors if spec.name in results]
        return Fusion(exchange).verdict(plan, answer, ordered)

    # Not on the event loop: how long it takes is up to who wrote the answer and the evidence.
    both = await asyncio.to_thread(joined)
    return replace(both, stage=stage, first_score=verdict.score)


def rejected_by_models(plan: Plan, verdict: Verdict) -> bool:
    """Return whether a detector that asks models flags the answer by itself."""
    names = {spec.name for spec in plan.asking}
    own = [result for result in verdict.results if result.detector in names and result.score is not None]
    alone = partial(fuse, threshold=plan.threshold, expected_rate=plan.expected_rate)
    return any(alone([result]).flagged for result in own)


def failed_by_models(plan: Plan, verdict: Verdict) -> bool:
    """Return whether a detector that asks models was asked and gave no score, or was not asked at all."""
    names = {spec.name for spec in plan.asking}
    said = {result.detector for result in verdict.results if result.score is not None or result.abstained}
    return not names <= said


def _asking_within(ask: Ask, time_s: float) -> Ask:
    """Return an ``Ask`` whose calls fail after ``time_s``: one that hangs does not cost what others gave."""
    end = asyncio.get_running_loop().time() + time_s

    async def bounded(request: ModelRequest) -> Completion:
        try:
            async with asyncio.timeout_at(end):
                return await ask(request)
        except TimeoutError:
            raise CallError(CallFailure.DEADLINE) from None

    return bounded


async def _examine(
    detector: AskingDetector | None,
    exchange: Exchange,
    answer: Answer,
    first: Sequence[DetectorResult],
    ask: Ask,
) -> DetectorResult:
    if detector is None:
        raise DetectorError("the plan lists a detector that is not loaded")
    return await detector.examine(exchange, answer, first, ask=ask)


async def _one(
    spec: DetectorSpec, asked: Callable[[], Awaitable[DetectorResult]], length: int, time_s: float
) -> DetectorResult:
    """Return one detector's result in the engine's form, whatever becomes of it."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(time_s):
            found = await asked()
        _demand_range(found, length)
    except TimeoutError:
        found = DetectorResult(spec.name, None, reason=Reason.TIMEOUT)
    except CallError as error:
        why = f"a model call failed: {error.code}"
        found = DetectorResult(spec.name, None, reason=reason_of(error), explanation=why)
    except DetectorError as error:
        found = DetectorResult(spec.name, None, reason=Reason.DETECTOR_ERROR, explanation=str(error))
    except Exception as error:  # noqa: BLE001 - a detector that fails costs its own result
        # The type alone: a message may quote the text that was being judged.
        found = DetectorResult(
            spec.name, None, reason=Reason.DETECTOR_ERROR, explanation=f"failed: {type(error).__name__}"
        )
    return replace(found, detector=spec.name, weight=spec.weight, duration_s=time.perf_counter() - began)


def _demand_range(result: DetectorResult, length: int) -> None:
    figures = [*([result.score] if result.score is not None else []), result.floor]
    figures += [span.score for span in result.spans]
    if not all(0.0 <= figure <= 1.0 for figure in figures):
        raise ValueError("a score outside of 0..1")
    if not all(0 <= span.start <= span.end <= length for span in result.spans):
        raise ValueError("a span outside of the answer")


def findings_of(text: str, result: DetectorResult) -> tuple[Finding, ...]:
    """Return a finding for each claim of the answer ``text``: those that spans touch are wrong, the others supported.

    None where the result has no score, or a risk that no span explains: nobody can tell which claim it means.
    """
    if result.score is None or (not result.spans and result.score > LOW_RISK):
        return ()
    supported = SUPPORTED_RISK if result.spans else max(SUPPORTED_RISK, result.score)
    found: list[Finding] = []
    for claim in scored_claims(text):
        touching = [span for span in result.spans if span.start < claim.end and span.end > claim.start]
        worst = max(touching, key=lambda span: span.score, default=None)
        if worst is None:
            found.append(Finding(claim.start, claim.end, supported, ClaimOutcome.SUPPORTED))
            continue
        contradicted = worst.kind is SpanKind.CONTRADICTED
        outcome = ClaimOutcome.CONTRADICTED if contradicted else ClaimOutcome.NOT_STATED
        found.append(Finding(claim.start, claim.end, worst.score, outcome, worst.passage))
    return tuple(found)

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
from truthlens.core.records.calls import Ask, CallFailure
from truthlens.core.records.enums import AskWhen, Reason, Stage
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import DetectorResult, Verdict
from truthlens.detection.fusion import fuse
from truthlens.detection.interfaces import AskingDetector, reason_not_to_run

Asking = Sequence[tuple[DetectorSpec, AskingDetector | None]]

LOW_RISK = 0.3
"""Up to here a model found nothing: what it says then raises no score (hallucination-guidelines, low risk)."""

# Why the call that gave nothing did: time and room have reasons of their own.
_REASONS = {
    CallFailure.DEADLINE: Reason.TIMEOUT,
    CallFailure.TIMEOUT: Reason.TIMEOUT,
    CallFailure.BUSY: Reason.OVERLOADED,
}


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
    if not plan.asking or reason_not_to_run(plan, exchange, answer) is not None:
        return Stage.FIRST
    if given is not None:
        return given
    if settings.when is AskWhen.ALWAYS:
        return Stage.ALWAYS
    if verdict.score is None:
        return Stage.UNSCORED
    if settings.band[0] <= verdict.score <= settings.band[1]:
        return Stage.BAND
    return Stage.SAMPLE if draw < settings.sample else Stage.FIRST


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
    shown: Callable[[Sequence[DetectorResult], Sequence[Answer]], Sequence[DetectorResult]],
) -> Verdict:
    """Return the verdict of both stages on ``answer``; never raises but for cancellation.

    The asking detectors run side by side. One that fails, or has not ended after ``time_s``, has no score, and the
    verdict is ``partial``: what the first stage said still counts. One that gives a low risk changes no score of the
    first. ``shown`` adds to spans what is shown of them.
    """
    asked = [
        (spec, detector) for spec, detector in asking if detector is None or detector.reads(exchange, answer)
    ]
    if not asked:
        return verdict
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                _one(
                    spec,
                    partial(_examine, detector, exchange, answer, verdict.results, ask),
                    len(answer.text),
                    time_s,
                )
            )
            for spec, detector in asked
        ]
    found = [task.result() for task in tasks]
    found = list(await asyncio.to_thread(shown, found, [answer] * len(found)))
    results = {result.detector: result for result in found}
    kept = {result.detector: result for result in verdict.results} | results
    ordered = [kept[spec.name] for spec in plan.detectors if spec.name in kept]
    asked_names = {spec.name for spec, _ in asked}
    counted = [
        replace(result, score=0.0)
        if result.detector in asked_names and result.score is not None and result.score <= LOW_RISK
        else result
        for result in ordered
    ]
    alone = verdict.score is None
    fused = fuse(ordered if alone else counted, threshold=plan.threshold, expected_rate=plan.expected_rate)
    return replace(fused, results=tuple(ordered), stage=stage, first_score=verdict.score)


def rejected_by_models(plan: Plan, verdict: Verdict) -> bool:
    """Return whether a detector that asks models flags the answer by itself."""
    names = {spec.name for spec in plan.asking}
    own = [result for result in verdict.results if result.detector in names and result.score is not None]
    return any(
        fuse([result], threshold=plan.threshold, expected_rate=plan.expected_rate).flagged for result in own
    )


def failed_by_models(plan: Plan, verdict: Verdict) -> bool:
    """Return whether a detector that asks models was asked and gave no score, or was not asked at all."""
    names = {spec.name for spec in plan.asking}
    said = {result.detector for result in verdict.results if result.score is not None or result.abstained}
    return not names <= said


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
        reason = _REASONS.get(error.failure, Reason.DETECTOR_ERROR)
        found = DetectorResult(
            spec.name, None, reason=reason, explanation=f"a model call failed: {error.code}"
        )
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

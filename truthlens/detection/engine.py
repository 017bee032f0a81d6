"""Runs the detectors of a plan on the answers of an exchange: off the event loop, bounded, under a deadline.

One exchange is one job on one worker thread, so that its choices share batches. The engine never raises for what
happens to a job: overload, a missed deadline and a failing detector are verdicts. It writes no log and no metric;
verdicts say what happened, and gauges are plain attributes.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from truthlens.core.errors import DetectorError
from truthlens.core.plan import DetectorSpec, Plan
from truthlens.core.records import (
    Aggregation,
    Answer,
    AnswerKind,
    DetectorName,
    DetectorResult,
    Exchange,
    Reason,
    Verdict,
    unchecked,
)
from truthlens.detection.fusion import fuse
from truthlens.detection.loading import load_encoder
from truthlens.detection.runtime import Stop

__all__ = ["Detector", "Engine", "load_encoder"]


class Detector(Protocol):
    """Scores the answers of one exchange; synchronous, and safe to call from several threads."""

    @property
    def model(self) -> str:
        """Name of the model that it runs, ``""`` where it runs none."""

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Whether it can score the answer as far as its language goes."""

    def detect_all(
        self, exchange: Exchange, answers: Sequence[Answer], *, aggregation: Aggregation | None, stop: Stop
    ) -> Sequence[DetectorResult]:
        """One result per answer, in order; a result may say why it has no score.

        Any exception is taken for ``detector-error``. ``stop`` turns true once nobody waits for the results.
        """


class Engine:
    """Detectors behind a bounded worker pool.

    Args:
        encoders: encoder detectors by the plan's ``model_id``; ``None`` is the bundled model.
        detectors: other detectors by the name that a plan lists.
        workers: jobs that run at once. With one thread an inference, as many as there are cores.
        queue_limit: jobs that may wait; one more is refused as ``overloaded``.
        queue_observer: told for each job the seconds that it waited, on the event loop's thread.
    """

    def __init__(
        self,
        encoders: Mapping[str | None, Detector],
        *,
        detectors: Mapping[str, Detector] | None = None,
        workers: int = 1,
        queue_limit: int = 64,
        queue_observer: Callable[[float], None] | None = None,
    ) -> None:
        self._encoders = dict(encoders)
        self._detectors = dict(detectors or {})
        self._queue_observer = queue_observer
        self._limit = workers + queue_limit
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="truthlens-detect")
        self._lock = threading.Lock()
        self._closing = False
        self.inflight = 0
        """Jobs that a worker is running, those included whose deadline has passed."""
        self.waiting = 0
        """Jobs that wait for a worker."""

    def use(self, encoders: Mapping[str | None, Detector]) -> None:
        """Score with these encoders from the next exchange on; those in flight keep the ones that they began with."""
        self._encoders = dict(encoders)

    def model_name(self, plan: Plan) -> str:
        """Name of the model that scores for ``plan``, or ``""`` where none is loaded for it."""
        encoder = self._encoders.get(plan.model_id)
        return encoder.model if encoder is not None else ""

    def scores(self, plan: Plan, exchange: Exchange, answers: Sequence[Answer]) -> bool:
        """Whether there is anything to score among ``answers``, as far as can be told without scoring."""
        encoder = self._encoders.get(plan.model_id)
        listed = any(spec.name == DetectorName.ENCODER for spec in plan.detectors)
        alone = listed and len(plan.detectors) == 1
        return any(
            _reason_not_to_run(plan, exchange, answer) is None
            and not (alone and encoder is not None and not encoder.reads(exchange, answer))
            for answer in answers
        )

    async def detect(self, plan: Plan, exchange: Exchange, answers: Sequence[Answer]) -> tuple[Verdict, ...]:
        """One verdict per answer, in order, within ``plan.timeout_s`` of the call.

        An answer that there is nothing to check of gets its reason at once. The others share one job. If the
        deadline passes, what the finished detectors said still counts (``partial``, ``timeout``).
        """
        verdicts: dict[int, Verdict] = {}
        scorable: list[int] = []
        for place, answer in enumerate(answers):
            reason = _reason_not_to_run(plan, exchange, answer)
            if reason is None:
                scorable.append(place)
            else:
                verdicts[place] = unchecked(reason, threshold=plan.threshold)
        if scorable:
            results = await self._run(plan, exchange, [answers[place] for place in scorable])
            for place, own in zip(scorable, results, strict=True):
                verdicts[place] = fuse(own, threshold=plan.threshold)
        return tuple(verdicts[place] for place in range(len(answers)))

    async def aclose(self) -> None:
        """Refuse new work as ``overloaded`` and wait until the workers have finished theirs."""
        self._closing = True
        await asyncio.to_thread(self._pool.shutdown)

    async def _run(
        self, plan: Plan, exchange: Exchange, answers: Sequence[Answer]
    ) -> list[list[DetectorResult]]:
        """Per answer one result for each detector of the plan, in the plan's order."""
        job = _Job(self._chosen(plan), exchange, answers, plan.aggregation)
        with self._lock:
            if self._closing or self.inflight + self.waiting >= self._limit:
                return job.results(missing=Reason.OVERLOADED)
            self.waiting += 1
        future = self._pool.submit(self._work, job)
        finished = asyncio.wrap_future(future)
        try:
            await asyncio.wait({finished}, timeout=plan.timeout_s)
            if not finished.done():
                return job.results(missing=Reason.TIMEOUT)
            finished.result()
            return job.results(missing=Reason.DETECTOR_ERROR)
        finally:
            self._leave(job, future)

    def _work(self, job: _Job) -> None:
        with self._lock:
            self.waiting -= 1
            self.inflight += 1
        try:
            job.run()
        finally:
            with self._lock:
                self.inflight -= 1

    def _leave(self, job: _Job, future: Future[None]) -> None:
        """Give the job up if it has not finished: its deadline passed, or the client went away."""
        job.stop.set()
        if future.cancel():
            # The pool keeps what was cancelled until a worker comes to it; texts must not be kept so long.
            job.forget()
            with self._lock:
                self.waiting -= 1
        if self._queue_observer is not None:
            self._queue_observer(job.waited_s())

    def _chosen(self, plan: Plan) -> list[tuple[DetectorSpec, Detector | None]]:
        return [
            (
                spec,
                self._encoders.get(plan.model_id)
                if spec.name == DetectorName.ENCODER
                else self._detectors.get(spec.name),
            )
            for spec in plan.detectors
        ]


class _Job:
    """One exchange on its way through its detectors; written by one worker, read by the event loop."""

    def __init__(
        self,
        chosen: Sequence[tuple[DetectorSpec, Detector | None]],
        exchange: Exchange,
        answers: Sequence[Answer],
        aggregation: Aggregation | None,
    ) -> None:
        self.stop = threading.Event()
        self._chosen = chosen
        self._exchange = exchange
        self._answers = answers
        self._aggregation = aggregation
        self._queued = time.perf_counter()
        self._started: float | None = None
        # Lists are only appended to, and only when complete: what the event loop sees is always whole.
        self._done: list[list[DetectorResult]] = []

    def run(self) -> None:
        self._started = time.perf_counter()
        for spec, detector in self._chosen:
            if self.stop.is_set():
                return
            try:
                found = self._detect(detector)
            except Exception as error:  # noqa: BLE001 - the stage border: a detector's failure is a verdict
                found = [
                    DetectorResult(
                        spec.name, None, reason=Reason.DETECTOR_ERROR, explanation=type(error).__name__
                    )
                    for _ in self._answers
                ]
            self._done.append([replace(result, weight=spec.weight) for result in found])

    def results(self, *, missing: Reason) -> list[list[DetectorResult]]:
        """Per answer the results of all detectors; those that have none get the reason ``missing``."""
        done = list(self._done)
        late = [
            DetectorResult(spec.name, None, reason=missing, weight=spec.weight)
            for spec, _ in self._chosen[len(done) :]
        ]
        return [[*(results[place] for results in done), *late] for place in range(len(self._answers))]

    def forget(self) -> None:
        """Let go of the exchange; the job will not run."""
        self._exchange = replace(self._exchange, query="", passages=(), messages=())
        self._answers = ()

    def waited_s(self) -> float:
        """Seconds from submission until a worker took the job, or until now."""
        return (time.perf_counter() if self._started is None else self._started) - self._queued

    def _detect(self, detector: Detector | None) -> Sequence[DetectorResult]:
        if detector is None:
            raise DetectorError("the plan lists a detector or a model that is not loaded")
        found = detector.detect_all(
            self._exchange, self._answers, aggregation=self._aggregation, stop=self.stop.is_set
        )
        if len(found) != len(self._answers):
            raise DetectorError(f"{len(found)} results for {len(self._answers)} answers")
        return found


def _reason_not_to_run(plan: Plan, exchange: Exchange, answer: Answer) -> Reason | None:
    if not plan.enabled or not plan.detectors:
        return Reason.DISABLED
    if answer.kind is AnswerKind.TOOL_CALL:
        return Reason.TOOL_CALL
    if answer.kind is not AnswerKind.TEXT or not answer.text.strip():
        return Reason.EMPTY_ANSWER
    if not any(passage.text.strip() for passage in exchange.passages):
        return Reason.NO_CONTEXT
    return None

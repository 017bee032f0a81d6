"""Run detector jobs on a bounded pool of worker threads, with deadlines, refusals and a way to give up.

Knows neither plans nor answers: a job is steps, each of which gives results, and the names of the detectors.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import count
from typing import Any, Generic, TypeVar

from truthlens.core.cancellation import StopCheck, stopping
from truthlens.core.errors import DetectorError, StoppedError
from truthlens.core.records.enums import Reason
from truthlens.core.records.plan import DetectorSpec
from truthlens.core.records.verdict import DetectorResult


class Ended(Enum):
    """What became of a job."""

    FINISHED = auto()
    LATE = auto()
    REFUSED = auto()

    @property
    def reason(self) -> Reason:
        """Why a detector returned no score."""
        return _REASONS[self]


_REASONS = {
    Ended.FINISHED: Reason.DETECTOR_ERROR,
    Ended.LATE: Reason.TIMEOUT,
    Ended.REFUSED: Reason.OVERLOADED,
}


Results = list[list[DetectorResult]]
"""Per text, one result for each detector."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class DetectorStep:
    """One detector's part of a job: a result for each text of the job, in order."""

    spec: DetectorSpec
    run: Callable[[StopCheck], Sequence[DetectorResult]]


class Job(Generic[_T]):
    """Some texts on their way through their detectors; written by one worker, read by the event loop.

    Args:
        steps: one per detector, in the plan's order.
        texts: how many results each step has to give.
        conclude: makes of the results what is asked for; on the worker as well, since its time grows with the texts.
    """

    def __init__(
        self, steps: Sequence[DetectorStep], *, texts: int, conclude: Callable[[Results], _T] | None = None
    ) -> None:
        self.stop = threading.Event()
        self.concluded: _T | None = None
        """What ``conclude`` made, ``None`` where the job was given up before."""
        self._conclude = conclude
        self._steps = tuple(steps)
        self._specs = tuple(step.spec for step in steps)
        self._texts = texts
        self._queued = time.perf_counter()
        self._started: float | None = None
        # Lists are only appended to, and only when complete: what the event loop sees is always whole.
        self._done: list[list[DetectorResult]] = []

    def run(self) -> None:
        """Take the steps, until the job is given up."""
        self._started = time.perf_counter()
        for step in self._steps:
            if self.stop.is_set():
                return
            try:
                found = self._results_of(step)
            except Exception as error:  # noqa: BLE001 - the stage border: a detector's failure is a verdict
                found = [_failed(step.spec, type(error).__name__)] * self._texts
            self._done.append([replace(result, weight=step.spec.weight) for result in found])
        if self._conclude is not None:
            with contextlib.suppress(StoppedError), stopping(self.stop.is_set):
                self.concluded = self._conclude(self.results(missing=Ended.FINISHED.reason))

    def results(self, *, missing: Reason) -> Results:
        """Return, per text, the results of all detectors; those that have none get the reason ``missing``."""
        done = list(self._done)
        late = [
            DetectorResult(spec.name, None, reason=missing, weight=spec.weight)
            for spec in self._specs[len(done) :]
        ]
        return [[*(results[place] for results in done), *late] for place in range(self._texts)]

    def forget(self) -> None:
        """Let go of the texts; the job will not run."""
        self._steps, self._conclude = (), None

    def waited_s(self) -> float:
        """Return the seconds from submission until a worker took the job, or until now."""
        return (time.perf_counter() if self._started is None else self._started) - self._queued

    def _results_of(self, step: DetectorStep) -> Sequence[DetectorResult]:
        with stopping(self.stop.is_set):
            found = step.run(self.stop.is_set)
        if len(found) != self._texts:
            raise DetectorError(f"{len(found)} results for {self._texts} answers")
        return [_in_range(result, step.spec) for result in found]


def _in_range(result: DetectorResult, spec: DetectorSpec) -> DetectorResult:
    """Return the result, or that the detector failed where its score, floor or a span's score is no number of 0..1."""
    spans = (("score of a span", span.score) for span in result.spans)
    for name, figure in (("score", result.score), ("floor", result.floor), *spans):
        if figure is not None and not 0.0 <= figure <= 1.0:
            return _failed(spec, f"{name} {figure}, expected 0..1")
    return result


def _failed(spec: DetectorSpec, why: str) -> DetectorResult:
    return DetectorResult(spec.name, None, reason=Reason.DETECTOR_ERROR, explanation=why)


class Workers:
    """The bounded pool. Jobs are taken in the order they came, but for those that give way to later ones.

    Args:
        workers: jobs that run at once.
        queue_limit: jobs that may wait, those of streams apart; one more is refused.
        queue_observer: told for each job the seconds that it waited, on the event loop's thread; spare ones
            apart.
    """

    def __init__(
        self, *, workers: int, queue_limit: int, queue_observer: Callable[[float], None] | None
    ) -> None:
        self._queue_observer = queue_observer
        self._workers = workers
        self._limit = workers + queue_limit
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="truthlens-detect")
        self._lock = threading.Lock()
        # Waiting jobs, the next one first: when each is due, and its number.
        self._queue: list[tuple[float, int, Job[Any], Future[None]]] = []
        self._numbers = count()
        self._of_streams = 0
        self._closing = False
        self.inflight = 0
        """Jobs that a worker is running, those included whose deadline has passed."""
        self.waiting = 0
        """Jobs that wait for a worker."""

    @property
    def behind_s(self) -> float:
        """Seconds that the job has waited that waits longest."""
        with self._lock:
            return max(
                (job.waited_s() for _, _, job, future in self._queue if not future.done()), default=0.0
            )

    async def run(
        self, job: Job[Any], *, timeout_s: float, spare: bool = False, gives_way_s: float | None = None
    ) -> Ended:
        """Run ``job`` and return its result, at most ``timeout_s`` seconds after the call.

        Cancelling gives the job up.

        Args:
            job: not run yet.
            timeout_s: after so many seconds the job is given up.
            spare: the job can be done without, and is refused unless a worker is free.
            gives_way_s: for one of a stream, of which there is one at a time: jobs that are of none, and come up to so
                many seconds later, are taken first. However many streams there are, they take no place of others.
        """
        future: Future[None] = Future()
        with self._lock:
            taken = self.inflight + self.waiting
            full = taken >= self._workers if spare else taken - self._of_streams >= self._limit
            if self._closing or (full and (spare or gives_way_s is None)):
                return Ended.REFUSED
            self.waiting += 1
            self._of_streams += gives_way_s is not None
            due = time.perf_counter() + (gives_way_s or 0.0)
            heapq.heappush(self._queue, (due, next(self._numbers), job, future))
        self._pool.submit(self._work)
        finished = asyncio.wrap_future(future)
        try:
            await asyncio.wait({finished}, timeout=timeout_s)
            if not finished.done():
                return Ended.LATE
            finished.result()
            return Ended.FINISHED
        finally:
            self._leave(job, future, spare=spare)
            with self._lock:
                self._of_streams -= gives_way_s is not None

    async def aclose(self) -> None:
        """Refuse new work and wait until the workers have finished theirs."""
        self._closing = True
        await asyncio.to_thread(self._pool.shutdown)

    def _work(self) -> None:
        """Run the job that is due first; called once for each."""
        with self._lock:
            _, _, job, future = heapq.heappop(self._queue)
            if not future.set_running_or_notify_cancel():
                return
            self.waiting -= 1
            self.inflight += 1
        failed: BaseException | None = None
        try:
            job.run()
        except BaseException as error:  # noqa: BLE001 - raised where the job is waited for
            failed = error
        with self._lock:
            self.inflight -= 1
        if failed is None:
            future.set_result(None)
        else:
            future.set_exception(failed)

    def _leave(self, job: Job[Any], future: Future[None], *, spare: bool) -> None:
        """Give the job up if it has not finished: its deadline passed, or the client went away."""
        job.stop.set()
        if future.cancel():
            # The queue keeps what was cancelled until a worker comes to it; texts must not be kept so long.
            job.forget()
            with self._lock:
                self.waiting -= 1
        if self._queue_observer is not None and not spare:
            self._queue_observer(job.waited_s())

"""Runs the detectors of a plan on the answers of an exchange: off the event loop, bounded, under a deadline.

One exchange is one job on one worker thread, so that its choices share batches. The engine never raises for
what happens to a job: overload, a missed deadline and a failing detector are verdicts. It writes no log and
no metric; verdicts say what happened, and gauges are plain attributes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import DetectorError
from truthlens.core.records.calls import Ask
from truthlens.core.records.enums import Stage
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import DetectorResult, Verdict, unchecked
from truthlens.detection.explain.explainer import explained
from truthlens.detection.fusion import Fusion
from truthlens.detection.incremental import Following, with_shown
from truthlens.detection.interfaces import AskingDetector, Detector, reason_not_to_run, running
from truthlens.detection.plain_answers import PlainAnswers, PlainParts
from truthlens.detection.workers import DetectorStep, Job, Results, Workers
from truthlens.exchange.reading_pool import Pool


class Detectors(Protocol):
    """The detectors of plans."""

    def of(self, plan: Plan) -> Sequence[tuple[DetectorSpec, Detector | None]]:
        """Return what ``plan`` lists and asks no model, in its order; ``None`` for a detector that is not loaded."""

    def asking(self, plan: Plan) -> Sequence[tuple[DetectorSpec, AskingDetector | None]]:
        """Return what ``plan`` lists and asks models, likewise."""


# What takes a second or more has workers of its own: a few such answers would keep everybody else's from
# being checked.
LARGE_ANSWER_CHARS = 32_000
LARGE_EVIDENCE_CHARS = 400_000


class Engine:
    """Detectors behind a bounded worker pool.

    Args:
        detectors: the detectors of every plan.
        workers: jobs that run at once. With one thread an inference, as many as there are cores. Jobs on very
            long texts have their own pool of half as many, at least one.
        queue_limit: jobs that may wait; one more is refused as ``overloaded``.
        queue_observer: told for each job the seconds that it waited, on the event loop's thread.
        unexplained: told why spans had to do without explanations or without the phrases around them, each time, from any
            thread.
        draw: a random number in 0..1, for the sample of a cascade.
    """

    def __init__(
        self,
        detectors: Detectors,
        *,
        workers: int = 1,
        queue_limit: int = 64,
        queue_observer: Callable[[float], None] | None = None,
        unexplained: Callable[[Exception], None] | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._draw = draw
        self._detectors = detectors
        # By the id of a plan, which is kept beside it: to compare plans takes longer than to ask each detector.
        self._names: dict[int, tuple[Plan, str]] = {}
        self._unexplained = unexplained
        make = partial(Workers, queue_limit=queue_limit, queue_observer=queue_observer)
        self._workers = make(workers=workers)
        self._large = make(workers=max(1, workers // 2))
        self._explaining = Pool()

    @property
    def inflight(self) -> int:
        """Jobs that a worker is running, those included whose deadline has passed."""
        return self._workers.inflight + self._large.inflight

    @property
    def waiting(self) -> int:
        """Jobs that wait for a worker."""
        return self._workers.waiting + self._large.waiting

    @property
    def behind_s(self) -> float:
        """Seconds that the job has waited that waits longest; very long texts apart."""
        return self._workers.behind_s

    def use(self, detectors: Detectors) -> None:
        """Score with these from the next exchange on; those in flight keep the ones that they began with."""
        self._detectors = detectors
        self._names.clear()

    def model_name(self, plan: Plan) -> str:
        """Return the name of the first model that scores for ``plan``, or ``""`` where none does."""
        found = self._names.get(id(plan))
        if found is None or found[0] is not plan:
            models = (detector.model for _, detector in self._detectors.of(plan) if detector is not None)
            found = self._names[id(plan)] = plan, next((model for model in models if model), "")
        return found[1]

    def scores(self, plan: Plan, exchange: Exchange, answers: Sequence[Answer]) -> bool:
        """Return whether anything among ``answers`` can be scored, as far as that is known beforehand."""
        chosen = running(self._detectors.of(plan), exchange)
        return any(
            reason_not_to_run(plan, exchange, answer) is None
            and any(detector is None or detector.reads(exchange, answer) for _, detector in chosen)
            for answer in answers
        )

    async def detect(self, plan: Plan, exchange: Exchange, answers: Sequence[Answer]) -> tuple[Verdict, ...]:
        """Return one verdict per answer, in order, within ``plan.timeout_s`` of the call.

        An answer that there is nothing to check of gets its reason at once. The others share one job. If the
        deadline passes, what the finished detectors said still counts (``partial``, ``timeout``).
        """
        verdicts: dict[int, Verdict] = {}
        scorable: list[int] = []
        for place, answer in enumerate(answers):
            reason = reason_not_to_run(plan, exchange, answer)
            if reason is None:
                scorable.append(place)
            else:
                verdicts[place] = unchecked(reason, threshold=plan.threshold)
        if scorable:
            found = await self._run(plan, exchange, [answers[place] for place in scorable])
            verdicts |= zip(scorable, found, strict=True)
        return tuple(verdicts[place] for place in range(len(answers)))

    async def examine(
        self,
        plan: Plan,
        exchange: Exchange,
        answers: Sequence[Answer],
        verdicts: Sequence[Verdict],
        *,
        ask: Ask,
        time_s: float,
        stage: Stage | None = None,
    ) -> tuple[Verdict, ...]:
        """Return the verdicts with what models say, about those answers of which the plan's cascade asks them.

        Args:
            plan: its detectors that ask models run.
            exchange: query and passages.
            answers: what was scored.
            verdicts: of ``detect``, one per answer.
            ask: bound to the exchange.
            time_s: all asking ends within so many seconds, and within ``plan.cascade.timeout_s``.
            stage: why models are asked about every answer that can be judged; left out, the cascade chooses.
        """
        # Where no plan asks a model, the second stage is never read.
        from truthlens.detection.cascade import examined, stage_of

        chosen = [
            stage_of(plan, exchange, answer, verdict, draw=self._draw(), given=stage)
            for answer, verdict in zip(answers, verdicts, strict=True)
        ]
        asking, left_s = self._detectors.asking(plan), min(time_s, plan.cascade.timeout_s)

        async def one(answer: Answer, verdict: Verdict, why: Stage) -> Verdict:
            if why is Stage.FIRST:
                return verdict
            shown = partial(with_shown, failed=self._unexplained)
            return await examined(
                plan, exchange, answer, verdict, asking=asking, ask=ask, stage=why, time_s=left_s, shown=shown
            )

        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(one(answer, verdict, why))
                for answer, verdict, why in zip(answers, verdicts, chosen, strict=True)
            ]
        return tuple(task.result() for task in tasks)

    async def explain(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        verdicts: Sequence[Verdict],
        *,
        time_s: float,
        nearest: bool = True,
    ) -> tuple[Verdict, ...]:
        """Return the verdicts with spans explained, or as they are if that fails or takes over ``time_s``.

        With ``nearest``, claims of which no finding names a sentence get the one that comes nearest.
        """
        size = _characters(exchange.passages) + _characters(answers)
        try:
            return await self._explaining.run(
                lambda: explained(exchange, answers, verdicts, nearest=nearest), size=size, timeout_s=time_s
            )
        except Exception as error:  # noqa: BLE001 - the stage border: it costs the explanations, not the verdicts
            if self._unexplained is not None:
                self._unexplained(error)
            return tuple(verdicts)

    def follow(self, plan: Plan, exchange: Exchange) -> Following:
        """Return a scorer for the answers of ``exchange`` while they are written; see ``Following``.

        It keeps the detectors that it began with, and what it remembers lives as long as it does.
        """
        return Following(
            plan,
            exchange,
            chosen=self._detectors.of(plan),
            workers=self._workers_for(exchange),
            unexplained=self._unexplained,
        )

    async def aclose(self) -> None:
        """Refuse new work as ``overloaded`` and wait until the workers have finished theirs."""
        await self._workers.aclose()
        await self._large.aclose()
        await self._explaining.aclose()

    async def _run(self, plan: Plan, exchange: Exchange, answers: Sequence[Answer]) -> list[Verdict]:
        """Return, per answer, the verdict of the plan's detectors."""
        fusion = Fusion(exchange)
        steps = [
            DetectorStep(spec, partial(self._detect, detector, plan, fusion.plain, answers))
            for spec, detector in running(self._detectors.of(plan), exchange)
        ]

        def conclude(results: Results) -> list[Verdict]:
            return [fusion.verdict(plan, answer, own) for answer, own in zip(answers, results, strict=True)]

        job = Job(steps, texts=len(answers), conclude=conclude)
        ended = await self._workers_for(exchange, answers).run(job, timeout_s=plan.timeout_s)
        return job.concluded or [fusion.late(plan, own) for own in job.results(missing=ended.reason)]

    def _detect(
        self,
        detector: Detector | None,
        plan: Plan,
        plain: PlainAnswers,
        answers: Sequence[Answer],
        stop: StopCheck,
    ) -> Sequence[DetectorResult]:
        if detector is None:
            raise DetectorError("the plan lists a detector or a model that is not loaded")
        seen = PlainParts(plain.seen_by(detector, answers), [()] * len(answers))
        found = detector.detect_all(plain.exchange, seen.answers, aggregation=plan.aggregation, stop=stop)
        if len(found) != len(answers):
            return found  # the job's to report
        return seen.placed_answers(with_shown(found, seen.answers, failed=self._unexplained))

    def _workers_for(self, exchange: Exchange, answers: Sequence[Answer] = ()) -> Workers:
        large = (
            _characters(answers) > LARGE_ANSWER_CHARS or _characters(exchange.passages) > LARGE_EVIDENCE_CHARS
        )
        return self._large if large else self._workers


def _characters(texts: Sequence[Answer] | Sequence[Passage]) -> int:
    return sum(len(each.text) for each in texts)

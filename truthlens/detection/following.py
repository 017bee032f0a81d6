"""Scores the answers of one exchange while they are written: ahead of their end, sentence by sentence, and at the end.

What is scored ahead is what further text cannot change, so the verdict at the end is the one that the whole answer gets
when it is scored at once. It decides nothing about what becomes of the text, and writes no log and no metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from truthlens.core.errors import DetectorError
from truthlens.core.plan import DetectorSpec, Plan
from truthlens.core.records import Answer, DetectorResult, Exchange, Reason, Verdict, unchecked
from truthlens.detection.detectors import Detector, Followable, Follower, Ranges, reason_not_to_run
from truthlens.detection.fusion import fuse
from truthlens.detection.jobs import Job, Step, Workers
from truthlens.detection.runtime import Stop


@dataclass(frozen=True, slots=True)
class Followed:
    """Verdicts on answers so far, and on parts of them.

    ``verdicts`` has one per answer, as if it were whole. ``ranges`` has per answer one per range that was asked for: as
    if the range were an answer by itself, with the text around it as its context; spans are characters of the answer.
    """

    verdicts: tuple[Verdict, ...]
    ranges: tuple[tuple[Verdict, ...], ...]


class Following:
    """Scores the answers of one exchange while they grow; with the detectors that it began with.

    Args:
        plan: which detectors, and the threshold.
        exchange: query and passages.
        chosen: the plan's detectors; ``None`` for one that is not loaded.
        workers: the pool that all jobs go through.
    """

    def __init__(
        self,
        plan: Plan,
        exchange: Exchange,
        *,
        chosen: Sequence[tuple[DetectorSpec, Detector | None]],
        workers: Workers,
    ) -> None:
        self._plan = plan
        self._exchange = exchange
        self._workers = workers
        self._parts = [
            _Part(spec, detector, detector.follow(exchange) if isinstance(detector, Followable) else None)
            for spec, detector in chosen
        ]
        self._ahead: Job | None = None

    def due(self, answers: Sequence[Answer]) -> bool:
        """Whether ``ahead`` has something to do that further text will not change; cheap, by a count of characters."""
        scorable = self._scorable(answers)
        return bool(scorable) and any(follower.due(scorable) for _, follower in self._followers())

    async def ahead(self, answers: Sequence[Answer]) -> None:
        """Score what further text of ``answers`` cannot change; the first call prepares the evidence.

        Never raises, and tells nothing: what was not done, because no worker was free or ``plan.timeout_s`` has passed,
        is done by ``detect``. It gives way to ``detect``, and to every other job that waits for a worker.
        """
        scorable = self._scorable(answers)
        followers = self._followers()
        if not scorable or not followers or self._ahead is not None:
            return
        job = Job(
            [Step(spec, partial(self._go_ahead, follower, scorable)) for spec, follower in followers], texts=0
        )
        self._ahead = job
        try:
            await self._workers.run(job, timeout_s=self._plan.timeout_s, spare=True)
        finally:
            self._ahead = None

    async def detect(
        self,
        answers: Sequence[Answer],
        ranges: Sequence[Ranges] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Followed:
        """Verdicts on the answers as ``Engine.detect`` gives them, and on each of ``ranges``.

        Args:
            answers: the answers so far, or whole.
            ranges: per answer the parts to be judged by themselves, none by default. A blank part is
                ``empty-answer``.
            timeout_s: the verdicts come within so many seconds; ``plan.timeout_s`` by default.

        Raises:
            ValueError: there are not as many lists of ranges as answers, or a range lies outside of its answer.
        """
        asked = [tuple(own) for own in ranges] if ranges is not None else [()] * len(answers)
        _demand_within(answers, asked)
        if self._ahead is not None:
            self._ahead.stop.set()
        reasons = [reason_not_to_run(self._plan, self._exchange, answer) for answer in answers]
        scorable = [place for place, reason in enumerate(reasons) if reason is None]
        parts = [[part for part in asked[place] if _holds_text(answers[place], part)] for place in scorable]
        results = iter(await self._run([answers[place] for place in scorable], parts, timeout_s=timeout_s))
        verdicts = [
            self._verdict(next(results)) if reason is None else self._none(reason) for reason in reasons
        ]
        return Followed(
            verdicts=tuple(verdicts),
            ranges=tuple(
                tuple(
                    self._none(reason or Reason.EMPTY_ANSWER)
                    if reason is not None or not _holds_text(answer, part)
                    else self._verdict(next(results))
                    for part in own
                )
                for answer, own, reason in zip(answers, asked, reasons, strict=True)
            ),
        )

    def _scorable(self, answers: Sequence[Answer]) -> list[Answer]:
        return [answer for answer in answers if reason_not_to_run(self._plan, self._exchange, answer) is None]

    def _followers(self) -> list[tuple[DetectorSpec, Follower]]:
        return [(part.spec, part.follower) for part in self._parts if part.follower is not None]

    def _go_ahead(
        self, follower: Follower, answers: Sequence[Answer], stop: Stop
    ) -> Sequence[DetectorResult]:
        follower.ahead(answers, stop=lambda: stop() or self._workers.waiting > 0)
        return ()

    async def _run(
        self, answers: Sequence[Answer], ranges: Sequence[Ranges], *, timeout_s: float | None
    ) -> list[list[DetectorResult]]:
        """Per answer, and then per range, one result for each detector."""
        if not answers:
            return []
        steps = [Step(part.spec, partial(self._detect, part, answers, ranges)) for part in self._parts]
        job = Job(steps, texts=len(answers) + sum(map(len, ranges)))
        limit_s = self._plan.timeout_s if timeout_s is None else timeout_s
        ended = await self._workers.run(job, timeout_s=limit_s)
        return job.results(missing=ended.reason)

    def _detect(
        self, part: _Part, answers: Sequence[Answer], ranges: Sequence[Ranges], stop: Stop
    ) -> Sequence[DetectorResult]:
        aggregation = self._plan.aggregation
        if part.follower is not None:
            return part.follower.detect_all(answers, ranges, aggregation=aggregation, stop=stop)
        if part.detector is None:
            raise DetectorError("the plan lists a detector or a model that is not loaded")
        pieces = [
            (replace(answer, text=answer.text[start:end]), start)
            for answer, own in zip(answers, ranges, strict=True)
            for start, end in own
        ]
        texts = [*answers, *(piece for piece, _ in pieces)]
        found = part.detector.detect_all(self._exchange, texts, aggregation=aggregation, stop=stop)
        shifts = [*(0 for _ in answers), *(start for _, start in pieces)]
        return [_shifted(result, by=by) for result, by in zip(found, shifts, strict=True)]

    def _verdict(self, results: Sequence[DetectorResult]) -> Verdict:
        return fuse(results, threshold=self._plan.threshold)

    def _none(self, reason: Reason) -> Verdict:
        return unchecked(reason, threshold=self._plan.threshold)


@dataclass(frozen=True, slots=True)
class _Part:
    """A detector of the plan; ``follower`` where it can follow, ``detector`` ``None`` where it is not loaded."""

    spec: DetectorSpec
    detector: Detector | None
    follower: Follower | None


def _demand_within(answers: Sequence[Answer], ranges: Sequence[Ranges]) -> None:
    if len(ranges) != len(answers):
        raise ValueError(f"{len(ranges)} lists of ranges for {len(answers)} answers; expected one for each")
    for answer, own in zip(answers, ranges, strict=True):
        for start, end in own:
            if not 0 <= start <= end <= len(answer.text):
                raise ValueError(
                    f"range {start} to {end} lies outside of its answer of {len(answer.text)} characters"
                )


def _holds_text(answer: Answer, part: tuple[int, int]) -> bool:
    return bool(answer.text[part[0] : part[1]].strip())


def _shifted(result: DetectorResult, *, by: int) -> DetectorResult:
    spans = tuple(replace(span, start=span.start + by, end=span.end + by) for span in result.spans)
    return replace(result, spans=spans)

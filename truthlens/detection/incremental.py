"""Score the answers of one exchange while they are written: ahead of their end, by sentence, and at the end.

What is scored ahead is what further text cannot change, so the verdict at the end is the one that the whole
answer gets when it is scored at once. It decides nothing about what becomes of the text, and writes no log
and no metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import DetectorError, StoppedError
from truthlens.core.records.enums import Reason
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.core.records.verdict import DetectorResult, Verdict, unchecked
from truthlens.detection.fusion import Fusion
from truthlens.detection.interfaces import Detector, Follower, Ranges, follower_of, reason_not_to_run, running
from truthlens.detection.plain_answers import PlainParts
from truthlens.detection.workers import DetectorStep, Job, Results, Workers
from truthlens.text.claims.phrases import phrases_around

# Scorings of streams give way to those of other answers that come so much later, which is longer than any may wait: who waits for
# one of these has seen nothing yet, and of streams in their dozens there is always another part to be scored.
GIVES_WAY_S = 60.0
_Text = tuple[Answer, tuple[int, int] | None]
"""An answer, or a part of one."""


@dataclass(frozen=True, slots=True)
class Followed:
    """Verdicts on answers so far, and on parts of them.

    ``verdicts`` has one per answer, as if it were whole. ``ranges`` has per answer one per range that was
    asked for: as if the range were an answer by itself, with the text around it as its context; spans are
    characters of the answer.
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
        unexplained: told why spans had to do without the phrases around them, on a worker's thread.
    """

    def __init__(
        self,
        plan: Plan,
        exchange: Exchange,
        *,
        chosen: Sequence[tuple[DetectorSpec, Detector | None]],
        workers: Workers,
        unexplained: Callable[[Exception], None] | None = None,
    ) -> None:
        self._plan = plan
        self._exchange = exchange
        self._workers = workers
        self._unexplained = unexplained
        self._parts = [
            _Part(spec, detector, follower_of(detector, exchange) if detector is not None else None)
            for spec, detector in running(chosen, exchange)
        ]
        self._ahead: Job[None] | None = None
        self._fusion = Fusion(exchange)
        self._plain = self._fusion.plain

    def due(self, answers: Sequence[Answer]) -> bool:
        """Return whether ``ahead`` has something to do that further text will not change.

        Cheap, by a count of characters.
        """
        scorable = [self._plain.shortened(answer) for answer in self._scorable(answers)]
        return bool(scorable) and any(follower.due(scorable) for _, follower in self._followers())

    async def ahead(self, answers: Sequence[Answer]) -> None:
        """Score what further text of ``answers`` cannot change; the first call prepares the evidence.

        Never raises and returns nothing: what was not done, because no worker was free or ``plan.timeout_s``
        has passed, is done by ``detect``. It gives way to ``detect``, and to every other job that waits for a
        worker.
        """
        scorable = self._scorable(answers)
        followers = self._followers()
        if not scorable or not followers or self._ahead is not None:
            return
        job: Job[None] = Job(
            [
                DetectorStep(part.spec, partial(self._go_ahead, part, follower, scorable))
                for part, follower in followers
            ],
            texts=0,
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
        """Return the verdicts on the answers as ``Engine.detect`` gives them, and on each of ``ranges``.

        Args:
            answers: the answers so far, or whole.
            ranges: per answer the parts to be scored by themselves, none by default. A blank part is
                ``empty-answer``.
            timeout_s: the verdicts come within so many seconds; ``plan.timeout_s`` by default.

        Raises:
            ValueError: there are not as many lists of ranges as answers, or a range lies outside of its
                answer.
        """
        asked = [tuple(own) for own in ranges] if ranges is not None else [()] * len(answers)
        found = self._look(answers, asked)
        whole = [(answer, None) for answer in found.answers]
        verdicts = await self._run(
            partial(self._detect, found.answers, found.ranges), [*whole, *found.parts], timeout_s=timeout_s
        )
        own = tuple(next(verdicts) if reason is None else self._none(reason) for reason in found.reasons)
        return Followed(verdicts=own, ranges=self._verdicts(answers, asked, found, verdicts))

    async def detect_ranges(
        self, answers: Sequence[Answer], ranges: Sequence[Ranges], *, timeout_s: float | None = None
    ) -> tuple[tuple[Verdict, ...], ...]:
        """Return the verdicts on ``ranges`` of unfinished answers, from the text near them alone.

        So the cost of a sentence does not grow with the answer; text far before it adds little information.
        Arguments and errors as of ``detect``.
        """
        asked = [tuple(own) for own in ranges]
        found = self._look(answers, asked)
        verdicts = await self._run(
            partial(self._detect_ranges, found.answers, found.ranges), found.parts, timeout_s=timeout_s
        )
        return self._verdicts(answers, asked, found, verdicts)

    def _look(self, answers: Sequence[Answer], asked: Sequence[Ranges]) -> _Look:
        """Choose what of the answers and ranges is to be scored; a run ahead gives way to it."""
        _demand_within(answers, asked)
        if self._ahead is not None:
            self._ahead.stop.set()
        reasons = [reason_not_to_run(self._plan, self._exchange, answer) for answer in answers]
        places = [place for place, reason in enumerate(reasons) if reason is None]
        return _Look(
            reasons,
            [answers[place] for place in places],
            [[part for part in asked[place] if _holds_text(answers[place], part)] for place in places],
        )

    def _verdicts(
        self,
        answers: Sequence[Answer],
        asked: Sequence[Ranges],
        found: _Look,
        scored: Iterator[Verdict],
    ) -> tuple[tuple[Verdict, ...], ...]:
        """Return, per answer, one verdict for each range, ``scored`` being those of the ranges that could be."""
        return tuple(
            tuple(
                self._none(reason or Reason.EMPTY_ANSWER)
                if reason is not None or not _holds_text(answer, part)
                else next(scored)
                for part in own
            )
            for answer, own, reason in zip(answers, asked, found.reasons, strict=True)
        )

    def _scorable(self, answers: Sequence[Answer]) -> list[Answer]:
        return [answer for answer in answers if reason_not_to_run(self._plan, self._exchange, answer) is None]

    def _followers(self) -> list[tuple[_Part, Follower]]:
        return [(part, part.follower) for part in self._parts if part.follower is not None]

    def _go_ahead(
        self, part: _Part, follower: Follower, answers: Sequence[Answer], stop: StopCheck
    ) -> Sequence[DetectorResult]:
        seen = [each.answer for each in self._plain.seen_by(part.detector, answers)]
        follower.ahead(seen, stop=lambda: stop() or self._workers.waiting > 0)
        return ()

    async def _run(
        self,
        run: Callable[[_Part, StopCheck], Sequence[DetectorResult]],
        texts: Sequence[_Text],
        *,
        timeout_s: float | None,
    ) -> Iterator[Verdict]:
        """Return one verdict for each of ``texts``, of which ``run`` gives the results of one detector."""
        if not texts:
            return iter(())

        def conclude(results: Results) -> list[Verdict]:
            pairs = zip(texts, results, strict=True)
            return [self._fusion.verdict(self._plan, answer, own, part) for (answer, part), own in pairs]

        steps = [DetectorStep(part.spec, partial(run, part)) for part in self._parts]
        job = Job(steps, texts=len(texts), conclude=conclude)
        limit_s = self._plan.timeout_s if timeout_s is None else timeout_s
        ended = await self._workers.run(job, timeout_s=limit_s, gives_way_s=GIVES_WAY_S)
        late = partial(self._fusion.late, self._plan)
        return iter(job.concluded or map(late, job.results(missing=ended.reason)))

    def _detect(
        self, answers: Sequence[Answer], ranges: Sequence[Ranges], part: _Part, stop: StopCheck
    ) -> Sequence[DetectorResult]:
        count = len(answers)
        seen = PlainParts(self._plain.seen_by(part.detector, answers), ranges)
        if part.follower is not None:
            found = part.follower.detect_all(
                seen.answers, seen.ranges, aggregation=self._plan.aggregation, stop=stop
            )
            parts = found[count:]
        else:
            pieces = _pieces(seen.answers, seen.ranges)
            found = self._ask(part, [*seen.answers, *(piece for piece, _ in pieces)], stop)
            parts = _shifted(found[count:], pieces)
        shown = with_shown(found[:count], seen.answers, failed=self._unexplained)
        return [*seen.placed_answers(shown), *seen.placed_parts(part.spec.name, parts)]

    def _detect_ranges(
        self, answers: Sequence[Answer], ranges: Sequence[Ranges], part: _Part, stop: StopCheck
    ) -> Sequence[DetectorResult]:
        seen = PlainParts(self._plain.seen_by(part.detector, answers), ranges)
        if part.follower is not None:
            found = part.follower.detect_ranges(
                seen.answers, seen.ranges, aggregation=self._plan.aggregation, stop=stop
            )
        else:
            pieces = _pieces(seen.answers, seen.ranges)
            found = _shifted(self._ask(part, [piece for piece, _ in pieces], stop), pieces)
        return seen.placed_parts(part.spec.name, found)

    def _ask(self, part: _Part, texts: Sequence[Answer], stop: StopCheck) -> Sequence[DetectorResult]:
        if part.detector is None:
            raise DetectorError("the plan lists a detector or a model that is not loaded")
        return part.detector.detect_all(self._exchange, texts, aggregation=self._plan.aggregation, stop=stop)

    def _none(self, reason: Reason) -> Verdict:
        return unchecked(reason, threshold=self._plan.threshold)


@dataclass(frozen=True, slots=True)
class _Part:
    """A detector of the plan.

    ``follower`` where it can follow, ``detector`` ``None`` where it is not loaded.
    """

    spec: DetectorSpec
    detector: Detector | None
    follower: Follower | None


@dataclass(frozen=True, slots=True)
class _Look:
    """``reasons`` per answer, ``None`` for those that are scored: ``answers``, and of each the ``ranges``."""

    reasons: list[Reason | None]
    answers: list[Answer]
    ranges: list[Ranges]

    @property
    def parts(self) -> list[_Text]:
        """The ranges, each with its answer."""
        return [(answer, part) for answer, own in zip(self.answers, self.ranges, strict=True) for part in own]


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


def _pieces(answers: Sequence[Answer], ranges: Sequence[Ranges]) -> list[tuple[Answer, int]]:
    """Return the ranges as separate answers, each with its place, for detectors that know no context."""
    return [
        (replace(answer, text=answer.text[start:end]), start)
        for answer, own in zip(answers, ranges, strict=True)
        for start, end in own
    ]


def _shifted(results: Sequence[DetectorResult], pieces: Sequence[tuple[Answer, int]]) -> list[DetectorResult]:
    """Return the results of pieces, with spans in characters of their answers."""
    return [result.shifted(by) for result, (_, by) in zip(results, pieces, strict=True)]


def with_shown(
    results: Sequence[DetectorResult],
    answers: Sequence[Answer],
    *,
    failed: Callable[[Exception], None] | None = None,
) -> list[DetectorResult]:
    """Return the results on ``answers``, one each, with ``shown`` set in their spans.

    A detector that says itself what is to be shown of a span keeps its word. Nothing that is measured changes: neither
    scores nor what the spans mark. Where the phrases of an answer cannot be found, its result stays as it is and ``failed``
    is told why. CPU-bound; keep it off the event loop.

    Raises:
        StoppedError: nobody waits for the results any more.
    """
    found: list[DetectorResult] = []
    for result, answer in zip(results, answers, strict=True):
        try:
            found.append(_with_shown(result, answer.text))
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - it costs what people read of a verdict, never the verdict
            found.append(result)
            if failed is not None:
                failed(error)
    return found


def _with_shown(result: DetectorResult, text: str) -> DetectorResult:
    open_spans = [span for span in result.spans if span.shown is None]
    if not open_spans:
        return result
    phrases = iter(phrases_around(text, [(span.start, span.end) for span in open_spans]))
    spans = tuple(replace(span, shown=next(phrases)) if span.shown is None else span for span in result.spans)
    return replace(result, spans=spans)

"""Run the mode of a plan that corrects answers: the assessor's verdicts, calls and modes brought together.

Only a process with such a plan imports this, and with it the modes. The modes know none of the others: they
are given a way to ask, to score and to compare, bound to this exchange, its deadline and its budget. A mode
that fails costs its work, never the first answer and its verdict. The order of the stages, and what becomes of
the result, is the pipeline's.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from truthlens.core.records.enums import AnswerKind, Mode, Provenance, Rescoring, Stage
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.mitigation_result import Assessment, CandidateFate, Correction, Stop
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.core.thresholds import EVEN_ODDS
from truthlens.detection.cascade import failed_by_models, rejected_by_models
from truthlens.detection.similarity import Similarity
from truthlens.exchange.assessor import Assessor, Case
from truthlens.llm.caller import Caller
from truthlens.mitigation.auto.bandit import Bandit, feasible_modes
from truthlens.mitigation.auto.reward import reward
from truthlens.mitigation.gain import ScoredDraft, weighed
from truthlens.mitigation.interfaces import Task, Tools
from truthlens.mitigation.modes import correct, needs_correction
from truthlens.mitigation.questions import Opinion, opinions
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.tracing import Tracer

log = structlog.get_logger("truthlens.exchange.mode_runner")

SimilarityLoader = Callable[[], Awaitable[Similarity]]
RunAgentic = Callable[
    [Case, Sequence[Verdict], Caller], Awaitable[tuple[Case, tuple[Correction | None, ...]]]
]
Detect = Callable[[Exchange, Sequence[Answer]], Awaitable[Sequence[Verdict]]]

MITIGATION_ERROR = "mitigation-error"
UNCONFIRMED = "correction-unconfirmed"
NOT_BETTER = "correction-not-better"
# Explanations help a correction; they must not take its time.
_SHARE_TO_EXPLAIN = 0.2


class ModeRunner:
    """The parts that correcting takes, wired once for a process; ``agentic`` gives what runs that mode."""

    def __init__(
        self,
        assessor: Assessor,
        bandit: Bandit,
        signals: Metrics,
        *,
        load_similarity: SimilarityLoader,
        agentic: Callable[[], RunAgentic] | None = None,
        tracer: Tracer | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._agentic = agentic
        self._assessor = assessor
        self._bandit = bandit
        self._signals = signals
        self._load_similarity = load_similarity
        self._tracer = tracer or Tracer()
        self._clock = clock
        self._learning: set[asyncio.Task[None]] = set()

    @property
    def bandit(self) -> Bandit:
        """What chooses the mode of plans of mode auto, and learns from what came of it."""
        return self._bandit

    async def assess(self, case: Case, caller: Caller) -> Assessment:
        """Return the verdicts on the answers, corrected by the plan's mode; ``caller`` asks models."""
        plan = case.plan
        asked: asyncio.Task[_Heard] | None = None
        # Modes work from passages; what a database contradicts is flagged, and nobody is asked to mend it.
        readable = case.exchange.not_checkable is None
        if plan.asks_first and readable and self._assessor.scores(case):
            asked = asyncio.create_task(_heard(case, caller))
        try:
            case, scored = await self._assessor.first(case)
            first = await self._assessor.asked(case, scored, caller)
            assessment = await self._correct(case, first, caller, asked)
        finally:
            if asked is not None:
                await _cancelled(asked)
        # Only now: a call that was cancelled stands in the accounts as well.
        return replace(assessment, calls=caller.calls, exchange=assessment.exchange or case.exchange)

    async def aclose(self) -> None:
        """Wait until what was learned has been written."""
        await asyncio.gather(*self._learning, return_exceptions=True)

    async def _correct(
        self,
        case: Case,
        first: tuple[Verdict, ...],
        caller: Caller,
        asked: asyncio.Task[_Heard] | None,
    ) -> Assessment:
        plan = case.plan
        mode, is_chosen = await self._mode(case, first)
        uncorrected = Assessment(first, first, mode)
        if mode is not Mode.AGENTIC and not _has_work(case, first, mode):
            return uncorrected
        started = self._clock()
        try:
            with self._tracer.stage("mitigation"):
                if mode is Mode.AGENTIC:
                    assert self._agentic is not None
                    case, corrections = await self._agentic()(case, first, caller)
                    if not any(corrections):
                        return uncorrected
                else:
                    heard = await _heard_of(case, caller, mode, asked)
                    corrections = await self._work(case, first, caller, mode, heard)
            verdicts = tuple(
                verdict if each is None else each.verdict
                for verdict, each in zip(first, corrections, strict=True)
            )
            assessment = replace(
                uncorrected,
                verdicts=verdicts,
                corrections=corrections,
                mode=_ran(corrections, mode),
                exchange=case.exchange,
            )
        except Exception as error:  # noqa: BLE001 - as in _guarded, for what comes before the modes
            log_failure(error, plan, mode)
            assessment = replace(uncorrected, notes=(MITIGATION_ERROR,))
        assessment = replace(assessment, mitigation_s=self._clock() - started)
        if is_chosen:
            tokens = sum(call.usage.total_tokens for call in caller.calls)
            self._learn(plan, mode, assessment, tokens=tokens)
        return assessment

    async def _mode(self, case: Case, first: Sequence[Verdict]) -> tuple[Mode, bool]:
        """Return the mode that runs, and whether it was chosen, so that its result is to be learned."""
        plan = case.plan
        if plan.mode is not Mode.AUTO:
            return plan.mode_to_run, False
        flagged = any(verdict.flagged for verdict in first)
        if plan.lacks_evidence(case.exchange.not_checkable):
            # The others work from passages: where there are none, nothing is left to choose.
            open_ = flagged or any(verdict.score is None for verdict in first)
            return (Mode.AGENTIC if open_ else Mode.LIGHTWEIGHT), False
        # An answer that is not flagged needs no mode, so nothing is chosen or learned.
        if not feasible_modes(plan) or not flagged:
            return Mode.LIGHTWEIGHT, False
        mode = await self._bandit.choose(plan)
        self._signals.auto_choices.labels(plan.decision, mode.value).inc()
        if mode is Mode.LIGHTWEIGHT:
            self._learn(plan, mode, Assessment(tuple(first), tuple(first)), tokens=0)
        return mode, True

    async def _work(
        self,
        case: Case,
        first: tuple[Verdict, ...],
        caller: Caller,
        mode: Mode,
        heard: _Heard,
    ) -> tuple[Correction | None, ...]:
        # The nearest passage and the figures that differ go into the prompt of a correction.
        known = await self._assessor.explain(
            case,
            case.answers,
            first,
            time_s=case.deadline.remaining_s * _SHARE_TO_EXPLAIN,
            nearest=False,
        )
        # How rare errors are says nothing of whether one text supports another.
        even = replace(case, plan=replace(case.plan, expected_rate=EVEN_ODDS))
        comparer = TextComparer(
            self._load_similarity,
            lambda exchange, answers: self._assessor.detect(even, answers, exchange),
            case.exchange,
        )
        tools = Tools(caller, lambda texts: self._rescore(case, texts, caller), comparer, case.deadline)

        async def one(answer: Answer, verdict: Verdict) -> Correction | None:
            # Of other kinds nothing can be changed.
            if answer.kind is not AnswerKind.TEXT or not needs_correction(verdict, mode, case.plan):
                return None
            task = Task(
                case.plan, case.exchange, heard.request, case.model, answer, verdict, case.models or {}
            )
            work = correct(task, tools, mode=mode, opinions=heard.opinions)
            with self._tracer.stage("correction") as span:
                done = await self._guarded(self._confirmed(case, answer, verdict, work, caller), task, mode)
                told = {"choice": answer.index, "mode": done.mode.value, "stop": done.stop.value}
                span.set_attributes({f"truthlens.{name}": value for name, value in told.items()})
            return done

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(*each)) for each in zip(case.answers, known, strict=True)]
        return tuple(task.result() for task in tasks)

    async def _guarded(self, work: Coroutine[Any, Any, Correction], task: Task, mode: Mode) -> Correction:
        """What a mode makes of one answer; where it breaks, the answer as it was."""
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - the border of the modes: their failure costs no answer and no verdict
            log_failure(error, task.plan, mode)
            return Correction(task.answer.text, task.verdict, mode, Stop.FAILED, notes=(MITIGATION_ERROR,))

    async def _rescore(self, case: Case, texts: Sequence[str], caller: Caller) -> tuple[Verdict, ...]:
        answers = [Answer(place, AnswerKind.TEXT, text) for place, text in enumerate(texts)]
        verdicts = await self._assessor.detect(case, answers)
        if not case.plan.asking or case.plan.cascade.in_loop is not Rescoring.EVERY:
            return verdicts
        return await self._assessor.asked(case, verdicts, caller, answers=answers, stage=Stage.CONFIRM)

    async def _confirmed(
        self,
        case: Case,
        answer: Answer,
        first: Verdict,
        work: Coroutine[Any, Any, Correction],
        caller: Caller,
    ) -> Correction:
        """The correction that ``work`` gives, once models have judged it, or the first answer where they do not find it better.

        What models rejected is released by no detector that asks none: where they cannot be asked about the
        correction, the first answer stays, flagged.
        """
        plan, correction = case.plan, await work
        settled = correction.text == answer.text or correction.verdict.score is None
        if not plan.asking or settled or plan.cascade.in_loop is Rescoring.EVERY:
            return correction
        stage = None if first.stage is Stage.FIRST else Stage.CONFIRM
        candidate = replace(answer, text=correction.text)
        (verdict,) = await self._assessor.asked(
            case, [correction.verdict], caller, answers=[candidate], stage=stage
        )
        asked = first.stage is not Stage.FIRST
        unknown = asked and failed_by_models(plan, verdict) and rejected_by_models(plan, first)
        if not unknown:
            drafts = ScoredDraft(correction.text, verdict), ScoredDraft(answer.text, first)
            fate, _ = await weighed(*drafts, first=first)
        if unknown or fate is not CandidateFate.BETTER:
            note = UNCONFIRMED if unknown else NOT_BETTER
            return replace(
                correction, text=answer.text, verdict=first, replaced=False, notes=(*correction.notes, note)
            )
        return replace(correction, verdict=verdict)

    def _learn(self, plan: Plan, mode: Mode, assessment: Assessment, *, tokens: int) -> None:
        firsts = [verdict.score for verdict in assessment.first if verdict.score is not None]
        finals = [verdict.score for verdict in assessment.verdicts if verdict.score is not None]
        if not firsts or not finals:
            return
        worth = reward(
            first=max(firsts),
            final=max(finals),
            threshold=plan.threshold,
            latency_s=assessment.mitigation_s,
            tokens=tokens,
            settings=plan.auto,
        )
        # In the background: the client need not wait for the store.
        task = asyncio.create_task(self._bandit.learn(plan, mode, worth))
        self._learning.add(task)
        task.add_done_callback(self._learning.discard)


@dataclass(frozen=True, slots=True)
class TextComparer:
    """Compares texts for one exchange; what ``mitigation.interfaces.Compare`` asks for.

    Meaning is the similarity model's business; support is the plan's own detector, given the other text as the only
    evidence: what the detector was trained for.
    """

    load: SimilarityLoader
    detect: Detect
    exchange: Exchange

    async def similar(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the semantic similarity of each left text to each right one, 0..1; shape (left, right)."""
        model = await self.load()
        matrix = await asyncio.to_thread(model.similar, left, right)
        return [[float(value) for value in row] for row in matrix]

    async def support(self, claims: Sequence[str], text: str) -> Sequence[float | None]:
        """Return how far ``text`` supports each claim, 0..1; ``None`` for a claim that could not be scored."""
        if not claims:
            return []
        evidence = replace(self.exchange, passages=(Passage(text, Provenance.DOCUMENTS),))
        answers = [Answer(place, AnswerKind.TEXT, claim) for place, claim in enumerate(claims)]
        verdicts = await self.detect(evidence, answers)
        return [None if verdict.score is None else 1.0 - verdict.score for verdict in verdicts]


def _has_work(case: Case, first: Sequence[Verdict], mode: Mode) -> bool:
    """Return whether a mode that works from the passages there are has work."""
    return case.exchange.not_checkable is None and any(
        needs_correction(verdict, mode, case.plan) and answer.kind is AnswerKind.TEXT
        for answer, verdict in zip(case.answers, first, strict=True)
    )


def _ran(corrections: Sequence[Correction | None], mode: Mode) -> Mode:
    """The mode that did the work; a mode may hand its work down."""
    ran = {each.mode for each in corrections if each is not None}
    return ran.pop() if len(ran) == 1 else mode


@dataclass(frozen=True, slots=True)
class _Heard:
    """The client's JSON, read once for all that is asked, and what other models said to it."""

    request: dict[str, object]
    opinions: tuple[Opinion, ...] = ()


async def _heard_of(case: Case, caller: Caller, mode: Mode, asked: asyncio.Task[_Heard] | None) -> _Heard:
    """Return the client's JSON, with what others said to it where the mode asks them."""
    if asked is not None:
        return await asked
    return await _heard(case, caller) if mode is Mode.PREMIUM else _Heard(await _request(case))


async def _heard(case: Case, caller: Caller) -> _Heard:
    request = await _request(case)
    said = await opinions(
        plan=case.plan,
        exchange=case.exchange,
        request=request,
        answering=case.model,
        models=case.models or {},
        ask=caller,
        deadline=case.deadline,
    )
    return _Heard(request, said)


async def _request(case: Case) -> dict[str, object]:
    """The client's JSON, read on a thread: it may be large, and nested as deeply as one stack can hold."""
    assert case.request_body is not None
    request: dict[str, object] = await asyncio.to_thread(json.loads, case.request_body)
    return request


def log_failure(error: Exception, plan: Plan, mode: Mode) -> None:
    """Write down that a mode broke."""
    # The type alone: a message or a traceback may quote the text that was being corrected.
    log.error("mitigation failed", error=type(error).__name__, decision=plan.decision, mode=mode.value)


async def _cancelled(task: asyncio.Task[Any]) -> None:
    """End a task that nobody waits for any more, and see that it has ended."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        # Whoever needed the result has seen its exception; nobody else is to be told of it.
        task.exception()

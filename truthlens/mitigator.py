"""Assesses the answers of one exchange and corrects what is unsupported: detection, calls and modes brought together.

The modes know none of the others: they are given a way to ask, to score and to compare, bound to this exchange, its
deadline and its budget. A mode that fails costs its work, never the first answer and its verdict. The order of the
stages, and what becomes of the result, is the pipeline's.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from truthlens.api.reasoning import reasoning_to_score
from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import CallRecord, ModelSpec
from truthlens.core.records.enums import AnswerKind, Mode, Provenance, Rescoring, Stage
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.mitigation_result import Assessment, Correction, Stop
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.core.thresholds import EVEN_ODDS
from truthlens.detection.cascade import failed_by_models, rejected_by_models
from truthlens.detection.engine import Engine
from truthlens.detection.similarity.model import Similarity
from truthlens.llm.budget import Budget
from truthlens.llm.caller import Caller
from truthlens.llm.client import LlmClient
from truthlens.mitigation.auto.bandit import Bandit, feasible_modes
from truthlens.mitigation.auto.reward import reward
from truthlens.mitigation.interfaces import Task, Tools
from truthlens.mitigation.modes import correct, needs_correction
from truthlens.mitigation.premium.opinions import Opinion, opinions
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.tracing import Tracer

log = structlog.get_logger("truthlens.mitigator")

SimilarityLoader = Callable[[], Awaitable[Similarity]]
Detect = Callable[[Exchange, Sequence[Answer]], Awaitable[Sequence[Verdict]]]

MITIGATION_ERROR = "mitigation-error"
REQUEST_NOT_KEPT = "request-not-kept"
UNCONFIRMED = "correction-unconfirmed"
NOT_BETTER = "correction-not-better"
# What a call is counted under where its model's name comes from a request.
_UPSTREAM_LABEL = "upstream"
_MOST_AT_ONCE = 16
# Explanations help a correction; they must not take its time.
_SHARE_TO_EXPLAIN = 0.2


@dataclass(frozen=True, slots=True)
class Case:
    """One exchange whose answers are to be assessed.

    ``request_body`` is the client's JSON, ``None`` where it could not be kept, and then nothing is corrected. ``model`` is
    the model that answered, ``path`` and ``authorization`` are what the client sent; ``models`` are the configured ones
    by name.
    """

    plan: Plan
    exchange: Exchange
    answers: tuple[Answer, ...]
    deadline: Deadline
    request_body: bytes | None = None
    model: str = ""
    path: str = ""
    authorization: str | None = None
    models: Mapping[str, ModelSpec] | None = None


class Mitigator:
    """The parts that assessing and correcting take, wired once for a process."""

    def __init__(
        self,
        engine: Engine,
        client: LlmClient,
        bandit: Bandit,
        signals: Metrics,
        *,
        load_similarity: SimilarityLoader,
        tracer: Tracer | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._engine = engine
        self._client = client
        self._bandit = bandit
        self._signals = signals
        self._load_similarity = load_similarity
        self._tracer = tracer or Tracer()
        self._clock = clock
        self._learning: set[asyncio.Task[None]] = set()
        self._without_logprobs: set[tuple[str, str]] = set()

    async def assess(self, case: Case) -> Assessment:
        """The verdicts on the answers, corrected as the plan says, within the case's deadline (and one detection)."""
        asked = reasoning_to_score(case.plan, case.answers)
        if not asked:
            return await self._assess(case)
        async with asyncio.TaskGroup() as group:
            assessing = group.create_task(self._assess(case))
            thinking = group.create_task(self._detect(case, list(asked.values())))
        found = dict(zip(asked, thinking.result(), strict=True))
        reasoning = tuple(found.get(place) for place in range(len(case.answers)))
        return replace(assessing.result(), reasoning=reasoning)

    async def _assess(self, case: Case) -> Assessment:
        plan = case.plan
        if not plan.calls_models:
            verdicts = await self._first(case)
            return Assessment(verdicts, verdicts)
        caller = self._caller(case)
        if not plan.corrects or case.request_body is None:
            verdicts = await self._examined(case, await self._first(case), caller)
            lost = plan.corrects and _any_flagged(verdicts)
            return Assessment(
                verdicts, verdicts, calls=caller.calls, notes=(REQUEST_NOT_KEPT,) if lost else ()
            )
        asked: asyncio.Task[_Heard] | None = None
        if plan.asks_first and self._engine.scores(plan, case.exchange, case.answers):
            asked = asyncio.create_task(_heard(case, caller))
        try:
            first = await self._examined(case, await self._first(case), caller)
            assessment = await self._correct(case, first, caller, asked)
        finally:
            if asked is not None:
                await _cancelled(asked)
        # Only now: a call that was cancelled stands in the accounts as well.
        return replace(assessment, calls=caller.calls)

    async def examine(
        self, case: Case, verdicts: Sequence[Verdict]
    ) -> tuple[tuple[Verdict, ...], tuple[CallRecord, ...]]:
        """Return the verdicts with what the plan's models say, and the calls that it took.

        For answers that are not corrected: streamed ones, and those of ``/v1/detect``.
        """
        if not case.plan.asking:
            return tuple(verdicts), ()
        caller = self._caller(case)
        found = await self._examined(case, verdicts, caller)
        return found, caller.calls

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
        mode = await self._mode(plan, first)
        uncorrected = Assessment(first, first, mode)
        if not any(
            needs_correction(verdict, mode, plan) and answer.kind is AnswerKind.TEXT
            for answer, verdict in zip(case.answers, first, strict=True)
        ):
            return uncorrected
        started = self._clock()
        try:
            with self._tracer.stage("mitigation"):
                if asked is not None:
                    heard = await asked
                elif mode is Mode.PREMIUM:
                    heard = await _heard(case, caller)
                else:
                    heard = _Heard(await _request(case))
                corrections = await self._work(case, first, caller, mode, heard)
            verdicts = tuple(
                verdict if each is None else each.verdict
                for verdict, each in zip(first, corrections, strict=True)
            )
            assessment = replace(
                uncorrected, verdicts=verdicts, corrections=corrections, mode=_ran(corrections, mode)
            )
        except Exception as error:  # noqa: BLE001 - as in _guarded, for what comes before the modes
            _log_failure(error, plan, mode)
            assessment = replace(uncorrected, notes=(MITIGATION_ERROR,))
        assessment = replace(assessment, mitigation_s=self._clock() - started)
        if plan.mode is Mode.AUTO:
            tokens = sum(call.usage.total_tokens for call in caller.calls)
            self._learn(plan, mode, assessment, tokens=tokens)
        return assessment

    async def _mode(self, plan: Plan, first: Sequence[Verdict]) -> Mode:
        if plan.mode is not Mode.AUTO:
            return plan.mode_to_run
        # An answer that is not flagged needs no mode, so nothing is chosen or learned.
        feasible = feasible_modes(plan)
        if not feasible or not _any_flagged(first):
            return Mode.LIGHTWEIGHT
        mode = await self._bandit.choose(plan, feasible)
        self._signals.auto_choices.labels(plan.decision, mode.value).inc()
        if mode is Mode.LIGHTWEIGHT:
            self._learn(plan, mode, Assessment(tuple(first), tuple(first)), tokens=0)
        return mode

    async def _work(
        self,
        case: Case,
        first: tuple[Verdict, ...],
        caller: Caller,
        mode: Mode,
        heard: _Heard,
    ) -> tuple[Correction | None, ...]:
        # The nearest passage and the figures that differ go into the prompt of a correction.
        known = await self._engine.explain(
            case.exchange,
            case.answers,
            first,
            time_s=case.deadline.remaining_s * _SHARE_TO_EXPLAIN,
        )
        # How rare errors are says nothing of whether one text supports another.
        even = replace(case, plan=replace(case.plan, expected_rate=EVEN_ODDS))
        comparer = Comparer(
            self._load_similarity,
            lambda exchange, answers: self._detect(even, answers, exchange),
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
            return await self._guarded(self._confirmed(case, answer, verdict, work, caller), task, mode)

        return await _all([one(answer, verdict) for answer, verdict in zip(case.answers, known, strict=True)])

    async def _guarded(self, work: Coroutine[Any, Any, Correction], task: Task, mode: Mode) -> Correction:
        """What a mode makes of one answer; where it breaks, the answer as it was."""
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - the border of the modes: their failure costs no answer and no verdict
            _log_failure(error, task.plan, mode)
            return Correction(task.answer.text, task.verdict, mode, Stop.FAILED, notes=(MITIGATION_ERROR,))

    async def _rescore(self, case: Case, texts: Sequence[str], caller: Caller) -> tuple[Verdict, ...]:
        answers = [Answer(place, AnswerKind.TEXT, text) for place, text in enumerate(texts)]
        verdicts = await self._detect(case, answers)
        if not case.plan.asking or case.plan.cascade.in_loop is not Rescoring.EVERY:
            return verdicts
        return await self._examined(case, verdicts, caller, answers=answers, stage=Stage.CONFIRM)

    async def _examined(
        self,
        case: Case,
        verdicts: Sequence[Verdict],
        caller: Caller,
        *,
        answers: Sequence[Answer] | None = None,
        stage: Stage | None = None,
    ) -> tuple[Verdict, ...]:
        """The verdicts with what models say of those answers that the cascade asks them about."""
        if not case.plan.asking:
            return tuple(verdicts)
        asked = case.answers if answers is None else answers
        left_s = case.deadline.remaining_s
        with self._tracer.stage("cascade"):
            found = await self._engine.examine(
                case.plan, case.exchange, asked, verdicts, ask=caller, time_s=left_s, stage=stage
            )
        self._warn_of_no_logprobs(case.plan, found)
        return found

    def _warn_of_no_logprobs(self, plan: Plan, verdicts: Sequence[Verdict]) -> None:
        """Say once of each detector of a decision that its model's server gives no log probabilities."""
        for result in (result for verdict in verdicts for result in verdict.results):
            key = (plan.decision, result.detector)
            if result.details.get("no_logprobs") and key not in self._without_logprobs:
                self._without_logprobs.add(key)
                log.warning(
                    "a detector has no effect: its model's server gives no log probabilities",
                    decision=plan.decision,
                    detector=result.detector,
                    remedy="name a model whose server gives them, or remove the detector",
                )

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
        (verdict,) = await self._examined(
            case, [correction.verdict], caller, answers=[candidate], stage=stage
        )
        asked = first.stage is not Stage.FIRST
        unknown = asked and failed_by_models(plan, verdict) and rejected_by_models(plan, first)
        worse = first.score is not None and (verdict.score is None or verdict.score >= first.score)
        if unknown or worse:
            note = UNCONFIRMED if unknown else NOT_BETTER
            return replace(
                correction, text=answer.text, verdict=first, replaced=False, notes=(*correction.notes, note)
            )
        return replace(correction, verdict=verdict)

    async def _first(self, case: Case) -> tuple[Verdict, ...]:
        """The verdicts on the answers as they came: all of them in the time of one detection."""
        return await self._detect(case, case.answers, within=Deadline.after(case.plan.timeout_s))

    async def _detect(
        self,
        case: Case,
        answers: Sequence[Answer],
        exchange: Exchange | None = None,
        *,
        within: Deadline | None = None,
    ) -> tuple[Verdict, ...]:
        plan = case.plan
        found: list[Verdict] = []
        with self._tracer.stage("detection"):
            # Claims come by the dozen: one job of all of them would run into the time of one detection.
            for start in range(0, len(answers), _MOST_AT_ONCE):
                left_s = min(each.remaining_s for each in (case.deadline, within) if each is not None)
                plan = replace(plan, timeout_s=min(case.plan.timeout_s, left_s))
                part = answers[start : start + _MOST_AT_ONCE]
                found += await self._engine.detect(plan, exchange or case.exchange, part)
        return tuple(found)

    def _caller(self, case: Case) -> Caller:
        bounds = case.plan.mitigation
        models = case.models or {}
        named = {*models, *case.plan.named_models}

        def label(model: str) -> str:
            return model if model in named else _UPSTREAM_LABEL

        def observe(call: CallRecord) -> None:
            self._signals.observe_call(call, label=label(call.model))

        return Caller(
            self._client,
            deadline=case.deadline,
            budget=Budget(bounds.max_tokens, bounds.max_cost_usd),
            models=models,
            path=case.path,
            authorization=case.authorization if bounds.forward_authorization else None,
            label=label,
            observe=observe,
            trace=self._tracer.call,
        )

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
class Comparer:
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


def _any_flagged(verdicts: Sequence[Verdict]) -> bool:
    return any(verdict.flagged for verdict in verdicts)


def _ran(corrections: Sequence[Correction | None], mode: Mode) -> Mode:
    """The mode that did the work; a mode may hand its work down."""
    ran = {each.mode for each in corrections if each is not None}
    return ran.pop() if len(ran) == 1 else mode


@dataclass(frozen=True, slots=True)
class _Heard:
    """The client's JSON, read once for all that is asked, and what other models said to it."""

    request: dict[str, object]
    opinions: tuple[Opinion, ...] = ()


async def _heard(case: Case, caller: Caller) -> _Heard:
    request = await _request(case)
    said = await opinions(
        plan=case.plan,
        exchange=case.exchange,
        request=request,
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


def _log_failure(error: Exception, plan: Plan, mode: Mode) -> None:
    # The type alone: a message or a traceback may quote the text that was being corrected.
    log.error("mitigation failed", error=type(error).__name__, decision=plan.decision, mode=mode.value)


async def _all(works: Sequence[Coroutine[Any, Any, Correction | None]]) -> tuple[Correction | None, ...]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
    return tuple(task.result() for task in tasks)


async def _cancelled(task: asyncio.Task[Any]) -> None:
    """End a task that nobody waits for any more, and see that it has ended."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        # Whoever needed the result has seen its exception; nobody else is to be told of it.
        task.exception()

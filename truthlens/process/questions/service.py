"""Run the loop of mode agentic for questions, within the limits of a plan, and score what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import structlog

from truthlens.api.responses import check_answers
from truthlens.core.deadline import Deadline
from truthlens.core.errors import BodyTooLargeError
from truthlens.core.limits import Limits
from truthlens.core.records.agentic_run import AgenticRun
from truthlens.core.records.calls import ModelSpec
from truthlens.core.records.enums import Mode, Reason
from truthlens.core.records.plan import MARGIN_S, Plan
from truthlens.core.records.retrieval import SearchRecord, SourceSpec
from truthlens.core.records.settings import RetrievalSettings
from truthlens.core.records.verdict import unchecked
from truthlens.delivery import scored_object
from truthlens.evidence.extract import check_evidence
from truthlens.exchange.agentic_loop import loop_within
from truthlens.exchange.assessor import Assessor, Case
from truthlens.llm.caller import Caller
from truthlens.mitigation.agentic.asking import AgenticForms
from truthlens.mitigation.agentic.collected import exchange_of
from truthlens.process.ask import FAILURES, AskParts, answered, checked_pair, evidence_of, run_object
from truthlens.retrieval.retriever import Asker, Retriever
from truthlens.telemetry.metrics import Metrics

log = structlog.get_logger("truthlens.process.questions")

_MOST_FORMS = 32


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, and what it may use: plan, model, sources with what their filters are given."""

    text: str
    model: str
    plan: Plan
    sources: Mapping[str, SourceSpec]
    scope: Mapping[str, str]
    models: Mapping[str, ModelSpec] | None
    limits: Limits


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """How the run of a question ended, the reply to it (``run_object``), and the searches that were made."""

    run: AgenticRun
    reply: Mapping[str, object]
    searches: tuple[SearchRecord, ...]


class QuestionService:
    """Answers questions, several at a time.

    Args:
        assessor: scores answers by the detectors of a plan.
        callers: makes what asks models for one question, within its deadline and its budget.
        reachable: whether a model has an address and a key.
        retriever: searches the sources of the policy in force.
        signals: counts the ends of runs, and the time of tools.
    """

    def __init__(
        self,
        assessor: Assessor,
        callers: Callable[[Case], Caller],
        *,
        reachable: Callable[[str], bool],
        retriever: Retriever,
        signals: Metrics,
    ) -> None:
        self._assessor, self._callers, self.reachable = assessor, callers, reachable
        self._retriever, self._signals = retriever, signals
        self._running: set[asyncio.Task[AnsweredQuestion]] = set()
        # How servers take the forms of replies is learned once, for all runs under the same settings.
        self._forms = lru_cache(_MOST_FORMS)(lambda _settings: AgenticForms())

    @property
    def running(self) -> int:
        """Return how many questions are being answered."""
        return len(self._running)

    def begin(self, question: AskedQuestion) -> asyncio.Task[AnsweredQuestion]:
        """Begin to answer; cancelled, the task ends its call or its tool."""
        task = asyncio.create_task(self._answered(question))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def aclose(self) -> None:
        """Cancel what is running, and wait until it has ended."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _answered(self, question: AskedQuestion) -> AnsweredQuestion:
        # As the gateway would run the mode: its deadline, and one budget for the run and for detectors that
        # ask models. The answer is checked by what the run found; nothing more is searched for.
        plan = replace(question.plan, mode=Mode.AGENTIC, retrieval=RetrievalSettings())
        deadline = Deadline.after(plan.hold_s)
        exchange = exchange_of(question.text, ())
        case = Case(plan, exchange, (), deadline, model=question.model, models=question.models)
        caller = self._callers(case)
        time_s = max(0.0, deadline.remaining_s - plan.detection_s)
        loop = loop_within(time_s, plan.agentic, self._forms(plan.agentic))
        searches: list[SearchRecord] = []
        run = await answered(
            question.text,
            question.model,
            AskParts(loop, self._retriever, question.sources),
            ask=caller,
            # A caller's Authorization is for this process, and for nobody else.
            asker=Asker(question.scope),
            deadline=Deadline.after(time_s, clock=deadline.clock),
            observe=self._signals.observe_step,
            searched=searches.extend,
        )
        self._signals.agent_stops.labels(run.stop.value).inc()
        log.info(
            "question answered",
            decision=plan.decision,
            stop=run.stop.value,
            iterations=run.iterations,
            tokens=run.tokens,
            calls=len(caller.calls),
        )
        verdict = await self._verdict(question, case, run, caller)
        return AnsweredQuestion(run, run_object(run, verdict), tuple(searches))

    async def _verdict(
        self, question: AskedQuestion, case: Case, run: AgenticRun, caller: Caller
    ) -> Mapping[str, object] | None:
        """Return the verdict of the plan's detectors, ``None`` without an answer or evidence."""
        plan = case.plan
        if not plan.enabled or not run.answer or not evidence_of(run) or run.stop in FAILURES:
            return None
        exchange, answer = checked_pair(question.text, run)
        try:
            check_answers((answer,), question.limits)
            check_evidence(exchange.passages, question.limits)
        except BodyTooLargeError:
            verdict = unchecked(Reason.TOO_LARGE, threshold=plan.threshold)
        else:
            case = replace(case, exchange=exchange, answers=(answer,))
            with self._signals.inflight.track_inprogress():
                case, first = await self._assessor.first(case)
                verdicts = await self._assessor.asked(case, first, caller)
                (verdict,) = await self._assessor.explain(case, (answer,), verdicts, time_s=MARGIN_S / 2)
        return scored_object(plan, verdict, text=answer.text, passages=exchange.passages)

"""Run mode agentic: a model decides, tools search, an answer is written and evaluated, until one is accepted.

    initialize → agent_decision → execute_tool      → agent_decision
                                | evaluate_results  → agent_decision | refine_query | synthesize_answer
                                | refine_query      → agent_decision
                                | synthesize_answer → should_accept_answer → accepted, or as above

What an evaluation decides leads on: ``continue`` and ``reject`` to the next decision, ``refine_search`` to a
better query and then to it, ``synthesize`` to the answer. ``finish`` has the answer written from what there
is; where it is not accepted then, the run ends. Limits are checked before every step, and where one ends the
run without an answer, a fallback is written. All of a run is one task with one deadline: cancelled, its call
or its tool is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from truthlens.core.errors import CallError, DetectorError
from truthlens.core.records.agentic_run import (
    NO_SUCH_TOOL,
    AgenticNode,
    AgenticRun,
    AgenticStep,
    AgenticStop,
)
from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.core.records.calls import CallFailure
from truthlens.core.risk import HIGH_RISK, Decision, is_near_limit
from truthlens.mitigation.agentic import prompts, synthesis
from truthlens.mitigation.agentic.asking import AgenticForms, Asking
from truthlens.mitigation.agentic.collected import collect, from_request
from truthlens.mitigation.agentic.decision import AgentAction, AgentDecision
from truthlens.mitigation.agentic.evaluation import AnswerEvaluation, evaluate
from truthlens.mitigation.agentic.interfaces import AgenticTask, AgenticTools
from truthlens.mitigation.agentic.models import CountingAsk
from truthlens.mitigation.agentic.replies import UnusableReplyError
from truthlens.mitigation.agentic.state import AgenticState, SearchEntry, limit_reached
from truthlens.mitigation.agentic.tools.interfaces import WRONG_PARAMETERS
from truthlens.text.claims.non_claims import is_abstention

_T = TypeVar("_T")

FALLBACK_S = 30.0
"""Seconds that a fallback answer may take behind the run's own time, within the exchange's deadline."""

_STOPS = {CallFailure.BUDGET: AgenticStop.BUDGET, CallFailure.DEADLINE: AgenticStop.DEADLINE}
_WITH_FALLBACK = frozenset(
    (AgenticStop.ITERATIONS, AgenticStop.TOKENS, AgenticStop.TIME, AgenticStop.CIRCULAR, AgenticStop.REJECTED)
)
_AFTER = {
    Decision.CONTINUE: AgenticNode.AGENT_DECISION,
    Decision.REFINE_SEARCH: AgenticNode.REFINE_QUERY,
    Decision.SYNTHESIZE: AgenticNode.SYNTHESIZE_ANSWER,
    Decision.REJECT: AgenticNode.AGENT_DECISION,
}


class AgenticLoop:
    """Runs the loop of a plan; one object for all its runs, because it learns which forms servers take."""

    def __init__(self, settings: AgenticSettings) -> None:
        self.settings = settings
        self.forms = AgenticForms()

    async def run(self, task: AgenticTask, tools: AgenticTools) -> AgenticRun:
        """Return what the run came to, whatever failed in it; cancellation goes through."""
        run = _OneRun(self, task, tools)
        stop = await run.bounded()
        if stop in _WITH_FALLBACK:
            await run.fall_back()
        return run.record(stop)


@dataclass(slots=True)
class _OneRun:
    """One run: its state, the steps so far, and the answers that were evaluated."""

    loop: AgenticLoop
    task: AgenticTask
    tools: AgenticTools
    state: AgenticState = field(init=False)
    ask: CountingAsk = field(init=False)
    asking: Asking = field(init=False)
    began: float = field(init=False)
    steps: list[AgenticStep] = field(default_factory=list)
    decision: AgentDecision | None = None
    finishing: bool = False
    failure: str = ""
    tool: str = ""
    summary: str = ""
    added: tuple[int, int] = (0, 0)
    candidate: str = ""
    best: AnswerEvaluation | None = None
    released: bool = False
    answered: AnswerEvaluation | None = None

    def __post_init__(self) -> None:
        self.state = AgenticState(self.task.question)
        self.ask = CountingAsk(self.tools.ask, self.state, self.settings, self.tools.count_tokens)
        self.asking = Asking(self.task, self.settings, self.loop.forms, self.ask)
        self.began = self.tools.deadline.clock()

    @property
    def settings(self) -> AgenticSettings:
        return self.loop.settings

    async def bounded(self) -> AgenticStop:
        """Visit nodes until the run ends, or its time does; return why it ended."""
        own_s, exchange_s = self.settings.max_duration_s, self.tools.deadline.remaining_s
        try:
            async with asyncio.timeout(min(own_s, exchange_s)):
                return await self._followed()
        except TimeoutError:
            return AgenticStop.TIME if own_s < exchange_s else AgenticStop.DEADLINE
        except CallError as error:
            self.failure = error.code
            return _STOPS.get(error.failure, AgenticStop.CALL_FAILED)

    async def _followed(self) -> AgenticStop:
        node = AgenticNode.INITIALIZE
        while True:
            elapsed_s = self.tools.deadline.clock() - self.began
            limit = limit_reached(self.state, self.settings, node=node, elapsed_s=elapsed_s)
            if limit is not None:
                return limit
            if self.tools.deadline.passed:
                return AgenticStop.DEADLINE
            then = await self._visit(node)
            if isinstance(then, AgenticStop):
                return then
            node = then

    async def _visit(self, node: AgenticNode) -> AgenticNode | AgenticStop:
        visits: dict[AgenticNode, Callable[[], Awaitable[AgenticNode | AgenticStop]]] = {
            AgenticNode.INITIALIZE: self._initialize,
            AgenticNode.AGENT_DECISION: self._agent_decision,
            AgenticNode.EXECUTE_TOOL: self._execute_tool,
            AgenticNode.EVALUATE_RESULTS: self._evaluate_results,
            AgenticNode.REFINE_QUERY: self._refine_query,
            AgenticNode.SYNTHESIZE_ANSWER: self._synthesize_answer,
            AgenticNode.SHOULD_ACCEPT_ANSWER: self._should_accept_answer,
        }
        return await self._timed(node, visits[node])

    async def _timed(self, node: AgenticNode, step: Callable[[], Awaitable[_T]]) -> _T:
        started = self.tools.deadline.clock()
        self.tool, self.summary, self.added = "", "not-finished", (0, 0)
        try:
            return await step()
        except CallError as error:
            self.summary = error.code
            raise
        finally:
            spent = self.tools.deadline.clock() - started
            self.steps.append(AgenticStep(node, self.tool, spent, self.summary, self.added))
            self.tools.observe(self.steps[-1])

    async def _initialize(self) -> AgenticNode:
        self.state.collected_results += from_request(self.task.passages)
        self.state.partial_answer = self.task.first_answer
        self.summary = f"{len(self.state.collected_results)} passages of the request"
        return AgenticNode.AGENT_DECISION

    async def _agent_decision(self) -> AgenticNode | AgenticStop:
        state = self.state
        state.iteration_count += 1
        tools = [each for each in await self.tools.registry.list_tools() if each["enabled"]]
        try:
            decision = await self.asking.decision(state, tools)
        except UnusableReplyError:
            self.summary = AgenticStop.BAD_DECISION.value
            return AgenticStop.BAD_DECISION
        self.decision, self.summary = decision, decision.action.value
        state.decision_history.append(decision.key)
        state.reasoning_trace.append(f"decision {decision.key}: {decision.reasoning}")
        match decision.action:
            case AgentAction.USE_TOOL:
                return AgenticNode.EXECUTE_TOOL
            case AgentAction.EVALUATE:
                return AgenticNode.EVALUATE_RESULTS
            case AgentAction.SYNTHESIZE:
                return AgenticNode.SYNTHESIZE_ANSWER
            case AgentAction.FINISH:
                self.finishing = True
                return AgenticNode.SYNTHESIZE_ANSWER

    async def _execute_tool(self) -> AgenticNode:
        state, decision = self.state, self.decision
        assert decision is not None
        name = decision.tool_name or ""
        tool = await self.tools.registry.get_tool(name)
        self.tool = name if tool is not None else NO_SUCH_TOOL
        result = await self.tools.registry.execute_tool(name, **(decision.parameters or {}))
        evidence = tool is not None and tool.gives_evidence
        new = collect(state.collected_results, result, gives_evidence=evidence)
        self.added = (len(state.collected_results) - new, len(state.collected_results))
        if evidence and result.metadata.get("code") != WRONG_PARAMETERS:
            query = (decision.parameters or {}).get("query")
            results = result.metadata.get("results", new)
            failed = bool(result.metadata.get("failed", not result.success))
            state.search_history.append(
                SearchEntry(name, query if isinstance(query, str) else "", results, failed)
            )
        self.summary = f"{new} new" if result.success else str(result.metadata.get("code", "failed"))
        state.reasoning_trace.append(f"{name}: {result.error or self.summary}")
        return AgenticNode.AGENT_DECISION

    async def _evaluate_results(self) -> AgenticNode:
        found = await self._evaluated(self.state.partial_answer)
        return AgenticNode.AGENT_DECISION if found is None else _AFTER[found.decision]

    async def _refine_query(self) -> AgenticNode:
        try:
            refined = await self.asking.refinement(self.state)
        except UnusableReplyError:
            # The next decision finds a query of its own.
            self.summary = "bad-reply"
            return AgenticNode.AGENT_DECISION
        self.summary = "refined"
        self.state.reasoning_trace.append(f"refined query ({refined.tool_name}): {refined.query}")
        return AgenticNode.AGENT_DECISION

    async def _synthesize_answer(self) -> AgenticNode | AgenticStop:
        state = self.state
        self.candidate = ""
        if state.collected_results:
            self.candidate = await self._written()
        elif self._nothing_found:
            self.candidate, self.summary = (
                synthesis.no_information(chinese=prompts.in_chinese(state)),
                "nothing found",
            )
        else:
            self.summary = "nothing searched"
            if self._search_failed:
                self.summary = AgenticStop.SEARCH_FAILED.value
                if self.finishing:
                    return AgenticStop.SEARCH_FAILED
            state.reasoning_trace.append("no search has succeeded, so there is nothing to write from")
        if self.candidate:
            return AgenticNode.SHOULD_ACCEPT_ANSWER
        ended = self.finishing and bool(state.collected_results)
        self.finishing = False
        return AgenticStop.REJECTED if ended else AgenticNode.AGENT_DECISION

    async def _should_accept_answer(self) -> AgenticNode | AgenticStop:
        state = self.state
        found = await self._evaluated(self.candidate)
        if found is not None:
            high = found.risk > HIGH_RISK
            near = is_near_limit(state.iteration_count, self.settings.max_iterations)
            self.released = high and near
            declined = self.finishing and is_abstention(self.candidate)
            if found.decision is Decision.SYNTHESIZE or self.released or declined:
                state.final_answer, self.answered = self.candidate, found
                self.summary = "released" if self.released else "accepted"
                return AgenticStop.ACCEPTED
            if self.best is None or _rank(found) < _rank(self.best):
                self.best, state.partial_answer = found, self.candidate
        if self.finishing:
            return AgenticStop.REJECTED
        state.reasoning_trace.append(f"the answer was not accepted: {self.summary}")
        return AgenticNode.AGENT_DECISION if found is None else _AFTER[found.decision]

    async def fall_back(self) -> None:
        """Write the answer of a run that ended without one, from what was collected, unless that fails."""
        state = self.state
        if not state.collected_results:
            if self._nothing_found:
                state.final_answer = synthesis.no_information(chinese=prompts.in_chinese(state))
            return

        async def write() -> str:
            return await self._written(fallback=True)

        try:
            async with asyncio.timeout(min(FALLBACK_S, self.tools.deadline.remaining_s)):
                state.final_answer = await self._timed(AgenticNode.FALLBACK_ANSWER, write)
        except (CallError, TimeoutError) as error:
            self.failure = error.code if isinstance(error, CallError) else "fallback-timeout"

    def record(self, stop: AgenticStop) -> AgenticRun:
        """Return what the run came to."""
        state = self.state
        cited = synthesis.cited_ids(state.final_answer, state.collected_results)
        return AgenticRun(
            answer=state.final_answer,
            stop=stop,
            iterations=state.iteration_count,
            tokens=state.token_count,
            steps=tuple(self.steps),
            passages=tuple(
                replace(each, cited=each.document_id in cited) for each in state.collected_results
            ),
            accepted=stop is AgenticStop.ACCEPTED and not self.released,
            released=stop is AgenticStop.ACCEPTED and self.released,
            partial_answer=state.partial_answer if self.best is not None else "",
            risk=self.answered.risk if self.answered else None,
            quality=self.answered.quality if self.answered else None,
            search_failed=self._search_failed,
            failure=self.failure,
        )

    async def _written(self, *, fallback: bool = False) -> str:
        state = self.state
        text, self.summary = await self.asking.answer(state, fallback=fallback)
        if not text:
            state.reasoning_trace.append(f"no answer was written: {self.summary}")
        return text

    async def _evaluated(self, answer: str) -> AnswerEvaluation | None:
        """Return the evaluation, ``None`` where the judge's reply is of no use: never an acceptance."""
        state = self.state
        try:
            found = await evaluate(
                state.question,
                state.collected_results,
                answer,
                ask=self.ask,
                citations=self.tools.citations,
                judge=self.tools.judge,
            )
        except DetectorError:
            self.summary = "bad-evaluation"
            state.reasoning_trace.append("the evaluation failed")
            return None
        state.evaluation_result = found
        self.summary = f"{found.decision} by {found.by}, risk {found.risk:.2f}"
        return found

    @property
    def _search_failed(self) -> bool:
        return any(each.failed for each in self.state.search_history)

    @property
    def _nothing_found(self) -> bool:
        """Whether searches were made and none failed: only then do the sources hold nothing."""
        return bool(self.state.search_history) and not self._search_failed


def _rank(evaluation: AnswerEvaluation) -> tuple[float, float]:
    return evaluation.risk, -(evaluation.quality or 0.0)

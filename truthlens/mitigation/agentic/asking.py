"""Ask the models of a run for what its nodes need: a decision, a better query, an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.core.records.calls import CUT_OFF, Ask, ModelRequest
from truthlens.mitigation.agentic import prompts, synthesis
from truthlens.mitigation.agentic.decision import AgentDecision, Refinement
from truthlens.mitigation.agentic.interfaces import AgenticTask
from truthlens.mitigation.agentic.models import models_of
from truthlens.mitigation.agentic.replies import asked_object
from truthlens.mitigation.agentic.state import AgenticState
from truthlens.prompts.forms import Forms

_MOST_FALLBACK_CHARS = 12_000


class AgenticForms:
    """How the servers of models take the forms of replies; kept for all runs of a plan."""

    def __init__(self) -> None:
        self.decision = Forms(AgentDecision.model_json_schema())
        self.refinement = Forms(Refinement.model_json_schema())


@dataclass(frozen=True, slots=True)
class Asking:
    """The questions of one run; ``ask`` counts their tokens in its state."""

    task: AgenticTask
    settings: AgenticSettings
    forms: AgenticForms
    ask: Ask

    async def decision(self, state: AgenticState, tools: Sequence[Mapping[str, Any]]) -> AgentDecision:
        """Return the next decision; ``tools`` are those that may be used.

        Raises:
            CallError: a call gave no usable text.
            UnusableReplyError: two replies were no decision.
        """
        model = models_of(self.settings, own=self.task.model).decision

        def request(behind: str) -> ModelRequest:
            return prompts.decision_request(
                state,
                model=model,
                own=self._is_own(model),
                max_iterations=self.settings.max_iterations,
                max_tokens=self.settings.max_tokens,
                tools=tools,
                behind=behind,
            )

        chinese = prompts.in_chinese(state)
        return await asked_object(
            AgentDecision, request, ask=self.ask, forms=self.forms.decision, chinese=chinese
        )

    async def refinement(self, state: AgenticState) -> Refinement:
        """Return a better query.

        Raises:
            CallError: a call gave no usable text.
            UnusableReplyError: two replies were none.
        """
        model = models_of(self.settings, own=self.task.model).decision

        def request(behind: str) -> ModelRequest:
            return prompts.refinement_request(state, model=model, own=self._is_own(model), behind=behind)

        chinese = prompts.in_chinese(state)
        return await asked_object(
            Refinement, request, ask=self.ask, forms=self.forms.refinement, chinese=chinese
        )

    async def answer(self, state: AgenticState, *, fallback: bool = False) -> tuple[str, str]:
        """Return an answer from what was collected, ``""`` where none is of use, and a code of how it went.

        Raises:
            CallError: the call gave no usable text.
        """
        model = models_of(self.settings, own=self.task.model).synthesis
        most_chars = self.settings.evidence_chars
        # Much evidence takes long to choose from: that must not hold up other exchanges.
        request = await asyncio.to_thread(
            prompts.fallback_request if fallback else prompts.synthesis_request,
            state,
            model=model,
            own=self._is_own(model),
            most_chars=min(most_chars, _MOST_FALLBACK_CHARS) if fallback else most_chars,
        )
        completion = await self.ask(request)
        if completion.finish_reason in CUT_OFF:
            return "", "cut-off"
        text = await asyncio.to_thread(synthesis.final_text, completion.text, state.collected_results)
        return text, "written" if text else "empty"

    def _is_own(self, model: str) -> bool:
        return self.task.own and model == self.task.model

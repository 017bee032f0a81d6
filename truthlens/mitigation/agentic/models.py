"""Which model takes a step, and how long its replies may be.

Size comes first: a request that does not fit a model cannot be served by it. Then the model that is named,
then the default of the type, then the model of the exchange. Requests carry ``temperature`` and no ``top_p``,
so that Anthropic's models, which refuse both together, take them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from truthlens.core.errors import CallError
from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.core.records.calls import Ask, Completion, ModelRequest
from truthlens.mitigation.agentic.state import AgenticState

LARGE_CONTEXT_TOKENS = 105_000
"""A request of more tokens goes to the large-context model."""

DECISION_TOKENS, REFINEMENT_TOKENS, SYNTHESIS_TOKENS = 2_000, 1_000, 4_000

CountTokens = Callable[[Mapping[str, object]], int]
"""Returns about how many tokens the prompt of a request's body has."""


class ModelType(StrEnum):
    """What a model is for; ``embedding`` ones are a source's own, the run asks none."""

    CHAT = "chat"
    TRANSFORMATION = "transformation"
    TOOLS = "tools"
    EMBEDDING = "embedding"
    LARGE_CONTEXT = "large_context"


@dataclass(frozen=True, slots=True)
class RunModels:
    """The names of the models of one run."""

    decision: str
    evaluation: str
    formatting: str
    synthesis: str


def models_of(settings: AgenticSettings, *, own: str) -> RunModels:
    """Return the models; ``own`` is that of the exchange, for steps that nothing names one for."""
    defaults = {
        ModelType.CHAT: settings.chat_model,
        ModelType.TOOLS: settings.tools_model,
        ModelType.TRANSFORMATION: settings.transformation_model,
    }

    def chosen(kind: ModelType, *named: str | None) -> str:
        return next((name for name in (*named, settings.model_id, defaults[kind]) if name), own)

    return RunModels(
        decision=chosen(ModelType.TOOLS, settings.decision_model),
        evaluation=chosen(ModelType.CHAT, settings.evaluation_model),
        formatting=chosen(
            ModelType.TRANSFORMATION, settings.evaluation_formatting_model, settings.evaluation_model
        ),
        synthesis=chosen(ModelType.CHAT, settings.synthesis_model),
    )


class CountingAsk:
    """An ``Ask`` that counts a run's tokens and sends what is large to the large-context model.

    Args:
        ask: of the exchange.
        state: of the run.
        settings: of the plan.
        count_tokens: counts a prompt before it is asked.
    """

    def __init__(
        self, ask: Ask, state: AgenticState, settings: AgenticSettings, count_tokens: CountTokens
    ) -> None:
        self._ask = ask
        self._state = state
        self._large = settings.large_context_model
        self._count_tokens = count_tokens

    async def __call__(self, request: ModelRequest) -> Completion:
        """Return the model's answer.

        Raises:
            CallError: there is no usable text; its prompt is counted, because it may have been read.
        """
        prompt = self._count_tokens(request.body)
        if prompt > LARGE_CONTEXT_TOKENS and self._large:
            request = replace(request, model=self._large, own=False)
        try:
            completion = await self._ask(request)
        except CallError:
            self._state.token_count += prompt
            raise
        self._state.token_count += completion.usage.total_tokens or prompt
        return completion

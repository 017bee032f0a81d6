"""Define what a model may decide: the next step, or a better query. Both are validated before use."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import pydantic

_MOST_PARAMETER_CHARS = 4_000
_Reasoning = Annotated[str, pydantic.Field(max_length=10_000)]


class AgentAction(StrEnum):
    """What the next step is."""

    USE_TOOL = "use_tool"
    EVALUATE = "evaluate"
    SYNTHESIZE = "synthesize"
    FINISH = "finish"


class AgentDecision(pydantic.BaseModel):
    """The reply to the decision prompt; ``tool_name`` and ``parameters`` count with ``use_tool`` alone."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    action: AgentAction
    tool_name: Annotated[str, pydantic.Field(max_length=200)] | None = None
    parameters: dict[str, Any] | None = None
    reasoning: _Reasoning

    @pydantic.model_validator(mode="after")
    def _is_whole(self) -> AgentDecision:
        if self.action is AgentAction.USE_TOOL and not self.tool_name:
            raise ValueError("use_tool needs a tool_name")
        if self.parameters and len(json.dumps(self.parameters)) > _MOST_PARAMETER_CHARS:
            raise ValueError(f"parameters are longer than {_MOST_PARAMETER_CHARS} characters")
        return self

    @property
    def key(self) -> str:
        """Return what two equal decisions have in common: the reasoning may be worded anew each time."""
        if self.action is not AgentAction.USE_TOOL:
            return self.action.value
        return f"{self.action}:{self.tool_name}:{json.dumps(self.parameters or {}, sort_keys=True)}"


class Refinement(pydantic.BaseModel):
    """The reply to the refinement prompt."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    query: Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
    tool_name: Annotated[str, pydantic.Field(max_length=200)] | None = None
    reasoning: _Reasoning

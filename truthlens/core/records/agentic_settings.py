"""The settings of mode agentic, and the only place that reads the environment variables ``AGENTIC_*``.

A variable gives the default of a key that no policy writes; a key that is written wins.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from truthlens.core.records.enums import Stricter
from truthlens.core.records.settings import Lax, Section, Text

MAX_ITERATIONS, MAX_TOKENS, MAX_DURATION = (
    "AGENTIC_MAX_ITERATIONS",
    "AGENTIC_MAX_TOKENS",
    "AGENTIC_MAX_DURATION",
)


VARIABLES = {
    "max_iterations": MAX_ITERATIONS,
    "max_tokens": MAX_TOKENS,
    "max_duration_s": MAX_DURATION,
}
"""The variable of each setting that has one."""


class ToolName(StrEnum):
    """The tools that come with TruthLens."""

    VECTOR_SEARCH = "vector_search"
    TEXT_SEARCH = "text_search"
    CALCULATION = "calculation"
    INTERNET_SEARCH = "internet_search"
    TIMESTAMP = "get_current_timestamp"


def _default(variable: str, default: float, number: Callable[[str], float]) -> Callable[[], Any]:
    def value() -> Any:
        written = os.environ.get(variable, "").strip()
        try:
            return number(written) if written else default
        except ValueError:
            return written  # refused below, where a message can be given

    return value


def _number_of(variable: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(  # noqa: TRY004 - pydantic makes a message of it
                f"expected a number; the default is that of the environment variable {variable}"
            )
        return value

    return BeforeValidator(check)


class AgenticSettings(Section):
    """Settings of mode agentic (agentic-rag, "configuration").

    A run ends at ``max_iterations`` decisions, at ``max_tokens`` tokens or after ``max_duration_s`` seconds,
    whichever comes first. A model that is not named is ``model_id``, then the default of its type
    (``tools_model`` decides, ``chat_model`` evaluates and writes, ``transformation_model`` puts the
    evaluation into fields), then the model of the exchange. ``large_context_model`` takes every request of
    more than 105,000 tokens, whatever is named.
    """

    max_iterations: Annotated[int, _number_of(MAX_ITERATIONS), Stricter.HIGHER] = Field(
        default_factory=_default(MAX_ITERATIONS, 10, int),
        validate_default=True,
        ge=1,
        le=50,
        description=f"Decisions of one run at most. Default 10, or what {MAX_ITERATIONS} says.",
    )
    max_tokens: Annotated[int, _number_of(MAX_TOKENS), Stricter.HIGHER] = Field(
        default_factory=_default(MAX_TOKENS, 50_000, int),
        validate_default=True,
        ge=1,
        le=10_000_000,
        description=f"Tokens of one run, prompts included. Default 50,000, or what {MAX_TOKENS} says.",
    )
    max_duration_s: Annotated[float, _number_of(MAX_DURATION), Stricter.HIGHER] = Field(
        default_factory=_default(MAX_DURATION, 300.0, float),
        validate_default=True,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description=f"Seconds that one run may take. Default 300, or what {MAX_DURATION} says.",
    )
    model_id: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None, description="Model for every step that names none of its own."
    )
    decision_model: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None, description="Model that decides on the next step and refines queries."
    )
    evaluation_model: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None, description="Model that evaluates answers."
    )
    evaluation_formatting_model: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None,
        description="Model that puts the evaluation into fields. Default: the evaluation model.",
    )
    evaluation_use_two_stage: Annotated[bool, Stricter.UNKNOWN] = Field(
        default=True, description="false: one call evaluates, in fields at once."
    )
    synthesis_model: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None, description="Model that writes the answer."
    )
    chat_model: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None, description="Default model of evaluation and synthesis."
    )
    tools_model: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None, description="Default model of decisions and refinement."
    )
    transformation_model: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None, description="Default model that puts the evaluation into fields."
    )
    large_context_model: Annotated[Text | None, Stricter.UNKNOWN] = Field(
        default=None, description="Model for requests of more than 105,000 tokens, whatever else is named."
    )
    tools: Annotated[tuple[Annotated[ToolName, Lax], ...], Lax, Stricter.UNKNOWN] = Field(
        default=(
            ToolName.VECTOR_SEARCH,
            ToolName.TEXT_SEARCH,
            ToolName.CALCULATION,
            ToolName.TIMESTAMP,
        ),
        max_length=len(ToolName),
        description="Tools that may be used. A search tool is offered only where there is a source for it.",
    )
    evidence_chars: Annotated[int, Stricter.HIGHER] = Field(
        default=24_000,
        ge=400,
        le=1_000_000,
        description="Characters of sources that a prompt shows at most.",
    )

    MODEL_KEYS: ClassVar[tuple[str, ...]] = (
        "model_id",
        "decision_model",
        "evaluation_model",
        "evaluation_formatting_model",
        "synthesis_model",
        "chat_model",
        "tools_model",
        "transformation_model",
        "large_context_model",
    )

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models that are named, each once."""
        named = (getattr(self, key) for key in self.MODEL_KEYS)
        return tuple(dict.fromkeys(name for name in named if name))

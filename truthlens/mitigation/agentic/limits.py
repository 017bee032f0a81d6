"""The limits of a run, checked before every step. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.core.records.agentic_run import AgenticNode, AgenticStop
from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.mitigation.agentic.state import AgenticState

_EQUAL = 3


def is_circular(decision_history: Sequence[str]) -> bool:
    """Return whether the last three decisions are equal; of fewer none is."""
    return len(decision_history) >= _EQUAL and len(set(decision_history[-_EQUAL:])) == 1


def limit_reached(
    state: AgenticState, settings: AgenticSettings, *, node: AgenticNode, elapsed_s: float
) -> AgenticStop | None:
    """Return the limit that forbids the step to ``node``, ``None`` where it may be made.

    The last iteration ends with its last step: only a further decision is one too many.
    """
    if node is AgenticNode.AGENT_DECISION and state.iteration_count >= settings.max_iterations:
        return AgenticStop.ITERATIONS
    if elapsed_s >= settings.max_duration_s:
        return AgenticStop.TIME
    if state.token_count >= settings.max_tokens:
        return AgenticStop.TOKENS
    return AgenticStop.CIRCULAR if is_circular(state.decision_history) else None

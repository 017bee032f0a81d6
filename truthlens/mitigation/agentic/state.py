"""The state of one run: ten fields, which the nodes read and write, and the limits of runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from truthlens.core.records.agentic_run import AgenticNode, AgenticStop, CollectedPassage
from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.mitigation.agentic.evaluation import AnswerEvaluation

_EQUAL = 3


@dataclass(frozen=True, slots=True)
class SearchEntry:
    """One search: how many passages it gave, and whether a source could not be searched."""

    tool: str
    query: str
    results: int = 0
    failed: bool = False


@dataclass(slots=True)
class AgenticState:
    """What a run knows.

    ``partial_answer`` is the best answer so far that was not accepted, ``final_answer`` the one that ended
    the run. ``decision_history`` has one string a decision, equal where action, tool and parameters are;
    ``token_count`` counts prompts and completions of all calls.
    """

    question: str
    iteration_count: int = 0
    search_history: list[SearchEntry] = field(default_factory=list)
    collected_results: list[CollectedPassage] = field(default_factory=list)
    evaluation_result: AnswerEvaluation | None = None
    partial_answer: str = ""
    final_answer: str = ""
    reasoning_trace: list[str] = field(default_factory=list)
    token_count: int = 0
    decision_history: list[str] = field(default_factory=list)


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

"""The state of one run: ten fields, which the nodes read and write."""

from __future__ import annotations

from dataclasses import dataclass, field

from truthlens.core.records.agentic_run import CollectedPassage
from truthlens.mitigation.agentic.evaluation import AnswerEvaluation


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

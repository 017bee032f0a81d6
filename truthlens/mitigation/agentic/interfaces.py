"""Define what a run of mode agentic is given: its question, and all that it may use of the outside world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_run import AgenticStep
from truthlens.core.records.calls import Ask
from truthlens.core.records.exchange import Passage
from truthlens.mitigation.agentic.evaluation import CheckCitations, Judge
from truthlens.mitigation.agentic.models import CountTokens
from truthlens.mitigation.agentic.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class AgenticTask:
    """What a run is to answer.

    ``passages`` came with the request, ``first_answer`` is the one that was given without this run, ``""``
    where there is none; the run begins with both. ``model`` takes the steps that the settings name none for;
    ``own`` says that it is the chat model that gave the first answer (``ModelRequest.own``).
    """

    question: str
    model: str
    passages: tuple[Passage, ...] = ()
    first_answer: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class AgenticTools:
    """All that a run may use of the outside world; ``observe`` is told of every step that ended."""

    ask: Ask
    registry: ToolRegistry
    citations: CheckCitations
    judge: Judge
    deadline: Deadline
    count_tokens: CountTokens
    observe: Callable[[AgenticStep], None] = lambda step: None

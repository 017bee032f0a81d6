"""The frozen records of one run of mode agentic: its steps, what it collected, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NO_SUCH_TOOL = "unknown"
"""What a step calls a tool that does not exist: its name is a model's text."""


class AgenticStop(StrEnum):
    """Why a run ended: a limit, an answer that was accepted or rejected, or a failure.

    ``budget`` and ``deadline`` are those of the exchange, ``iterations``, ``tokens`` and ``time`` the run's
    own. ``rejected``: the model had nothing more to look for, and its answer was not accepted.
    ``search-failed``: nothing was found and a search failed, so nothing can be said of what the sources hold.
    """

    ITERATIONS = "iterations"
    TOKENS = "tokens"
    TIME = "time"
    CIRCULAR = "circular"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    BUDGET = "budget"
    DEADLINE = "deadline"
    CALL_FAILED = "call-failed"
    BAD_DECISION = "bad-decision"
    SEARCH_FAILED = "search-failed"


class AgenticNode(StrEnum):
    """The nodes of the graph, and ``fallback_answer``, which follows a run that ends without an answer."""

    INITIALIZE = "initialize"
    AGENT_DECISION = "agent_decision"
    EXECUTE_TOOL = "execute_tool"
    EVALUATE_RESULTS = "evaluate_results"
    REFINE_QUERY = "refine_query"
    SYNTHESIZE_ANSWER = "synthesize_answer"
    SHOULD_ACCEPT_ANSWER = "should_accept_answer"
    FALLBACK_ANSWER = "fallback_answer"


@dataclass(frozen=True, slots=True)
class AgenticStep:
    """One visit of a node.

    ``tool`` is the one that was asked for, ``unknown`` where there is none of that name, ``""`` in all other
    nodes. ``summary`` is a code or a count, never text of a user, a document or a model.
    ``passages`` are the places, start inclusive and end exclusive, of what its tool added to the run's.
    """

    node: AgenticNode
    tool: str
    duration_s: float
    summary: str
    passages: tuple[int, int] = (0, 0)

    @property
    def ran_tool(self) -> bool:
        """Return whether a tool was used."""
        return self.tool not in ("", NO_SUCH_TOOL)


@dataclass(frozen=True, slots=True)
class CollectedPassage:
    """What a tool gave, or a passage of the request (``source`` ``request``).

    ``document_id`` is what an answer cites it by, each of one run another. ``computed``: the text is made of
    what a model gave to a tool, such as a sum, and proves nothing that stands in no other passage. ``cited``:
    the run's answer cites it.
    """

    document_id: str
    source: str
    text: str
    title: str = ""
    parent_id: str = ""
    passage_id: str = ""
    computed: bool = False
    cited: bool = False


@dataclass(frozen=True, slots=True)
class AgenticRun:
    """What one run came to.

    ``answer`` is ``""`` where the run has none: the first answer stays. It is the accepted answer
    (``accepted``), one that leaves with a high risk because hardly an iteration was left (``released``), or a
    fallback. ``partial_answer`` is the best answer that was written and not accepted. ``risk`` and
    ``quality`` (0..1) are the last evaluation's of ``answer``, ``None`` where it was not evaluated.
    ``search_failed``: a search failed, so that what was not found may be there.
    """

    answer: str
    stop: AgenticStop
    iterations: int
    tokens: int
    steps: tuple[AgenticStep, ...]
    passages: tuple[CollectedPassage, ...] = ()
    accepted: bool = False
    released: bool = False
    partial_answer: str = ""
    risk: float | None = None
    quality: float | None = None
    search_failed: bool = False
    failure: str = ""

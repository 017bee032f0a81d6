"""The frozen records of retrieval: what is searched for, what a source gives, and how a search ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any


class SearchResult(StrEnum):
    """How one search ended (label ``result`` of ``truthlens_retrievals_total``). ``empty`` is a fact about the source, the rest below it are failures."""

    OK = "ok"
    CACHED = "cached"
    EMPTY = "empty"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    BAD_RESPONSE = "bad-response"
    OVERLOADED = "overloaded"
    CIRCUIT_OPEN = "circuit-open"
    NO_SCOPE = "no-scope"

    @property
    def is_failure(self) -> bool:
        """Whether the search says nothing about what the source holds."""
        return self not in (SearchResult.OK, SearchResult.CACHED, SearchResult.EMPTY)


class SearchedFor(StrEnum):
    """What a search was made with: the question, a flagged claim, or the words of mode agentic's model."""

    QUESTION = "question"
    CLAIM = "claim"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source that the policy names: its type, and its options (a ``core.registry.SourceOptions``)."""

    name: str
    type: str
    options: Any


@dataclass(frozen=True, slots=True)
class Search:
    """One search in one source.

    ``filter`` are the values that a passage's fields must have: the operator's (trusted headers, the route), never a
    client's; a source that cannot apply all of it refuses the search. ``authorization`` is the client's own header, there
    only for a source that says ``auth: passthrough``.
    """

    text: str
    filter: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    authorization: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """One passage that a source gave: text of others, data and never an instruction.

    ``id`` names it within its source, for as long as the source does not change. ``parent_id`` is the id of the document
    that it is a piece of, ``title`` that document's. ``score`` is the source's own figure, higher is nearer, comparable
    within one search alone; ``None`` where it gives none.
    """

    text: str
    id: str
    title: str = ""
    parent_id: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class SourceTool:
    """A tool of a source that the operator lets models of mode agentic use.

    ``description`` and ``input_schema`` (a JSON Schema) are the server's own text: in a prompt they stand
    between tags. ``gives_evidence`` is the operator's word that what it returns comes from a source, and is not
    made of what it was given.
    """

    source: str
    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    gives_evidence: bool = False


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """What one search came to, or one use of a tool.

    ``duration_s`` in seconds; ``passages`` is how many it gave.
    """

    source: str
    result: SearchResult
    duration_s: float
    passages: int = 0
    sought: SearchedFor = SearchedFor.QUESTION


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A passage with the name of the source that gave it."""

    source: str
    passage: FoundPassage


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What all searches for one answer came to: passages in order, nearest first, each once, and how each search ended."""

    passages: tuple[RetrievedPassage, ...] = ()
    searches: tuple[SearchRecord, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether any search failed, so that what was not found may be there."""
        return any(each.result.is_failure for each in self.searches)

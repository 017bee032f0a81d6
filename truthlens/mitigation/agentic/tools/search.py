"""The tools that search sources of evidence, over one search that the exchange is given.

Which sources a tool may search is the operator's choice; a model can only choose among those. Filters of
trusted values are applied behind the search that is given, where no model can reach them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Protocol

import pydantic

from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.records.retrieval import Retrieved, SearchResult
from truthlens.mitigation.agentic.tools.bounds import MOST_RESULTS
from truthlens.mitigation.agentic.tools.interfaces import (
    WRONG_PARAMETERS,
    BaseTool,
    ToolError,
    ToolParameters,
    ToolResult,
)

_Query = Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
_Names = Annotated[list[Annotated[str, pydantic.Field(max_length=300)]], pydantic.Field(max_length=20)]
_TRANSIENT = frozenset({SearchResult.UNAVAILABLE, SearchResult.BAD_RESPONSE})


class SearchSources(Protocol):
    """Searches sources of evidence on behalf of one exchange, with its filters and its rights."""

    async def __call__(self, sources: Sequence[str], query: str, k: int, deadline: Deadline) -> Retrieved:
        """Return at most ``k`` passages of the named sources, nearest first, and how each search ended."""


class InternetParameters(ToolParameters):
    """Parameters of ``internet_search``."""

    query: _Query
    limit: int = pydantic.Field(default=10, ge=1, le=MOST_RESULTS)


class TextParameters(InternetParameters):
    """Parameters of ``text_search``; without ``search_sources`` every source of the tool is searched."""

    search_sources: _Names | None = None


class VectorParameters(TextParameters):
    """Parameters of ``vector_search``.

    ``minimum_score`` is in the sources' own scale; passages without a score pass. ``notebook_ids`` are ids of
    documents: only passages of these are kept.
    """

    minimum_score: float | None = pydantic.Field(default=None, allow_inf_nan=False)
    notebook_ids: _Names | None = None


class _SearchTool(BaseTool):
    gives_evidence = True

    def __init__(
        self,
        name: str,
        description: str,
        timeout: float,
        *,
        search: SearchSources,
        sources: Sequence[str],
        deadline: Deadline,
        enabled: bool,
    ) -> None:
        super().__init__(name, description, timeout=timeout, enabled=enabled)
        self._search = search
        self._sources = tuple(sources)
        self._deadline = deadline

    async def _found(self, query: str, limit: int, named: Sequence[str] | None = None) -> Retrieved:
        """Return what the sources give.

        Raises:
            ToolError: a source is not this tool's, or every search failed.
        """
        if any(name not in self._sources for name in named or ()):
            raise ToolError(WRONG_PARAMETERS, f"search_sources may name: {', '.join(self._sources)}")
        time_s = min(self.timeout, self._deadline.remaining_s)
        deadline = Deadline.after(time_s, clock=self._deadline.clock)
        found = await self._search(named or self._sources, query, limit, deadline)
        results = [each.result for each in found.searches]
        if results and all(result.is_failure for result in results):
            raise ToolError(
                results[0].value, "the search failed", transient=bool(_TRANSIENT.intersection(results))
            )
        return replace(found, passages=found.passages[:limit])

    def _result(self, found: Retrieved) -> ToolResult:
        codes = [f"{each.source} {each.result.value}" for each in found.searches]
        return self.succeeded(found, results=len(found.passages), searches=codes, failed=found.failed)


class VectorSearchTool(_SearchTool):
    """Finds passages that are near to a query in meaning."""

    parameters = VectorParameters

    def __init__(
        self, search: SearchSources, sources: Sequence[str], deadline: Deadline, *, enabled: bool = True
    ) -> None:
        super().__init__(
            ToolName.VECTOR_SEARCH.value,
            "Finds passages that are near to the query in meaning. Sources: " + ", ".join(sources),
            60.0,
            search=search,
            sources=sources,
            deadline=deadline,
            enabled=enabled,
        )

    async def execute(  # type: ignore[override]
        self,
        query: str,
        limit: int,
        minimum_score: float | None,
        search_sources: Sequence[str] | None,
        notebook_ids: Sequence[str] | None,
    ) -> ToolResult:
        """Return the passages of the given documents with the given score."""
        # What is left out below must not make the rest too few.
        wanted = limit if notebook_ids is None else MOST_RESULTS
        found = await self._found(query, wanted, search_sources)
        kept = [
            each
            for each in found.passages
            if (minimum_score is None or each.passage.score is None or each.passage.score >= minimum_score)
            and (
                notebook_ids is None or not {each.passage.id, each.passage.parent_id}.isdisjoint(notebook_ids)
            )
        ]
        return self._result(replace(found, passages=tuple(kept[:limit])))


class TextSearchTool(_SearchTool):
    """Finds passages that share words with a query."""

    parameters = TextParameters

    def __init__(
        self, search: SearchSources, sources: Sequence[str], deadline: Deadline, *, enabled: bool = True
    ) -> None:
        super().__init__(
            ToolName.TEXT_SEARCH.value,
            "Finds passages that hold the words of the query. Sources: " + ", ".join(sources),
            30.0,
            search=search,
            sources=sources,
            deadline=deadline,
            enabled=enabled,
        )

    async def execute(  # type: ignore[override]
        self, query: str, limit: int, search_sources: Sequence[str] | None
    ) -> ToolResult:
        """Return the passages."""
        return self._result(await self._found(query, limit, search_sources))


class InternetSearchTool(_SearchTool):
    """Finds pages of the web; the query leaves the operator's network."""

    parameters = InternetParameters

    def __init__(
        self, search: SearchSources, sources: Sequence[str], deadline: Deadline, *, enabled: bool = True
    ) -> None:
        super().__init__(
            ToolName.INTERNET_SEARCH.value,
            "Finds pages of the web.",
            30.0,
            search=search,
            sources=sources,
            deadline=deadline,
            enabled=enabled,
        )

    async def execute(self, query: str, limit: int) -> ToolResult:  # type: ignore[override]
        """Return the beginnings of the pages."""
        return self._result(await self._found(query, limit))

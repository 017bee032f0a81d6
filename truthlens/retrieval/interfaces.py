"""Define what a source of evidence is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult, SourceTool


class SourceError(Exception):
    """A search failed. The message is for the operator's log: no text of a user, a document or a key is in it."""

    def __init__(self, result: SearchResult, message: str = "") -> None:
        assert result.is_failure
        self.result = result
        super().__init__(message or result.value)


class WrongArgumentsError(SourceError):
    """A tool may not get such arguments; the message is for whoever chose them, and repeats no value."""

    def __init__(self, message: str) -> None:
        super().__init__(SearchResult.REFUSED, message)


class EvidenceSource(Protocol):
    """A place that passages are searched in; one object for a process and for as long as its settings stay."""

    @property
    def revision(self) -> str:
        """Return what changes whenever the contents may have changed; ``""`` where the source cannot tell. Costs nothing."""

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        """Return at most ``k`` passages, nearest first; none is a fact, not a failure.

        It can be cancelled at any time. It does not block the event loop: what computes or reads files does so on a thread.

        Raises:
            SourceError: the search failed; ``result`` says how. Any other exception counts as ``unavailable``.
        """

    async def aclose(self) -> None:
        """Give back connections and threads."""


@runtime_checkable
class ToolSource(Protocol):
    """A source that has tools besides its search, which models of mode agentic may use."""

    async def tools(self, *, deadline: Deadline) -> Sequence[SourceTool]:
        """Return those that the operator allows and that can be used now.

        Raises:
            SourceError: they cannot be asked for.
        """

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, deadline: Deadline
    ) -> Sequence[FoundPassage]:
        """Return what a tool gives for these arguments, whoever chose them. It can be cancelled at any time.

        Raises:
            WrongArgumentsError: they do not fit the tool's schema.
            SourceError: the call failed, or the tool is not allowed.
        """

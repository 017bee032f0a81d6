"""Define what a source of evidence is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult


class SourceError(Exception):
    """A search failed. The message is for the operator's log: no text of a user, a document or a key is in it."""

    def __init__(self, result: SearchResult, message: str = "") -> None:
        assert result.is_failure
        self.result = result
        super().__init__(message or result.value)


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

"""One exchange while it is captured: what comes in, what models and sources give for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from truthlens.core.errors import CallError
from truthlens.core.records.calls import Completion, ModelRequest
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.core.records.retrieval import FoundPassage, SearchResult, SourceTool

MOST_EXCHANGE_BYTES = 8 << 20
"""Bytes of one exchange at most, as it comes in; a larger one is not captured."""


class Reply(NamedTuple):
    """What a model said, or why it said nothing."""

    request: ModelRequest
    said: Completion | CallError


class FoundBySearch(NamedTuple):
    """What one search in a source gave, or one use of a tool; ``text`` is what was searched for, or the tool with its arguments."""

    source: str
    text: str
    k: int
    result: SearchResult
    passages: tuple[FoundPassage, ...]


def called_with(tool: SourceTool, arguments: Mapping[str, Any]) -> str:
    """Return what a use of a tool is known by."""
    return f"{tool.name} {json.dumps(arguments, sort_keys=True)}"


@dataclass(slots=True, eq=False)
class Recording:
    """What is known so far of an exchange.

    ``room`` takes so many bytes, or says that there is no room for them. ``lost`` is why the exchange is not captured, once it is
    clear that it is not.
    """

    head: RequestHead
    began: float
    room: Callable[[int], bool]
    request: bytes | None = None
    response: ResponseHead | None = None
    body: list[bytes] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    searches: list[FoundBySearch] = field(default_factory=list)
    tools: list[SourceTool] = field(default_factory=list)
    windows: dict[str, int | None] = field(default_factory=dict)
    size: int = 0
    lost: str = ""
    ended: bool = False

    def takes(self, size: int) -> bool:
        """Return whether ``size`` more bytes are kept; where not, nothing of the exchange is."""
        if not self.lost:
            self.size += size
            if self.size > MOST_EXCHANGE_BYTES:
                self.lost = "large"
            elif not self.room(size):
                self.lost = "full"
                self.size -= size
        return not self.lost

    def note_request(self, body: bytes) -> None:
        """Keep the request's body, as it came."""
        if self.takes(len(body)):
            self.request = body

    def note_response(self, head: ResponseHead, pieces: Iterable[bytes]) -> None:
        """Keep the next pieces of the response's body, as they came."""
        self.response = head
        for piece in pieces:
            if self.takes(len(piece)):
                self.body.append(piece)

    def note_reply(self, request: ModelRequest, said: Completion | CallError) -> None:
        """Keep what a model said."""
        # A prompt quotes the request, about once.
        size = len(self.request or b"") + (len(said.text) if isinstance(said, Completion) else 0)
        if self.takes(size):
            self.replies.append(Reply(request, said))

    def note_search(self, found: FoundBySearch) -> None:
        """Keep what a source gave."""
        if self.takes(sum(len(each.text) for each in found.passages)):
            self.searches.append(found)


current: ContextVar[Recording | None] = ContextVar("truthlens_capture", default=None)
"""The recording of the exchange that the running task works for, ``None`` where it is not captured."""

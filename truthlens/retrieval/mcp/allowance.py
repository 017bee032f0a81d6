"""Bound what an MCP server may send, whatever it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self

import anyio

from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.interfaces import SourceError

MESSAGE_BYTES = 4 << 20
"""The most bytes of one message."""
_MESSAGES = 1000


class Allowance:
    """What the server of one session may still send, and why the session ended.

    It starts with the bytes of one message of the largest size and a thousand messages, and as much is added
    for each call while it lasts.

    Attributes:
        ended: Set with the first fault; the session then ends.
        fault: Why the session ended, or ``None``.
    """

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.fault: SourceError | None = None
        self._calls = 0
        self._bytes = MESSAGE_BYTES
        self._messages = _MESSAGES

    def begin_call(self) -> None:
        """Allow what one call needs."""
        self._calls += 1
        self._bytes += MESSAGE_BYTES
        self._messages += _MESSAGES

    def end_call(self) -> None:
        """Take back what the call did not need."""
        self._calls -= 1
        self._bytes = min(self._bytes, MESSAGE_BYTES * (self._calls + 1))
        self._messages = min(self._messages, _MESSAGES * (self._calls + 1))

    def take(self, *, octets: int = 0, messages: int = 0) -> bool:
        """Count what arrived; return whether the session goes on."""
        self._bytes -= octets
        self._messages -= messages
        if min(self._bytes, self._messages) < 0:
            self.fail(SearchResult.BAD_RESPONSE, "the server sent more than a call may bring")
        return self.fault is None

    def fail(self, result: SearchResult, message: str) -> None:
        """End the session; the first reason stays."""
        if self.fault is None:
            self.fault = SourceError(result, message)
        self.ended.set()


class CheckedStream:
    """The read stream of an SDK transport: counts messages, and keeps the server's words out of errors.

    The SDK puts the text of JSON-RPC errors into exceptions and spans; only their code and data go on from
    here.
    """

    def __init__(
        self,
        receive: Callable[[], Awaitable[Any]],
        close: Callable[[], Awaitable[None]],
        allowance: Allowance,
    ) -> None:
        self._receive = receive
        self._close = close
        self._allowance = allowance

    async def receive(self) -> Any:
        """Return the next message, or an exception that stands for one that could not be read.

        Raises:
            anyio.EndOfStream: no more is to come, or no more is allowed.
        """
        from mcp_types import ErrorData, JSONRPCError

        try:
            item = await self._receive()
        except anyio.EndOfStream:
            self._allowance.fail(SearchResult.UNAVAILABLE, "the server closed the connection")
            raise
        if not self._allowance.take(messages=1):
            raise anyio.EndOfStream
        message = getattr(item, "message", None)
        if isinstance(message, JSONRPCError):
            item.message = message.model_copy(
                update={"error": ErrorData(code=message.error.code, message="", data=message.error.data)}
            )
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Close the stream."""
        await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

"""Backends for the tests of the client: a scripted transport, a clock that only moves when told, a raw TCP server."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx

from truthlens.core.records.calls import ModelRequest, Role
from truthlens.core.records.enums import Endpoint

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def chat(text: object, *, finish_reason: str = "stop", **message: object) -> dict[str, Any]:
    """A chat completion as JSON."""
    return {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": USAGE,
    }


def asking(
    model: str = "m", *, own: bool = False, endpoint: Endpoint = Endpoint.CHAT, **body: Any
) -> ModelRequest:
    """A request with one short user message, or prompt, in it."""
    content = (
        {"messages": [{"role": "user", "content": "hi there"}]}
        if endpoint is Endpoint.CHAT
        else {"prompt": "hi"}
    )
    return ModelRequest(model=model, role=Role.REFINER, body={**content, **body}, endpoint=endpoint, own=own)


class Clock:
    """Seconds that pass only in ``sleep`` and ``advance``."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Backend:
    """Answers request after request from a list, and keeps the requests. An exception in the list is raised."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.transport = httpx.MockTransport(self._answer)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ok(text: str = "fine") -> httpx.Response:
    """A response that holds ``text``."""
    return httpx.Response(200, json=chat(text))


Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def tcp_server(script: Script) -> AsyncIterator[str]:
    """The base address of a server that reads one request per connection and then does what ``script`` says."""
    conversations: list[asyncio.Task[Any] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversations.append(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = next(line for line in head.split("\r\n") if line.startswith("content-length:"))
            await reader.readexactly(int(length.partition(":")[2]))
            await script(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        server.close()
        await server.wait_closed()
        async with asyncio.timeout(20):
            await asyncio.gather(*(task for task in conversations if task is not None))


def head(*fields: str, status: str = "200 OK") -> bytes:
    """The head of an HTTP/1.1 response."""
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode()

"""Servers for tests of sources that are reached over HTTP, and sources built from options of a policy."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.registry import SourceContext, source_types
from truthlens.retrieval.interfaces import SourceError

JSON = "content-type: application/json"


@dataclass(frozen=True)
class Asked:
    """A request as the server read it; names of headers in lower case."""

    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class SourceServer:
    """What a server was asked, at which address."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    answer: Answer | None = None


@contextlib.asynccontextmanager
async def source_server(answer: Answer | None = None) -> AsyncIterator[SourceServer]:
    """A server that reads one request a connection and then does what ``answer`` says."""
    conversations: set[asyncio.Task[Any]] = set()
    running = SourceServer("", answer=answer)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        conversations.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            lines = (line.partition(":") for line in head[1:])
            headers = {name.lower(): value.strip() for name, _, value in lines}
            asked = Asked(head[0], headers, await reader.readexactly(int(headers.get("content-length", "0"))))
            running.asked.append(asked)
            assert running.answer is not None
            await running.answer(asked, writer)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    running.url = f"http://{host}:{port}"
    try:
        yield running
    finally:
        server.close()
        for task in conversations:
            task.cancel()
        await asyncio.gather(*conversations, return_exceptions=True)


def reply(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A response that says how long it is; JSON, unless ``headers`` say otherwise."""
    return (
        "\r\n".join(
            [f"HTTP/1.1 {status}", *(headers or (JSON,)), f"content-length: {len(body)}", "", ""]
        ).encode()
        + body
    )


def answering(content: object, *headers: str, status: str = "200 OK") -> Answer:
    """Answers every request with ``content``: bytes as they are, anything else as JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(body, *headers, status=status))

    return answer


async def silent(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.sleep(3600)


async def dripping(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Answers a byte at a time, without end."""
    writer.write(f"HTTP/1.1 200 OK\r\n{JSON}\r\nconnection: close\r\n\r\n".encode())
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.001)


async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Answers as fast as it is read, without end."""
    writer.write(f"HTTP/1.1 200 OK\r\n{JSON}\r\ntransfer-encoding: chunked\r\n\r\n".encode())
    while True:
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()


async def dropping(_: Asked, writer: asyncio.StreamWriter) -> None:
    """Ends the connection without an answer."""
    writer.transport.abort()


def bomb() -> Answer:
    """Answers with few bytes that would inflate to 64 MiB."""
    return answering(gzip.compress(bytes(64 << 20)), JSON, "content-encoding: gzip")


def context(kind: str, options: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> SourceContext:
    async def embed(_: Sequence[str]) -> Any:
        raise AssertionError("a remote source has no vectors of ours")

    checked = source_types()[kind].options(**options)
    return SourceContext("handbook", checked, Path(), environ or {}, embed)


@contextlib.asynccontextmanager
async def opened(kind: str, environ: Mapping[str, str] | None = None, **options: Any) -> AsyncIterator[Any]:
    """The source ``kind`` with these options."""
    source = source_types()[kind].build(context(kind, options, environ))
    try:
        yield source
    finally:
        await source.aclose()


async def found(
    source: Any,
    text: str = "How long is the warranty?",
    *,
    k: int = 5,
    within_s: float = 20.0,
    authorization: str | None = None,
    **wanted: str,
) -> Sequence[FoundPassage]:
    """What a search gives; ``wanted`` is its filter."""
    search = Search(text, MappingProxyType(wanted), authorization)
    passages: Sequence[FoundPassage] = await source.search(search, k=k, deadline=Deadline.after(within_s))
    return passages


async def result(source: Any, text: str = "How long is the warranty?", **how: Any) -> SearchResult:
    """How a search ends."""
    try:
        return SearchResult.OK if await found(source, text, **how) else SearchResult.EMPTY
    except SourceError as error:
        return error.result

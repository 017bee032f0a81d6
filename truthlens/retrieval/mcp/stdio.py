"""Start an MCP server as a program and speak with it over its standard input and output.

In place of the SDK's transport, which reads a line of any length, passes on more of the environment, and
waits for a program that does not read.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

import anyio

from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.mcp.allowance import MESSAGE_BYTES, Allowance, CheckedStream

_GRACE_S = 1.0
_MOST_UNREAD = 1 << 20


@asynccontextmanager
async def stdio_transport(
    command: Sequence[str], *, environ: Mapping[str, str], folder: Path, allowance: Allowance
) -> AsyncGenerator[tuple[Any, Any]]:
    """Run ``command`` in ``folder`` with this environment alone; give the SDK's streams from and to it.

    What it writes to standard error is discarded. At the end its input is closed; it and what it started are
    killed if they do not end in two seconds.

    Raises:
        OSError: The program cannot be started.
    """
    send, receive = anyio.create_memory_object_stream[Any](math.inf)
    with send, receive:
        child, output = await asyncio.get_running_loop().subprocess_exec(
            lambda: _ChildOutput(send, allowance),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environ,
            cwd=folder,
            start_new_session=True,
        )
        try:
            pipe = cast("asyncio.WriteTransport", child.get_pipe_transport(0))
            messages = CheckedStream(partial(_next_message, receive, allowance), receive.aclose, allowance)
            yield messages, _ChildInput(pipe, allowance)
        finally:
            try:
                await _end(child, output.exited)
            finally:
                _signal_group(child.get_pid(), signal.SIGKILL)
                child.close()


async def _next_message(receive: Any, allowance: Allowance) -> Any:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    while True:
        line = await receive.receive()
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(bytes(line), by_name=False))
        except ValueError:
            # Programs print other things, too, banners for one.
            if not allowance.take(messages=1):
                raise anyio.EndOfStream from None


async def _end(child: asyncio.SubprocessTransport, exited: asyncio.Event) -> None:
    pipe = child.get_pipe_transport(0)
    if pipe is not None:
        pipe.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            _signal_group(child.get_pid(), number)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await exited.wait()
                return


def _signal_group(leader: int, number: signal.Signals) -> None:
    # The program leads a group of its own, which holds what it started, too.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


class _ChildOutput(asyncio.SubprocessProtocol):
    """Reads lines; those that wait to be handled are bounded by the allowance."""

    def __init__(self, send: Any, allowance: Allowance) -> None:
        self.exited = asyncio.Event()
        self._send = send
        self._allowance = allowance
        self._rest = bytearray()
        self._child: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._child = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if not self._allowance.take(octets=len(data)):
            self._stop()
            return
        self._rest += data
        if b"\n" in data:
            *lines, rest = self._rest.split(b"\n")
            self._rest = rest
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                for line in filter(None, lines):
                    self._send.send_nowait(line)
        if len(self._rest) > MESSAGE_BYTES:
            self._allowance.fail(SearchResult.BAD_RESPONSE, "the server sent a message that is too large")
            self._stop()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._send.close()

    def process_exited(self) -> None:
        self.exited.set()

    def _stop(self) -> None:
        assert self._child is not None
        with suppress(ProcessLookupError):
            self._child.kill()
        self._send.close()


class _ChildInput:
    """The write stream: never waits, and gives a program up that does not read."""

    def __init__(self, pipe: asyncio.WriteTransport, allowance: Allowance) -> None:
        self._pipe = pipe
        self._allowance = allowance

    async def send(self, item: Any) -> None:
        if self._pipe.is_closing():
            raise anyio.BrokenResourceError
        self._pipe.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        if self._pipe.get_write_buffer_size() > _MOST_UNREAD:
            self._allowance.fail(SearchResult.UNAVAILABLE, "the server does not read what it is sent")

    async def aclose(self) -> None:
        self._pipe.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

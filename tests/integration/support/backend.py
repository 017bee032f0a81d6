"""A backend that answers with exactly the bytes that a test scripts: odd framing and half bodies included."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Received:
    """One request as the backend saw it; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Raw:
    """Bytes to send, one write each, with a pause before each further write; then the connection is closed or kept."""

    writes: list[bytes]
    pause_s: float = 0.0
    close: bool = False


def http(
    body: bytes | str,
    *,
    status: str = "200 OK",
    content_type: str | None = "application/json",
    headers: dict[str, str] | None = None,
    delay_s: float = 0.0,
) -> Raw:
    """A whole, well-framed response."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(data)}"]
    if content_type is not None:
        lines.append(f"content-type: {content_type}")
    lines += [f"{key}: {value}" for key, value in (headers or {}).items()]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    return Raw([b"", head + data], pause_s=delay_s) if delay_s else Raw([head + data])


def completion(*texts: str | None, **fields: Any) -> dict[str, Any]:
    """A chat completion with one choice a text; further top-level fields as given."""
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "scripted-model",
        "choices": [
            {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for i, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
        **fields,
    }


def json_reply(value: Any, **options: Any) -> Raw:
    """A JSON response."""
    return http(json.dumps(value, ensure_ascii=False), **options)


@dataclass(slots=True)
class Backend:
    """Runs in a thread of its own; ``reply`` makes the response for each request."""

    reply: Callable[[Received], Raw] = lambda _request: json_reply(completion("Hello."))
    received: list[Received] = field(default_factory=list)
    aborted: list[float] = field(default_factory=list)
    """When a client closed its connection while an answer was being waited for (``time.monotonic``)."""
    port: int = 0
    """Where it listens; 0 for a free one."""
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen."""
        started = threading.Event()

        def run() -> None:
            asyncio.set_event_loop(self._loop)
            server = self._loop.run_until_complete(
                asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=1 << 26)
            )
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            self._loop.run_forever()
            server.close()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert started.wait(5)

    def stop(self) -> None:
        """Close everything."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        assert self._thread is not None
        self._thread.join(5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ")
                headers = {
                    k.strip().lower(): v.strip()
                    for k, _, v in (line.partition(":") for line in head[1:] if line)
                }
                body = await self._body(reader, headers)
                request = Received(method, path, headers, body)
                self.received.append(request)
                raw = self.reply(request)
                for number, data in enumerate(raw.writes):
                    if number and not await self._pause(reader, raw.pause_s):
                        self.aborted.append(time.monotonic())
                        return
                    writer.write(data)
                    await writer.drain()
                if raw.close:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _pause(self, reader: asyncio.StreamReader, seconds: float) -> bool:
        """Wait; false where the client closed the connection meanwhile. Nobody sends a second request so early."""
        try:
            async with asyncio.timeout(seconds):
                while not reader.at_eof():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            return True
        return False

    async def _body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if "content-length" in headers:
            return await reader.readexactly(int(headers["content-length"]))
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            while size := int((await reader.readline()).strip(), 16):
                body += await reader.readexactly(size)
                await reader.readexactly(2)
            await reader.readline()
        return body

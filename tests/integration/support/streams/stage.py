"""A stream played step by step: the backend writes when the test says so, the client tells what it has got by then."""

from __future__ import annotations

import http.client
import json
import re
import socket
import struct
import threading
import time
from asyncio import StreamReader
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self

from tests.integration.support.backend import Backend, Raw, Received
from tests.integration.support.stack import Stack
from tests.integration.support.streams.streams import Framing, sse
from truthlens.core.net import Address

PATIENCE_S = 60.0
# A pause that ends only with a step.
_STEP_S = 3600.0
_LINE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")


class Scene:
    """One streamed answer: its head leaves at once, then a frame for each step; a last step ends the body.

    It is the ``reply`` of a ``SteppedBackend``. With ``broken_off`` the connection ends behind the last frame instead.
    """

    def __init__(self, frames: Sequence[bytes], *, broken_off: bool = False, **options: Any) -> None:
        self.frames = list(frames)
        self.steps = threading.Semaphore(0)
        raw = sse(frames, pause_s=_STEP_S, **options)
        if broken_off:
            assert options.get("framing", Framing.CHUNKED) is Framing.CHUNKED
            raw.writes.pop()
            raw.close = True
        self._raw = raw

    @property
    def written(self) -> bytes:
        """All that the backend has to say."""
        return b"".join(self.frames)

    def step(self, count: int = 1) -> None:
        """Let the next ``count`` frames go."""
        self.steps.release(count)

    def rest(self) -> None:
        """Let all go that is left."""
        self.steps.release(len(self._raw.writes))

    def __call__(self, _received: Received) -> Raw:
        _scene.set(self)
        return self._raw


# Each connection of a backend is served by a task, and so in a context, of its own.
_scene: ContextVar[Scene] = ContextVar("_scene")


class SteppedBackend(Backend):
    """A backend that also plays scenes, any number at once."""

    async def _pause(self, reader: StreamReader, seconds: float) -> bool:
        if seconds < _STEP_S:
            return await super()._pause(reader, seconds)
        steps = _scene.get().steps
        while not steps.acquire(blocking=False):
            if not await super()._pause(reader, 0.005):
                return False
        return True


class LiveClient:
    """A client that can say what of an answer has come so far; ``broken`` where that ended before its end."""

    def __init__(
        self,
        gateway: Address,
        request: Mapping[str, Any],
        headers: Mapping[str, str],
        *,
        path: str = "/v1/chat/completions",
    ) -> None:
        self._body = bytearray()
        self.broken = False
        self._ended = False
        self._response: http.client.HTTPResponse | None = None
        self._socket = socket.socket()
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect((gateway.host, gateway.port))
        self._connection = http.client.HTTPConnection(gateway.host, gateway.port)
        self._connection.sock = self._socket
        body = json.dumps({"stream": True, **request})
        self._connection.request("POST", path, body, {"content-type": "application/json", **headers})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._response is not None:
            self._response.close()
        self._connection.close()
        self._socket.close()

    @property
    def response(self) -> http.client.HTTPResponse:
        """The head of the answer, once it has come."""
        if self._response is None:
            self._response = self._connection.getresponse()
        return self._response

    @property
    def body(self) -> bytes:
        """What has come of the body."""
        return bytes(self._body)

    @property
    def headers(self) -> dict[str, str]:
        """The answer's headers, names in lower case."""
        return {name.lower(): value for name, value in self.response.getheaders()}

    def says(self, name: str) -> str | None:
        """A header of TruthLens."""
        return self.headers.get(f"x-truthlens-{name}")

    def until(self, expected: bytes) -> bytes:
        """Read until ``expected`` has come; the body so far."""
        while expected not in self._body:
            assert self.more(), f"the answer ended without {expected!r}: {self._body[-300:]!r}"
        return self.body

    def more(self) -> bool:
        """Read something; false where the answer has ended."""
        if self._ended:
            return False
        try:
            data = self.response.read1(1 << 16)
        except (http.client.IncompleteRead, ConnectionError) as error:
            self.broken = True
            data = b""
            self._body += getattr(error, "partial", b"")
        self._body += data
        self._ended = not data
        return bool(data)

    def rest(self) -> bytes:
        """Read to the end; the whole body."""
        while self.more():
            pass
        return self.body

    def leave(self) -> None:
        """Go away at once, without a word."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.__exit__()


@dataclass(slots=True)
class ReadBack:
    """What a body says, by choice; ``verdicts`` are its ``truthlens`` objects, each with its chunk's place."""

    texts: dict[int, str] = field(default_factory=dict)
    finish: dict[int, str] = field(default_factory=dict)
    chunks: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    done: int = 0

    @property
    def verdict(self) -> dict[str, Any]:
        """The only ``truthlens`` object, which stands in the last chunk but for a count of tokens."""
        ((_, verdict),) = self.verdicts
        assert self.verdict_is_last, "chunks follow the verdict"
        return verdict

    @property
    def verdict_is_last(self) -> bool:
        """Whether nothing but a count of tokens follows the verdict."""
        following = self.chunks[self.verdicts[-1][0] + 1 :]
        return all(chunk.get("usage") and not chunk["choices"] for chunk in following)


def read_back(body: bytes) -> ReadBack:
    """What a well-formed stream says to a client that reads it by the API, and by nothing of TruthLens."""
    read = ReadBack()
    for event in re.split(rb"\r\n\r\n|\n\n", body):
        data = b"\n".join(
            line.removeprefix(b"data:").strip() for line in event.splitlines() if line.startswith(b"data:")
        )
        if data == b"[DONE]":
            read.done += 1
        elif data:
            _take(read, json.loads(data))
    return read


def _take(read: ReadBack, chunk: dict[str, Any]) -> None:
    if "truthlens" in chunk:
        read.verdicts.append((len(read.chunks), chunk["truthlens"]))
    read.chunks.append(chunk)
    read.usage = chunk.get("usage") or read.usage
    for choice in chunk.get("choices", ()):
        index = choice["index"]
        text = choice["text"] if "text" in choice else choice["delta"].get("content")
        read.texts[index] = read.texts.get(index, "") + (text or "")
        if choice["finish_reason"] is not None:
            read.finish[index] = choice["finish_reason"]


def metric(stack: Stack, name: str, **labels: str) -> float:
    """The sum of a metric's series that have these labels."""
    total = 0.0
    for line in _get(stack.console, "/metrics").splitlines():
        found = _LINE.fullmatch(line)
        if found and found["name"] == name:
            own = dict(re.findall(r'(\w+)="([^"]*)"', found["labels"] or ""))
            if labels.items() <= own.items():
                total += float(found["value"])
    return total


def envoy_stats(stack: Stack) -> dict[str, int]:
    """Envoy's counters of the ext_proc filter, the first part of their names left out, and of its two clusters."""
    path = "/stats?format=json&filter=ext_proc|cluster"
    stats = json.loads(_get(stack.admin, path))["stats"]
    return {
        each["name"].removeprefix("http.llm.ext_proc."): each["value"] for each in stats if "name" in each
    }


def _get(address: Address, path: str) -> str:
    """A small page; the usual client takes ten times as long to begin with."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until ``condition()`` holds; a generous bound that only a fault reaches."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S} s"
        time.sleep(0.002)

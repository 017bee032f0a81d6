"""Reads streams over raw sockets and notes when every byte came.

What the bytes say is worked out once the load is over.

Deliberately no HTTP library: what a client costs is the same on every path, and small.
"""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import cast

END = b"0\r\n\r\n"
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream that was read to its end; times in nanoseconds of one clock (``time.monotonic_ns``).

    ``written`` and ``received`` have one entry a token. ``done`` is when the done marker came. ``status`` is
    the verdict's, with its reason where it is not checked; that of the headers where the stream had no verdict, ``""`` where
    these had none. ``size`` counts the bytes of the body.
    """

    started: int
    written: tuple[int, ...]
    received: tuple[int, ...]
    done: int
    status: str
    size: int

    @property
    def first_token_ms(self) -> float:
        """From the request to the first token."""
        return (self.received[0] - self.started) / 1e6

    @property
    def first_written_ms(self) -> float:
        """From the request to the backend's writing of the first token; its own wait is part of it."""
        return (self.written[0] - self.started) / 1e6

    @property
    def gaps_ms(self) -> list[float]:
        """Between tokens, as they came."""
        return [(after - before) / 1e6 for before, after in pairwise(self.received)]

    @property
    def delays_ms(self) -> list[float]:
        """From the backend's writing of a token to its arrival."""
        return [(came - sent) / 1e6 for sent, came in zip(self.written, self.received, strict=True)]

    @property
    def ending_ms(self) -> float:
        """From the backend's writing of the last token to the arrival of the done marker."""
        return (self.done - self.written[-1]) / 1e6


class Lane(asyncio.Protocol):
    """One keep-alive connection, on which streams are asked for one after the other."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._ended: asyncio.Future[None] | None = None
        self._parts: list[tuple[int, bytes]] = []
        self._came = 0
        self._size: int | None = None
        self._tail = b""

    @classmethod
    async def open(cls, host: str, port: int) -> Lane:
        """Return a connected lane."""
        _, lane = await asyncio.get_running_loop().create_connection(cls, host, port)
        return lane

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        """End an answer under way with an error."""
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(error or ConnectionError("the gateway closed the connection"))

    def data_received(self, data: bytes) -> None:
        """Note the time."""
        self._parts.append((time.monotonic_ns(), data))
        if self._came == 0:
            self._size = _announced(data)
        self._came += len(data)
        self._tail = (self._tail + data)[-len(END) :]
        whole = self._tail == END if self._size is None else self._came >= self._size
        if whole and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    async def ask(self, request: bytes) -> Stream:
        """Return the stream that answers ``request``, a whole HTTP/1.1 request.

        Raises:
            RuntimeError: the answer is no stream, is not whole, or does not end.
        """
        assert self._transport is not None
        self._parts, self._came, self._tail = [], 0, b""
        self._ended = asyncio.get_running_loop().create_future()
        started = time.monotonic_ns()
        self._transport.write(request)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._ended
        except TimeoutError:
            head = b"".join(data for _, data in self._parts)[:300]
            raise RuntimeError(f"no end of the answer that begins {head!r}") from None
        return _read(started, self._parts)

    def close(self) -> None:
        """Close the connection."""
        assert self._transport is not None
        self._transport.close()


def request_bytes(host: str, headers: dict[str, str], body: dict[str, object]) -> bytes:
    """Return a POST of ``body`` to chat completions."""
    data = json.dumps({**body, "stream": True}).encode()
    lines = ["POST /v1/chat/completions HTTP/1.1", f"host: {host}", "content-type: application/json"]
    lines += [f"content-length: {len(data)}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def _announced(start: bytes) -> int | None:
    """Return the bytes of an answer that gives its length; its first bytes hold the whole head."""
    length = _headers(start).get("content-length")
    return None if length is None else start.index(b"\r\n\r\n") + 4 + int(length)


def _headers(start: bytes) -> dict[str, str]:
    lines = start.partition(b"\r\n\r\n")[0].decode("latin-1").lower().split("\r\n")[1:]
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _said(status: str, reason: str | None) -> str:
    return status if not reason or status == "checked" else f"{status} {reason}"


def _read(started: int, parts: Sequence[tuple[int, bytes]]) -> Stream:
    raw = b"".join(data for _, data in parts)
    ends = list(accumulate(len(data) for _, data in parts))
    if not raw.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the answer is no stream: {raw[:300]!r}")
    body, places = _body(raw)
    written: list[int] = []
    received: list[int] = []
    headers = _headers(raw)
    status = _said(headers.get("x-truthlens-status", ""), headers.get("x-truthlens-reason"))
    done, start = 0, 0
    while (end := body.find(b"\n\n", start)) >= 0:
        frame = body[start:end]
        came = parts[bisect_left(ends, _place(places, end + 1) + 1)][0]
        start = end + 2
        if frame == b"data: [DONE]":
            done = came
            continue
        value = json.loads(frame.removeprefix(b"data: "))
        if "truthlens" in value:
            status = _said(value["truthlens"]["status"], value["truthlens"].get("reason"))
        elif value["choices"][0]["delta"].get("content"):
            received.append(came)
        written = value.get("sent", written)
    if not done or not received or len(written) != len(received):
        raise RuntimeError(f"the stream is not whole: {len(received)} tokens, it ends {body[-100:]!r}")
    return Stream(started, tuple(written), tuple(received), done, status, len(body))


def _body(raw: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the body, and for each HTTP chunk where it begins in the body and in ``raw``."""
    place = raw.index(b"\r\n\r\n") + 4
    if _announced(raw) is not None:
        return raw[place:], [(0, place)]
    body = bytearray()
    places: list[tuple[int, int]] = []
    while True:
        line = raw.index(b"\r\n", place)
        size = int(raw[place:line], 16)
        if not size:
            return bytes(body), places
        places.append((len(body), line + 2))
        body += raw[line + 2 : line + 2 + size]
        place = line + 2 + size + 2


def _place(places: Sequence[tuple[int, int]], offset: int) -> int:
    """Return where byte ``offset`` of the body is in the raw answer."""
    begin, raw = places[bisect_left(places, (offset + 1, 0)) - 1]
    return raw + offset - begin

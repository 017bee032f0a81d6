"""The clients of the soak: one exchange over a connection of its own, and all that came back, down to the last byte."""

from __future__ import annotations

import asyncio
import gzip
import time
from dataclasses import dataclass, field

from bench.soak.exchanges import DETECT, Exchange
from tests.integration.support.chaos.stream_rounds import Got, parsed
from truthlens.core.net import Address

PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one exchange: ``got`` where an answer came, ``left`` where its client went, ``error`` what broke it."""

    began: float
    seconds: float
    got: Got | None = None
    left: bool = False
    hung: bool = False
    error: str = ""
    said: dict[str, str] = field(default_factory=dict)
    """The headers of the verdict, by what follows ``x-truthlens-``."""

    @property
    def body(self) -> bytes:
        """The bytes of the answer, without the encoding that it says it has."""
        if self.got is None:
            return b""
        zipped = self.got.headers.get("content-encoding") == "gzip" and not self.got.broken
        return gzip.decompress(self.got.body) if zipped else self.got.body


async def ask(exchange: Exchange, gateway: Address, console: Address) -> Outcome:
    """Make one exchange."""
    target = console if exchange.path == DETECT else gateway
    request = (
        f"POST {exchange.path} HTTP/1.1\r\nhost: {target}\r\ncontent-type: application/json\r\nconnection: close\r\n"
        f"{exchange.head}content-length: {len(exchange.body)}\r\n\r\n"
    ).encode() + exchange.body
    began, clock = time.time(), time.monotonic()
    raw = bytearray()
    left, hung, error = False, False, ""
    try:
        async with asyncio.timeout(PATIENCE_S):
            left = await _talk(target, request, exchange.leaves, raw)
    except TimeoutError:
        hung = True
    except OSError as problem:
        error = type(problem).__name__
    seconds = time.monotonic() - clock
    if left or hung:
        return Outcome(began, seconds, left=left, hung=hung)
    if b"\r\n\r\n" not in raw:
        return Outcome(began, seconds, error=error or "no answer")
    try:
        got = parsed(exchange.plan, bytes(raw))
    except (AssertionError, ValueError) as problem:
        return Outcome(began, seconds, error=f"framing: {problem}")
    start = "x-truthlens-"
    said = {name.removeprefix(start): value for name, value in got.headers.items() if name.startswith(start)}
    return Outcome(began, seconds, got=got, said=said)


async def _talk(target: Address, request: bytes, leaves: int | None, raw: bytearray) -> bool:
    """Send a request and read into ``raw`` up to the end; true where the client went before."""
    reader, writer = await asyncio.open_connection(target.host, target.port, limit=1 << 20)
    try:
        if leaves == -1:
            writer.write(request[: len(request) // 2])
            await writer.drain()
            return True
        writer.write(request)
        await writer.drain()
        while (leaves is None or len(raw) < leaves) and (data := await reader.read(1 << 16)):
            raw += data
        return leaves is not None
    finally:
        writer.transport.abort()

"""A client that counts bytes: whether exactly one whole answer came, and nothing after it."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from truthlens.core.net import Address

PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Got:
    """One answer as it came over the wire; ``surplus`` is what came after its end."""

    status: int
    headers: dict[str, str]
    body: bytes
    surplus: bytes
    seconds: float

    @property
    def json(self) -> dict[str, Any]:
        """The body."""
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed

    @property
    def text(self) -> str:
        """The first choice's text."""
        content: str = self.json["choices"][0]["message"]["content"]
        return content

    def says(self, name: str) -> str:
        """A header of TruthLens, ``""`` where it is absent."""
        return self.headers.get(f"x-truthlens-{name}", "")


async def post(
    gateway: Address,
    body: Any,
    *,
    plan: str = "",
    path: str = "/v1/chat/completions",
    leave_s: float | None = None,
) -> Got | None:
    """What the gateway answers; ``None`` where the client left after ``leave_s`` seconds, before the answer came."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\nconnection: close\r\n"
        f"x-plan: {plan}\r\ncontent-length: {len(content)}\r\n\r\n"
    ).encode()
    began = time.monotonic()
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    try:
        async with asyncio.timeout(PATIENCE_S if leave_s is None else leave_s):
            writer.write(head + content)
            await writer.drain()
            raw = await reader.read(-1)
    except TimeoutError:
        assert leave_s is not None, "no answer at all"
        return None
    finally:
        writer.transport.abort()
    return _parsed(raw, time.monotonic() - began)


def _parsed(raw: bytes, seconds: float) -> Got:
    head, _, rest = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        assert name.lower() not in headers, f"{name} twice"
        headers[name.lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        body, surplus = _dechunked(rest)
    else:
        length = int(headers["content-length"])
        assert len(rest) >= length, f"{len(rest)} of {length} bytes"
        body, surplus = rest[:length], rest[length:]
    return Got(int(lines[0].split(" ")[1]), headers, body, surplus, seconds)


def _dechunked(rest: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        size, found, rest = rest.partition(b"\r\n")
        assert found, "a chunk is missing"
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
        if length == 0:
            return body, rest

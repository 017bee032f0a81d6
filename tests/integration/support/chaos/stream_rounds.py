"""Rounds of many streams at once, some of which are left by their clients."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

from tests.integration.support.chaos.backend import case_request
from tests.integration.support.stack import Stack
from tests.integration.support.streams.stage import envoy_stats, metric, until
from tests.integration.support.streams.streams import PATHS
from truthlens.core.records.enums import Endpoint

PATIENCE_S = 120.0
# Names of plans in ``test_streams.PLANS``.
WAYS = ("observe", "mark", "withhold", "stop", "block", "hasty", "narrow", "buffer")


@dataclass(frozen=True, slots=True)
class Got:
    """What one client got; ``broken`` where its body ended before its end."""

    plan: str
    status: int
    headers: dict[str, str]
    body: bytes
    broken: bool


@dataclass
class Round:
    """What came of one round, by case."""

    got: dict[int, Got] = field(default_factory=dict)
    left: int = 0


async def run_round(
    stack: Stack,
    *,
    seed: int,
    first: int,
    clients: int,
    each: int,
    leaving: float,
    over: asyncio.Event | None = None,
) -> Round:
    """``clients`` at once, each of which asks ``each`` times, or with ``over`` until that is set.

    A share ``leaving`` of the streams is left somewhere on the way. Cases are numbered from ``first``; plan, request and
    leave of a case depend on ``seed`` and its number alone.
    """
    done = Round()

    async def client(place: int) -> None:
        for turn in range(each):
            number = first + place * each + turn
            got = await _ask(stack, random.Random(f"{seed} client {number}"), number, leaving)
            if got is None:
                done.left += 1
            else:
                done.got[number] = got
            if over is not None and over.is_set():
                return

    async with asyncio.TaskGroup() as group:
        for place in range(clients):
            group.create_task(client(place))
    return done


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """What the client of one case sends; ``head`` are the headers that differ between cases."""

    plan: str
    path: str
    head: str
    content: bytes


def stream_request(rng: random.Random, number: int) -> StreamRequest:
    """The request of a case."""
    plan = WAYS[number % len(WAYS)]
    fields: dict[str, Any] = {"stream": True}
    if rng.random() < 0.15:
        fields["n"] = 2
    if rng.random() < 0.3:
        fields["stream_options"] = {"include_usage": True}
    endpoint = Endpoint.COMPLETIONS if rng.random() < 0.2 else Endpoint.CHAT
    body = case_request(number, **fields)
    if endpoint is Endpoint.COMPLETIONS:
        body["prompt"] = body.pop("messages")[0]["content"]
    details = "x-truthlens-details: spans\r\n" if rng.random() < 0.5 else ""
    return StreamRequest(plan, PATHS[endpoint], f"x-domain: {plan}\r\n{details}", json.dumps(body).encode())


async def _ask(stack: Stack, rng: random.Random, number: int, leaving: float) -> Got | None:
    asked = stream_request(rng, number)
    head = (
        f"POST {asked.path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\nconnection: close\r\n"
        f"{asked.head}content-length: {len(asked.content)}\r\n\r\n"
    ).encode()
    most = rng.randrange(0, 4000) if rng.random() < leaving else None
    await asyncio.sleep(rng.uniform(0.0, 0.1))
    reader, writer = await asyncio.open_connection(stack.listen.host, stack.listen.port, limit=1 << 20)
    raw = bytearray()
    try:
        async with asyncio.timeout(PATIENCE_S):
            writer.write(head + asked.content)
            await writer.drain()
            while data := await reader.read(1 << 16):
                raw += data
                if most is not None and len(raw) > most:
                    return None
    except ConnectionError:
        pass
    except TimeoutError:
        raise AssertionError(f"case {number}, {asked.plan}: no end; so far {bytes(raw[-600:])!r}") from None
    finally:
        writer.transport.abort()
    return None if most is not None else parsed(asked.plan, bytes(raw))


def parsed(plan: str, raw: bytes) -> Got:
    """What came over the wire up to the end of its connection."""
    head, found, rest = raw.partition(b"\r\n\r\n")
    assert found, f"no answer at all: {raw!r}"
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    status = int(lines[0].split(" ")[1])
    if headers.get("transfer-encoding") == "chunked":
        body, whole = _dechunked(rest)
    elif "content-length" in headers:
        length = int(headers["content-length"])
        assert len(rest) <= length, "bytes behind the end"
        body, whole = rest, len(rest) == length
    else:
        body, whole = rest, True
    return Got(plan, status, headers, body, not whole)


def _dechunked(rest: bytes) -> tuple[bytes, bool]:
    body = bytearray()
    while True:
        size, found, rest = rest.partition(b"\r\n")
        if not found:
            return bytes(body), False
        length = int(size, 16)
        body += rest[:length]
        if length == 0:
            assert rest == b"\r\n", "bytes behind the end"
            return bytes(body), True
        rest = rest[length + 2 :]


def settle(stack: Stack) -> None:
    """Wait until nothing of a round is left: no stream, no held byte, no answer, no stream between Envoy and us."""
    for name in ("truthlens_streams", "truthlens_inflight", "truthlens_held_bytes"):
        until(lambda name=name: metric(stack, name) == 0, f"{name} back to 0")
    until(lambda: envoy_stats(stack)["cluster.truthlens.upstream_rq_active"] == 0, "no ext_proc stream left")
    until(
        lambda: envoy_stats(stack)["cluster.llm_backend.upstream_rq_active"] == 0,
        "no call left at the backend",
    )

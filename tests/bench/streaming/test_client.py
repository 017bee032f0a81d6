"""The bench's own backend and client: what was written is what is read, and when."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left
from collections.abc import AsyncIterator
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.streaming.backend import Connection
from bench.streaming.client import Lane, Stream, _read, request_bytes
from bench.streaming.report import figures, lost, spread
from bench.streaming.texts import REQUEST

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def frame(value: object) -> bytes:
    return f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode()


def token(number: int) -> bytes:
    return frame({"choices": [{"delta": {"content": f"word{number} "}}]})


FRAMES = [
    *[token(number) for number in range(6)],
    frame({"choices": [{"delta": {}, "finish_reason": "stop"}], "sent": [*range(6)]}),
    frame({"choices": [], "truthlens": {"status": "checked"}}),
    frame("[DONE]"),
]
BODY = b"".join(FRAMES)


@given(chunks=st.lists(st.integers(1, 400), min_size=1), parts=st.lists(st.integers(1, 300), min_size=1))
def test_a_frame_has_come_with_its_last_byte(chunks: list[int], parts: list[int]) -> None:
    """However a stream is cut into HTTP chunks, and these into arrivals."""
    raw = HEAD + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in cut(BODY, chunks)) + b"0\r\n\r\n"
    arrivals = list(enumerate(cut(raw, parts)))
    stream = _read(-1, arrivals)
    assert stream.written == tuple(range(6))
    assert stream.status == "checked"
    assert stream.size == len(BODY)
    ends = list(accumulate(len(part) for _, part in arrivals))

    def first_seen(text: bytes) -> int:
        """The arrival with which ``text`` was there."""
        return bisect_left(ends, True, key=lambda end: text in unchunked(raw[:end]))

    assert stream.received == tuple(first_seen(token(number)) for number in range(6))
    assert stream.done == first_seen(FRAMES[-1])
    assert all(before <= after for before, after in pairwise(stream.received))


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    found, place = [], 0
    while place < len(data):
        size = sizes[len(found) % len(sizes)]
        found.append(data[place : place + size])
        place += size
    return found


def unchunked(raw: bytes) -> bytes:
    """The body as far as ``raw``, which may end anywhere, has it."""
    _, _, rest = raw.partition(b"\r\n\r\n")
    body = b""
    while b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return body


@pytest.mark.parametrize(
    "body", [BODY.removesuffix(frame("[DONE]")), frame("[DONE]")], ids=["no end", "no token"]
)
def test_a_stream_that_is_not_whole_is_no_figure(body: bytes) -> None:
    raw = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    with pytest.raises(RuntimeError, match="not whole"):
        _read(0, [(1, raw)])


def test_another_answer_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="503"):
        _read(0, [(1, b"HTTP/1.1 503 Service Unavailable\r\n\r\n")])


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """The bench's backend, in this process."""
    async with await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_streams_follow_each_other_on_one_connection(port: int) -> None:
    """As many tokens as asked for, each with the time of its writing."""
    lane = await Lane.open("127.0.0.1", port)
    for tokens in (5, 90):
        timing = json.dumps({"tokens": tokens, "interval_s": 0.0, "first_s": 0.0})
        stream = await lane.ask(request_bytes("bench", {"x-bench": timing}, REQUEST))
        assert len(stream.received) == tokens
        assert stream.status == ""
        times = [(stream.started, stream.written[0]), (stream.written[-1], stream.done)]
        assert all(
            before <= after for before, after in [*times, *zip(stream.written, stream.received, strict=True)]
        )
    lane.close()


async def test_a_stream_may_stall_before_its_end(port: int) -> None:
    """Nothing of the finish is written while it does."""
    lane = await Lane.open("127.0.0.1", port)
    timing = json.dumps({"tokens": 2, "interval_s": 0.0, "first_s": 0.0, "stall_s": 0.05, "endless": True})
    stream = await lane.ask(request_bytes("bench", {"x-bench": timing}, REQUEST))
    assert stream.received[-1] < stream.done
    lane.close()


@pytest.mark.parametrize(
    ("status", "refused", "missing"),
    [
        ("checked", 0, 0),
        ("unchecked overloaded", 1, 0),
        ("unchecked timeout", 1, 0),
        ("unchecked unavailable", 0, 1),
        ("pending", 0, 1),
        ("", 0, 1),
    ],
)
def test_what_has_no_verdict_of_ours_is_lost(status: str, refused: int, missing: int) -> None:
    """A stream that must be checked, and an answer of the other client that left with 200."""
    stream = Stream(0, (10_000_000, 20_000_000), (11_000_000, 22_000_000), 23_000_000, status, 100)
    row = figures([stream], checked=True)
    assert (row["refused"], row["lost"]) == (refused, missing)
    assert figures([stream], checked=False)["lost"] == 0
    assert row["token_delay_ms"]["p50"] == 1.5
    others = {"ends": {"200 checked": 3, "200 unchecked unavailable": 2, "424 unchecked overloaded": 1}}
    paths = {"observe": {**row, "others": others}, "bare echo": {**row, "lost": 0, "others": others}}
    assert lost({"tree": {"loads": [{"paths": paths}]}}) == missing + 2


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ("", ""),
        ("x-truthlens-status: pending\r\n", "pending"),
        (
            "X-TruthLens-Status: unchecked\r\nX-TruthLens-Reason: unavailable\r\n",
            "unchecked unavailable",
        ),
    ],
)
def test_a_stream_without_a_verdict_says_what_its_headers_do(headers: str, said: str) -> None:
    body = b"".join(FRAMES[:-2]) + FRAMES[-1]
    head = f"HTTP/1.1 200 OK\r\n{headers}content-length: {len(body)}\r\n\r\n"
    assert _read(0, [(1, head.encode() + body)]).status == said


def test_a_spread_has_the_middle_and_the_far_end() -> None:
    assert spread([float(value) for value in range(1, 201)]) == {"p50": 100.5, "p99": 199.0, "max": 200.0}

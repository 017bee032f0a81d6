"""Rounds of many streams at once whose backends misbehave, and what has to hold of every one of them."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.integration import streams
from tests.integration.backend import Backend, Raw, Received
from tests.integration.chaos_backend import case_name, case_request
from tests.integration.stack import Stack
from tests.integration.stream_stage import envoy_stats, metric, read_back, until
from tests.integration.streams import DONE, PATHS, Framing, answer, chunk, sse
from tests.integration.test_streams import MARK, NOTICE, PLANS, WARNING
from truthlens.core.records import Endpoint

PATIENCE_S = 120.0
WAYS = ("observe", "mark", "withhold", "stop", "block", "hasty", "narrow", "buffer")
_CASE = re.compile(r"\bC-(\d+)\b")
_EVENT_END = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")

assert set(WAYS) <= PLANS.keys()


# --- the backend ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """What the backend says to one case: its frames, and whether its connection breaks before their end is told."""

    frames: list[bytes]
    raw: Raw
    breaks: bool = False
    behaviour: str = "good"

    @property
    def body(self) -> bytes:
        """All bytes."""
        return b"".join(self.frames)


REFUSED = Written([], Raw([]), behaviour="refused")
"""Of a case that the backend has not seen."""


def text_of(rng: random.Random, number: int) -> str:
    """An answer in which every sentence is another one, so that none can be taken for another; some are wrong."""
    return " ".join(
        f"Fee {place} of {case_name(number)} is {12 if rng.random() < 0.7 else 60 + place} dollars."
        for place in range(rng.randint(1, 8))
    )


def _frames(rng: random.Random, number: int, endpoint: Endpoint, choices: int, usage: bool) -> list[bytes]:
    texts = [text_of(rng, number) for _ in range(choices)]
    return answer(*texts, endpoint=endpoint, usage=usage)


Behaviour = Callable[[random.Random, list[bytes]], Written]


def _sent(frames: list[bytes], **options: Any) -> Written:
    return Written(frames, sse(frames, **options))


def _stall(rng: random.Random, frames: list[bytes]) -> Written:
    """Silence in the middle, of a frame or between two."""
    body = b"".join(frames)
    cut = rng.randrange(1, len(body))
    return Written(frames, sse([body[:cut], body[cut:]], pause_s=rng.uniform(0.2, 1.5)))


def _reset(rng: random.Random, frames: list[bytes]) -> Written:
    body = b"".join(frames)
    cut = rng.randrange(1, len(body))
    raw = sse([body[:cut]], pause_s=0.02)
    raw.writes.pop()
    raw.close = True
    return Written([body[:cut]], raw, breaks=True)


def _garbage(rng: random.Random, frames: list[bytes]) -> Written:
    rubbish = [
        b"data: {oops\n\n",
        b"data: []\n\n",
        b"data: \xff\xfe\n\n",
        b"event: what\nid: 7\nretry: 3\n\n",
        b": " + rng.randbytes(40).hex().encode() + b"\n\n",
        b"data\n\n",
        b'data: {"choices": 7}\n\n',
        b'data: {"choices": [{"index": 0, "delta": null, "finish_reason": null}]}\n\n',
    ]
    mixed = list(frames)
    for _ in range(4):
        mixed.insert(rng.randrange(len(mixed)), rng.choice(rubbish))
    return _sent(mixed)


def _huge(rng: random.Random, frames: list[bytes]) -> Written:
    """One frame of two megabytes, twice what a frame may have."""
    delta = {"index": 0, "delta": {"reasoning_content": "hm " * 700_000}, "finish_reason": None}
    place = rng.randrange(1, len(frames))
    return _sent([*frames[:place], chunk([delta]), *frames[place:]], cuts=(200_000,))


def _blank(rng: random.Random, frames: list[bytes]) -> Written:
    """White space without end, before the answer."""
    blank = [rng.choice([b"\n\n", b": \n\n", b"\r\n\r\n"]) for _ in range(300)]
    return _sent([*blank, *frames])


def _error(rng: random.Random, frames: list[bytes]) -> Written:
    error = b'data: {"error": {"message": "out of memory", "code": 500}}\n\n'
    return _sent([*frames[: rng.randrange(len(frames))], error, DONE])


def _trailing(rng: random.Random, frames: list[bytes]) -> Written:
    """Who reads on behind the marker finds a comment, the marker again, or nothing that can be read."""
    more = [b": bye\n\n", DONE, b"data: bye\n\n", b"half a li"]
    return _sent([*frames, *rng.sample(more[:3], 2), *rng.sample(more[3:], rng.randint(0, 1))])


def _half_frame(rng: random.Random, frames: list[bytes]) -> Written:
    """The body ends as if it were whole, in the middle of a frame."""
    place = rng.randrange(1, len(frames))
    return _sent([*frames[:place], frames[place][: rng.randrange(1, len(frames[place]))]])


BEHAVIOURS: dict[str, Behaviour] = {
    "good": lambda _rng, frames: _sent(frames),
    "burst": lambda _rng, frames: _sent(frames, cuts=(1 << 24,)),
    "drip": lambda rng, frames: _sent(frames, pause_s=rng.uniform(0.001, 0.02)),
    "tiny": lambda rng, frames: _sent(frames, cuts=(rng.randint(1, 5), 40), pause_s=0.0),
    "odd": lambda rng, frames: _sent(
        frames, cuts=tuple(rng.randint(1, 400) for _ in range(5)), pause_s=0.001
    ),
    "length": lambda _rng, frames: _sent(frames, framing=Framing.LENGTH),
    "close": lambda _rng, frames: _sent(frames, framing=Framing.CLOSE),
    "crlf": lambda _rng, frames: _sent(streams.with_newlines(frames, b"\r\n"), pause_s=0.001),
    "comments": lambda _rng, frames: _sent(streams.with_comments(frames)),
    "stall": _stall,
    "reset": _reset,
    "garbage": _garbage,
    "huge": _huge,
    "blank": _blank,
    "error": _error,
    "trailing": _trailing,
    "half-frame": _half_frame,
    "no-finish": lambda _rng, frames: _sent([*frames[:-2], DONE]),
    "no-done": lambda _rng, frames: _sent(frames[:-1]),
    "nothing": lambda _rng, _frames: _sent([]),
    "tool-call": lambda _rng, _frames: _sent(streams.tool_call()),
    "reasoning": lambda rng, frames: _sent(
        [frames[0], *streams.reasoning_answer("Hm.", "")[1:-2], *frames[1:]]
    ),
}


class StreamChaosBackend(Backend):
    """Draws a behaviour for every case, the same for the same case; ``answering`` counts answers under way."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.reply = self.draw
        self.written: dict[int, Written] = {}
        self.drawn: Counter[str] = Counter()
        self.answering = 0
        self._seed = seed

    def draw(self, received: Received) -> Raw:
        """The answer to one case; a case asks once."""
        self.received.clear()
        body = json.loads(received.body)
        found = _CASE.search(json.dumps(body))
        assert found is not None
        number = int(found[1])
        rng = random.Random(f"{self._seed} backend {number}")
        endpoint = Endpoint.COMPLETIONS if "prompt" in body else Endpoint.CHAT
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        name = rng.choice(sorted(BEHAVIOURS))
        if endpoint is Endpoint.COMPLETIONS and name in ("tool-call", "reasoning", "huge"):
            name = "good"
        written = BEHAVIOURS[name](rng, _frames(rng, number, endpoint, body.get("n", 1), usage))
        self.written[number] = Written(written.frames, written.raw, written.breaks, name)
        self.drawn[name] += 1
        return written.raw

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.answering += 1
        try:
            await super()._serve(reader, writer)
        finally:
            self.answering -= 1


# --- the clients ----------------------------------------------------------------------------------------------


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


async def _ask(stack: Stack, rng: random.Random, number: int, leaving: float) -> Got | None:
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
    content = json.dumps(body).encode()
    details = "x-truthlens-details: spans\r\n" if rng.random() < 0.5 else ""
    head = (
        f"POST {PATHS[endpoint]} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\nconnection: close\r\n"
        f"x-domain: {plan}\r\n{details}content-length: {len(content)}\r\n\r\n"
    ).encode()
    most = rng.randrange(0, 4000) if rng.random() < leaving else None
    await asyncio.sleep(rng.uniform(0.0, 0.1))
    reader, writer = await asyncio.open_connection(stack.listen.host, stack.listen.port, limit=1 << 20)
    raw = bytearray()
    try:
        async with asyncio.timeout(PATIENCE_S):
            writer.write(head + content)
            await writer.drain()
            while data := await reader.read(1 << 16):
                raw += data
                if most is not None and len(raw) > most:
                    return None
    except ConnectionError:
        pass
    except TimeoutError:
        raise AssertionError(f"case {number}, {plan}: no end; so far {bytes(raw[-600:])!r}") from None
    finally:
        writer.transport.abort()
    return None if most is not None else _parsed(plan, bytes(raw))


def _parsed(plan: str, raw: bytes) -> Got:
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


# --- what has to hold -----------------------------------------------------------------------------------------


def faults_of(
    number: int, got: Got, written: Written, *, killed: bool = False, closed: bool = False
) -> list[str]:
    """What is wrong with one stream; nothing where all that is promised holds.

    Args:
        number: of the case.
        got: what its client got.
        written: what the backend wrote, or would have written.
        killed: whether a sidecar may have died on the way.
        closed: whether Envoy fails closed.
    """
    faults: list[str] = []

    def expect(holds: bool, what: str) -> None:
        if not holds:
            faults.append(f"case {number}, {got.plan}, {written.behaviour}: {what}; body {got.body[-400:]!r}")

    if got.status != 200:
        down = killed and closed and got.status in (503, 504)
        expect(down or (written.breaks and got.status == 502), f"status {got.status}")
        expect(got.broken is False, "an error that is cut off")
        return faults
    expect(got.broken is False or written.breaks or (killed and closed), "broken off")
    if got.plan == "observe":
        _expect_bytes(got, written, expect)
    _expect_texts(got, written, expect, killed=killed)
    return faults


Expect = Callable[[bool, str], None]


def _expect_bytes(got: Got, written: Written, expect: Expect) -> None:
    """The backend's frames in order, with nothing between them but frames of ours; up to where it broke off."""
    ours = 0
    body = written.body
    for event in _events(got.body):
        if body.startswith(event):
            body = body[len(event) :]
        elif event.startswith(b"data:") and (b'"truthlens"' in event or WARNING.encode() in event):
            ours += 1
        else:
            # Half an event, where one of the two ended.
            expect(
                got.broken or body.startswith(event.rstrip(b"\r\n")), f"not the backend's: {event[:200]!r}"
            )
            return
    expect(ours <= 3, f"{ours} frames put in")
    expect(got.broken or written.breaks or not body, f"{len(body)} bytes lost")


def _expect_texts(got: Got, written: Written, expect: Expect, *, killed: bool) -> None:
    sent, read = read_back(_readable(written.body)), read_back(_readable(got.body))
    expect(len(read.verdicts) <= 1, "two verdicts")
    expect(killed or read.done <= max(1, sent.done), "two markers")
    if read.verdicts and not killed:
        expect(read.verdicts[0][0] == len(read.chunks) - 1, "chunks behind the verdict")
    stopped = {index for index, reason in read.finish.items() if reason == "content_filter"}
    expect(not stopped or got.plan in ("stop", "block"), "stopped")
    ended = not got.broken and not written.breaks
    for index in set(sent.texts) | set(read.texts):
        first, last = sent.texts.get(index, ""), read.texts.get(index, "")
        expect(
            _holds(got.plan, first, last, ended=ended, stopped=index in stopped), f"{first!r} became {last!r}"
        )
    if ended and not stopped:
        expect(killed or read.done == sent.done, f"{read.done} markers of {sent.done}")
        expect({**sent.finish, **read.finish} == sent.finish, f"finish {read.finish} of {sent.finish}")
        expect(read.finish.keys() == sent.finish.keys(), "a finish is missing")
        expect(read.usage == sent.usage, "usage is missing")


def _holds(plan: str, first: str, last: str, *, ended: bool, stopped: bool) -> bool:
    """Whether ``last`` is ``first`` as the plan may have changed it: in order, nothing twice, nothing of nobody."""
    bare = last.removesuffix(f"\n\n{WARNING}").removeprefix(f"{WARNING}\n\n")
    if plan == "buffer" and ended:
        return bare == first
    bare = bare.replace(MARK, "")
    place = 0
    gaps = NOTICE in bare
    for piece in bare.split(NOTICE):
        found = first.find(piece.strip(), place)
        if found < 0 or (not gaps and found != place and piece.strip()):
            return False
        place = found + len(piece.strip())
    if plan in ("observe", "mark", "hasty", "narrow") or not gaps:
        return bare == first if ended and not stopped else first.startswith(bare)
    return True


def _readable(body: bytes) -> bytes:
    """The whole events of a body that say something by the API."""
    return b"".join(event for event in _events(body) if _says_something(event))


def _says_something(event: bytes) -> bool:
    if not event.endswith((b"\n\n", b"\r\n\r\n")):
        return False
    if event.strip() == DONE.strip():
        return True
    try:
        chunk = json.loads(event.removeprefix(b"data:"))
        return all("text" in choice or choice["delta"] is not None for choice in chunk["choices"])
    except (ValueError, TypeError, KeyError):
        return False


def _events(body: bytes) -> Sequence[bytes]:
    """The body cut behind each blank line; two blank lines in a row are two events."""
    return [event for event in _EVENT_END.split(body) if event]


def settle(stack: Stack, backend: StreamChaosBackend) -> None:
    """Wait until nothing of a round is left: no stream, no held byte, no answer, no stream between Envoy and us."""
    for name in ("truthlens_streams", "truthlens_inflight", "truthlens_held_bytes"):
        until(lambda name=name: metric(stack, name) == 0, f"{name} back to 0")  # type: ignore[misc]
    until(lambda: envoy_stats(stack)["cluster.truthlens.upstream_rq_active"] == 0, "no ext_proc stream left")
    until(
        lambda: envoy_stats(stack)["cluster.llm_backend.upstream_rq_active"] == 0,
        "no call left at the backend",
    )

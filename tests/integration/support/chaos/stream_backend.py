"""A backend that streams answers and misbehaves by lot: the same lot for the same case, whatever the order."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.integration.support.backend import Backend, Raw, Received
from tests.integration.support.chaos.backend import case_name
from tests.integration.support.streams import streams
from tests.integration.support.streams.streams import DONE, Framing, answer, chunk, sse
from truthlens.core.records.enums import Endpoint

_CASE = re.compile(r"\bC-(\d+)\b")


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


def written_for(seed: int, content: bytes) -> tuple[int, Written]:
    """The number of the case that a request names, and what the backend says to it."""
    body = json.loads(content)
    found = _CASE.search(json.dumps(body))
    assert found is not None
    number = int(found[1])
    rng = random.Random(f"{seed} backend {number}")
    endpoint = Endpoint.COMPLETIONS if "prompt" in body else Endpoint.CHAT
    usage = bool((body.get("stream_options") or {}).get("include_usage"))
    name = rng.choice(sorted(BEHAVIOURS))
    if endpoint is Endpoint.COMPLETIONS and name in ("tool-call", "reasoning", "huge"):
        name = "good"
    written = BEHAVIOURS[name](rng, _frames(rng, number, endpoint, body.get("n", 1), usage))
    return number, replace(written, behaviour=name)


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
        number, written = written_for(self._seed, received.body)
        self.written[number] = written
        self.drawn[written.behaviour] += 1
        return written.raw

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.answering += 1
        try:
            await super()._serve(reader, writer)
        finally:
            self.answering -= 1

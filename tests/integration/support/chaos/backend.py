"""A backend whose models misbehave by lot: the same lot for the same call of the same case, whatever the order.

The client's own call always gets a well-formed first answer that names its case, so that a test can tell whose text
came back; every further call may be late, wrong, huge, cut off or refused.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.integration.support.backend import Backend, Raw, Received, completion, http, json_reply
from tests.integration.support.models import PASSAGES, kind_of

_CASE = re.compile(r"\bC-(\d+)\b")
_MEGABYTE = 1 << 20


def case_name(number: int) -> str:
    """The word that stands in every text of a case, and in no other."""
    return f"C-{number}"


def case_request(number: int, **fields: Any) -> dict[str, Any]:
    """A client's request."""
    evidence = "\n\n".join([*PASSAGES, f"The reference of this request is {case_name(number)}."])
    user = f"<context>\n{evidence}\n</context>\n\nWhat does a wire transfer cost? Name the reference."
    return {"model": "main", "messages": [{"role": "user", "content": user}], **fields}


def first_answer(number: int) -> str:
    """What the model answers to the client of a case; unsupported, but for every fifth one."""
    if number % 5 == 0:
        return good_answer(number)
    return (
        f"The reference is {case_name(number)}. A domestic wire transfer costs {60 + number % 30} dollars plus a"
        " 9 percent security surcharge. An international one costs 40 dollars."
    )


def good_answer(number: int) -> str:
    """What the evidence bears."""
    return (
        f"The reference is {case_name(number)}. A domestic wire transfer costs 12 dollars. An international one costs"
        " 40 dollars."
    )


def _worse_answer(number: int) -> str:
    return (
        f"The reference is {case_name(number)}. A domestic wire transfer costs 900 dollars plus a 30 percent surcharge,"
        " payable in Geneva. Premium customers receive a bonus of 500 dollars."
    )


def framed(text: str, *, length: int | None = None, chunked: bool = False, head: str = "") -> bytes:
    """A completion with ``text`` in one write; with a content-length that may be wrong."""
    body = json.dumps(completion(text)).encode()
    framing = "transfer-encoding: chunked" if chunked else f"content-length: {length or len(body)}"
    start = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{head}{framing}\r\n\r\n".encode()
    return start + (b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body)


def trickle(text: str, pieces: int, pause_s: float, *, complete: bool = True) -> Raw:
    """A chunked answer that comes a few bytes at a time."""
    body = json.dumps(completion(text)).encode()
    size = max(1, len(body) // pieces)
    chunks = [body[i : i + size] for i in range(0, len(body), size)]
    writes = [b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"]
    writes += [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    return Raw([*writes, b"0\r\n\r\n"] if complete else writes[:-1], pause_s=pause_s, close=not complete)


Behaviour = Callable[[random.Random, int], Raw]


def _huge(rng: random.Random, number: int) -> Raw:
    return json_reply(completion(good_answer(number) + " padding" * (rng.randint(2, 6) * _MEGABYTE // 8)))


def _too_huge(_rng: random.Random, number: int) -> Raw:
    # Declared and begun, never finished: what is declared is above what a call may bring.
    return Raw([framed(good_answer(number), length=64 * _MEGABYTE)], close=True)


def _stream(_rng: random.Random, number: int) -> Raw:
    event = json.dumps({"choices": [{"delta": {"content": good_answer(number)}}]})
    return Raw(
        [b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"]
        + [b"%x\r\ndata: %s\n\n\r\n" % (len(event) + 8, event.encode())] * 50,
        pause_s=0.1,
        close=True,
    )


def _gzipped(_rng: random.Random, number: int) -> Raw:
    body = gzip.compress(json.dumps(completion(good_answer(number))).encode())
    return http(body, headers={"content-encoding": "gzip"})


BEHAVIOURS: dict[str, Behaviour] = {
    "good": lambda _rng, number: json_reply(completion(good_answer(number))),
    "late": lambda rng, number: http(
        json.dumps(completion(good_answer(number))), delay_s=rng.uniform(0.1, 3)
    ),
    "never": lambda _rng, number: http(json.dumps(completion(good_answer(number))), delay_s=60),
    "worse": lambda _rng, number: json_reply(completion(_worse_answer(number))),
    "same": lambda _rng, number: json_reply(completion(first_answer(number))),
    "limited": lambda rng, _number: http(
        "{}", status="429 Too Many Requests", headers={"retry-after": rng.choice(["0", "1", "3600", "soon"])}
    ),
    "error": lambda rng, _number: http(
        "{}", status=rng.choice(["500 Oh", "502 No", "503 Busy", "400 Bad", "404 No"])
    ),
    "dropped": lambda _rng, _number: Raw([], close=True),
    "garbage": lambda rng, _number: Raw([rng.randbytes(2000)], close=True),
    "not-json": lambda rng, _number: http(
        rng.choice(["{", "null", "[]", "", '{"choices": [{}]}', "\ufeff{}"])
    ),
    "half": lambda _rng, number: Raw([framed(good_answer(number))[:150]], close=True),
    "too-long-length": lambda _rng, number: Raw([framed(good_answer(number), length=5000)], close=True),
    "too-short-length": lambda _rng, number: Raw([framed(good_answer(number), length=40)]),
    "second-response": lambda _rng, number: Raw(
        [framed(good_answer(number)) + framed("I belong to nobody.")]
    ),
    "huge": _huge,
    "too-huge": _too_huge,
    "trickle": lambda _rng, number: trickle(good_answer(number), 12, 0.05),
    "endless-trickle": lambda _rng, number: trickle(good_answer(number), 400, 0.2),
    "half-trickle": lambda _rng, number: trickle(good_answer(number), 10, 0.05, complete=False),
    "chunked": lambda _rng, number: Raw([framed(good_answer(number), chunked=True)]),
    "stream": _stream,
    "gzipped": _gzipped,
    "html": lambda _rng, _number: http("<html>busy</html>", content_type="text/html"),
    "empty": lambda _rng, _number: json_reply(completion("  ")),
}


class ChaosBackend(Backend):
    """Draws a behaviour for every call but the clients' own; ``answering`` counts calls that are not yet answered."""

    def __init__(self, seed: int, *, usual: float = 0.35) -> None:
        super().__init__()
        self.reply = self.draw
        self.drawn: Counter[str] = Counter()
        self.answering = 0
        self.behaviours = BEHAVIOURS
        self._seed = seed
        self.usual = usual
        self._turns: Counter[tuple[int, str, str]] = Counter()
        self._turns_lock = threading.Lock()

    def draw(self, received: Received) -> Raw:
        """The answer to one call."""
        self.received.clear()  # megabytes of requests are of no use here
        body = json.loads(received.body)
        found = _CASE.search(json.dumps(body))
        number = int(found[1]) if found else 0
        kind = kind_of(body)
        if (body["model"], kind) == ("main", "answer"):
            return json_reply(completion(*[first_answer(number)] * body.get("n", 1), model="main"))
        key = (number, body["model"], kind)
        with self._turns_lock:
            self._turns[key] += 1
            turn = self._turns[key]
        rng = random.Random(f"{self._seed} {key} {turn}")
        chosen = "good" if rng.random() < self.usual else rng.choice(sorted(self.behaviours))
        self.drawn[chosen] += 1
        return self.behaviours[chosen](rng, number)

    async def _pause(self, reader: Any, seconds: float) -> bool:
        self.answering += 1
        try:
            return await super()._pause(reader, seconds)
        finally:
            self.answering -= 1


# A pause that ends only with ``HoldingBackend.release``.
HELD_S = 3600.0


def held(text: str) -> Raw:
    """A good answer that comes when the test lets it come."""
    return http(json.dumps(completion(text)), delay_s=HELD_S)


class HoldingBackend(Backend):
    """Keeps what is ``held`` back until ``release`` is set, so that tests need not guess how long something takes."""

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()

    async def _pause(self, reader: Any, seconds: float) -> bool:
        if seconds < HELD_S:
            return await super()._pause(reader, seconds)
        while not self.release.is_set():
            if not await super()._pause(reader, 0.02):
                return False
        return True

"""Bodies that are dear to read: the plan decides about them, others are checked, and memory stays bounded."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import brotli
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attack.backend import Answer
from tests.attack.gateway import NIGHTLY, Target, attacks, says, shown
from tests.attack.texts import FALSE, PLAIN, TRUE, USER, tells
from tests.integration.support.backend import completion

pytestmark = pytest.mark.envoy

MEMORY = 600 << 20


@dataclass(frozen=True)
class Named:
    """What is sent, under a name that says how to make it again: a failure cannot print megabytes."""

    name: str
    value: Any = field(repr=False)


_MOST = (16 if NIGHTLY else 2) << 20
_SIZES = st.sampled_from([_MOST // 64, _MOST // 8, _MOST // 2, _MOST])

# JSON values of about so many bytes, as text.
_SHAPES: dict[str, Callable[[int], str]] = {
    "empty lists": lambda size: "[" + ",".join(["[]"] * (size // 3)) + "]",
    "empty objects": lambda size: "[" + ",".join(["{}"] * (size // 3)) + "]",
    "deep lists": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "deep objects": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "deep in little steps": lambda size: "[" + ",".join(["[" * 200 + "]" * 200] * (size // 401)) + "]",
    "members": lambda size: "{" + ",".join(f'"{at:x}":0' for at in range(size // 9)) + "}",
    "one member again": lambda size: "{" + ",".join(['"a":0'] * (size // 6)) + "}",
    "numbers": lambda size: "[" + "1," * (size // 2) + "1]",
    "long number": lambda size: "1" * size,
    "long fraction": lambda size: "0." + "1" * size,
    "strings": lambda size: "[" + ",".join(['"a"'] * (size // 4)) + "]",
    "escapes": lambda size: '"' + "\\u0041" * (size // 6) + '"',
    "halves": lambda size: '"' + "\\ud83d" * (size // 6) + '"',
    "blanks": lambda size: " " * size + "0",
    "nulls": lambda size: "[" + ",".join(["null"] * (size // 5)) + "]",
}


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _repeated(piece: str, size: int) -> str:
    """Return a text of about so many characters."""
    return piece * (size // len(piece))


_PIECES = {
    "numbered lines": "1. a\n",
    "labels": "Context:\na b\nQuestion:\n",
    "sources": "[S0] a\n",
    "opened marks": "<context>",
    "empty marks": "<context></context>",
    "documents": "<document>a</document>\n",
    "passages": "Passage 1: a\n",
    "headings": "# a\n",
    "fences": "```\n",
    "colons": "a:\n",
    "brackets": "[1](",
    "quotes": "\"'",
    "newlines": "\n",
    "blanks": " ",
    "sentences": "The shop is open. ",
    "letters": "a",
    "dots": "a.",
    "figures": "1,",
    "han": "图",
    "combining": "a\u0301",
    "zero width": "\u200b",
    "JSON": '[{"a":',
    "stars": "*a",
    "reasoning": "<think>",
    "emoji": "👩‍👩‍👧",
    "dates": "1.1.2001 ",
    "currency": "$1 ",
}  # fmt: skip
_TEXTS: dict[str, Callable[[int], str]] = {name: partial(_repeated, piece) for name, piece in _PIECES.items()}


def _in_request(shape: str, place: str) -> bytes:
    """A request with a value of untrusted shape in some place."""
    plain = json.dumps(PLAIN["messages"])[1:-1]
    bodies = {
        "member": f'{{"model": "m", "messages": [{plain}], "x": {shape}}}',
        "documents": f'{{"model": "m", "messages": [{plain}], "documents": {shape}}}',
        "content": f'{{"model": "m", "messages": [{{"role": "user", "content": {shape}}}, {plain}]}}',
        "messages": f'{{"model": "m", "x": [{plain}], "messages": {shape}}}',
        "message": f'{{"model": "m", "messages": [{shape}, {plain}]}}',
        "tools": f'{{"model": "m", "messages": [{plain}], "tools": {shape}}}',
        "model": f'{{"messages": [{plain}], "model": {shape}}}',
        "before": f'{{"x": {shape}, "model": "m", "messages": [{plain}]}}',
    }
    return bodies[place].encode()


_REQUEST_PLACES = ("member", "documents", "content", "messages", "message", "tools", "model", "before")


@st.composite
def _requests(draw: st.DrawFn) -> Named:
    size = draw(_SIZES)
    match draw(st.integers(0, 3)):
        case 0:
            name, place = draw(st.sampled_from(sorted(_SHAPES))), draw(st.sampled_from(_REQUEST_PLACES))
            return Named(f"{name} in {place}, {size}", _in_request(_SHAPES[name](size), place))
        case 1:
            name, role = (
                draw(st.sampled_from(sorted(_TEXTS))),
                draw(st.sampled_from(["system", "user", "tool", "assistant", "developer"])),
            )
            text = _TEXTS[name](size // 2)
            messages = draw(st.permutations([{"role": role, "content": text}, *PLAIN["messages"]]))
            return Named(f"{name} of {role}, {size}", _dumped({**PLAIN, "messages": messages}))
        case 2:
            name, each = draw(st.sampled_from(sorted(_TEXTS))), draw(st.integers(1, 200))
            text = _TEXTS[name](each) or "a"
            role = draw(st.sampled_from(["system", "user", "tool"]))
            messages = [{"role": role, "content": text}] * (size // (len(text.encode()) + 40))
            return Named(
                f"messages of {name} ({each}) of {role}, {size}",
                _dumped({**PLAIN, "messages": [*messages, *PLAIN["messages"]]}),
            )
    name, each = draw(st.sampled_from(sorted(_TEXTS))), draw(st.integers(1, 60))
    document = draw(st.sampled_from(["text", "content", "title", ""]))
    text = _TEXTS[name](each) or "a"
    documents: list[Any] = [{document: text} if document else text] * (size // (len(text.encode()) + 16))
    return Named(
        f"documents of {name} ({each}) in {document!r}, {size}", _dumped({**PLAIN, "documents": documents})
    )


def _chunk(text: str, index: int = 0, more: str = "") -> bytes:
    return f'data: {{"choices": [{{"index": {index}, "delta": {{"content": {json.dumps(text)}}}}}]{more}}}\n\n'.encode()


@st.composite
def _answers(draw: st.DrawFn) -> Named:
    size = draw(_SIZES)
    plain = json.dumps(completion(FALSE))[1:-1]
    message = json.dumps({"role": "assistant", "content": FALSE})[1:-1]
    shape = draw(st.sampled_from(sorted(_SHAPES)))
    text = draw(st.sampled_from(sorted(_TEXTS)))
    value = _SHAPES[shape](size)
    long = f"{FALSE} {_TEXTS[text](size // 2)}"
    done = b"data: [DONE]\n\n"
    count = max(1, size // 200)
    kind = draw(st.integers(0, 11))
    if kind < 3:
        odd = (
            f'{{"x": {value}, {plain}}}',
            f'{{"choices": [{{"index": 0, "message": {{"x": {value}, {message}}}}}]}}',
            f'{{"choices": [{{"index": 0, "message": {{{message}}}}}, {value}]}}',
        )[kind]
        return Named(f"{shape} in place {kind}, {size}", Answer([odd.encode()]))
    if kind == 3:
        return Named(f"a text of {text}, {size}", Answer([_dumped(completion(long))]))
    if kind == 4:
        return Named(f"{count} choices", Answer([json.dumps(completion(*[FALSE] * count)).encode()]))
    if kind == 5:
        parts = [{"type": "text", "text": FALSE}, *[{"type": "text", "text": "a"}] * (size // 30)]
        body = completion(None)
        body["choices"][0]["message"]["content"] = parts
        return Named(f"parts, {size}", Answer([_dumped(body)]))
    streams = {
        6: ("one frame", [_chunk(long), done]),
        7: ("comments", [_chunk(TRUE), b": k\n\n" * (size // 5), _chunk(FALSE), done]),
        8: ("streamed choices", [b"".join(_chunk(FALSE, index) for index in range(count)), done]),
        9: (f"frames with {shape}", [_chunk(FALSE, more=f', "x": {value}'), done]),
        10: ("little frames", [_chunk(FALSE), b"data: {}\n\n" * (size // 10), done]),
        11: ("no end of a line", [_chunk(FALSE), b"data: " + b"x" * size, done]),
    }
    name, writes = streams[kind]
    if kind != 6 and draw(st.booleans()):
        writes = [_chunk(word + " ") for word in FALSE.split()] + writes
    return Named(f"{name} ({text}), {size}", Answer(writes, "text/event-stream"))


class _Others:
    """A client with small exchanges, one after the other, while something large is in the house."""

    def __init__(self, target: Target) -> None:
        self.verdicts: list[str] = []
        self._target = target
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(120)

    def _ask(self) -> None:
        while not self._end.is_set():
            response = self._target.ask(TRUE)
            self.verdicts.append(says(response).get("status", "none"))
            self._end.wait(0.02)


def _check(target: Target, name: str, answer: Answer | str, body: bytes, headers: dict[str, str]) -> None:
    with _Others(target) as others:
        response = target.ask(answer, body=body, headers=headers)
    told = says(response)
    if tells(response.content):
        assert told.get("detected") == "true", f"delivered: {name}\n{shown(response)}"
    if response.status_code not in (400, 413):
        assert told.get("reason") != "unavailable", f"Envoy decided: {name}\n{shown(response)}"
    assert set(others.verdicts) <= {"checked"}, f"others lost their verdicts: {name}\n{others.verdicts}"
    target.is_well()
    assert target.memory() < MEMORY, f"{target.memory() >> 20} MB after: {name}"


@attacks(ci=12, nightly=300)
@given(request=_requests(), packed=st.booleans())
def test_no_request_gets_an_answer_past_the_plan(holds_back: Target, request: Named, packed: bool) -> None:
    """However long it takes to read: the invention does not leave unless it is marked."""
    name, body = request.name, request.value
    sent, headers = (gzip.compress(body, 1), {"content-encoding": "gzip"}) if packed else (body, {})
    _check(holds_back, name, FALSE, sent, headers)


@attacks(ci=12, nightly=300)
@given(answer=_answers())
def test_no_answer_gets_past_the_plan(holds_back: Target, answer: Named) -> None:
    name, answered = answer.name, answer.value
    asked = PLAIN if answered.media_type == "application/json" else {**PLAIN, "stream": True}
    _check(holds_back, name, answered, json.dumps(asked).encode(), {})


def _zstd(raw_head: bytes, filling: bytes, size: int) -> bytes:
    """Return a Zstandard frame: the head as it is, then blocks that each repeat one byte 128 KiB long."""
    block = 128 << 10
    head = (len(raw_head) << 3).to_bytes(3, "little") + raw_head
    repeated = ((block << 3) | 2).to_bytes(3, "little") + filling[:1]
    last = ((1 << 3) | 3).to_bytes(3, "little") + filling[:1]
    return b"\x28\xb5\x2f\xfd\x00\x58" + head + repeated * (size // block) + last


_PACKED: dict[str, Callable[[bytes, bytes, int], bytes]] = {
    "gzip": lambda head, filling, size: gzip.compress(head + filling * (size // len(filling)), 6),
    "gzip, gzip": lambda head, filling, size: gzip.compress(
        gzip.compress(head + filling * (size // len(filling)), 6)
    ),
    "deflate": lambda head, filling, size: zlib.compress(head + filling * (size // len(filling)), 6),
    "br": lambda head, filling, size: brotli.compress(head + filling * (size // len(filling)), quality=4),
    "zstd": _zstd,
}


@pytest.mark.parametrize("coding", sorted(_PACKED))
@pytest.mark.parametrize("side", ["request", "answer"])
@pytest.mark.parametrize("filling", [b" ", b"[", b"[],", b"1. a\n"])
def test_a_body_that_unpacks_to_much_is_refused(
    holds_back: Target, coding: str, side: str, filling: bytes
) -> None:
    """A hundred million bytes of it are a few thousand on the wire."""
    size = (300 if NIGHTLY else 60) << 20
    head = (json.dumps(PLAIN) if side == "request" else json.dumps(completion(FALSE)))[:-1] + ', "x": '
    packed = _PACKED[coding](head.encode(), filling, size)
    encoding = {"content-encoding": coding}
    name = f"{side} of {filling!r} in {coding}"
    if side == "request":
        _check(holds_back, name, FALSE, packed, encoding)
    else:
        _check(holds_back, name, Answer([packed], headers=encoding), json.dumps(PLAIN).encode(), {})


def test_bodies_one_after_the_other_do_not_add_up(holds_back: Target) -> None:
    """What was refused is gone, however soon the next one comes."""
    packed = gzip.compress(json.dumps(PLAIN)[:-1].encode() + b', "x": ' + b" " * (20 << 20))
    for count in range(200 if NIGHTLY else 30):
        response = holds_back.ask(FALSE, body=packed, headers={"content-encoding": "gzip"})
        assert not tells(response.content), shown(response)
        assert holds_back.memory() < MEMORY, f"{holds_back.memory() >> 20} MB after {count + 1} bodies"
    holds_back.is_well()


@st.composite
def _detections(draw: st.DrawFn) -> Named:
    size = draw(_SIZES)
    name = draw(st.sampled_from(sorted(_TEXTS)))
    text = json.dumps(_TEXTS[name](size // 2))
    shape = draw(st.sampled_from(sorted(_SHAPES)))
    value = _SHAPES[shape](size)
    bodies = {
        f"a response of {name}": f'{{"context": ["a"], "response": {text}}}',
        f"a context of {name}": f'{{"context": [{text}], "response": "The shop is open."}}',
        f"a query of {name}": f'{{"context": ["a"], "query": {text}, "response": "The shop is open."}}',
        f"{shape} as context": f'{{"context": {value}, "response": "The shop is open."}}',
        f"{shape} as response": f'{{"context": ["a"], "response": {value}}}',
        f"{shape} beside them": f'{{"context": ["a"], "response": "The shop is open.", "x": {value}}}',
    }
    what = draw(st.sampled_from(sorted(bodies)))
    return Named(f"{what}, {size}", bodies[what].encode())


@attacks(ci=10, nightly=200)
@given(body=_detections())
def test_scoring_over_the_console_costs_no_exchange_its_verdict(holds_back: Target, body: Named) -> None:
    name, content = body.name, body.value
    with _Others(holds_back) as others:
        response = httpx.post(
            f"{holds_back.stack.console_url}/v1/detect",
            content=content,
            headers={"content-type": "application/json"},
            timeout=90,
        )
    assert response.status_code in (200, 400, 413, 422, 503), f"{name}\n{shown(response)}"
    assert set(others.verdicts) <= {"checked"}, f"others lost their verdicts: {name}\n{others.verdicts}"
    holds_back.is_well()
    assert holds_back.memory() < MEMORY, f"{holds_back.memory() >> 20} MB after: {name}"


def test_the_plain_exchange_is_told_apart(holds_back: Target) -> None:
    """Else nothing here would show anything."""
    assert USER in PLAIN["messages"][0]["content"]
    assert says(holds_back.ask(FALSE))["detected"] == "true"
    holds_back.is_well()

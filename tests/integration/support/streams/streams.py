"""Streamed answers as backends write them: frames by kind of API, and the ways in which they are put on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import cycle, zip_longest
from typing import Any

from tests.integration.support.backend import Raw, Received, completion, json_reply
from truthlens.core.records.enums import Endpoint

PATHS = {Endpoint.CHAT: "/v1/chat/completions", Endpoint.COMPLETIONS: "/v1/completions"}
USAGE = {"prompt_tokens": 31, "completion_tokens": 17, "total_tokens": 48}
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"
ODD_CUTS = (1, 7, 64, 3, 251, 2)

_TOKEN = re.compile(r"\s*\S{1,5}|\s+")


def answer(
    *texts: str, endpoint: Endpoint = Endpoint.CHAT, usage: bool = False, escaped: bool = False
) -> list[bytes]:
    """A whole stream with one choice a text, token by token in turn, each frame one item.

    ``usage`` adds what ``include_usage`` asks for; ``escaped`` writes ASCII, and an astral character as two halves in
    two frames.
    """
    frames: list[bytes] = []
    asked: dict[str, Any] = {"usage": None} if usage else {}
    if endpoint is Endpoint.CHAT:
        frames += [
            chunk([_delta(index, role="assistant", content="")], endpoint, **asked)
            for index in range(len(texts))
        ]
    turns = zip_longest(*[tokens(text, halves=escaped) for text in texts])
    for turn in turns:
        frames += [
            chunk([_text(index, token, endpoint)], endpoint, escaped=escaped, **asked)
            for index, token in enumerate(turn)
            if token is not None
        ]
    frames += [chunk([_finish(index, "stop", endpoint)], endpoint, **asked) for index in range(len(texts))]
    if usage:
        frames.append(chunk([], endpoint, usage=USAGE))
    return [*frames, DONE]


def reasoning_answer(reasoning: str, text: str) -> list[bytes]:
    """A chat stream whose model thinks aloud before it answers."""
    thoughts = [chunk([_delta(0, reasoning_content=token)]) for token in tokens(reasoning)]
    role, *rest = answer(text)
    return [role, *thoughts, *rest]


def tool_call(arguments: str = '{"place": "Elm Street"}') -> list[bytes]:
    """A chat stream that calls a tool."""
    first = {
        "index": 0,
        "id": "call-1",
        "type": "function",
        "function": {"name": "look_up", "arguments": ""},
    }
    calls = [first, *[{"index": 0, "function": {"arguments": token}} for token in tokens(arguments)]]
    return [
        chunk([_delta(0, role="assistant", content=None)]),
        *[chunk([_delta(0, tool_calls=[call])]) for call in calls],
        chunk([_finish(0, "tool_calls", Endpoint.CHAT)]),
        DONE,
    ]


def broken_off(text: str) -> list[bytes]:
    """A chat stream in which the model fails after ``text``."""
    error = {"error": {"message": "out of memory", "type": "server_error", "code": 500}}
    return [*answer(text)[:-2], _frame(error), DONE]


def with_newlines(frames: Sequence[bytes], newline: bytes) -> list[bytes]:
    """The frames with another line end."""
    return [frame.replace(b"\n", newline) for frame in frames]


def with_comments(frames: Sequence[bytes]) -> list[bytes]:
    """The frames with a keep-alive comment before each."""
    return [part for frame in frames for part in (KEEP_ALIVE, frame)]


def chunk(
    choices: Sequence[Any], endpoint: Endpoint = Endpoint.CHAT, *, escaped: bool = False, **fields: Any
) -> bytes:
    """One frame of the API's shape, with further top-level fields as given."""
    name = "chat.completion.chunk" if endpoint is Endpoint.CHAT else "text_completion"
    value = {"id": "stream-1", "object": name, "created": 1700000000, "model": "scripted-model"}
    return _frame({**value, "choices": list(choices), **fields}, escaped=escaped)


def tokens(text: str, *, halves: bool = False) -> list[str]:
    """``text`` cut about as a tokenizer cuts it; with ``halves``, also between the halves of a surrogate pair."""
    found = _TOKEN.findall(text)
    return [half for token in found for half in _halves(token)] if halves else found


def _halves(token: str) -> list[str]:
    units = token.encode("utf-16-be")
    for place in range(0, len(units), 2):
        if 0xD8 <= units[place] < 0xDC:
            cut = place + 2
            return [part.decode("utf-16-be", "surrogatepass") for part in (units[:cut], units[cut:])]
    return [token]


def _text(index: int, token: str, endpoint: Endpoint) -> dict[str, Any]:
    if endpoint is Endpoint.CHAT:
        return _delta(index, content=token)
    return {"index": index, "text": token, "logprobs": None, "finish_reason": None}


def _delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}


def _finish(index: int, reason: str, endpoint: Endpoint) -> dict[str, Any]:
    last = {"text": ""} if endpoint is Endpoint.COMPLETIONS else {"delta": {}}
    return {"index": index, **last, "logprobs": None, "finish_reason": reason}


def _frame(value: Any, *, escaped: bool = False) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=escaped)}\n\n".encode()


class Framing(StrEnum):
    """How the end of a body is told."""

    CHUNKED = "chunked"
    LENGTH = "length"
    CLOSE = "close"


def sse(
    frames: Sequence[bytes],
    *,
    framing: Framing = Framing.CHUNKED,
    cuts: Sequence[int] = (),
    pause_s: float = 0.0,
) -> Raw:
    """The response that carries ``frames``, one write each, or cut after every so many bytes, ``cuts`` over again."""
    writes = list(_cut(b"".join(frames), cuts)) if cuts else list(frames)
    head = [b"HTTP/1.1 200 OK", b"content-type: text/event-stream; charset=utf-8"]
    match framing:
        case Framing.CHUNKED:
            head.append(b"transfer-encoding: chunked")
            writes = [*[b"%x\r\n%s\r\n" % (len(data), data) for data in writes], b"0\r\n\r\n"]
        case Framing.LENGTH:
            head.append(b"content-length: %d" % sum(map(len, writes)))
        case Framing.CLOSE:
            head.append(b"connection: close")
    start = b"\r\n".join(head) + b"\r\n\r\n"
    return Raw([start, *writes], pause_s=pause_s, close=framing is Framing.CLOSE)


def _cut(data: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    sizes = cycle(cuts)
    while data:
        size = next(sizes)
        yield data[:size]
        data = data[size:]


@dataclass(slots=True)
class StreamingModel:
    """The ``reply`` of a backend that streams ``texts`` to who asks for a stream.

    ``frames`` may make other frames of the request; ``corrected`` is what a request without a stream is answered with.
    ``written`` has the bytes of each streamed body.
    """

    texts: tuple[str, ...] = ("Hello.",)
    corrected: str = ""
    frames: Callable[[dict[str, Any], Endpoint], list[bytes]] | None = None
    framing: Framing = Framing.CHUNKED
    cuts: Sequence[int] = ()
    pause_s: float = 0.0
    written: list[bytes] = field(default_factory=list)

    def __call__(self, received: Received) -> Raw:
        body = json.loads(received.body)
        endpoint = next(each for each, path in PATHS.items() if received.path.partition("?")[0] == path)
        if not body.get("stream"):
            return json_reply(_whole(self.corrected, endpoint))
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        frames = (
            self.frames(body, endpoint)
            if self.frames
            else answer(*self.texts, endpoint=endpoint, usage=usage)
        )
        self.written.append(b"".join(frames))
        return sse(frames, framing=self.framing, cuts=self.cuts, pause_s=self.pause_s)


def _whole(text: str, endpoint: Endpoint) -> dict[str, Any]:
    if endpoint is Endpoint.CHAT:
        return completion(text)
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "stop"}
    return {**completion(), "object": "text_completion", "choices": [choice]}

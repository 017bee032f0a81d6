"""Bodies beyond the limits, and reading that is given up: the work ends before it is done, and says why."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from truthlens.api.encoding import decode_body
from truthlens.api.requests import LazyRequest, read_request
from truthlens.api.responses import parse_response
from truthlens.api.sse.buffered import parse_stream
from truthlens.core.cancellation import stopping
from truthlens.core.errors import BodyEncodingError, BodyTooLargeError, StoppedError
from truthlens.core.limits import Limits
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange, Message
from truthlens.core.records.settings import EvidenceRules
from truthlens.evidence.extract import take_evidence

CHAT = Exchange(endpoint=Endpoint.CHAT, model="", query="", passages=())
NORMAL: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Is tea free?"}]}


def request(**fields: object) -> bytes:
    return json.dumps({**NORMAL, **fields}).encode()


def response(*texts: str, **fields: object) -> bytes:
    choices = [{"index": place, "message": {"content": text}} for place, text in enumerate(texts)]
    return json.dumps({"choices": choices, **fields}).encode()


def stream(*texts: str) -> bytes:
    deltas = [{"index": place, "delta": {"content": text}} for place, text in enumerate(texts)]
    return b"".join(f"data: {json.dumps({'choices': [delta]})}\n\n".encode() for delta in deltas)


def read(body: bytes, limits: Limits) -> object:
    return read_request(body, Endpoint.CHAT, limits)


BEYOND: dict[str, tuple[Callable[[Limits], object], Limits]] = {
    "request of many lists": (
        lambda limits: read(request(x=[[]] * 50), limits),
        Limits.model_construct(max_json_values=40),
    ),
    "request of many objects": (
        lambda limits: read(request(messages=[{"role": "user", "content": [{}] * 50}]), limits),
        Limits.model_construct(max_json_values=40),
    ),
    "long messages": (lambda limits: read(request(), limits), Limits.model_construct(max_prompt_chars=11)),
    "response of many lists": (
        lambda limits: parse_response(response("Yes.", x=[[]] * 50), CHAT, limits),
        Limits.model_construct(max_json_values=40),
    ),
    "many choices": (
        lambda limits: parse_response(response(*["Yes."] * 4), CHAT, limits),
        Limits(max_choices=3),
    ),
    "long answers together": (
        lambda limits: parse_response(response("Yes.", "No."), CHAT, limits),
        Limits.model_construct(max_answer_chars=6),
    ),
    "many choices of a stream": (
        lambda limits: parse_stream(stream(*["Yes."] * 4), CHAT, limits),
        Limits(max_choices=3),
    ),
    "long answers of a stream": (
        lambda limits: parse_stream(stream("Yes.", "No."), CHAT, limits),
        Limits.model_construct(max_answer_chars=6),
    ),
    "frame of many lists": (
        lambda limits: parse_stream(b"data: " + response(x=[[]] * 50) + b"\n\n", CHAT, limits),
        Limits.model_construct(max_json_values=40),
    ),
    "many frames": (
        lambda limits: parse_stream(stream("Yes.") + b":\n\n" * 40, CHAT, limits),
        Limits.model_construct(max_frames=40),
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_beyond_a_limit_is_not_read(name: str) -> None:
    """One error for all limits; it names the key. Within the default limits the same body is read."""
    work, limits = BEYOND[name]
    with pytest.raises(BodyTooLargeError, match=r"limits\.max_"):
        work(limits)
    work(Limits())


RULES = EvidenceRules(system_min_chars=1)
LONG = {
    "numbered lines": ("system", "1. a\n" * 500),
    "sections": ("user", "Context:\na b\nQuestion:\n" * 100),
    "tags": ("user", "<context>a</context>\n" * 100),
    "sources": ("user", "[S1] a\n[S2] b\n" * 100),
    "paragraphs": ("tool", "[S1] a\n\n" * 100),
    "instructions": ("system", "You are kind. " * 100),
    "records": ("tool", json.dumps([{"text": str(number)} for number in range(100)])),
}


@pytest.mark.parametrize("name", LONG)
def test_a_search_for_evidence_ends_when_nobody_waits(name: str) -> None:
    """Within one message: told to stop after some steps, the search does not go on to its end."""
    role, text = LONG[name]
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 50

    with stopping(stop), pytest.raises(StoppedError):
        take_evidence([Message(role, text)], [], RULES)
    assert asked == 51
    assert take_evidence([Message(role, text)], [], RULES)


@pytest.mark.parametrize(
    ("messages", "documents", "limits"),
    [
        ([Message("tool", "[S1] a\n[S2] b\n[S3] c")], [], Limits(max_passages=2)),
        ([], ["a", "b", "c"], Limits(max_passages=2)),
        ([], ["Tea is free.", "So is milk."], Limits.model_construct(max_prompt_chars=20)),
    ],
)
def test_evidence_beyond_a_limit_is_refused(
    messages: list[Message], documents: list[object], limits: Limits
) -> None:
    """By number and by length, wherever the passages come from."""
    with pytest.raises(BodyTooLargeError):
        take_evidence(messages, documents, RULES, limits)
    assert take_evidence(messages, documents, RULES).passages


def test_a_request_whose_search_was_given_up_has_no_exchange() -> None:
    """It is not searched again by whoever asks next, on the event loop perhaps."""
    reading = LazyRequest(read_request(request(), Endpoint.CHAT), RULES, size=1)
    with stopping(lambda: True), pytest.raises(StoppedError):
        reading.read()
    reading.give_up()
    assert reading.exchange is None


def test_a_request_is_searched_by_who_reads_it_alone() -> None:
    """Whoever asks for the exchange may be on the event loop."""
    reading = LazyRequest(read_request(request(), Endpoint.CHAT), RULES, size=1)
    assert reading.exchange is None
    reading.read()
    exchange = reading.exchange
    assert exchange is not None
    assert exchange.query == "Is tea free?"
    reading.read()
    assert reading.exchange is exchange


@pytest.mark.parametrize("members", [1, 3, 5000])
def test_members_of_a_gzip_body_follow_each_other(members: int) -> None:
    """Empty ones among them, and one longer than what is fed at a time."""
    text = bytes(range(256)) * 300
    body = gzip.compress(b"") * members + gzip.compress(text) + gzip.compress(b"") * members
    assert decode_body(body, "gzip", limit=1 << 20) == text
    with pytest.raises(BodyEncodingError):
        decode_body(body[:-1], "gzip", limit=1 << 20)


def test_decoding_ends_when_nobody_waits() -> None:
    """Between two members, or two pieces of one."""
    with stopping(lambda: True), pytest.raises(StoppedError):
        decode_body(gzip.compress(b""), "gzip", limit=100)


def test_what_follows_a_deflate_body_is_counted() -> None:
    """The error tells how many bytes there are, whatever was read of them."""
    body = zlib.compress(b"tea") + b"x" * 40_000
    with pytest.raises(BodyEncodingError, match="40000 bytes"):
        decode_body(body, "deflate", limit=1 << 20)

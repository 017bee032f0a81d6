"""Bodies that take long or hold much, through a real Envoy: our plan decides about them, and others are checked meanwhile."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from typing import Any, Self

import httpx
import pytest

from tests.integration.support.backend import Raw, Received, completion, http, json_reply
from tests.integration.support.stack import Stack
from tests.integration.test_bodies import GROUNDED, REQUEST

pytestmark = pytest.mark.envoy

POLICY = "hallucination: {threshold: 0.99, on_unchecked: block, timeout_s: 2}\n"
FALSE = "The tower was built by giants in 1204."
HOSTILE = "x-hostile"


def asking(*before: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({**REQUEST, **fields, "messages": [*before, *REQUEST["messages"]]}).encode()


def saying(role: str, piece: str, size: int) -> bytes:
    return asking({"role": role, "content": piece * (size // len(piece))})


def choices(count: int) -> bytes:
    return json.dumps(completion(*[FALSE] * count)).encode()


def streamed(count: int) -> bytes:
    chunks = (
        {
            "object": "chat.completion.chunk",
            "choices": [{"index": place, "delta": {"role": "assistant", "content": FALSE}}],
        }
        for place in range(count)
    )
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


LISTS = [[]] * 700_000
REQUESTS = {
    "numbered lines": saying("system", "1. a\n", 4_500_000),
    "sections": saying("user", "Context:\na b\nQuestion:\n", 4_500_000),
    "sections of one message each": asking(*[{"role": "tool", "content": "a:\n" * 9}] * 60_000),
    "lists": asking(x=LISTS),
    "lists in a message": asking({"role": "tool", "content": json.dumps(LISTS)}),
    "documents": asking(documents=[str(number) for number in range(50_000)]),
}
RESPONSES = {
    "lists": http(json.dumps({**completion(FALSE), "x": LISTS})),
    "one long answer": http(json.dumps(completion(f"{FALSE} " * 30_000))),
    "words without spaces": http(json.dumps(completion("a." * 500_000))),
    "choices": http(choices(1_000)),
    "streamed choices": http(streamed(1_000), content_type="text/event-stream"),
    "frames": http(b"data: {}\n\n" * 400_000 + streamed(1), content_type="text/event-stream"),
}


class Others:
    """A client with small exchanges of its own, one after the other."""

    def __init__(self, stack: Stack) -> None:
        self.statuses: list[str] = []
        self._stack = stack
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(60)

    def _ask(self) -> None:
        while not self._end.is_set():
            self.statuses.append(self._stack.post(REQUEST).headers["x-truthlens-status"])


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment that holds back what it cannot check."""
    stack = Stack(tmp_path_factory.mktemp("hostile"), POLICY)

    def reply(request: Received) -> Raw:
        kind = request.headers.get(HOSTILE)
        if kind is None:
            return json_reply(completion(GROUNDED))
        return RESPONSES.get(kind, json_reply(completion(FALSE)))

    stack.backend.reply = reply
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_takes_too_long_is_held_back_by_us(stack: Stack, name: str) -> None:
    """Not passed by Envoy, whose clock has not run out; and nobody else loses a verdict."""
    headers = {HOSTILE: "request", "content-encoding": "gzip"}
    with Others(stack) as others:
        response = stack.post(gzip.compress(REQUESTS[name]), headers=headers)
    assert set(others.statuses) == {"checked"}
    if response.headers["x-truthlens-status"] == "checked":
        return  # a quick machine has read it within the plan's two seconds
    assert FALSE not in response.text
    assert response.status_code == 424
    assert response.headers["x-truthlens-reason"] in ("timeout", "too-large")


@pytest.mark.parametrize("name", RESPONSES)
def test_an_answer_that_takes_too_long_is_held_back_by_us(stack: Stack, name: str) -> None:
    """Whatever it is made of: the plan says what becomes of it."""
    with Others(stack) as others:
        response = stack.post(REQUEST, headers={HOSTILE: name})
    assert FALSE not in response.text
    assert response.status_code == 424
    assert response.headers["x-truthlens-reason"] in ("timeout", "too-large")
    assert set(others.statuses) == {"checked"}


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        (f"{GROUNDED} " * 20_000, f"{FALSE} " * 10_000),
        (GROUNDED, f"{FALSE} " * 100_000),
        (["a"] * 1_000_000, FALSE),
    ],
)
def test_scoring_over_the_console_takes_nothing_from_the_gateway(
    stack: Stack, context: Any, answer: str
) -> None:
    """One long body there costs no exchange here its verdict."""
    body = {"context": context, "response": answer}
    with Others(stack) as others:
        response = httpx.post(f"{stack.console_url}/v1/detect", json=body, timeout=60)
    if response.status_code == 200:
        assert response.json()["reason"] in ("timeout", "too-large")
    else:
        assert response.status_code == 413
    assert set(others.statuses) == {"checked"}


def test_a_compressed_request_of_many_members_is_read(stack: Stack) -> None:
    """Empty members cost no more than their bytes, and take no verdict from anybody."""
    body = gzip.compress(b"") * 200_000 + gzip.compress(asking())
    with Others(stack) as others:
        response = stack.post(body, headers={"content-encoding": "gzip"})
    assert response.headers["x-truthlens-status"] == "checked"
    assert set(others.statuses) == {"checked"}

"""Requests that a backend reads and we read with difficulty or not at all: none of them gets a weaker plan than the plain one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.integration.support.backend import Backend
from tests.integration.support.stack import Stack
from tests.integration.support.starlette_backend import StarletteBackend

pytestmark = pytest.mark.envoy

# By default an answer that cannot be checked passes; a question about the butcher's is checked or refused.
POLICY = """\
hallucination: {detectors: [encoder], threshold: 0.6, on_unchecked: annotate}
signals:
  keywords: [{name: butcher, terms: [butcher]}]
decisions:
  - name: strict
    priority: 10
    rules: {type: keyword, name: butcher}
    plugins: [{type: hallucination, configuration: {on_unchecked: block, threshold: 0.5}}]
"""
CONTEXT = "The library in Elm Street opens at nine and closes at six. It is closed on Sundays."
ASKED = f"<context>{CONTEXT}</context>\nWhen does the butcher beside the library open?"
FALSE = "The butcher opens at midnight and sells two hundred elephants to every customer."
PLAIN = {"model": "m", "messages": [{"role": "user", "content": ASKED}]}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment in front of a real Python server."""
    backend = StarletteBackend(FALSE)
    stack = Stack(tmp_path_factory.mktemp("unreadable"), POLICY, backend=cast("Backend", backend))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def encoded(encoding: str) -> bytes:
    return json.dumps(PLAIN).encode(encoding)


def plus(**fields: Any) -> bytes:
    return json.dumps({**PLAIN, **fields}).encode()


def messages(*more: object) -> bytes:
    return plus(messages=[*more, *PLAIN["messages"]])


# What we read as the backend does: the decision is that of the plain request, and the answer is flagged.
READ: dict[str, tuple[bytes, dict[str, str]]] = {
    "plain": (plus(), {}),
    "utf-16": (encoded("utf-16"), {}),
    "utf-16-le": (encoded("utf-16-le"), {}),
    "utf-16-be": (encoded("utf-16-be"), {}),
    "utf-32": (encoded("utf-32"), {}),
    "utf-32-le": (encoded("utf-32-le"), {}),
    "byte order mark": (encoded("utf-8-sig"), {}),
    "template documents": (plus(chat_template_kwargs={"documents": 1}), {}),
    "documents": (plus(documents=1), {}),
    "document list": (plus(documents=[1, None]), {}),
    "model": (plus(model=7), {}),
    "content object": (messages({"role": "user", "content": {}}), {}),
    "content number": (messages({"role": "user", "content": 7}), {}),
    "no role": (messages({"content": "x"}), {}),
    "role list": (messages({"role": [], "content": "x"}), {}),
    "unknown encoding": (plus(), {"content-encoding": "foo"}),
    "gzip in name only": (plus(), {"content-encoding": "gzip"}),
    "five encodings": (plus(), {"content-encoding": "a, b, c, d, e"}),
    "no content type": (plus(), {"content-type": ""}),
    "form": (plus(), {"content-type": "application/x-www-form-urlencoded"}),
    "text": (plus(), {"content-type": "text/plain; charset=utf-16"}),
    "not a number": (plus(temperature=float("nan")), {}),
    "half a character": (plus(x="\ud800"), {}),
    "half a character in bytes": (plus(x="?").replace(b'"?"', b'"\xed\xa0\x80"'), {}),
    "messages twice": (b'{"messages": [{"role": "user", "content": "Hi"}], ' + plus()[1:], {}),
}
# What only the backend reads, or nobody: refused, as the strictest plan says.
REFUSED: dict[str, tuple[bytes, dict[str, str]]] = {
    "no messages": (b"{}", {}),
    "messages as a mapping": (plus(messages={"0": PLAIN["messages"][0]}), {}),
    "a message as a string": (messages(ASKED), {}),
    "several prompts": (plus(prompt=[ASKED, ASKED]), {"path": "/v1/completions"}),
    "token ids": (plus(prompt=[1, 2, 3]), {"path": "/v1/completions"}),
    "another path": (plus(), {"path": "/v1/responses"}),
}


@pytest.mark.parametrize("name", READ)
def test_what_the_backend_reads_gets_the_plan_of_the_plain_request(stack: Stack, name: str) -> None:
    """The decision is the same, the false answer is flagged, and the backend gets the client's own bytes."""
    body, headers = READ[name]
    response = stack.post(body, headers=headers)
    assert response.status_code == 200
    assert response.headers["x-truthlens-decision"] == "strict"
    assert response.headers["x-truthlens-status"] == "checked"
    assert response.headers["x-truthlens-detected"] == "true"
    assert cast("Any", stack.backend).received[-1] == body


@pytest.mark.parametrize("name", REFUSED)
def test_what_only_the_backend_reads_is_refused_where_a_plan_would(stack: Stack, name: str) -> None:
    """Nobody knows what was asked: the strictest plan that could apply holds the answer back."""
    body, headers = REFUSED[name]
    headers = dict(headers)
    response = stack.post(body, path=headers.pop("path", "/v1/chat/completions"), headers=headers)
    assert response.status_code == 424
    assert response.headers["x-truthlens-decision"] == "strict"
    assert response.headers["x-truthlens-reason"] == "dialect"
    assert "elephants" not in response.text


def test_damaged_and_endless_bodies_are_refused_or_are_the_backends_errors(stack: Stack) -> None:
    """What the backend answers with an error passes as one."""
    bomb = gzip.compress(b" " * (60 << 20))
    for body, headers in (
        (b"{", {}),
        (b"\x1f\x8bxxxx", {"content-encoding": "gzip"}),
        (bomb, {"content-encoding": "gzip"}),
        (b"", {}),
    ):
        response = stack.post(body, headers=headers)
        assert response.status_code in (400, 424)
        assert "elephants" not in response.text


@pytest.mark.parametrize(
    "role", ["system", "developer", "tool", "assistant", "User", "human", "function", "x"]
)
def test_the_question_counts_in_every_message(stack: Stack, role: str) -> None:
    """A message of any role leads to the stricter decision."""
    body = {
        "model": "m",
        "messages": [
            {"role": role, "content": "When does the butcher open?"},
            {"role": "user", "content": f"<context>{CONTEXT}</context>\nAnswer the question above."},
        ],
    }
    assert stack.post(body).headers["x-truthlens-decision"] == "strict"


@pytest.mark.parametrize(
    "fields",
    [
        {"documents": ["When does the butcher open?"]},
        {"chat_template_kwargs": {"question": "When does the butcher open?"}},
        {
            "messages": [
                {"role": "user", "content": [{"type": "odd", "value": "When does the butcher open?"}]}
            ]
        },
        {"messages": [{"role": "user", "content": {"text": {"value": "When does the butcher open?"}}}]},
    ],
)
def test_the_question_counts_in_every_member(stack: Stack, fields: dict[str, Any]) -> None:
    """So does a part, a document or an argument of the template."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Answer."}], **fields}
    response = stack.post(body)
    assert response.headers["x-truthlens-decision"] == "strict"


@pytest.mark.parametrize(
    "word",
    ["_butcher_", "but\u200bcher", "but\u00adcher", "b\u0336utcher", "butсher", "but**ch**er", "but<b>ch</b>er", "&#98;utcher"],
)  # fmt: skip
def test_words_count_as_they_are_read(stack: Stack, word: str) -> None:
    """Markup, invisible characters and look-alikes hide no word."""
    body = {"model": "m", "messages": [{"role": "user", "content": ASKED.replace("butcher", word)}]}
    assert stack.post(body).headers["x-truthlens-decision"] == "strict"


def test_other_questions_keep_the_default(stack: Stack) -> None:
    """Nothing of this touches a request that says nothing of it."""
    body = {"model": "m", "messages": [{"role": "user", "content": ASKED.replace("butcher", "baker")}]}
    response = stack.post(body)
    assert response.status_code == 200
    assert response.headers["x-truthlens-decision"] == "default"

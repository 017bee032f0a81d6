"""Through a real Envoy: whatever a client can show is scored, or the verdict says that it was not, or it does not leave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.fakes.answer_fields import Form, alone, beside
from tests.integration.support.backend import Raw, json_reply
from tests.integration.support.models import BAD, GOOD, request
from tests.integration.support.stack import Stack
from tests.integration.support.streams.gateway import Gateway, policy_of
from tests.integration.support.streams.stage import SteppedBackend, read_back
from tests.integration.support.streams.streams import sse

pytestmark = pytest.mark.envoy

_ALL = "threshold: 0.3, details: true"
PLANS = {
    "annotate": f"{_ALL}, streaming: buffer",
    "block": f"{_ALL}, streaming: buffer, on_unchecked: block",
    "gate": f"{_ALL}, streaming: gate",
    "gate-block": f"{_ALL}, streaming: gate, on_unchecked: block",
    "observe": f"{_ALL}, streaming: observe",
    "thoughts": f"{_ALL}, streaming: observe, reasoning: score",
    "corrected": f"{_ALL}, streaming: buffer, mode: standard, timeout_s: 20",
}
FALSE = BAD.split(". ")[0] + "."
WORD = b"surcharge"
CASES = {**{f"alone: {name}": form for name, form in alone(FALSE).items()},
         **{f"beside: {name}": form for name, form in beside(FALSE, GOOD).items()}}  # fmt: skip


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment with a plan for every way of delivering an answer."""
    deployment = Stack(tmp_path_factory.mktemp("fields"), policy_of(PLANS), backend=SteppedBackend())
    try:
        deployment.start()
        yield deployment
    finally:
        deployment.stop()


def asked(stack: Stack, plan: str, reply: Raw) -> httpx.Response:
    stack.backend.reply = lambda _request: reply
    return stack.post(request("scripted-model"), headers={"x-domain": plan})


def is_told(status: str | None, reason: str | None, detected: bool) -> bool:
    return detected or (status in ("partial", "unchecked") and reason == "dialect")


def verdict_of(body: bytes) -> Any:
    """The verdict of a stream whose content need not be text."""
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if b'"truthlens"' in line]
    (chunk,) = map(json.loads, lines)
    return chunk["truthlens"]


@pytest.mark.parametrize("name", CASES)
def test_no_json_answer_with_text_counts_as_checked_or_empty(stack: Stack, name: str) -> None:
    """It is flagged, or unread text is told; and where everything must be checked, that does not leave."""
    for plan in ("annotate", "block"):
        response = asked(stack, plan, json_reply(CASES[name].body()))
        says = {key: response.headers.get(f"x-truthlens-{key}") for key in ("status", "reason", "detected")}
        flagged = says["detected"] == "true"
        assert is_told(says["status"], says["reason"], flagged), says
        if plan == "block" and not flagged:
            assert response.status_code == 424
            assert WORD not in response.content
        if response.status_code == 200 and says["status"] == "partial":
            assert response.json()["truthlens"]["coverage"]["answer"] < 1.0


@pytest.mark.parametrize("plan", ["annotate", "block", "gate", "gate-block", "observe"])
def test_no_stream_with_text_counts_as_checked_or_empty(stack: Stack, plan: str) -> None:
    """The same answers, streamed: whole, gated, and observed."""
    gateway = Gateway(stack)
    found = {}
    for name, form in CASES.items():
        client = gateway.read(plan, sse(form.frames()))
        if client.response.status == 424:
            told, body = json.loads(client.body)["error"]["code"], client.body
            found[name] = told == "dialect" and WORD not in body
            continue
        verdict = verdict_of(client.body)
        flagged = verdict.get("detected", False)
        fine = is_told(verdict["status"], verdict.get("reason"), flagged)
        if "block" in plan and not flagged:
            fine = fine and WORD not in client.body
        found[name] = fine
    assert [name for name, fine in found.items() if not fine] == []


def test_nothing_is_put_into_a_turn_that_calls_a_tool(stack: Stack) -> None:
    """The text beside the call is flagged in the headers, and the turn is the backend's own."""
    form = alone(FALSE)["beside a tool call"]
    response = asked(stack, "block", json_reply(form.body()))
    answer = response.json()
    told = answer.pop("truthlens")
    assert answer == form.body()
    assert (response.headers["x-truthlens-status"], response.headers["x-truthlens-detected"]) == (
        "checked",
        "true",
    )
    assert "warning-not-pasted" in told["notes"]


def test_the_coverage_of_several_choices_counts_each(stack: Stack) -> None:
    """One answer is supported, one is in a script that the model does not read, one calls a tool."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"place": "Elm Street"}'}}
    messages = (
        {"content": GOOD},
        {"content": "国内电汇的费用是七十五美元，另外还要收取百分之九的安全附加费。"},
        {"content": None, "tool_calls": [call]},
    )
    choices = [
        {"index": place, "message": each, "finish_reason": "stop"} for place, each in enumerate(messages)
    ]
    response = asked(stack, "annotate", json_reply(Form(top={"choices": choices}).body()))
    told = response.json()["truthlens"]
    assert response.headers["x-truthlens-status"] == "partial"
    assert told["coverage"]["answer"] < 0.5
    assert [choice["coverage"]["answer"] for choice in told["choices"]] == [1.0, 0.0, 0.0]
    exposed = httpx.get(f"{stack.console_url}/metrics").text
    assert 'truthlens_coverage_ratio_bucket{le="0.1",part="answer"}' in exposed


LEAD = f"<think>\n{FALSE}\n</think>\n\n"


@pytest.mark.parametrize("streamed", [False, True])
def test_reasoning_in_the_content_is_neither_scored_nor_torn(stack: Stack, streamed: bool) -> None:
    """It passes with its note; a warning stands behind it, before the answer."""
    for text, flagged in ((GOOD, False), (BAD, True)):
        form = Form({"content": LEAD + text})
        response = asked(stack, "annotate", sse(form.frames()) if streamed else json_reply(form.body()))
        if streamed:
            read = read_back(response.content)
            content, told = read.texts[0], read.verdict
        else:
            content, told = response.json()["choices"][0]["message"]["content"], response.json()["truthlens"]
        assert content.startswith(LEAD)
        assert content.endswith(text)
        assert (content == LEAD + text) is not flagged
        assert response.headers["x-truthlens-detected"] == str(flagged).lower()
        assert "reasoning-unscored" in told["notes"]
        assert told["choices"][0]["reasoning"] == {"characters": len(LEAD), "scored": False}
        assert all(
            content[span["start"] : span["end"]] == span["text"] for span in told["choices"][0]["spans"]
        )


def test_a_correction_replaces_the_answer_and_not_the_reasoning(stack: Stack) -> None:
    """What the model thought stays in front of what it says now."""
    replies = iter([Form({"content": LEAD + BAD}), Form({"content": GOOD})])
    stack.backend.reply = lambda _request: json_reply(next(replies, Form({"content": GOOD})).body())
    response = stack.post(request("scripted-model"), headers={"x-domain": "corrected"})
    assert response.json()["choices"][0]["message"]["content"] == LEAD + GOOD
    assert response.headers["x-truthlens-action"] == "refine"


def test_reasoning_is_scored_where_the_plan_says_so(stack: Stack) -> None:
    """In a field of its own, in JSON and in a stream that is observed."""
    form = Form({"content": GOOD, "reasoning_content": FALSE})
    response = asked(stack, "thoughts", json_reply(form.body()))
    streamed = read_back(Gateway(stack).read("thoughts", sse(form.frames())).body)
    for told in (response.json()["truthlens"], streamed.verdict):
        assert told["detected"]
        assert told["choices"][0]["reasoning"]["scored"]
        assert "reasoning-unscored" not in told["notes"]
    passed = asked(stack, "annotate", json_reply(form.body()))
    assert passed.headers["x-truthlens-detected"] == "false"
    assert passed.json()["truthlens"]["notes"] == ["reasoning-unscored"]

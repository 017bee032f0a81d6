"""Answers that say something invented where a client may show it: detected, or told as not checked, and then not delivered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.attack.backend import Answer
from tests.attack.gateway import Target, attacks, says, shown
from tests.attack.texts import FALSE, TRUE, tells
from tests.integration.support.backend import completion

pytestmark = pytest.mark.envoy

# Members in which servers and gateways put text that clients show, and some that nobody has heard of.
_NAMES = st.sampled_from(
    [
        "content",
        "text",
        "refusal",
        "transcript",
        "output",
        "output_text",
        "generated_text",
        "response",
        "answer",
        "completion",
        "message",
        "delta",
        "result",
        "value",
        "markdown",
        "html",
        "summary",
        "analysis",
        "commentary",
        "final",
        "thought",
        "explanation",
        "note",
        "display",
        "speech",
        "caption",
        "body",
        "parts",
        "candidates",
        "outputs",
        "choices",
        "messages",
        "items",
        "data",
        "extra",
        "provider_specific_fields",
        "annotations",
        "warning",
        "error",
        "detail",
        "suggestions",
        "followups",
        "translation",
        "x",
    ]
) | st.from_regex("[a-z]{1,3}[a-z_]{0,8}", fullmatch=True)
# What an `error` says is the backend's own. What the documentation lists as bookkeeping holds no answer; `truthlens` is our own, and is replaced.
_NOT_SHOWN = frozenset(
    {"id", "index", "role", "type", "name", "names", "url", "model", "title", "usage", "truthlens", "object"}
)
_REASONING = ("reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details")
_TYPES = st.sampled_from(
    [
        "text",
        "Text",
        "markdown",
        "refusal",
        "output_text",
        "output_json",
        "html",
        "tool_result",
        None,
        1,
        ["text"],
    ]
)
_CALL = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


@st.composite
def _wrapped(draw: st.DrawFn, text: str) -> Any:
    """The text in objects and lists."""
    value: Any = text
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            value = draw(st.sampled_from([[value], [None, value], ["", value, 3]]))
        else:
            name = draw(_NAMES)
            assume(name not in _NOT_SHOWN)
            value = {name: value, **draw(st.sampled_from([{}, {"type": "text"}, {"index": 0}, {"id": "a"}]))}
    return value


@st.composite
def _answers(draw: st.DrawFn) -> dict[str, Any]:
    """A completion with the invented text in one place, and perhaps a supported answer in its own."""
    value = draw(_wrapped(FALSE))
    name = draw(_NAMES)
    assume(name not in _NOT_SHOWN)
    content = draw(st.sampled_from([TRUE, TRUE, None, "", [{"type": "text", "text": TRUE}], []]))
    message: dict[str, Any] = {"role": "assistant", "content": content}
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "finish_reason": draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter", None])),
    }
    body = {**completion(None), "choices": [choice]}
    match draw(
        st.sampled_from(["message", "message", "choice", "top", "part", "part", "another choice", "call"])
    ):
        case "message":
            message[name] = value
        case "choice":
            if name == "message" and not isinstance(value, dict):
                name = "delta"
            choice[name] = value
        case "top":
            assume(name != "choices")
            body[name] = value
        case "part":
            parts = [{"type": "text", "text": TRUE}] if content else []
            part = {"type": draw(_TYPES), draw(st.sampled_from(["text", name])): value}
            message["content"] = draw(st.permutations([*parts, part]))
        case "another choice":
            other = {"role": "assistant", "content": TRUE, name: value}
            body["choices"] = draw(
                st.permutations([choice, {"index": 1, "message": other, "finish_reason": "stop"}])
            )
        case "call":
            message["content"] = draw(st.sampled_from([FALSE, [{"type": "text", "text": FALSE}], value]))
            message[draw(st.sampled_from(["tool_calls", "function_call"]))] = draw(
                st.sampled_from([[_CALL], [{}], [], {"name": "f", "arguments": "{}"}, [_CALL] * 3])
            )
    return body


def _streamed(body: dict[str, Any]) -> Answer:
    """The same answer as one chunk of a stream."""
    choices = [
        {
            **{key: value for key, value in choice.items() if key != "message"},
            "delta": choice["message"],
            "finish_reason": None,
        }
        for choice in body["choices"]
    ]
    last = [{"index": choice["index"], "delta": {}, "finish_reason": "stop"} for choice in body["choices"]]
    chunks = [{**body, "choices": choices}, {"id": body.get("id"), "choices": last}]
    frames = [
        b"data: " + json.dumps({**each, "object": "chat.completion.chunk"}).encode() + b"\n\n"
        for each in chunks
    ]
    return Answer([*frames, b"data: [DONE]\n\n"], "text/event-stream")


def _verdict(content: bytes) -> dict[str, Any]:
    """The ``truthlens`` object of a JSON body or of a stream."""
    for line in [content, *content.splitlines()]:
        try:
            value = json.loads(line.removeprefix(b"data: "))
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("truthlens"), dict):
            return dict(value["truthlens"])
    return {}


def _check(target: Target, answer: Answer | dict[str, Any], body: Any, *, reasoning: bool = False) -> None:
    """Raise where the invented text counts as checked, or leaves although everything must be checked."""
    for plan in ("annotate", "block"):
        response = target.ask(answer, plan=plan)
        told = says(response)
        detail = _verdict(response.content)
        passed_and_said = reasoning and "reasoning-unscored" in detail.get("notes", [])
        if told.get("detected") == "true" or passed_and_said or not tells(response.content):
            continue
        assert plan != "block", f"delivered:\n{shown(response, body)}"
        assert told.get("status") in ("partial", "unchecked"), f"counts as checked:\n{shown(response, body)}"
        if told["status"] == "partial":
            assert detail["coverage"]["answer"] < 1.0, f"counts as covered:\n{shown(response, body)}"


@attacks(ci=70, nightly=3000)
@given(body=_answers())
def test_an_invention_in_any_member_is_detected_or_told(by_header: Target, body: dict[str, Any]) -> None:
    _check(by_header, body, body)


@attacks(ci=40, nightly=1500)
@given(body=_answers())
def test_an_invention_in_any_member_of_a_stream_is_detected_or_told(
    by_header: Target, body: dict[str, Any]
) -> None:
    _check(by_header, _streamed(body), body)


@attacks(ci=10, nightly=200)
@given(name=st.sampled_from(_REASONING), content=st.sampled_from([None, "", TRUE]), value=_wrapped(FALSE))
@example("reasoning_content", TRUE, FALSE)
@example("reasoning_content", None, FALSE)
def test_an_invention_in_the_reasoning_is_detected_or_told(
    by_header: Target, name: str, content: str | None, value: Any
) -> None:
    """Beside an answer it may pass, if the verdict says so."""
    body = {
        **completion(None),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, name: value},
                "finish_reason": "stop",
            }
        ],
    }
    _check(by_header, body, body, reasoning=content == TRUE)


_BODIES = {
    "choices as an object": {"choices": {"0": {"message": {"content": FALSE}}}},
    "one choice and no list": {"choices": {"message": {"content": FALSE}}},
    "no choices": {"message": {"role": "assistant", "content": FALSE}},
    "no choices and a candidate": {"candidates": [{"content": {"parts": [{"text": FALSE}]}}]},
    "no choices and an output": {
        "output": [{"type": "message", "content": [{"type": "output_text", "text": FALSE}]}]
    },
    "choices of texts": {"choices": [FALSE]},
    "an error beside it": {
        "error": {"message": "x"},
        "choices": [{"index": 0, "message": {"content": FALSE}}],
    },
    "an error that tells it": {"error": {"message": FALSE}},
    "the same index twice": {
        "choices": [{"index": 0, "message": {"content": each}} for each in (TRUE, FALSE)]
    },
    "a negative index": {"choices": [{"index": -1, "message": {"content": FALSE}}]},
    "a delta in a whole answer": {"choices": [{"index": 0, "delta": {"content": FALSE}}]},
    "a completion's text in a chat": {"choices": [{"index": 0, "text": FALSE}]},
    "a list": [completion(FALSE)],
    "a text": FALSE,
    "an empty choice first": {"choices": [{}, {"index": 1, "message": {"content": FALSE}}]},
    "nothing in choices and text above": {"choices": [], "text": FALSE},
}


@pytest.mark.parametrize("name", _BODIES)
def test_bodies_of_odd_shapes_are_detected_or_told(by_header: Target, name: str) -> None:
    """A client that is kind enough shows them."""
    body = json.dumps(_BODIES[name]).encode()
    _check(by_header, Answer([body]), body)


# Members that hold no text to show by any server's documentation, with one in them all the same.
_BOOKKEEPING: dict[str, tuple[str, Any]] = {
    "an id": ("choice", {"id": FALSE}),
    "a role": ("message", {"role": FALSE}),
    "a type": ("message", {"type": FALSE}),
    "a name": ("message", {"name": FALSE}),
    "an index": ("choice", {"index": FALSE}),
    "a finish reason": ("choice", {"finish_reason": FALSE}),
    "usage": ("top", {"usage": {"total_tokens": 3, "text": FALSE}}),
    "timings": ("top", {"timings": {"text": FALSE}}),
    "log probabilities as a text": ("choice", {"logprobs": FALSE}),
    "log probabilities with a text": ("choice", {"logprobs": {"text": FALSE}}),
    "token ids as a text": ("choice", {"token_ids": FALSE}),
    "tool calls as a text": ("message", {"tool_calls": FALSE}),
    "a tool call with a text": ("message", {"tool_calls": [{**_CALL, "text": FALSE}]}),
    "a tool call that is a text": ("message", {"tool_calls": [{"type": "text", "text": FALSE}]}),
    "an annotation with a text": ("message", {"annotations": [{"type": "note", "text": FALSE}]}),
}


@pytest.mark.parametrize("name", _BOOKKEEPING)
def test_a_sentence_in_a_place_for_bookkeeping_is_detected_or_told(by_header: Target, name: str) -> None:
    """What a member is called does not make its text harmless."""
    place, members = _BOOKKEEPING[name]
    body = completion(TRUE)
    choice = body["choices"][0]
    {"top": body, "choice": choice, "message": choice["message"]}[place].update(members)
    _check(by_header, body, body)


_MEDIA = (
    "application/json",
    "text/plain",
    "application/x-ndjson",
    "text/html",
    "application/problem+json",
    "application/octet-stream",
    "text/event-stream",
    "",
)


@pytest.mark.parametrize("media_type", _MEDIA)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32-le"])
def test_answers_of_any_media_type_and_encoding_are_detected_or_told(
    by_header: Target, media_type: str, encoding: str
) -> None:
    body = json.dumps(completion(FALSE)).encode(encoding)
    _check(by_header, Answer([body], media_type), body)


def test_the_plain_answers_are_told_apart(by_header: Target) -> None:
    """Else nothing here would show anything."""
    for plan in ("annotate", "block"):
        assert says(by_header.ask(FALSE, plan=plan))["detected"] == "true"
        told = says(by_header.ask(TRUE, plan=plan))
        assert (told["status"], told["detected"]) == ("checked", "false")

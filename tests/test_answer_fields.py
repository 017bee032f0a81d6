"""What a client can show counts as the answer, wherever it stands: in JSON, in whole streams, and in streams under way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest

from tests.fakes.answer_fields import Form, alone, beside, harmless
from tests.fakes.detectors import WordDetector
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from truthlens.core.records.enums import Action, Reason, Status
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.core.records.outcome import Outcome
from truthlens.exchange.ticket import Ticket
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.streaming.types import Ack
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

FALSE, TRUE = "The ferry costs nine dollars.", "The ferry is free and blue."
REQUEST = {
    "model": "m",
    "messages": [{"role": "user", "content": f"<context>{TRUE}</context>\nWhat does the ferry cost?"}],
}
JSON = ResponseHead(200, {"content-type": "application/json"})
SSE = ResponseHead(200, {"content-type": "text/event-stream"})


class Way(StrEnum):
    """How an answer comes, and what is done with it."""

    JSON = "json"
    BUFFER = "buffer"
    OBSERVE = "observe"
    GATE = "gate"


async def assessment(form: Form, way: Way, **keys: Any) -> tuple[Outcome, bytes]:
    """The outcome of an exchange with this answer, and what its client gets (nothing where it is blocked)."""
    streaming = way.value if way is not Way.JSON else "buffer"
    policy = {"threshold": 0.5, "details": True, "streaming": streaming, **keys}
    holder = PolicyHolder(compile_policy(json.dumps({"hallucination": policy}), file="p.yaml"))
    engine = engine_of({None: WordDetector({"nine": 0.9})}, workers=1)
    pipeline = pipeline_for(holder, engine, Metrics(), Recent())
    ticket = pipeline.admit(RequestHead("POST", "/v1/chat/completions", {}, {}))
    ticket = await pipeline.open(ticket, json.dumps(REQUEST).encode())
    await pipeline.prepare(ticket)
    raw = json.dumps(form.body()).encode() if way is Way.JSON else b"".join(form.frames())
    try:
        if way in (Way.JSON, Way.BUFFER):
            outcome = (await pipeline.assess(ticket, JSON if way is Way.JSON else SSE, raw)).outcome
            return outcome, raw if outcome.body is None else outcome.body
        return await _flowed(pipeline, ticket, form)
    finally:
        await engine.aclose()


async def _flowed(pipeline: Any, ticket: Ticket, form: Form) -> tuple[Outcome, bytes]:
    got: list[bytes] = []
    ended = asyncio.Event()
    frames = form.frames()

    async def emit(ack: Ack) -> None:
        got.append(frames[len(got)] if ack.body is None else ack.body)
        if ack.end:
            ended.set()

    flow = pipeline.flow(ticket, emit)
    for place, frame in enumerate(frames, start=1):
        await flow.feed(frame, end=place == len(frames))
    await asyncio.wait_for(ended.wait(), 20)
    await flow.aclose()
    assert flow.outcome is not None
    return flow.outcome, b"".join(got)


def is_told(outcome: Outcome) -> bool:
    """Whether the verdict says that something is wrong, or that something was not checked."""
    verdict = outcome.verdict
    if verdict.flagged:
        return True
    unread = verdict.status in (Status.PARTIAL, Status.UNCHECKED) and verdict.reason is Reason.DIALECT
    return unread and (verdict.coverage is None or verdict.coverage.answer_ratio < 1.0)


CASES = {**{f"alone: {name}": form for name, form in alone(FALSE).items()},
         **{f"beside: {name}": form for name, form in beside(FALSE, TRUE).items()}}  # fmt: skip


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("name", CASES)
async def test_no_text_that_a_client_can_show_counts_as_checked_or_empty(name: str, way: Way) -> None:
    """It is scored with the answer, or the verdict says that not all was, and how much."""
    outcome, _ = await assessment(CASES[name], way)
    assert is_told(outcome), outcome.verdict


@pytest.mark.parametrize("way", [Way.JSON, Way.BUFFER, Way.GATE])
@pytest.mark.parametrize("name", CASES)
async def test_nothing_passes_unflagged_where_everything_must_be_checked(name: str, way: Way) -> None:
    """Under on_unchecked block it is flagged, or it does not leave."""
    outcome, body = await assessment(CASES[name], way, on_unchecked="block")
    if not outcome.verdict.flagged:
        assert outcome.action is Action.BLOCK
        assert b"nine" not in body


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("name", harmless(TRUE))
async def test_what_servers_write_beside_an_answer_does_not_make_it_partial(name: str, way: Way) -> None:
    """Bookkeeping holds no text, and a copy of the answer was scored with it."""
    outcome, _ = await assessment(harmless(TRUE)[name], way)
    assert (outcome.verdict.status, outcome.action) == (Status.CHECKED, Action.PASS)


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize(
    "message",
    [{"content": None}, {"content": ""}, {}, {"content": None, "refusal": "I cannot help with that."},
     {"content": None, "refusal": ""}, {"content": " \n", "reasoning_content": "\n"}],
)  # fmt: skip
async def test_what_claims_nothing_is_still_no_answer(message: Mapping[str, Any], way: Way) -> None:
    """Empty answers and plain refusals pass everywhere, and are never called checked."""
    keys = {} if way is Way.OBSERVE else {"on_unchecked": "block"}
    outcome, _ = await assessment(Form(message), way, **keys)
    assert (outcome.verdict.status, outcome.verdict.reason) == (Status.UNCHECKED, Reason.EMPTY_ANSWER)
    assert outcome.action is Action.PASS


CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "way"),
    [
        *[({"content": None}, way) for way in Way],
        *[({"content": "", "reasoning": "I look it up."}, way) for way in Way],
        *[({"content": "<think>Hm.</think>\n"}, way) for way in (Way.JSON, Way.BUFFER)],
    ],
)
async def test_a_tool_call_alone_is_still_a_tool_call(message: Mapping[str, Any], way: Way) -> None:
    """With reasoning before it as well."""
    keys = {} if way is Way.OBSERVE else {"on_unchecked": "block"}
    outcome, _ = await assessment(Form({**message, "tool_calls": [CALL]}), way, **keys)
    assert (outcome.verdict.status, outcome.verdict.reason) == (Status.UNCHECKED, Reason.TOOL_CALL)
    assert outcome.action is Action.PASS


ODD = [name for name, form in alone(FALSE).items() if name in
       ("beside a tool call", "refusal", "transcript", "text object", "choice text", "reasoning_content", "reasoning in the content")]  # fmt: skip


@pytest.mark.parametrize("way", [Way.JSON, Way.BUFFER])
@pytest.mark.parametrize("name", ODD)
async def test_nothing_is_pasted_into_text_that_does_not_stand_in_the_content(name: str, way: Way) -> None:
    """The headers and the ``truthlens`` object carry the warning; the choice is the backend's own."""
    form = alone(FALSE)[name]
    outcome, body = await assessment(form, way)
    if way is Way.JSON:
        got = json.loads(body)
        assert got.pop("truthlens")["notes"][-1] == "warning-not-pasted"
        assert got == form.body()
    else:
        assert all(frame in body for frame in form.frames())
    assert outcome.action in (Action.WARN, Action.PASS)


# --- coverage ---------------------------------------------------------------------------------------------


def choices(*messages: Mapping[str, Any]) -> Form:
    found = [
        {"index": place, "message": message, "finish_reason": "stop"}
        for place, message in enumerate(messages)
    ]
    return Form(top={"choices": found})


@pytest.mark.parametrize(
    "other",
    [{"content": None, "tool_calls": [{"function": {"name": "f", "arguments": '{"place": "Elm Street"}'}}]},
     {"content": None, "remark": "The ferry has nine decks."}],
)  # fmt: skip
async def test_the_coverage_counts_choices_that_were_not_scored(other: Mapping[str, Any]) -> None:
    """In the verdict on all choices, in their own, and in the metrics."""
    outcome, body = await assessment(choices({"content": TRUE}, other), Way.JSON)
    assert outcome.verdict.status is Status.PARTIAL
    told = json.loads(body)["truthlens"]
    assert told["coverage"]["answer"] < 1.0
    assert told["coverage"]["answer_tokens"] > told["coverage"]["answer_tokens_scored"] == 4
    assert [choice["coverage"]["answer"] for choice in told["choices"]] == [1.0, 0.0]


class Torn(Form):
    """An answer in whose middle stands a frame that nobody can read."""

    def frames(self) -> list[bytes]:
        first, middle, *rest = super().frames()
        return [
            first,
            middle,
            b'data: {"choices": [{"delta": {"content": "The ferry has nine decks."\n\n',
            *rest,
        ]


@pytest.mark.parametrize("way", [Way.BUFFER, Way.OBSERVE, Way.GATE])
async def test_the_coverage_counts_frames_that_nobody_can_read(way: Way) -> None:
    """All of their bytes, since nobody knows which of them are text."""
    outcome, _ = await assessment(Torn({"content": TRUE}), way)
    assert (outcome.verdict.status, outcome.verdict.reason) == (Status.PARTIAL, Reason.DIALECT)
    assert outcome.verdict.coverage is not None
    assert outcome.verdict.coverage.answer_ratio < 0.5


# --- reasoning --------------------------------------------------------------------------------------------

THOUGHTS = {
    "reasoning_content": {"content": TRUE, "reasoning_content": FALSE},
    "reasoning": {"content": TRUE, "reasoning": FALSE, "reasoning_details": [{"type": "reasoning.text", "text": FALSE}]},
    "part": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": FALSE}]}, {"type": "text", "text": TRUE}]},
}  # fmt: skip
IN_CONTENT = {
    "block": {"content": f"<think>\n{FALSE}\n</think>\n\n{TRUE}"},
    "unopened block": {"content": f"{FALSE}\n</think>\n\n{TRUE}"},
}


# In streams under way, the text is told apart by others.
REASONED = [
    *[(name, way) for name in THOUGHTS for way in Way],
    *[(name, way) for name in IN_CONTENT for way in (Way.JSON, Way.BUFFER)],
]


@pytest.mark.parametrize(("name", "way"), REASONED)
async def test_reasoning_that_passes_is_said_to_be_unscored(name: str, way: Way) -> None:
    """It does not flag the answer, and the verdict does not hide it."""
    outcome, body = await assessment(Form({**THOUGHTS, **IN_CONTENT}[name]), way)
    assert (outcome.verdict.status, outcome.verdict.flagged) == (Status.CHECKED, False)
    assert outcome.notes == ("reasoning-unscored",)
    told = _told(body)
    assert told["notes"] == ["reasoning-unscored"]
    assert told["choices"][0]["reasoning"]["scored"] is False
    assert told["choices"][0]["reasoning"]["characters"] >= len(FALSE)


@pytest.mark.parametrize(("name", "way"), [case for case in REASONED if case[1] is not Way.GATE])
async def test_reasoning_that_is_scored_counts(name: str, way: Way) -> None:
    """Its score is the verdict's where it is the higher one, and it says where in the reasoning."""
    outcome, body = await assessment(Form({**THOUGHTS, **IN_CONTENT}[name]), way, reasoning="score")
    assert (outcome.verdict.status, outcome.verdict.score, outcome.notes) == (Status.CHECKED, 0.9, ())
    told = _told(body)["choices"][0]
    assert (told["reasoning"]["scored"], told["reasoning"]["score"], told["spans"]) == (True, 0.9, [])
    assert told["coverage"]["answer_tokens"] == 8
    (span,) = told["reasoning"]["spans"]
    assert span["end"] - span["start"] == len(FALSE)
    (mark,) = span["marked"]
    assert mark["end"] - mark["start"] == len("nine")


@pytest.mark.parametrize("way", [Way.JSON, Way.BUFFER])
async def test_a_warning_stands_between_the_reasoning_and_the_answer(way: Way) -> None:
    """The block stays first, the answer whole, and spans are characters of what the client gets."""
    lead = "<think>\nLet me see.\n</think>\n\n"
    outcome, body = await assessment(Form({"content": lead + FALSE}), way, warning_template="Beware.")
    assert outcome.action is Action.WARN
    content = f"{lead}Beware.\n\n{FALSE}"
    assert _content(body) == content
    (span,) = _told(body)["choices"][0]["spans"]
    assert content[span["start"] : span["end"]] == span["text"] == FALSE
    (mark,) = span["marked"]
    assert content[mark["start"] : mark["end"]] == mark["text"] == "nine"


def _told(body: bytes) -> Any:
    (found,) = [each["truthlens"] for each in _objects(body) if "truthlens" in each]
    return found


def _content(body: bytes) -> str:
    held = [
        choice.get("message", choice.get("delta")) for each in _objects(body) for choice in each["choices"]
    ]
    return "".join(each.get("content") or "" for each in held)


def _objects(body: bytes) -> list[Any]:
    if body.startswith(b"{"):
        return [json.loads(body)]
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]

"""Streams that are hard to read, through a real Envoy: nothing in them passes as checked that was not."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.support.backend import http
from tests.integration.support.models import BAD, GOOD
from tests.integration.support.streams.gateway import MODES, RIGHT, WARNING, WRONG, Gateway
from tests.integration.support.streams.stage import (
    metric,
    read_back,
)
from tests.integration.support.streams.streams import DONE, answer, chunk, sse
from truthlens.core.records.enums import Endpoint

pytestmark = pytest.mark.envoy


UNREAD = {
    "text-of-the-other-api": b"".join(answer(WRONG, endpoint=Endpoint.COMPLETIONS)),
    "no-json": answer(GOOD)[0] + f"data: <{WRONG}>\n\n".encode() + b"".join(answer(GOOD)[-2:]),
    "object-as-content": answer(GOOD)[0]
    + chunk([{"index": 0, "delta": {"content": {"text": WRONG}}, "finish_reason": None}])
    + b"".join(answer(GOOD)[-2:]),
    "text-beside-a-delta": answer(GOOD)[0]
    + chunk([{"index": 0, "delta": {"content": ""}, "text": WRONG, "finish_reason": None}])
    + b"".join(answer(GOOD)[-2:]),
    "message-beside-a-delta": answer(GOOD)[0]
    + chunk([{"index": 0, "delta": {}, "message": {"content": WRONG}, "finish_reason": None}])
    + b"".join(answer(GOOD)[-2:]),
}


@pytest.mark.parametrize("what", UNREAD)
@pytest.mark.parametrize("plan", ["observe", "mark", "buffer"])
def test_text_that_cannot_be_read_is_not_called_empty(gateway: Gateway, plan: str, what: str) -> None:
    name = str(uuid.uuid4())
    client = gateway.read(plan, http(UNREAD[what], content_type="text/event-stream"), name=name)
    assert client.body == UNREAD[what]
    assert (gateway.logged(name)["status"], gateway.logged(name)["reason"]) == ("unchecked", "dialect")


@pytest.mark.parametrize("what", UNREAD)
@pytest.mark.parametrize("plan", ["block", "buffer-block"])
def test_text_that_cannot_be_read_does_not_pass_a_plan_that_blocks(
    gateway: Gateway, plan: str, what: str
) -> None:
    client = gateway.read(plan, http(UNREAD[what], content_type="text/event-stream"))
    assert WRONG.encode() not in client.body


@pytest.mark.parametrize("key", [b'"truthlens"', b'"truthl\\u0065ns"'], ids=["plain", "escaped"])
@pytest.mark.parametrize("plan", MODES)
def test_nobody_else_speaks_in_our_name(gateway: Gateway, plan: str, key: bytes) -> None:
    """A member of that name is taken out, however it is written; nothing else is."""
    frames = answer(GOOD)
    forged = frames[-2].replace(b'"choices"', key + b': {"score": 0.0}, "choices"')
    client = gateway.read(plan, sse([*frames[:-2], forged, DONE]))
    assert read_back(client.body).verdicts == []
    assert client.body.replace(b" ", b"") == b"".join(frames).replace(b" ", b"")


@pytest.mark.parametrize("plan", ["observe", "buffer"])
def test_text_behind_a_finish_is_part_of_the_answer(gateway: Gateway, plan: str) -> None:
    """Whatever its order: the offsets count what was received; an observed stream's warning comes behind all of it."""
    late = [chunk([{"index": 0, "delta": {"content": f" {WRONG}"}, "finish_reason": None}]), answer(GOOD)[-2]]
    frames = [*answer(GOOD)[:-1], *late, DONE]
    read = gateway.told(plan, sse(frames, cuts=(1 << 20,)), details=True)
    text = read.texts[0]
    assert text.replace(WARNING, "").strip() == f"{GOOD} {WRONG}"
    assert text.endswith(WARNING) is (plan == "observe")
    spans = read.verdict["choices"][0]["spans"]
    assert spans
    assert all(text[span["start"] : span["end"]] == span["text"] for span in spans)


@pytest.mark.parametrize("plan", ["mark", "withhold", "stop"])
def test_lost_log_probabilities_are_noted(gateway: Gateway, plan: str) -> None:
    told = [f"{RIGHT} ", f"{WRONG} ", RIGHT]
    scored = [
        chunk([{"index": 0, "delta": {"content": text}, "logprobs": {"content": []}, "finish_reason": None}])
        for text in told
    ]
    read = gateway.told(plan, sse([answer(GOOD)[0], *scored, *answer(GOOD)[-2:]]), details=True)
    assert "logprobs-dropped" in read.verdict["notes"]


def test_what_was_stopped_unchecked_is_not_reported_as_checked(gateway: Gateway) -> None:
    read = gateway.told("block", sse(answer(f"{RIGHT} 河上的渡轮是蓝色的。")), details=True)
    assert read.texts[0].startswith(RIGHT)
    assert "渡轮" not in read.texts[0]
    assert (read.verdict["status"], read.verdict["reason"]) == ("partial", "language")
    assert read.verdict["action"] == "block"


@pytest.mark.parametrize("body", [DONE, b": one\n\n: two\n\n"], ids=["marker", "comments"])
@pytest.mark.parametrize("plan", ["observe", "mark", "buffer"])
def test_a_stream_that_says_nothing_is_empty_whatever_the_plan(
    gateway: Gateway, plan: str, body: bytes
) -> None:
    name = str(uuid.uuid4())
    read = gateway.told(plan, http(body, content_type="text/event-stream"), name=name, details=True)
    assert gateway.logged(name)["reason"] == "empty-answer"
    assert (read.verdict["status"], read.verdict["reason"]) == ("unchecked", "empty-answer")


@pytest.mark.parametrize("plan", ["observe", "mark", "buffer"])
def test_a_frame_of_two_megabytes_is_read_whatever_the_plan(gateway: Gateway, plan: str) -> None:
    thought = chunk([{"index": 0, "delta": {"reasoning_content": "x" * 2_000_000}, "finish_reason": None}])
    name = str(uuid.uuid4())
    frames = [answer(GOOD)[0], thought, *answer(GOOD)[1:]]
    assert gateway.read(plan, sse(frames), name=name).body == b"".join(frames)
    assert (gateway.logged(name)["status"], gateway.logged(name)["reason"]) == ("checked", None)


@pytest.mark.parametrize("n", [1, 3])
def test_a_stream_in_which_everything_was_stopped_is_a_block(gateway: Gateway, n: int) -> None:
    """Also where the backend gives fewer choices than were asked for."""
    assert gateway.told("stop", sse(answer(BAD)), details=True, n=n).verdict["action"] == "block"


def test_a_backend_that_outruns_scoring_is_scored_by_whole_sentences(gateway: Gateway) -> None:
    """A full gate asks for halves only where it has no whole sentence, and whatever was decided leaves before that."""

    def scored() -> float:
        return sum(
            metric(gateway.stack, "truthlens_stream_sentences_total", decision="gate-patient", result=result)
            for result in ("passed", "flagged", "unchecked")
        )

    before, text = scored(), " ".join([GOOD] * 60)
    assert gateway.told("gate-patient", sse(answer(text))).texts[0] == text
    # One message of Envoy's may be as large as the bound, and then holds nothing but the half sentence at its end.
    assert 120 <= scored() - before < 132

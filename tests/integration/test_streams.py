"""What is promised of streams, through a real Envoy: headers, verdict chunk, warning, gate, accounts, order of events."""

from __future__ import annotations

import gzip
import json
import socket
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletionChunk

from tests.integration.support.backend import completion, http, json_reply
from tests.integration.support.models import BAD, GOOD, PASSAGES, request
from tests.integration.support.streams import streams
from tests.integration.support.streams.gateway import (
    LENIENT,
    LIVE,
    MARK,
    MODES,
    NO_EVIDENCE,
    NOTICE,
    RIGHT,
    WARNING,
    WRONG,
    Gateway,
    sentence_ends,
)
from tests.integration.support.streams.stage import (
    Scene,
    metric,
    read_back,
    until,
)
from tests.integration.support.streams.streams import DONE, Framing, answer, chunk, sse
from truthlens.core.records.enums import Endpoint

pytestmark = pytest.mark.envoy

# --- headers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", LIVE)
def test_headers_that_leave_before_the_answer_say_pending(gateway: Gateway, plan: str) -> None:
    """They are there before the first byte of the body, and none of what the route says of a dead sidecar is."""
    scene = Scene(answer(GOOD))
    with gateway.open(plan, scene) as client:
        ours = {key: value for key, value in client.headers.items() if key.startswith("x-truthlens-")}
        assert ours == {
            "x-truthlens-enabled": "true",
            "x-truthlens-mode": "lightweight",
            "x-truthlens-status": "pending",
            "x-truthlens-decision": plan,
        }
        scene.rest()
        assert client.rest() == scene.written


@pytest.mark.parametrize("plan", LENIENT)
def test_nothing_to_check_is_said_at_once(gateway: Gateway, plan: str) -> None:
    """Without evidence the headers are final, and the stream is none of our business."""
    frames = answer("Good morning.")
    client = gateway.read(plan, sse(frames), body=NO_EVIDENCE)
    assert client.body == b"".join(frames)
    assert (client.says("status"), client.says("reason")) == ("unchecked", "no-context")
    assert client.says("enabled") == "false"


@pytest.mark.parametrize("plan", ["observe", "mark"])
def test_who_asks_for_the_verdict_gets_it_also_where_there_is_no_evidence(
    gateway: Gateway, plan: str
) -> None:
    """The headers say it too, since it is known before the answer."""
    client = gateway.read(plan, sse(answer("Good morning.")), body=NO_EVIDENCE, details=True)
    assert [client.says(name) for name in ("enabled", "status", "reason")] == [
        "false",
        "unchecked",
        "no-context",
    ]
    verdict = read_back(client.body).verdict
    assert (verdict["status"], verdict["reason"]) == ("unchecked", "no-context")


def test_a_plan_that_is_switched_off_leaves_the_stream_alone(gateway: Gateway) -> None:
    client = gateway.read("disabled", sse(answer(BAD)))
    assert client.body == b"".join(answer(BAD))
    assert (client.says("status"), client.says("reason")) == ("unchecked", "disabled")


@pytest.mark.parametrize("plan", [plan for plan in LIVE if plan in LENIENT])
def test_a_compressed_stream_passes_as_it_is(gateway: Gateway, plan: str) -> None:
    """It cannot be read piece by piece; the headers say so."""
    packed = gzip.compress(b"".join(answer(BAD)))
    reply = http(packed, content_type="text/event-stream", headers={"content-encoding": "gzip"})
    client = gateway.read(plan, reply)
    assert (client.says("status"), client.says("reason")) == ("unchecked", "encoding")
    assert client.body == packed
    assert client.headers["content-encoding"] == "gzip"


def test_a_compressed_stream_is_read_where_it_is_held_whole(gateway: Gateway) -> None:
    packed = gzip.compress(b"".join(answer(BAD)))
    reply = http(packed, content_type="text/event-stream", headers={"content-encoding": "gzip"})
    client = gateway.read("buffer", reply)
    assert client.says("status") == "checked"
    assert read_back(client.body).texts == {0: f"{WARNING}\n\n{BAD}"}


@pytest.mark.parametrize("reason", ["no-context", "encoding", "dialect"])
def test_what_cannot_be_checked_is_blocked_before_it_begins_where_the_plan_says_so(
    gateway: Gateway, reason: str
) -> None:
    """The headers have not left yet, so that the client gets an error in place of a stream."""
    options: dict[str, Any] = {
        "no-context": {"body": NO_EVIDENCE},
        "encoding": {},
        "dialect": {"path": "/v1/responses"},
    }[reason]
    packed = gzip.compress(b"".join(answer(BAD)))
    encoding = {"content-encoding": "gzip"} if reason == "encoding" else {}
    data = packed if encoding else b"".join(answer(BAD))
    client = gateway.read("block", http(data, content_type="text/event-stream", headers=encoding), **options)
    assert client.response.status == 424
    assert json.loads(client.body)["error"]["code"] == client.says("reason") == reason


@pytest.mark.parametrize("plan", LENIENT)
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages"])
def test_streams_of_other_apis_pass_untouched(gateway: Gateway, plan: str, path: str) -> None:
    events = [
        b'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "delta": "75"}\n\n',
        b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
    ]
    client = gateway.read(plan, sse(events), path=path)
    assert client.body == b"".join(events)
    assert (client.says("status"), client.says("reason")) == ("unchecked", "dialect")


@pytest.mark.parametrize("plan", LIVE)
def test_a_json_answer_to_who_asked_for_a_stream_is_scored_as_json(gateway: Gateway, plan: str) -> None:
    client = gateway.read(plan, json_reply(completion(BAD)))
    assert (client.says("status"), client.says("detected")) == ("checked", "true")
    content = json.loads(client.body)["choices"][0]["message"]["content"]
    assert BAD in content
    assert WARNING in content


@pytest.mark.parametrize("plan", LIVE)
def test_a_stream_to_who_asked_for_json_is_scored_as_a_stream(gateway: Gateway, plan: str) -> None:
    frames = answer(GOOD)
    client = gateway.read(plan, sse(frames), stream=False)
    assert client.says("status") == "pending"
    assert client.body == b"".join(frames)


# --- the verdict chunk ----------------------------------------------------------------------------------------

ENDINGS: dict[str, Callable[[Endpoint], list[bytes]]] = {
    "plain": lambda endpoint: answer(GOOD, endpoint=endpoint),
    "crlf": lambda endpoint: streams.with_newlines(answer(GOOD, endpoint=endpoint), b"\r\n"),
    "usage": lambda endpoint: answer(GOOD, endpoint=endpoint, usage=True),
    "no-done": lambda endpoint: answer(GOOD, endpoint=endpoint)[:-1],
    "no-finish": lambda endpoint: [*answer(GOOD, endpoint=endpoint)[:-2], DONE],
    "nothing": lambda endpoint: answer(GOOD, endpoint=endpoint)[:-2],
    "comments": lambda endpoint: streams.with_comments(answer(GOOD, endpoint=endpoint)),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("endpoint", list(Endpoint))
@pytest.mark.parametrize("plan", MODES)
def test_the_verdict_chunk_is_valid_and_the_last_but_for_usage(
    gateway: Gateway, plan: str, endpoint: Endpoint, ending: str
) -> None:
    """By the official client's own schema; all other bytes are the backend's."""
    frames = ENDINGS[ending](endpoint)
    client = gateway.read(plan, sse(frames), endpoint=endpoint, details=True)
    read = read_back(client.body)
    verdict = read.verdict
    assert (verdict["status"], verdict["detected"], verdict["decision"]) == ("checked", False, plan)
    last = read.chunks[read.verdicts[0][0]]
    (ChatCompletionChunk if endpoint is Endpoint.CHAT else Completion).model_validate(last)
    assert last["choices"] == []
    assert {key: last[key] for key in ("id", "created", "model")} == {
        "id": "stream-1",
        "created": 1700000000,
        "model": "scripted-model",
    }
    newline = b"\r\n" if ending == "crlf" else b"\n"
    (own,) = (event for event in client.body.split(2 * newline) if b'"truthlens"' in event)
    assert client.body.replace(own + 2 * newline, b"") == b"".join(frames)


@pytest.mark.parametrize("plan", ["observe", "mark", "buffer"])
@pytest.mark.parametrize("endpoint", list(Endpoint))
def test_spans_stand_where_they_say_in_the_received_text(
    gateway: Gateway, plan: str, endpoint: Endpoint
) -> None:
    """Offsets count what was received, with warning and marks."""
    text = f"{RIGHT} ☕ {WRONG} {RIGHT} {WRONG}"
    read = gateway.told(plan, sse(answer(text, endpoint=endpoint)), endpoint=endpoint, details=True)
    assert read.verdict["detected"]
    (choice,) = read.verdict["choices"]
    assert choice["spans"]
    for span in choice["spans"]:
        assert span["text"]
        assert read.texts[0][span["start"] : span["end"]] == span["text"]
        assert span["text"] in text
    assert any(span["start"] > read.texts[0].index(WRONG) + len(WRONG) for span in choice["spans"])


@pytest.mark.parametrize("plan", ["withhold", "stop"])
@pytest.mark.parametrize("text", [f"{WRONG} {RIGHT}", f"{RIGHT} {WRONG}", WRONG])
def test_spans_never_point_at_what_was_withheld(gateway: Gateway, plan: str, text: str) -> None:
    """The client has not got it, so that no place in its text can be named."""
    read = gateway.told(plan, sse(answer(text)), details=True)
    assert "75" not in read.texts[0]
    assert NOTICE in read.texts[0]
    for span in read.verdict["choices"][0]["spans"]:
        assert span["text"]
        assert read.texts[0][span["start"] : span["end"]] == span["text"]
    assert "75 dollars" not in json.dumps(read.verdict)


# --- what is said and done ------------------------------------------------------------------------------------


def test_the_warning_is_a_delta_before_the_finish(gateway: Gateway) -> None:
    """All frames of the backend stay as they are around it."""
    frames = answer(BAD, usage=True)
    body = gateway.read("observe", sse(frames)).body
    finish = b"".join(frames[-3:])
    assert body.endswith(finish)
    assert body.startswith(b"".join(frames[:-3]))
    added = body.removesuffix(finish).removeprefix(b"".join(frames[:-3]))
    assert read_back(added).texts == {0: f"\n\n{WARNING}"}


def test_of_two_interleaved_choices_only_the_flagged_one_is_warned_of(gateway: Gateway) -> None:
    read = gateway.told("observe", sse(answer(GOOD, BAD)), n=2, details=True)
    assert read.texts == {0: GOOD, 1: f"{BAD}\n\n{WARNING}"}
    assert read.finish == {0: "stop", 1: "stop"}
    assert [choice["detected"] for choice in read.verdict["choices"]] == [False, True]


GATED = {
    "mark": f"{RIGHT} {WRONG}{MARK} {RIGHT}",
    "withhold": f"{RIGHT} {NOTICE} {RIGHT}",
    "stop": f"{RIGHT} {NOTICE}",
}


@pytest.mark.parametrize("endpoint", list(Endpoint))
@pytest.mark.parametrize("plan", GATED)
def test_a_flagged_sentence_is_dealt_with_by_itself(gateway: Gateway, plan: str, endpoint: Endpoint) -> None:
    text = f"{RIGHT} {WRONG} {RIGHT}"
    read = gateway.told(plan, sse(answer(text, endpoint=endpoint)), endpoint=endpoint)
    assert read.texts == {0: GATED[plan]}
    assert read.finish == {0: "content_filter" if plan == "stop" else "stop"}
    assert read.done == 1


@pytest.mark.parametrize("plan", GATED)
def test_choices_are_gated_each_by_itself(gateway: Gateway, plan: str) -> None:
    read = gateway.told(plan, sse(answer(f"{RIGHT} {WRONG} {RIGHT}", GOOD)), n=2)
    assert read.texts == {0: GATED[plan], 1: GOOD}
    assert read.finish == {0: "content_filter" if plan == "stop" else "stop", 1: "stop"}
    assert read.done == 1


@pytest.mark.parametrize("cut", [1, 7, 64, 199, 200, 1000])
@pytest.mark.parametrize("plan", GATED)
def test_how_a_stream_is_cut_changes_nothing(gateway: Gateway, plan: str, cut: int) -> None:
    text = f"{RIGHT} {WRONG} 🙂 {RIGHT}"
    written = answer(text, escaped=True, usage=True)
    whole = gateway.read(plan, sse(written, cuts=(1 << 20,))).body
    assert gateway.read(plan, sse(written, cuts=(cut,))).body == whole
    assert (WRONG in read_back(whole).texts[0]) is (plan == "mark")


def test_a_language_that_nobody_reads_is_not_released_by_a_plan_that_blocks(gateway: Gateway) -> None:
    """The bundled model reads no Chinese."""
    text = "国内电汇费用为七十五美元。国际电汇费用为四十美元。"
    read = gateway.told("block", sse(answer(text)), details=True)
    assert read.texts == {0: NOTICE}
    assert read.finish == {0: "content_filter"}
    assert read.done == 1
    assert read.verdict["action"] == "block"
    assert gateway.read("mark", sse(answer(text))).body == b"".join(answer(text))


@pytest.mark.parametrize("plan", ["observe", "mark", "buffer"])
@pytest.mark.parametrize("text", ['{"fee": "A domestic wire transfer costs 75 dollars."}', BAD])
def test_answers_for_programs_get_no_text_put_into_them(gateway: Gateway, plan: str, text: str) -> None:
    frames = answer(text)
    read = gateway.read(plan, sse(frames), response_format={"type": "json_object"})
    assert read.body == b"".join(frames)


@pytest.mark.parametrize("plan", ["withhold", "stop"])
def test_a_flagged_answer_for_a_program_is_stopped_without_a_word(gateway: Gateway, plan: str) -> None:
    text = f'{{"fee": "{WRONG}"}}'
    read = gateway.told(plan, sse(answer(text)), response_format={"type": "json_object"}, details=True)
    assert read.texts == {0: ""}
    assert read.finish == {0: "content_filter"}
    assert read.done == 1
    assert read.verdict["detected"]


KINDS: dict[str, tuple[list[bytes], str]] = {
    "tool-call": (streams.tool_call(), "tool-call"),
    "refusal": (
        [
            chunk(
                [
                    {
                        "index": 0,
                        "delta": {"role": "assistant", "refusal": "I will not."},
                        "finish_reason": None,
                    }
                ]
            ),
            chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}]),
            DONE,
        ],
        "empty-answer",
    ),
    "error alone": ([b'data: {"error": {"message": "no", "code": 500}}\n\n', DONE], "upstream-error"),
    "opaque frames": ([b"data: {not json\n\n", b"data: [1, 2]\n\n", DONE], "dialect"),
    "no frame": ([], "empty-answer"),
    "comments alone": ([b": ping\n\n", b": ping\n\n"], "empty-answer"),
    "white space": ([b"\n\n\n\n", b"   \n\n"], "empty-answer"),
}


# What cannot be read does not pass where everything must be checked: see the next test.
PASSING = [(plan, kind) for plan in LIVE for kind in KINDS if (plan, kind) != ("block", "opaque frames")]


@pytest.mark.parametrize(("plan", "kind"), PASSING)
def test_what_is_no_text_passes_as_it_came(gateway: Gateway, plan: str, kind: str) -> None:
    """And is never called checked."""
    frames, reason = KINDS[kind]
    name = str(uuid.uuid4())
    client = gateway.read(plan, sse(frames), name=name)
    assert client.body == b"".join(frames)
    line = gateway.logged(name)
    assert (line["status"], line["reason"]) == ("unchecked", reason)


def test_what_cannot_be_read_does_not_pass_where_everything_must_be_checked(gateway: Gateway) -> None:
    frames = [b"data: {not json\n\n", *answer(GOOD)]
    name = str(uuid.uuid4())
    read = gateway.told("block", sse(frames), name=name)
    assert read.texts in ({}, {0: ""})
    assert (read.finish, read.done) == ({0: "content_filter"}, 1)
    line = gateway.logged(name)
    # How much of the text had come by then is Envoy's to say, which merges what is written at once.
    assert line["status"] in ("unchecked", "partial")
    assert (line["reason"], line["action"]) == ("dialect", "block")


@pytest.mark.parametrize("plan", LIVE)
def test_an_error_within_the_stream_reaches_the_client_behind_the_text(gateway: Gateway, plan: str) -> None:
    frames = streams.broken_off(GOOD)
    assert gateway.read(plan, sse(frames)).body == b"".join(frames)


@pytest.mark.parametrize("plan", ["observe", "mark", "withhold"])
def test_a_frame_that_cannot_be_read_makes_the_verdict_partial(gateway: Gateway, plan: str) -> None:
    """Nobody knows what it said."""
    frames = answer(GOOD)
    frames.insert(4, b"data: <oops>\n\n")
    client = gateway.read(plan, sse(frames), details=True)
    verdict = read_back(client.body.replace(b"data: <oops>\n\n", b"")).verdict
    assert (verdict["status"], verdict["reason"]) == ("partial", "dialect")
    assert b"data: <oops>\n\n" in client.body


# --- sizes and framings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", list(Framing))
@pytest.mark.parametrize("plan", LENIENT)
def test_every_framing_survives_a_longer_body(gateway: Gateway, plan: str, framing: Framing) -> None:
    """A body that grows or shrinks must not leave under its old length."""
    frames = answer(f"{RIGHT} {WRONG} {RIGHT}")
    client = gateway.read(plan, sse(frames, framing=framing), details=True)
    read = read_back(client.body)
    assert read.verdict["action"] == ACCOUNTS[plan]
    assert read.done == 1
    if plan in LIVE:
        assert "content-length" not in client.headers


@pytest.mark.parametrize("framing", [Framing.CHUNKED, Framing.LENGTH])
@pytest.mark.parametrize("plan", ["observe", "mark", "narrow"])
def test_megabytes_at_once_pass_whole(gateway: Gateway, plan: str, framing: Framing) -> None:
    """Far above what a gate holds, in one write: reasoning, which nobody scores, around a short answer."""
    thought = chunk([{"index": 0, "delta": {"reasoning_content": "hm " * 300}, "finish_reason": None}])
    frames = answer(GOOD)
    frames[1:1] = [thought] * 3000
    client = gateway.read(plan, sse(frames, framing=framing, cuts=(1 << 24,)), details=True)
    read = read_back(client.body)
    assert len(client.body) > 3_000_000
    assert read.texts == {0: GOOD}
    assert read.verdict["status"] == "checked"
    assert len(read.chunks) == len(frames)


@pytest.mark.parametrize("plan", ["observe", "mark", "narrow"])
def test_a_long_answer_in_one_burst_keeps_its_bytes(gateway: Gateway, plan: str) -> None:
    """Some 200 KB of frames, more than a gate holds."""
    frames = answer(" ".join([GOOD] * 40))
    assert len(b"".join(frames)) > 150_000
    assert gateway.read(plan, sse(frames, cuts=(1 << 24,))).body == b"".join(frames)


# --- the order of events --------------------------------------------------------------------------------------


def test_observed_tokens_leave_before_the_next_is_written(gateway: Gateway) -> None:
    """The backend writes a token only when the last one has been received."""
    scene = Scene(answer(GOOD))
    with gateway.open("observe", scene) as client:
        for place in range(len(scene.frames) - 2):
            scene.step()
            client.until(b"".join(scene.frames[: place + 1]))
        scene.rest()
        assert client.rest() == scene.written


@pytest.mark.parametrize("plan", ["mark", "withhold", "stop", "block"])
def test_a_gated_sentence_leaves_before_the_next_is_written(gateway: Gateway, plan: str) -> None:
    """The second sentence's first token shows that the first is over; nothing more is needed."""
    scene = Scene(answer(GOOD))
    (first,) = sentence_ends(scene.frames)
    with gateway.open(plan, scene) as client:
        for _ in range(first + 1):
            gateway.step(scene)
        assert client.until(b"".join(scene.frames[:first])) == b"".join(scene.frames[:first])
        scene.rest()
        assert client.rest() == scene.written


def test_a_gated_sentence_is_held_until_it_is_complete(gateway: Gateway) -> None:
    """Nothing of it has left while the backend has not written its end."""
    scene = Scene(answer(f"{RIGHT} {WRONG}"))
    (first,) = sentence_ends(scene.frames)
    with gateway.open("withhold", scene) as client:
        for _ in range(first + 4):
            gateway.step(scene)
        assert client.until(b"".join(scene.frames[:first])) == b"".join(scene.frames[:first])
        scene.rest()
        read = read_back(client.rest())
    assert read.texts == {0: f"{RIGHT} {NOTICE}"}


def test_what_stops_a_stream_reaches_the_client_while_the_backend_goes_on(gateway: Gateway) -> None:
    """Notice, finish, verdict and marker do not wait for what nobody will get."""
    scene = Scene(answer(f"{WRONG} {GOOD} {GOOD}"))
    first = sentence_ends(scene.frames)[0]
    with gateway.open("stop", scene, details=True) as client:
        for _ in range(first + 1):
            gateway.step(scene)
        read = read_back(client.until(DONE))
        assert read.texts == {0: NOTICE}
        assert read.finish == {0: "content_filter"}
        assert read.verdict["action"] == "block"
        scene.rest()
        assert client.rest() == client.body
        assert client.body.endswith(DONE)


@pytest.mark.parametrize("text", [GOOD, "--- ... ---", "12 dollars"])
def test_text_is_held_for_a_bounded_time_although_its_sentence_is_not_complete(
    gateway: Gateway, text: str
) -> None:
    """The backend falls silent in the middle of a sentence, or of something that is none."""
    scene = Scene(answer(text))
    with gateway.open("hasty", scene, details=True) as client:
        for place in range(3):
            gateway.step(scene)
            received = b"".join(scene.frames[: place + 1])
            assert client.until(received) == received
        scene.rest()
        client.rest()
    assert read_back(client.body).texts == {0: text}


def test_comments_keep_a_gated_stream_alive(gateway: Gateway) -> None:
    """They are not held for themselves."""
    role, *rest = answer(GOOD)
    scene = Scene([role, *[streams.KEEP_ALIVE] * 5, *rest])
    with gateway.open("withhold", scene) as client:
        for place in range(6):
            gateway.step(scene)
            client.until(b"".join(scene.frames[: place + 1]))
        scene.rest()
        assert client.rest() == scene.written


def test_the_verdict_does_not_wait_for_the_backend_to_close(gateway: Gateway) -> None:
    """It leaves with the marker, however long the connection stays open behind it."""
    scene = Scene(answer(GOOD))
    with gateway.open("observe", scene, details=True) as client:
        scene.step(len(scene.frames))
        assert read_back(client.until(DONE)).verdict["status"] == "checked"
        scene.rest()
        client.rest()


# --- accounts -------------------------------------------------------------------------------------------------

ACCOUNTS = {
    "observe": "warn",
    "mark": "warn",
    "withhold": "replace",
    "stop": "block",
    "buffer": "warn",
}


@pytest.mark.parametrize("plan", ACCOUNTS)
def test_access_log_log_line_and_metrics_tell_the_same(gateway: Gateway, plan: str) -> None:
    """Envoy's access log gets the final status, although the headers said pending."""
    stack, name = gateway.stack, str(uuid.uuid4())
    count = lambda metric_name, **labels: metric(stack, metric_name, **labels)  # noqa: E731
    before = {
        "detections": count("truthlens_detections_total", decision=plan, detected="true"),
        "lag": count("truthlens_stream_verdict_lag_seconds_count", streaming=_way(plan)),
        "hold": count("truthlens_stream_hold_seconds_count", streaming=_way(plan)),
        "flagged": count("truthlens_stream_sentences_total", decision=plan, result="flagged"),
        "passed": count("truthlens_stream_sentences_total", decision=plan, result="passed"),
        "actions": count("truthlens_actions_total", decision=plan, action=ACCOUNTS[plan]),
    }
    read = gateway.told(plan, sse(answer(f"{RIGHT} {WRONG}")), name=name, details=True)
    line, told, verdict = gateway.logged(name), gateway.accessed(name)["truthlens"], read.verdict
    assert told["status"] == line["status"] == verdict["status"] == "checked"
    assert told["action"] == line["action"] == verdict["action"] == ACCOUNTS[plan]
    assert told["decision"] == line["decision"] == plan
    assert told["score"] == line["score"] == pytest.approx(verdict["score"], abs=1e-4)
    assert told["detected"] == line["detected"] == verdict["detected"]
    after = {
        "detections": count("truthlens_detections_total", decision=plan),
        "lag": count("truthlens_stream_verdict_lag_seconds_count", streaming=_way(plan)),
        "hold": count("truthlens_stream_hold_seconds_count", streaming=_way(plan)),
        "flagged": count("truthlens_stream_sentences_total", decision=plan, result="flagged"),
        "passed": count("truthlens_stream_sentences_total", decision=plan, result="passed"),
        "actions": count("truthlens_actions_total", decision=plan, action=ACCOUNTS[plan]),
    }
    gated = plan in GATED
    assert line["streaming"] == _way(plan)
    assert {key: after[key] - before[key] for key in ("lag", "hold", "flagged", "passed", "actions")} == {
        "lag": 1,
        "hold": 1,
        "flagged": gated,
        "passed": gated,
        "actions": 1,
    }
    assert after["detections"] > before["detections"]


def _way(plan: str) -> str:
    return "gate" if plan in GATED else plan


@pytest.mark.parametrize("plan", LIVE)
def test_a_stream_under_way_is_counted_until_its_client_goes_away(gateway: Gateway, plan: str) -> None:
    """Then the backend's connection is closed, and the exchange is noted as abandoned."""
    stack, name = gateway.stack, str(uuid.uuid4())
    abandoned = metric(stack, "truthlens_abandoned_total")
    closed = len(stack.backend.aborted)
    scene = Scene(answer(f"{GOOD} {GOOD}"))
    client = gateway.open(plan, scene, name=name)
    for _ in range(sentence_ends(scene.frames)[0] + 3):
        gateway.step(scene)
    client.until(scene.frames[1])
    assert metric(stack, "truthlens_streams", streaming=_way(plan).replace("block", "gate")) == 1
    client.leave()
    until(lambda: len(stack.backend.aborted) > closed, "the backend's connection closed")
    until(lambda: metric(stack, "truthlens_streams") == 0, "no stream left")
    until(lambda: metric(stack, "truthlens_abandoned_total") == abandoned + 1, "an abandoned exchange")
    assert gateway.logged(name)["event"] == "exchange abandoned"


@pytest.mark.parametrize("plan", LIVE)
def test_a_backend_that_dies_breaks_the_stream_off(gateway: Gateway, plan: str) -> None:
    """The client can tell it from an end; of a gated stream it has whole sentences alone."""
    scene = Scene(answer(f"{GOOD} {GOOD}")[:-8], broken_off=True)
    first = sentence_ends(scene.frames)[0]
    with gateway.open(plan, scene) as client:
        for _ in range(first + 2):
            gateway.step(scene)
        client.until(scene.frames[first - 1])
        scene.rest()
        body = client.rest()
        assert client.broken
    assert scene.written.startswith(body)


def test_evidence_is_in_no_log(gateway: Gateway) -> None:
    """Neither texts of users nor of models: only figures and names from the configuration."""
    log = (gateway.stack.folder / "sidecar.log").read_text() + json.dumps(gateway.stack.access_log())
    for words in (*PASSAGES, WRONG, RIGHT, WARNING, NOTICE):
        assert words not in log


@pytest.mark.parametrize("plan", MODES)
def test_a_client_of_http_1_0_reads_the_stream_to_its_end(gateway: Gateway, plan: str) -> None:
    frames = answer(f"{GOOD} {GOOD}")
    gateway.stack.backend.reply = lambda _request: sse(frames)
    body = json.dumps(request("scripted-model")).encode()
    head = f"POST /v1/chat/completions HTTP/1.0\r\nhost: gateway\r\nx-domain: {plan}\r\ncontent-type: application/json"
    address = (gateway.stack.listen.host, gateway.stack.listen.port)
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert received.partition(b"\r\n\r\n")[2] == b"".join(frames)

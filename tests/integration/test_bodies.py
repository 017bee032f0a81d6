"""Every kind of body, through a real Envoy: the client sees what the contract says, and nothing is lost."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from typing import Any

import brotli
import httpx
import pytest

from tests.integration.support.backend import Raw, Received, completion, http, json_reply
from tests.integration.support.stack import Stack

pytestmark = pytest.mark.envoy

CONTEXT = (
    "The library in Elm Street opens at nine and closes at six. It is closed on Sundays. Membership is free."
)
REQUEST = {
    "model": "scripted-model",
    "messages": [
        {"role": "user", "content": f"<context>{CONTEXT}</context>\nWhen does the library open?"},
    ],
}
GROUNDED = "The library in Elm Street opens at nine."
FLAG_ALL = {"x-domain": "flag-all"}


def script(stack: Stack, reply: Raw) -> None:
    stack.backend.reply = lambda _request: reply


def content_of(response: httpx.Response, choice: int = 0) -> Any:
    return response.json()["choices"][choice]["message"]["content"]


def test_a_clean_answer_is_the_backends_own_bytes(stack: Stack) -> None:
    """Not one byte of an answer changes that is neither flagged nor detailed."""
    body = json.dumps(completion(GROUNDED, x_unknown={"a": [1, 2.50, 1e20]}), indent=3)
    script(stack, http(body))
    response = stack.post(REQUEST, headers={"x-domain": "support"})
    assert response.content == body.encode()
    assert response.headers["x-truthlens-enabled"] == "true"
    assert response.headers["x-truthlens-status"] == "checked"
    assert response.headers["x-truthlens-detected"] == "false"
    assert "x-truthlens-reason" not in response.headers


def test_a_body_that_grows_arrives_whole(stack: Stack) -> None:
    """The warning makes the body longer; content-length follows, every other field stays."""
    script(stack, json_reply(completion(GROUNDED, x_unknown=[1, None, "é"])))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    assert int(response.headers["content-length"]) == len(response.content)
    answer = response.json()
    assert content_of(response).endswith(GROUNDED)
    assert len(content_of(response)) > len(GROUNDED)
    assert answer["x_unknown"] == [1, None, "é"]
    assert answer["id"] == "chatcmpl-test"
    assert answer["usage"]["total_tokens"] == 12
    assert response.headers["x-truthlens-action"] == "warn"


def test_http_1_0_is_spoken(stack: Stack) -> None:
    """By proxies in front that have not been told otherwise."""
    script(stack, json_reply(completion(GROUNDED)))
    body = json.dumps(REQUEST).encode()
    head = "POST /v1/chat/completions HTTP/1.0\r\nhost: gateway\r\ncontent-type: application/json\r\nx-domain: flag-all\r\n"
    with socket.create_connection((stack.listen.host, stack.listen.port), timeout=20) as connection:
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head, _, answer = received.decode().partition("\r\n\r\n")
    assert " 200 " in head.splitlines()[0]
    assert "x-truthlens-detected: true" in head
    assert json.loads(answer)["choices"][0]["message"]["content"].endswith(GROUNDED)


def test_a_body_that_shrinks_arrives_whole(stack: Stack) -> None:
    """Dropped logprobs make the changed body shorter than the backend's."""
    value = completion(GROUNDED)
    value["choices"][0]["logprobs"] = {"content": [{"token": "x" * 50, "logprob": -0.1}] * 400}
    script(stack, json_reply(value))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    assert len(response.content) < len(json.dumps(value))
    assert int(response.headers["content-length"]) == len(response.content)
    assert not response.json()["choices"][0].get("logprobs")


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("br", brotli.compress),
        ("deflate", zlib.compress),
        ("deflate", _raw_deflate),
    ],
    ids=["gzip", "br", "deflate", "raw-deflate"],
)
@pytest.mark.parametrize("flagged", [True, False])
def test_compressed_answers_are_read(stack: Stack, encoding: str, pack: Any, flagged: bool) -> None:
    """A compressed answer is scored; changed it leaves plain, unchanged it leaves as the same compressed bytes."""
    packed = pack(json.dumps(completion(GROUNDED)).encode())
    script(stack, http(packed, headers={"content-encoding": encoding}))
    with httpx.stream(
        "POST",
        f"{stack.url}/v1/chat/completions",
        json=REQUEST,
        headers=FLAG_ALL if flagged else {"x-domain": "support"},
    ) as response:
        raw = b"".join(response.iter_raw())
    assert response.headers["x-truthlens-status"] == "checked"
    assert int(response.headers["content-length"]) == len(raw)
    if flagged:
        assert "content-encoding" not in response.headers
        assert json.loads(raw)["choices"][0]["message"]["content"].endswith(GROUNDED)
    else:
        assert response.headers["content-encoding"] == encoding
        assert raw == packed


def test_the_backend_is_asked_for_an_unencoded_answer(stack: Stack) -> None:
    """Whatever the client accepts, the backend sees identity."""
    stack.post(REQUEST, headers={"accept-encoding": "gzip, br, zstd"})
    assert stack.backend.received[0].headers["accept-encoding"] == "identity"


def test_an_unknown_encoding_passes_unchecked(stack: Stack) -> None:
    """Zstd is not read: the same bytes arrive, marked."""
    script(stack, http(b"\x28\xb5\x2f\xfd-not-really", headers={"content-encoding": "zstd"}))
    with httpx.stream("POST", f"{stack.url}/v1/chat/completions", json=REQUEST) as response:
        assert b"".join(response.iter_raw()) == b"\x28\xb5\x2f\xfd-not-really"
    assert response.headers["x-truthlens-reason"] == "encoding"
    assert response.headers["x-truthlens-enabled"] == "false"


def test_damaged_gzip_passes_unchecked(stack: Stack) -> None:
    """Bytes that claim to be gzip and are not arrive as they are."""
    script(stack, http(b"not gzip", headers={"content-encoding": "gzip"}))
    with httpx.stream("POST", f"{stack.url}/v1/chat/completions", json=REQUEST) as response:
        assert b"".join(response.iter_raw()) == b"not gzip"
    assert response.headers["x-truthlens-reason"] == "encoding"


@pytest.mark.parametrize("size", [200_000, 6_000_000])
def test_large_answers_are_scored_and_arrive_whole(stack: Stack, size: int) -> None:
    """200 KB, and 6 MB (more than gRPC's default message limit), with padding that is not answer text."""
    script(stack, json_reply(completion(GROUNDED, padding="p" * size)))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    assert response.headers["x-truthlens-status"] == "checked"
    assert len(response.json()["padding"]) == size
    assert content_of(response).endswith(GROUNDED)


def test_large_requests_arrive_whole(stack: Stack) -> None:
    """A request of 6 MB reaches the backend byte for byte."""
    script(stack, json_reply(completion(GROUNDED)))
    request = {**REQUEST, "padding": "q" * 6_000_000}
    response = stack.post(request)
    assert response.headers["x-truthlens-status"] == "checked"
    assert json.loads(stack.backend.received[0].body) == request


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"choices": [', "dialect"),
        (b"", "empty-answer"),
        (b"\xff\xfe{}", "dialect"),
        (b"[]", "dialect"),
        (b'"text"', "dialect"),
        (b'{"object": "list", "data": []}', "dialect"),
        (b'{"error": {"message": "no"}}', "dialect"),
    ],
    ids=["invalid", "empty", "non-utf-8", "list", "string", "other", "error"],
)
def test_bodies_that_are_no_answer_pass_untouched(stack: Stack, body: bytes, reason: str) -> None:
    """The same bytes, and a reason."""
    script(stack, http(body))
    response = stack.post(REQUEST)
    assert response.content == body
    assert response.headers["x-truthlens-status"] == "unchecked"
    assert response.headers["x-truthlens-reason"] == reason
    assert "x-truthlens-score" not in response.headers
    assert "x-truthlens-detected" not in response.headers


@pytest.mark.parametrize("status", ["500 Internal Server Error", "429 Too Many Requests", "404 Not Found"])
def test_errors_of_the_backend_pass_untouched(stack: Stack, status: str) -> None:
    """Status, body and headers are the backend's."""
    body = b'{"error": {"message": "over capacity", "type": "server_error"}}'
    script(stack, http(body, status=status, headers={"retry-after": "7"}))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    assert response.status_code == int(status[:3])
    assert response.content == body
    assert response.headers["retry-after"] == "7"
    assert response.headers["x-truthlens-reason"] == "upstream-error"


def test_html_passes_untouched(stack: Stack) -> None:
    """A proxy's page in place of an answer is no dialect of ours."""
    script(stack, http("<h1>Login</h1>", content_type="text/html"))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    assert response.text == "<h1>Login</h1>"
    assert response.headers["x-truthlens-reason"] == "dialect"


def test_a_body_that_ends_early_is_an_error_and_nothing_hangs(stack: Stack) -> None:
    """The backend announces 500 bytes, sends 20 and hangs up: the client gets an error, the next request is served."""
    script(
        stack,
        Raw(
            [
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n",
                b'{"choices": [{"inde',
            ],
            close=True,
        ),
    )
    try:
        response = stack.post(REQUEST, headers=FLAG_ALL)
    except httpx.RemoteProtocolError:
        pass
    else:
        assert response.status_code >= 500
    script(stack, json_reply(completion(GROUNDED)))
    assert stack.post(REQUEST).status_code == 200


def test_chunked_answers_are_scored(stack: Stack) -> None:
    """A body without content-length, in many small chunks."""
    data = json.dumps(completion(GROUNDED)).encode()
    chunks = [b"%x\r\n%s\r\n" % (len(data[i : i + 7]), data[i : i + 7]) for i in range(0, len(data), 7)]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
    script(stack, Raw([head, *chunks, b"0\r\n\r\n"]))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    assert response.headers["x-truthlens-status"] == "checked"
    assert content_of(response).endswith(GROUNDED)


def test_every_choice_is_scored_and_the_worst_counts(stack: Stack) -> None:
    """n=3: three verdicts, each flagged choice carries its warning, headers tell the highest score."""
    texts = (
        GROUNDED,
        "The library charges a yearly fee of 45 dollars for members from abroad.",
        "It is closed on Sundays.",
    )
    script(stack, json_reply(completion(*texts)))
    response = stack.post({**REQUEST, "n": 3}, headers={"x-domain": "detailed"})
    detail = response.json()["truthlens"]
    scores = [choice["score"] for choice in detail["choices"]]
    assert len(scores) == 3
    assert max(scores) == pytest.approx(float(response.headers["x-truthlens-score"]), abs=0.01)
    for index, text in enumerate(texts):
        assert content_of(response, index).endswith(text)


def test_null_content_passes(stack: Stack) -> None:
    """Content null without a tool call is an empty answer."""
    body = json.dumps(completion(None))
    script(stack, http(body))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    assert response.text == body
    assert response.headers["x-truthlens-reason"] == "empty-answer"


def test_tool_calls_pass(stack: Stack) -> None:
    """A tool-call turn is never touched, even where every answer is flagged."""
    value = completion(None)
    value["choices"][0]["message"]["tool_calls"] = [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ]
    body = json.dumps(value)
    script(stack, http(body))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    assert response.text == body
    assert response.headers["x-truthlens-reason"] == "tool-call"


def test_refusals_pass(stack: Stack) -> None:
    """A refusal field makes no claim."""
    value = completion(None)
    value["choices"][0]["message"]["refusal"] = "I cannot help with that."
    script(stack, json_reply(value))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    assert response.json() == value
    assert response.headers["x-truthlens-status"] == "unchecked"


def test_no_context_is_unchecked(stack: Stack) -> None:
    """Without evidence there is nothing to check against, and that is not called clean."""
    response = stack.post(
        {"model": "m", "messages": [{"role": "user", "content": "Tell me a joke."}]}, headers=FLAG_ALL
    )
    assert response.headers["x-truthlens-reason"] == "no-context"
    assert content_of(response) == "Hello."


def test_json_answers_carry_no_pasted_warning(stack: Stack) -> None:
    """With response_format the headers carry the warning; the text stays valid JSON."""
    text = '{"opens": "nine"}'
    script(stack, json_reply(completion(text)))
    response = stack.post({**REQUEST, "response_format": {"type": "json_object"}}, headers=FLAG_ALL)
    assert content_of(response) == text
    assert response.headers["x-truthlens-detected"] == "true"
    assert response.headers["x-truthlens-action"] == "warn"


def test_content_parts_are_scored(stack: Stack) -> None:
    """An answer in content parts stays in content parts."""
    value = completion("")
    value["choices"][0]["message"]["content"] = [{"type": "text", "text": GROUNDED}]
    script(stack, json_reply(value))
    response = stack.post(REQUEST, headers=FLAG_ALL)
    parts = content_of(response)
    assert isinstance(parts, list)
    assert "".join(part["text"] for part in parts).endswith(GROUNDED)
    assert response.headers["x-truthlens-status"] == "checked"


def test_the_completions_api_is_scored(stack: Stack) -> None:
    """POST /v1/completions: the prompt's context is the evidence."""
    value = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m",
             "choices": [{"index": 0, "text": GROUNDED, "finish_reason": "stop", "logprobs": None}]}  # fmt: skip
    script(stack, json_reply(value))
    prompt = f"Context: {CONTEXT}\n\nQuestion: When does the library open?\nAnswer:"
    response = stack.post({"model": "m", "prompt": prompt}, path="/v1/completions", headers=FLAG_ALL)
    assert response.headers["x-truthlens-status"] == "checked"
    assert response.json()["choices"][0]["text"].endswith(GROUNDED)


def test_a_stream_is_held_whole_where_nothing_else_is_said(stack: Stack) -> None:
    """It is scored like any other answer: full headers, and what is not flagged arrives byte for byte."""
    deltas = [{"choices": [{"index": 0, "delta": {"content": f" {word}"}}]} for word in GROUNDED.split()]
    events = "".join(f"data: {json.dumps(delta)}\n\n" for delta in deltas).encode() + b"data: [DONE]\n\n"
    script(
        stack,
        Raw(
            [
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
                *[events[i : i + 333] for i in range(0, len(events), 333)],
            ],
            pause_s=0.005,
            close=True,
        ),
    )
    response = stack.post({**REQUEST, "stream": True}, headers={"x-domain": "support"})
    assert response.content == events
    assert response.headers["x-truthlens-status"] == "checked"
    assert response.headers["x-truthlens-detected"] == "false"
    flagged = stack.post({**REQUEST, "stream": True}, headers=FLAG_ALL)
    assert flagged.headers["x-truthlens-action"] == "warn"
    assert flagged.content.endswith(events)
    assert flagged.content.count(b"data:") == events.count(b"data:") + 1


@pytest.mark.parametrize(
    "body",
    [b"{", b"", b"\xff\xff", b"[1]", b'{"messages": 3}'],
    ids=["invalid", "empty", "non-utf-8", "list", "shape"],
)
def test_requests_that_are_no_exchange_reach_the_backend_untouched(stack: Stack, body: bytes) -> None:
    """What is wrong with a request is for the backend to say."""
    response = stack.post(body)
    assert stack.backend.received[0].body == body
    assert response.headers["x-truthlens-status"] == "unchecked"
    assert response.headers["x-truthlens-reason"] == "dialect"


def test_other_paths_of_the_api_pass(stack: Stack) -> None:
    """Other dialects are marked, embeddings and other methods work."""
    script(stack, json_reply({"object": "list", "data": []}))
    response = stack.post({"input": "x"}, path="/v1/responses")
    assert response.json() == {"object": "list", "data": []}
    assert response.headers["x-truthlens-reason"] == "dialect"
    assert "x-truthlens-status" not in stack.post({"input": "x"}, path="/v1/embeddings").headers
    assert httpx.get(f"{stack.url}/v1/models").json() == {"object": "list", "data": []}


def test_the_model_auto_becomes_the_decisions_model(stack: Stack) -> None:
    """Every other field of the request survives."""
    stack.post({**REQUEST, "model": "auto", "x_unknown": 1}, headers={"x-domain": "support"})
    assert json.loads(stack.backend.received[0].body) == {**REQUEST, "model": "house-model", "x_unknown": 1}


def test_headers_cannot_be_faked(stack: Stack) -> None:
    """Neither client nor backend can put words into our headers."""
    script(
        stack,
        json_reply(completion(GROUNDED), headers={"X-TruthLens-Score": "0.00", "X-TruthLens-Review-Id": "r"}),
    )
    response = stack.post(
        REQUEST, headers={**FLAG_ALL, "x-truthlens-enabled": "false", "x-truthlens-mode": "none"}
    )
    assert response.headers.get_list("x-truthlens-enabled") == ["true"]
    assert len(response.headers.get_list("x-truthlens-score")) == 1
    (review_id,) = response.headers.get_list("x-truthlens-review-id")
    assert review_id.startswith("rv_")
    assert not [name for name in stack.backend.received[0].headers if name.startswith("x-truthlens")]


def test_a_switched_off_decision_ships_no_answer(stack: Stack) -> None:
    """enabled: false leaves the answer alone and says so."""
    response = stack.post(REQUEST, headers={"x-domain": "unchecked", "accept-encoding": "gzip"})
    assert response.headers["x-truthlens-reason"] == "disabled"
    assert response.headers["x-truthlens-decision"] == "switched-off"
    assert stack.backend.received[0].headers["accept-encoding"] == "gzip"


def test_what_cannot_be_checked_can_be_blocked(stack: Stack) -> None:
    """on_unchecked: block refuses the answer with an error that client libraries understand."""
    script(stack, http(b"opaque", headers={"content-encoding": "zstd"}))
    response = stack.post(REQUEST, headers={"x-domain": "strict"})
    assert response.status_code == 424
    assert response.json()["error"]["code"] == "encoding"
    assert response.headers["x-truthlens-action"] == "block"
    script(stack, json_reply(completion("An answer without evidence.")))
    response = stack.post({"messages": [{"role": "user", "content": "Hi?"}]}, headers={"x-domain": "strict"})
    assert response.status_code == 424
    assert "without evidence" not in response.text


def test_a_decision_in_shadow_changes_nothing_and_tells(stack: Stack) -> None:
    """Neither a correction nor a block reaches the client, and no model is asked; the headers say what would have."""
    for evidence, would in (
        (REQUEST, "refine"),
        ({"messages": [{"role": "user", "content": "Hi?"}]}, "block"),
    ):
        stack.backend.received.clear()
        script(stack, json_reply(completion(GROUNDED)))
        response = stack.post(evidence, headers={"x-domain": "shadow"})
        assert (response.status_code, response.json()) == (200, completion(GROUNDED))
        told = [response.headers[f"x-truthlens-{name}"] for name in ("action", "shadow-action", "decision")]
        assert told == ["pass", would, "in-shadow"]
        assert len(stack.backend.received) == 1


def test_details_are_opt_in(stack: Stack) -> None:
    """Spans are in the body by plan or by an allowed header, and else nowhere."""
    script(stack, json_reply(completion(GROUNDED)))
    assert "truthlens" not in stack.post(REQUEST, headers={"x-domain": "support"}).json()
    by_plan = stack.post(REQUEST, headers={"x-domain": "detailed"}).json()["truthlens"]
    by_header = stack.post(REQUEST, headers={"x-domain": "support", "x-truthlens-details": "spans"}).json()[
        "truthlens"
    ]
    for detail in (by_plan, by_header):
        assert detail["status"] == "checked"
        assert "spans" in detail["choices"][0]


def test_the_warning_can_stand_after_the_answer(stack: Stack) -> None:
    """warning_position and warning_template are the plan's."""
    script(stack, json_reply(completion(GROUNDED)))
    content = content_of(stack.post(REQUEST, headers={"x-domain": "after"}))
    assert content.startswith(GROUNDED)
    assert content.endswith("Check this.")


def test_an_exchange_is_logged_without_text(stack: Stack) -> None:
    """One canonical line an exchange, in the sidecar's log and in Envoy's, and no text of anybody in either."""
    script(stack, json_reply(completion("Zanzibar is the answer.")))
    before = len([line for line in stack.log_lines() if line["event"] == "exchange"])
    stack.post(REQUEST, headers=FLAG_ALL)
    lines = [line for line in stack.log_lines() if line["event"] == "exchange"]
    assert len(lines) == before + 1
    assert lines[-1]["decision"] == "flag-all"
    assert lines[-1]["status"] == "checked"
    assert "Zanzibar" not in (stack.folder / "sidecar.log").read_text()
    assert "Elm Street" not in (stack.folder / "sidecar.log").read_text()


def test_metrics_count_the_exchange(stack: Stack) -> None:
    """The console serves the metrics of the contract."""
    stack.post(REQUEST, headers=FLAG_ALL)
    text = httpx.get(f"{stack.console_url}/metrics").text
    assert 'truthlens_detections_total{decision="flag-all",detected="true",mode="lightweight"}' in text
    for name in ("truthlens_score", "truthlens_latency_seconds", "truthlens_iterations", "truthlens_models_used",
                 "truthlens_unchecked_total", "truthlens_coverage_ratio", "truthlens_actions_total", "truthlens_inflight",
                 "truthlens_queue_seconds", "truthlens_policy_reloads_total"):  # fmt: skip
        assert f"# TYPE {name} " in text


def test_a_slow_backend_is_waited_for(stack: Stack) -> None:
    """The time that the model takes is not TruthLens's: no message timeout runs meanwhile."""

    def slow(_request: Received) -> Raw:
        return http(json.dumps(completion(GROUNDED)), delay_s=11)

    stack.backend.reply = slow
    assert stack.post(REQUEST).headers["x-truthlens-status"] == "checked"


def test_a_model_that_is_chosen_for_a_compressed_request_arrives_plain(stack: Stack) -> None:
    """The body with the chosen model is not compressed, and no header says that it is."""
    script(stack, json_reply(completion(GROUNDED)))
    body = gzip.compress(json.dumps({**REQUEST, "model": "auto"}).encode())
    headers = {"x-domain": "support", "content-encoding": "gzip"}
    assert stack.post(body, headers=headers).status_code == 200
    (received,) = stack.backend.received
    assert json.loads(received.body)["model"] == "house-model"
    assert "content-encoding" not in received.headers

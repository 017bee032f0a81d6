"""The stages in order, with real exchange, policy and finalize code and detectors of our own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import structlog

from tests.fakes.detectors import FailingDetector, FixedDetector, HeldDetector, scored
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from truthlens.api import requests
from truthlens.core.records.enums import Action, Reason, Status
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.detection.interfaces import Detector
from truthlens.exchange.ticket import Ticket
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.streaming.types import Ack
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

REQUEST = {
    "model": "m",
    "messages": [{"role": "user", "content": "<context>Tea is free.</context>\nIs tea free?"}],
}
ANSWER = {"id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Tea is free."}}]}
OK = ResponseHead(200, {"content-type": "application/json"})


class Rig:
    """A pipeline with one detector and a policy from text."""

    def __init__(self, policy: str, detector: Detector, *, queue_limit: int = 4) -> None:
        self.holder = PolicyHolder(compile_policy(policy, file="p.yaml"))
        self.signals, self.recent = Metrics(), Recent()
        self.engine = engine_of({None: detector}, workers=1, queue_limit=queue_limit)
        self.pipeline = pipeline_for(self.holder, self.engine, self.signals, self.recent)

    async def request(self, body: Any = REQUEST, **headers: str) -> Ticket:
        head = RequestHead(
            "POST", "/v1/chat/completions", {k.replace("_", "-"): v for k, v in headers.items()}, {}
        )
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.pipeline.prepare(await self.pipeline.open(self.pipeline.admit(head), data))

    def metric(self, name: str, **labels: str) -> float:
        return self.signals.registry.get_sample_value(name, labels) or 0.0


BASE = "hallucination: {threshold: 0.5}\n"


async def test_a_decision_in_shadow_leaves_the_answer_and_tells_what_it_would_have_done() -> None:
    """In headers, metrics and the list of the last exchanges; decisions beside it inherit what it means, not that it does nothing."""
    policy = """
hallucination: {threshold: 0.5, default_mode: standard, streaming: buffer, details: true, shadow: true}
decisions:
  - {name: real, rules: {type: domain, name: finance}, plugins: [{type: hallucination, configuration: {shadow: false}}]}
"""
    rig = Rig(policy, FixedDetector(scored(0.9)))
    real = rig.holder.current.plan_named("real")
    assert real is not None
    assert (real.mode, real.streaming, real.intended) == ("standard", "buffer", None)
    ticket = await rig.request()
    assert (ticket.plan.decision, ticket.plan.hold_s) == ("default", ticket.plan.timeout_s)
    conclusion = await rig.pipeline.assess(ticket, OK, json.dumps(ANSWER).encode())
    body = json.loads(conclusion.outcome.body or b"")
    assert body["choices"] == ANSWER["choices"]
    assert body["truthlens"]["shadow_action"] == "refine"
    told = [conclusion.headers[f"x-truthlens-{name}"] for name in ("action", "shadow-action", "detected")]
    assert told == ["pass", "refine", "true"]
    assert rig.metric("truthlens_shadow_actions_total", decision="default", action="refine") == 1
    assert rig.metric("truthlens_actions_total", decision="default", action="pass") == 1


async def test_a_flagged_answer_is_warned_counted_and_remembered() -> None:
    """One exchange leaves its verdict in the headers, the body, the metrics and the console's list."""
    rig = Rig(BASE, FixedDetector(scored(0.9)))
    conclusion = await rig.pipeline.assess(await rig.request(), OK, json.dumps(ANSWER).encode())
    assert conclusion.outcome.action is Action.WARN
    assert conclusion.headers["x-truthlens-score"] == "0.90"
    assert conclusion.outcome.body is not None
    content = json.loads(conclusion.outcome.body)["choices"][0]["message"]["content"]
    assert content.endswith("Tea is free.")
    assert content != "Tea is free."
    assert (
        rig.metric("truthlens_detections_total", decision="default", mode="lightweight", detected="true") == 1
    )
    assert rig.metric("truthlens_actions_total", decision="default", action="warn") == 1
    assert rig.metric("truthlens_score_count", decision="default", mode="lightweight") == 1
    (entry,) = rig.recent.entries()
    kept = entry.outcome
    assert (kept.plan.decision, kept.verdict.flagged, kept.action) == ("default", True, "warn")


async def test_a_supported_answer_passes_untouched() -> None:
    """Below the threshold there is no new body."""
    rig = Rig(BASE, FixedDetector(scored(0.49)))
    conclusion = await rig.pipeline.assess(await rig.request(), OK, json.dumps(ANSWER).encode())
    assert conclusion.outcome.body is None
    assert conclusion.headers["x-truthlens-detected"] == "false"


async def test_a_failing_detector_costs_the_verdict_and_not_the_answer() -> None:
    """The answer passes, the headers say detector-error, and the log says which kind of error."""
    rig = Rig(BASE, FailingDetector(RuntimeError("boom")))
    with structlog.testing.capture_logs() as lines:
        conclusion = await rig.pipeline.assess(await rig.request(), OK, json.dumps(ANSWER).encode())
    assert conclusion.outcome.body is None
    assert [line["errors"] for line in lines if line["event"] == "exchange"] == [["encoder: RuntimeError"]]
    assert "boom" not in str(lines)
    assert conclusion.outcome.verdict.reason is Reason.DETECTOR_ERROR
    assert rig.metric("truthlens_unchecked_total", decision="default", reason="detector-error") == 1


async def test_a_failing_detector_blocks_where_the_plan_says_so() -> None:
    """on_unchecked: block holds the answer back."""
    rig = Rig("hallucination: {on_unchecked: block}\n", FailingDetector(RuntimeError("boom")))
    conclusion = await rig.pipeline.assess(await rig.request(), OK, json.dumps(ANSWER).encode())
    assert conclusion.outcome.action is Action.BLOCK
    assert b"Tea" not in (conclusion.outcome.body or b"")
    assert conclusion.headers["x-truthlens-action"] == "block"


@pytest.mark.parametrize(
    "reason", [Reason.UPSTREAM_ERROR, Reason.TOOL_CALL, Reason.EMPTY_ANSWER, Reason.DISABLED]
)
async def test_nothing_is_blocked_where_there_was_no_answer_to_check(reason: Reason) -> None:
    """An error or a tool call passes even under on_unchecked: block."""
    rig = Rig("hallucination: {on_unchecked: block}\n", FixedDetector(scored(0.1)))
    assert rig.pipeline.skip(await rig.request(), reason).outcome.action is Action.PASS


async def test_a_slow_detector_ends_at_the_plans_deadline() -> None:
    """The answer leaves after timeout_s with reason timeout."""
    held = HeldDetector()
    rig = Rig("hallucination: {timeout_s: 0.05}\n", held)
    conclusion = await rig.pipeline.assess(await rig.request(), OK, json.dumps(ANSWER).encode())
    held.release.set()
    assert conclusion.outcome.verdict.reason is Reason.TIMEOUT
    await rig.engine.aclose()


async def test_bodies_over_the_bound_on_held_bytes_are_not_scored() -> None:
    """While one answer is being scored, another that does not fit beside it passes as overloaded."""
    held = HeldDetector()
    rig = Rig("limits: {max_held_bytes: 1500}\n", held)
    body = json.dumps({**ANSWER, "pad": "x" * 900}).encode()
    first = asyncio.create_task(rig.pipeline.assess(await rig.request(), OK, body))
    assert await asyncio.to_thread(held.entered.acquire, timeout=10)
    second = await rig.pipeline.assess(await rig.request(), OK, body)
    held.release.set()
    assert second.outcome.verdict.reason is Reason.OVERLOADED
    assert (await first).outcome.verdict.status is Status.CHECKED
    third = await rig.pipeline.assess(await rig.request(), OK, body)
    assert third.outcome.verdict.status is Status.CHECKED
    assert rig.metric("truthlens_held_bytes") == 0


async def test_a_reload_does_not_touch_an_exchange_that_has_begun() -> None:
    """The answer is scored by the policy under which its request came in."""
    rig = Rig(BASE, FixedDetector(scored(0.6)))
    ticket = await rig.request()
    rig.holder.swap(compile_policy("hallucination: {threshold: 0.9}\n", file="p.yaml"))
    old = await rig.pipeline.assess(ticket, OK, json.dumps(ANSWER).encode())
    new = await rig.pipeline.assess(await rig.request(), OK, json.dumps(ANSWER).encode())
    assert (old.outcome.verdict.flagged, new.outcome.verdict.flagged) == (True, False)


async def test_the_details_header_counts_only_where_the_operator_allows_it() -> None:
    """An unlisted header changes nothing."""
    body = json.dumps(ANSWER).encode()
    closed = Rig(BASE, FixedDetector(scored(0.1)))
    open_ = Rig(BASE + "trusted_headers: [x-truthlens-details]\n", FixedDetector(scored(0.1)))
    refused = await closed.pipeline.assess(await closed.request(x_truthlens_details="spans"), OK, body)
    allowed = await open_.pipeline.assess(await open_.request(x_truthlens_details="spans"), OK, body)
    assert refused.outcome.body is None
    assert json.loads(allowed.outcome.body or b"")["truthlens"]["status"] == "checked"


async def test_pass_leaves_an_unchecked_body_alone_whatever_details_says() -> None:
    """on_unchecked: pass against annotate, for an answer without evidence."""
    request = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    body = json.dumps(ANSWER).encode()
    bodies = {}
    for choice in ("pass", "annotate"):
        rig = Rig(f"hallucination: {{details: true, on_unchecked: {choice}}}\n", FixedDetector(scored(0.1)))
        bodies[choice] = (await rig.pipeline.assess(await rig.request(request), OK, body)).outcome.body
    assert bodies["pass"] is None
    assert json.loads(bodies["annotate"] or b"")["truthlens"]["reason"] == "no-context"


async def test_requests_that_cannot_be_read_say_why() -> None:
    """Invalid JSON, unknown encodings and bombs never reach a detector."""
    rig = Rig("limits: {max_body_bytes: 2000}\n", FixedDetector(scored(0.9)))
    assert (await rig.request(b"{")).reason is Reason.DIALECT
    assert (await rig.request(b"{}", content_encoding="zstd")).reason is Reason.ENCODING
    assert (await rig.request({"messages": [], "pad": "x" * 3000})).reason is Reason.TOO_LARGE


def test_what_is_posted_is_an_exchange_unless_no_answer_comes_back() -> None:
    """Two APIs are read, what is posted elsewhere cannot be, and what gets no answer of a model is left alone."""
    rig = Rig(BASE, FixedDetector(scored(0.9)))

    def admitted(method: str, path: str) -> tuple[bool, Reason | None]:
        ticket = rig.pipeline.admit(RequestHead(method, path, {}, {}))
        return ticket.no_answer, ticket.reason

    assert admitted("POST", "/v1/completions?x=1") == (False, None)
    assert admitted("POST", "/invocations") == (False, None)
    for method, path in (("POST", "/v1/responses"), ("PUT", "/v1/unknown"), ("POST", "/v1//embeddings")):
        assert admitted(method, path) == (False, Reason.DIALECT)
    for method, path in (("GET", "/v1/chat/completions"), ("POST", "/v1/embeddings")):
        assert admitted(method, path) == (True, None)


async def test_a_path_of_both_apis_is_told_apart_by_the_body() -> None:
    """The endpoint of what was read is that of its body."""
    rig = Rig(BASE, FixedDetector(scored(0.9)))
    head = RequestHead("POST", "/invocations", {}, {})
    prompt = {"prompt": "<context>Tea is free.</context>\nIs tea free?"}
    for request, body, text in (
        (REQUEST, ANSWER, "Tea is free."),
        (prompt, {"choices": [{"index": 0, "text": "Tea is dear."}]}, "Tea is dear."),
    ):
        ticket = await rig.pipeline.open(rig.pipeline.admit(head), json.dumps(request).encode())
        ticket = await rig.pipeline.prepare(ticket)
        conclusion = await rig.pipeline.assess(ticket, OK, json.dumps(body).encode())
        assert conclusion.outcome.action is Action.WARN
        assert text in (conclusion.outcome.body or b"").decode()
    unread = await rig.pipeline.open(rig.pipeline.admit(head), b'{"inputs": "x"}')
    assert unread.reason is Reason.DIALECT


async def test_text_is_logged_only_where_the_operator_asks() -> None:
    """telemetry.log_text adds one line; without it no line holds a word of the exchange."""
    for policy, expected in ((BASE, False), (BASE + "telemetry: {log_text: true}\n", True)):
        with structlog.testing.capture_logs() as lines:
            rig = Rig(policy, FixedDetector(scored(0.9)))
            await rig.pipeline.assess(await rig.request(), OK, json.dumps(ANSWER).encode())
        assert ("Tea is free" in str(lines)) is expected
        assert [line["event"] for line in lines].count("exchange") == 1


async def test_request_ids_that_a_client_made_up_are_not_logged() -> None:
    """Only an id that looks like one is copied."""
    with structlog.testing.capture_logs() as lines:
        rig = Rig(BASE, FixedDetector(scored(0.1)))
        for sent in ("3f2a-9", "free text, with spaces"):
            rig.pipeline.skip(await rig.request(x_request_id=sent), Reason.DIALECT)
    assert [line["request_id"] for line in lines if line["event"] == "exchange"] == ["3f2a-9", ""]


async def test_an_exchange_that_ends_early_is_counted() -> None:
    """A client that goes away leaves a line and a count."""
    rig = Rig(BASE, FixedDetector(scored(0.1)))
    with structlog.testing.capture_logs() as lines:
        rig.pipeline.abandon(await rig.request())
    assert rig.metric("truthlens_abandoned_total") == 1
    assert lines[-1]["event"] == "exchange abandoned"


async def test_unknown_names_on_a_route_are_told_once() -> None:
    """A typo in the Envoy route would otherwise be ignored in silence."""
    rig = Rig(BASE, FixedDetector(scored(0.1)))
    head = RequestHead("POST", "/v1/chat/completions", {}, {"truthlens-domain": "helthcare"})
    with structlog.testing.capture_logs() as lines:
        rig.pipeline.admit(head)
        rig.pipeline.admit(head)
    assert [line["metadata"] for line in lines] == ["truthlens-domain=helthcare"]


async def test_a_request_goes_on_before_its_evidence_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is looked for once."""
    searched = []
    find = requests.exchange_of
    monkeypatch.setattr(requests, "exchange_of", lambda *request: searched.append(request) or find(*request))
    rig = Rig(BASE, FixedDetector(scored(0.9)))
    head = RequestHead("POST", "/v1/chat/completions", {}, {})
    ticket = await rig.pipeline.open(rig.pipeline.admit(head), json.dumps(REQUEST).encode())
    assert not searched
    ticket = await rig.pipeline.prepare(ticket)
    assert len(searched) == 1
    conclusion = await rig.pipeline.assess(ticket, OK, json.dumps(ANSWER).encode())
    assert conclusion.headers["x-truthlens-score"] == "0.90"
    assert len(searched) == 1


async def test_text_of_a_stream_is_logged_where_the_operator_asks() -> None:
    rig = Rig(
        "hallucination: {streaming: observe}\ntelemetry: {log_text: true}\n",
        FixedDetector(scored(0.9)),
    )
    flow = rig.pipeline.flow(await rig.request({**REQUEST, "stream": True}), _nowhere)
    with structlog.testing.capture_logs() as lines:
        await flow.feed(sse() + DONE, end=True)
        while flow.outcome is None:
            await asyncio.sleep(0.01)
    await flow.aclose()
    assert "Tea is free." in str(lines)


async def _nowhere(_ack: Ack) -> None:
    return


def test_the_early_plan_follows_headers_routes_and_reloads() -> None:
    """What is remembered for bare requests is never used for others, nor for another policy."""
    policy = """\
trusted_headers: [x-domain]
signals: {domains: [{name: free, headers: {x-domain: [free]}}]}
decisions:
  - name: free
    priority: 1
    rules: {type: domain, name: free}
    plugins: [{type: hallucination, configuration: {enabled: false}}]
"""
    rig = Rig(policy, FixedDetector(scored(0.1)))

    def reason(headers: dict[str, str], route: dict[str, str] | None = None) -> Reason | None:
        return rig.pipeline.admit(RequestHead("POST", "/v1/chat/completions", headers, route or {})).reason

    assert reason({"a": "b"}) is None
    assert reason({"x-domain": "free"}) is Reason.DISABLED
    assert reason({}, {"truthlens-domain": "free"}) is Reason.DISABLED
    assert reason({}) is None
    rig.holder.swap(compile_policy("hallucination: {enabled: false}\n", file="p.yaml"))
    assert reason({}) is Reason.DISABLED


SSE = ResponseHead(200, {"content-type": "text/event-stream"})
DONE = b"data: [DONE]\n\n"


def sse(text: str = "Tea is free.", finish: str | None = "stop") -> bytes:
    delta = {"id": "1", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    return f"data: {json.dumps(delta)}\n\n".encode()


async def test_a_stream_held_whole_is_scored_like_any_answer() -> None:
    """Its warning is one more chunk; the console and the metrics know that it was a stream."""
    rig = Rig(BASE, FixedDetector(scored(0.9)))
    conclusion = await rig.pipeline.assess(await rig.request({**REQUEST, "stream": True}), SSE, sse() + DONE)
    assert conclusion.headers["x-truthlens-score"] == "0.90"
    assert conclusion.outcome.body is not None
    assert conclusion.outcome.body.endswith(sse() + DONE)
    assert conclusion.outcome.body.count(b"data:") == 3
    (entry,) = rig.recent.entries()
    assert entry.outcome.stream is not None
    assert entry.outcome.stream.streaming == "buffer"
    assert rig.metric("truthlens_stream_verdict_lag_seconds_count", streaming="buffer") == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'event: message_start\ndata: {"type": "message_start"}\n\n', Reason.DIALECT),
        (b'data: {"error": {"message": "boom"}}\n\n' + DONE, Reason.UPSTREAM_ERROR),
    ],
)
async def test_a_stream_without_an_answer_passes_with_its_reason(body: bytes, reason: Reason) -> None:
    rig = Rig(BASE, FixedDetector(scored(0.9)))
    conclusion = await rig.pipeline.assess(await rig.request(), SSE, body)
    assert (conclusion.outcome.body, conclusion.outcome.verdict.reason) == (None, reason)


async def test_a_stream_that_broke_off_is_scored_by_what_came() -> None:
    """The note says that the backend failed; a frame that could not be read makes the verdict partial."""
    rig = Rig(BASE, FixedDetector(scored(0.1)))
    broken = sse(finish=None) + b'data: {"error": {"message": "boom"}}\n\n'
    conclusion = await rig.pipeline.assess(await rig.request(), SSE, broken)
    assert conclusion.outcome.verdict.status is Status.CHECKED
    assert "stream-error" in conclusion.outcome.notes
    conclusion = await rig.pipeline.assess(await rig.request(), SSE, sse() + b"data: ???\n\n" + DONE)
    assert (conclusion.outcome.verdict.status, conclusion.outcome.verdict.reason) == (
        Status.PARTIAL,
        Reason.DIALECT,
    )


async def test_a_stream_that_is_followed_is_concluded_once() -> None:
    """Metrics, the console and the gauge of streams tell of it."""
    rig = Rig("hallucination: {threshold: 0.5, streaming: observe}\n", FixedDetector(scored(0.9)))
    ticket = await rig.request({**REQUEST, "stream": True})
    assert rig.pipeline.pending(ticket)["x-truthlens-status"] == "pending"
    acks = []

    async def emit(ack: Ack) -> None:
        acks.append(ack)

    flow = rig.pipeline.flow(ticket, emit)
    assert rig.metric("truthlens_streams", streaming="observe") == 1
    await flow.feed(sse(finish=None), end=False)
    await flow.feed(sse("", "stop") + DONE, end=False)
    async with asyncio.timeout(20):
        while len(acks) < 2:
            await asyncio.sleep(0)
    await flow.feed(b"", end=True)
    await flow.aclose()
    assert [ack.end for ack in acks] == [False, False, True]
    assert rig.metric("truthlens_streams", streaming="observe") == 0
    assert rig.metric("truthlens_held_bytes") == 0
    assert rig.metric("truthlens_actions_total", decision="default", action="warn") == 1
    (entry,) = rig.recent.entries()
    assert entry.outcome.stream is not None
    assert (entry.outcome.stream.streaming, entry.outcome.verdict.flagged) == ("observe", True)


@pytest.mark.parametrize(
    ("content", "details", "reason"),
    [
        ("Is tea free?", False, Reason.NO_CONTEXT),
        ("Is tea free?", True, None),
        ("<context>Tea is free.</context>\nIs tea free?", False, None),
    ],
)
async def test_a_stream_without_evidence_need_not_be_followed(
    content: str, details: bool, reason: Reason | None
) -> None:
    """Unless its verdict is wanted within it."""
    policy = f"hallucination: {{streaming: gate, details: {str(details).lower()}}}\n"
    rig = Rig(policy, FixedDetector(scored(0.1)))
    ticket = await rig.request({"model": "m", "messages": [{"role": "user", "content": content}]})
    assert ticket.stream_reason is reason


CALLS = "evidence: {intermediate_calls: all}"


@pytest.mark.parametrize(
    ("keys", "action"),
    [
        ("details: true", Action.PASS),
        ("details: true, on_unchecked: pass", Action.PASS),
        ("details: true, on_unchecked: block", Action.PASS),
    ],
)
async def test_a_call_that_the_operator_names_keeps_its_body(keys: str, action: Action) -> None:
    """A program parses it: the headers say that it was not checked, and nothing is put into it or blocked."""
    rig = Rig(f"hallucination: {{threshold: 0.5, {keys}, {CALLS}}}\n", FixedDetector(scored(0.9)))
    conclusion = await rig.pipeline.assess(await rig.request(), OK, json.dumps(ANSWER).encode())
    assert (conclusion.outcome.action, conclusion.outcome.body) == (action, None)
    assert conclusion.headers["x-truthlens-status"] == "unchecked"
    assert conclusion.headers["x-truthlens-reason"] == "not-an-answer"
    assert rig.metric("truthlens_evidence_total", source="not-an-answer") == 1
    assert rig.metric("truthlens_evidence_total", source="user") == 0


@pytest.mark.parametrize("reason", [Reason.UNSURE_CONTEXT, Reason.NOT_AN_ANSWER, Reason.NO_CONTEXT])
async def test_what_a_request_looks_like_unlocks_nothing(reason: Reason) -> None:
    """Where the plan blocks what is unchecked, a client that words its request so gets no answer."""
    rig = Rig("hallucination: {on_unchecked: block}\n", FixedDetector(scored(0.1)))
    conclusion = rig.pipeline.skip(await rig.request(), reason)
    assert conclusion.outcome.action is Action.BLOCK
    assert json.loads(conclusion.outcome.body or b"")["error"]["code"] == reason.value


@pytest.mark.parametrize("streaming", ["observe", "gate"])
async def test_a_stream_for_a_program_is_not_followed(streaming: str) -> None:
    """Also where a verdict chunk would be sent for any other stream without evidence."""
    policy = f"hallucination: {{streaming: {streaming}, details: true, {CALLS}}}\n"
    rig = Rig(policy, FixedDetector(scored(0.1)))
    ticket = await rig.request()
    assert ticket.stream_reason is ticket.unread_reason is Reason.NOT_AN_ANSWER
    assert rig.pipeline.pending(ticket)["x-truthlens-reason"] == "not-an-answer"


@pytest.mark.parametrize(
    ("body", "sources"),
    [
        (REQUEST, {"user"}),
        ({**REQUEST, "documents": ["Tea is served at four."]}, {"user", "documents"}),
        ({"model": "m", "messages": [{"role": "user", "content": "Is tea free?"}]}, {"none"}),
    ],
)
async def test_exchanges_are_counted_by_what_their_evidence_came_from(
    body: dict[str, Any], sources: set[str]
) -> None:
    """Each source of an exchange once; also of one whose answer was not scored."""
    rig = Rig(BASE, FixedDetector(scored(0.1)))
    rig.pipeline.skip(await rig.request(body), Reason.UPSTREAM_ERROR)
    known = ("tool", "system", "documents", "user", "answer", "none", "unsure", "not-an-answer")
    assert {each for each in known if rig.metric("truthlens_evidence_total", source=each)} == sources


CITED = {
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Tea is free [doc1].",
                "context": {
                    "citations": [
                        {"title": "Menu", "url": "https://tea", "filepath": "m.md", "content": "Tea is free."}
                    ],
                    "intent": '["is tea free"]',
                },
            },
        }
    ]
}


async def test_citations_of_the_answer_are_evidence() -> None:
    """Of Azure's data_sources the documents come with the answer: it is checked against them, and they are told."""
    rig = Rig("hallucination: {threshold: 0.5, details: true}\n", FixedDetector(scored(0.9)))
    asked = {"model": "m", "messages": [{"role": "user", "content": "Is tea free?"}]}
    ticket = await rig.request({**asked, "data_sources": [{"type": "azure_search", "parameters": {}}]})
    conclusion = await rig.pipeline.assess(ticket, OK, json.dumps(CITED).encode())
    assert conclusion.outcome.verdict.status is Status.CHECKED
    (passage,) = json.loads(conclusion.outcome.body or b"")["truthlens"]["passages"]
    assert passage == {
        "index": 0, "id": "doc1", "title": "Menu", "provenance": "answer", "rule": "answer-citations", "excerpt": "Tea is free.",
    }  # fmt: skip
    assert rig.metric("truthlens_evidence_total", source="answer") == 1
    without = await rig.pipeline.assess(await rig.request(asked), OK, json.dumps(CITED).encode())
    assert without.outcome.verdict.reason is Reason.NO_CONTEXT


async def test_the_scope_comes_from_the_operator_alone() -> None:
    """Trusted headers and the route's metadata make up the scope; other headers, the body and what clients ask for do not."""
    rig = Rig(BASE + "trusted_headers: [X-Property-Id, x-truthlens-details]\n", FixedDetector(scored(0.1)))
    head = RequestHead(
        "POST",
        "/v1/chat/completions",
        {"x-property-id": "7", "x-period-id": "9", "x-truthlens-details": "spans"},
        {"x-truthlens-scope-period": "3", "truthlens-decision": "default", "truthlens-scope-unit": "a"},
    )
    body = json.dumps({**REQUEST, "x-period-id": "9", "scope": {"x-property-id": "8"}}).encode()
    ticket = await rig.pipeline.prepare(await rig.pipeline.open(rig.pipeline.admit(head), body))
    assert ticket.exchange is not None
    assert dict(ticket.exchange.scope) == {
        "x-property-id": "7",
        "truthlens-scope-period": "3",
        "truthlens-scope-unit": "a",
    }


async def test_a_name_of_the_route_goes_before_a_header_and_before_its_twin() -> None:
    """Of two sources of one name the nearer to the operator's configuration counts."""
    rig = Rig(BASE + "trusted_headers: [truthlens-scope-unit]\n", FixedDetector(scored(0.1)))
    metadata = {"truthlens-scope-unit": "route", "x-truthlens-scope-unit": "other"}
    head = RequestHead("POST", "/v1/chat/completions", {"truthlens-scope-unit": "header"}, metadata)
    assert dict(rig.holder.current.scope(head)) == {"truthlens-scope-unit": "route"}

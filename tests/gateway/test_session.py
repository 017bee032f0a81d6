"""Scripts of events and the replies to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from truthlens.api.paths import RequestKind
from truthlens.api.requests import LazyRequest, Request
from truthlens.core.records.enums import (
    Action,
    Endpoint,
    IntermediateCalls,
    Mode,
    OnUnchecked,
    Reason,
    Status,
    Streaming,
)
from truthlens.core.records.exchange import Message, RequestHead, ResponseHead
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import EvidenceRules
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.exchange.ticket import Conclusion, Ticket
from truthlens.gateway.events import (
    BodyMode,
    Continue,
    FilterModes,
    Phase,
    RequestBody,
    RequestHeaders,
    Respond,
    ResponseBody,
    ResponseHeaders,
    Trailers,
)
from truthlens.gateway.session import Assess, Open, ProtocolError, Session, State, StreamPiece
from truthlens.policy import compile_policy

PLAN = Plan("support")
POLICY = compile_policy("hallucination: {}\n", file="p.yaml")
HEAD = RequestHead("POST", "/v1/chat/completions", {}, {})
OURS = ("x-truthlens-score", "x-truthlens-details", "x_truthlens_score", "x-truthlens_score", "x.truthlens-a")
OTHERS = ("x-other", "x-truthlensscore", "truthlens", "xtruthlens-score", "my-x-truthlens-score")
BUFFERED = FilterModes(BodyMode.BUFFERED, BodyMode.NONE)


def made(
    reason: Reason | None = None,
    *,
    no_answer: bool = False,
    streaming: Streaming = Streaming.BUFFER,
    request_body: bytes | None = None,
    details: bool = True,
) -> Ticket:
    """A ticket without evidence: only where details are wanted has a stream anything to say of that."""
    kind = RequestKind.NO_ANSWER if no_answer else RequestKind.CHAT
    plan = replace(PLAN, streaming=streaming, details=details)
    return Ticket(POLICY, HEAD, kind, plan, reason=reason, request_body=request_body)


@dataclass
class Pipeline:
    """Admits with a fixed ticket and notes what it was asked to skip."""

    ticket: Ticket = field(default_factory=made)
    block: bool = False
    max_body_bytes: int = 1000
    crowded: bool = False
    skipped: list[Reason] = field(default_factory=list)

    def admit(self, head: RequestHead) -> Ticket:
        return self.ticket

    def admits_stream(self, ticket: Ticket) -> bool:
        return not self.crowded

    def note_lag(self, late_s: float) -> None: ...

    def pending(self, ticket: Ticket) -> Mapping[str, str]:
        return {"x-truthlens-enabled": "true", "x-truthlens-status": "pending"}

    def skip(self, ticket: Ticket, reason: Reason) -> Conclusion:
        self.skipped.append(reason)
        outcome = Outcome(PLAN, unchecked(reason))
        if self.block:
            outcome = replace(outcome, action=Action.BLOCK, body=b'{"error":{}}')
        return Conclusion(
            outcome,
            {
                "x-truthlens-enabled": "false",
                "x-truthlens-status": "unchecked",
                "x-truthlens-reason": reason.value,
            },
        )


def request(
    headers: Mapping[str, str] | None = None, *, end: bool = False, modes: FilterModes | None = BUFFERED
) -> RequestHeaders:
    return RequestHeaders(RequestHead("POST", "/v1/chat/completions", headers or {}, {}), end, modes)


def response(status: int = 200, *, end: bool = False, **headers: str) -> ResponseHeaders:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return ResponseHeaders(ResponseHead(status, {"content-type": "application/json", **named}), end)


def at_response(pipeline: Pipeline, ticket: Ticket | None = None) -> Session:
    """A session whose request has been read."""
    session = Session(pipeline)
    session.receive(request())
    session.receive(RequestBody(b"{}", True))
    session.opened(ticket or made())
    return session


def test_an_exchange_ships_both_bodies_and_asks_for_plain_text() -> None:
    """The backend is asked for an unencoded answer, and the answer's body is asked for once its head is known."""
    session = Session(Pipeline())
    head = session.receive(request({"accept-encoding": "gzip"}))
    assert head == Continue(Phase.REQUEST_HEADERS, set_headers={"accept-encoding": "identity"})
    assert isinstance(session.receive(RequestBody(b"{}", True)), Open)
    assert session.opened(made()) == Continue(Phase.REQUEST_BODY)
    reply = session.receive(response())
    assert isinstance(reply, Continue)
    assert (reply.request_body, reply.response_body) == (None, BodyMode.BUFFERED)
    assert isinstance(session.receive(ResponseBody(b"{}", True)), Assess)


def test_a_bypass_ships_no_bodies_and_leaves_the_encoding_alone() -> None:
    """An exchange that needs no scoring costs two messages and does not touch accept-encoding."""
    pipeline = Pipeline(made(reason=Reason.DISABLED))
    session = Session(pipeline)
    reply = session.receive(request())
    assert isinstance(reply, Continue)
    assert (reply.request_body, reply.response_body) == (BodyMode.NONE, BodyMode.NONE)
    assert not reply.set_headers
    passed = session.receive(response())
    assert isinstance(passed, Continue)
    assert passed.set_headers["x-truthlens-reason"] == "disabled"
    assert passed.response_body is None
    assert session.concluded


def test_headers_of_ours_sent_by_a_client_are_removed_on_every_path() -> None:
    """Whatever x-truthlens-* a client sends, the backend never sees it."""
    for ticket in (made(), made(reason=Reason.DIALECT), made(no_answer=True)):
        reply = Session(Pipeline(ticket)).receive(request(dict.fromkeys([*OURS, *OTHERS], "0.00")))
        assert isinstance(reply, Continue)
        assert reply.remove_headers == OURS


@pytest.mark.parametrize(
    ("ticket", "head"),
    [
        (made(), {}),
        (made(), {"content_type": "text/html"}),
        (made(), {"content_type": "text/event-stream"}),
        (made(streaming=Streaming.GATE), {"content_type": "text/event-stream"}),
        (made(no_answer=True), {}),
    ],
)
def test_no_spelling_of_our_headers_leaves_for_the_client(ticket: Ticket, head: dict[str, str]) -> None:
    """Whatever the answer is, a backend's words go, also those that only a folding reader takes for ours."""
    session = Session(Pipeline(ticket))
    session.receive(request())
    if not ticket.no_answer:
        session.receive(RequestBody(b"{}", True))
        session.opened(ticket)
    event = response(**head)
    event.head.headers.update(dict.fromkeys([*OURS, *OTHERS], "0.00"))
    reply = session.receive(event)
    assert isinstance(reply, Continue)
    assert set(OURS) <= set(reply.remove_headers)
    assert set(OTHERS).isdisjoint(reply.remove_headers)


@pytest.mark.parametrize("head", [response(), response(404), response(content_type="text/event-stream")])
def test_what_gets_no_answer_passes_without_a_word(head: ResponseHeaders) -> None:
    """No body is shipped, nothing is scored, blocked or abandoned, and the route's defaults go."""
    pipeline = Pipeline(made(no_answer=True), block=True)
    session = Session(pipeline)
    first = session.receive(request())
    assert first == Continue(Phase.REQUEST_HEADERS, request_body=BodyMode.NONE, response_body=BodyMode.NONE)
    assert session.concluded
    head.head.headers["x-truthlens-reason"] = "unavailable"
    assert session.receive(head) == Continue(Phase.RESPONSE_HEADERS, remove_headers=("x-truthlens-reason",))
    assert pipeline.skipped == []


@pytest.mark.parametrize("reason", [Reason.DIALECT, Reason.ENCODING, Reason.TOO_LARGE])
def test_an_error_is_no_answer_whatever_was_asked(reason: Reason) -> None:
    """A 404 for a path that nobody knows is the backend's to say, also where unchecked answers are refused."""
    for ticket, status, told in (
        (made(reason=reason), 404, Reason.UPSTREAM_ERROR),
        (made(reason=reason), 200, reason),
        (made(reason=Reason.DISABLED), 404, Reason.DISABLED),
    ):
        pipeline = Pipeline(ticket)
        session = Session(pipeline)
        session.receive(request())
        session.receive(response(status))
        assert pipeline.skipped == [told]


@pytest.mark.parametrize(
    "event",
    [response(400, content_type="text/plain"), response(403), response(302, end=True), response(end=True)],
)
def test_a_local_reply_to_a_request_that_never_came_passes(event: ResponseHeaders) -> None:
    """Envoy refuses an upgrade, or a filter that comes first answers a preflight: nothing to check, no fault."""
    pipeline = Pipeline(block=True)
    session = Session(pipeline)
    event.head.headers["x-truthlens-status"] = "unchecked"
    assert session.receive(event) == Continue(Phase.RESPONSE_HEADERS, remove_headers=("x-truthlens-status",))
    assert (pipeline.skipped, session.ticket, session.concluded) == ([], None, True)


def test_an_answer_to_a_request_that_never_came_is_a_fault() -> None:
    """A filter that is configured to send no request headers checks nothing, and must not do so in silence."""
    with pytest.raises(ProtocolError, match="ResponseHeaders in state REQUEST_HEADERS"):
        Session(Pipeline()).receive(response())


def test_headers_of_ours_sent_by_the_backend_are_removed_but_for_the_routes_defaults() -> None:
    """A backend cannot fake a verdict; the fail-open defaults stay until the verdict replaces them."""
    session = at_response(Pipeline())
    reply = session.receive(response(x_truthlens_score="0.01", x_truthlens_status="unchecked"))
    assert isinstance(reply, Continue)
    assert reply.remove_headers == ("x-truthlens-score",)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (response(500), Reason.UPSTREAM_ERROR),
        (response(302), Reason.UPSTREAM_ERROR),
        (response(content_type="text/event-stream", end=True), Reason.EMPTY_ANSWER),
        (response(content_type="text/event-stream", content_encoding="zstd"), Reason.ENCODING),
        (response(content_type="text/html"), Reason.DIALECT),
        (response(content_type=""), Reason.DIALECT),
        (response(content_encoding="zstd"), Reason.ENCODING),
        (response(content_encoding="gzip, zstd"), Reason.ENCODING),
        (response(end=True), Reason.EMPTY_ANSWER),
        (response(content_length="1001"), Reason.TOO_LARGE),
    ],
)
def test_answers_that_cannot_be_scored_pass_and_say_why(event: ResponseHeaders, reason: Reason) -> None:
    """The backend's bytes are not asked for, and the headers carry the reason."""
    pipeline = Pipeline()
    session = at_response(pipeline)
    reply = session.receive(event)
    assert isinstance(reply, Continue)
    assert pipeline.skipped == [reason]
    assert reply.response_body is None
    assert reply.body is None
    assert reply.set_headers["x-truthlens-reason"] == reason.value


@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "br", "deflate", "GZIP", "gzip, br"])
def test_known_encodings_are_asked_for(encoding: str) -> None:
    """A body that can be decoded is buffered."""
    reply = at_response(Pipeline()).receive(response(content_encoding=encoding))
    assert isinstance(reply, Continue)
    assert reply.response_body is BodyMode.BUFFERED


def assessed(outcome: Outcome, headers: dict[str, str], **response_headers: str) -> Continue | Respond:
    session = at_response(Pipeline())
    session.receive(response(**response_headers))
    session.receive(ResponseBody(b"old", True))
    return session.assessed(Conclusion(outcome, headers))


def test_a_changed_body_leaves_with_the_right_length_and_without_the_old_ones_headers() -> None:
    """content-length is set, content-encoding and etag go: Envoy rejects a wrong length with a 500."""
    verdict = Verdict(Status.CHECKED, score=0.9, threshold=0.5)
    outcome = Outcome(PLAN, verdict, action=Action.WARN, body="né".encode())
    reply = assessed(
        outcome,
        {"x-truthlens-enabled": "true", "x-truthlens-status": "checked"},
        content_encoding="gzip",
        etag='"a"',
    )
    assert isinstance(reply, Continue)
    assert reply.body == "né".encode()
    assert reply.set_headers["content-length"] == "3"
    assert {"content-encoding", "etag", "x-truthlens-reason"} <= set(reply.remove_headers)
    assert reply.metadata["score"] == 0.9


def test_an_unchanged_body_keeps_its_encoding_and_length() -> None:
    """Where nothing is rewritten the backend's own bytes and framing pass."""
    outcome = Outcome(PLAN, Verdict(Status.CHECKED, score=0.1, threshold=0.5))
    reply = assessed(
        outcome,
        {"x-truthlens-enabled": "true", "x-truthlens-status": "checked"},
        content_encoding="gzip",
        etag='"a"',
    )
    assert isinstance(reply, Continue)
    assert reply.body is None
    assert "content-length" not in reply.set_headers
    assert reply.remove_headers == ("x-truthlens-reason",)


def test_a_blocked_answer_is_replaced_by_an_error() -> None:
    """The client gets the error body with the verdict's headers and nothing of the answer."""
    outcome = Outcome(PLAN, unchecked(Reason.TIMEOUT), action=Action.BLOCK, body=b"{}", mode=Mode.LIGHTWEIGHT)
    reply = assessed(outcome, {"x-truthlens-action": "block"})
    assert reply == Respond(
        424,
        {"content-type": "application/json", "x-truthlens-action": "block"},
        b"{}",
        "truthlens_blocked_timeout",
    )


def test_a_block_in_the_header_phase_is_an_error_too() -> None:
    """An encoding that cannot be read is refused where the plan demands a check."""
    reply = at_response(Pipeline(block=True)).receive(response(content_encoding="zstd"))
    assert isinstance(reply, Respond)
    assert reply.status == 424


def test_a_rewritten_request_gets_its_length() -> None:
    """The model chosen for ``auto`` changes the body's length."""
    session = Session(Pipeline())
    session.receive(request())
    session.receive(RequestBody(b"{}", True))
    reply = session.opened(made(request_body=b'{"model":"m"}'))
    assert reply.body == b'{"model":"m"}'
    assert reply.set_headers["content-length"] == "13"
    assert reply.remove_headers == ("content-encoding",)


def test_a_local_reply_before_the_request_was_complete_passes() -> None:
    """Envoy's own 413 arrives while the request body is still awaited."""
    pipeline = Pipeline()
    session = Session(pipeline)
    session.receive(request())
    reply = session.receive(response(413, content_type="text/plain"))
    assert isinstance(reply, Continue)
    assert pipeline.skipped == [Reason.UPSTREAM_ERROR]


def test_a_request_without_a_body_is_no_exchange() -> None:
    """A POST whose headers end the stream is answered untouched."""
    pipeline = Pipeline()
    session = Session(pipeline)
    session.receive(request(end=True))
    session.receive(response())
    assert pipeline.skipped == [Reason.DIALECT]


def test_half_a_body_is_not_scored() -> None:
    """A body that Envoy cut at its limit passes as too large."""
    pipeline = Pipeline()
    session = at_response(pipeline)
    session.receive(response())
    reply = session.receive(ResponseBody(b"{", False))
    assert isinstance(reply, Continue)
    assert pipeline.skipped == [Reason.TOO_LARGE]
    assert session.receive(ResponseBody(b"}", True)) == Continue(Phase.RESPONSE_BODY)


@pytest.mark.parametrize(
    "modes",
    [
        FilterModes(BodyMode.FULL_DUPLEX_STREAMED, BodyMode.NONE),
        FilterModes(BodyMode.BUFFERED, BodyMode.FULL_DUPLEX_STREAMED),
        FilterModes(BodyMode.BUFFERED, BodyMode.BUFFERED),
    ],
)
def test_filter_configurations_that_cannot_work_are_refused_with_the_remedy(modes: FilterModes) -> None:
    """The message names what to set."""
    with pytest.raises(ProtocolError, match="response_body_mode: NONE"):
        Session(Pipeline()).receive(request(modes=modes))


def test_a_filter_that_does_not_buffer_requests_is_asked_to() -> None:
    """The override carries both modes, because Envoy takes a missing one as NONE."""
    reply = Session(Pipeline()).receive(request(modes=FilterModes(BodyMode.NONE, BodyMode.NONE)))
    assert isinstance(reply, Continue)
    assert reply.request_body is BodyMode.BUFFERED


def test_messages_out_of_order_end_the_stream() -> None:
    """A response body that nobody asked for is a fault, never a silent pass."""
    with pytest.raises(ProtocolError, match="ResponseBody in state REQUEST_HEADERS"):
        Session(Pipeline()).receive(ResponseBody(b"", True))


def test_trailers_pass() -> None:
    """Trailers are acknowledged in any state."""
    assert at_response(Pipeline()).receive(Trailers(Phase.RESPONSE_TRAILERS)) == Continue(
        Phase.RESPONSE_TRAILERS
    )


STREAM = {"content_type": "text/event-stream; charset=utf-8"}


def test_a_stream_that_is_to_be_held_whole_is_asked_for_like_json() -> None:
    """Under streaming buffer any mode may act, so the whole body is needed."""
    session = at_response(Pipeline())
    reply = session.receive(response(**STREAM))
    assert isinstance(reply, Continue)
    assert (reply.response_body, dict(reply.set_headers)) == (BodyMode.BUFFERED, {})
    assert isinstance(session.receive(ResponseBody(b"data: [DONE]\n\n", True)), Assess)


@pytest.mark.parametrize("streaming", [Streaming.OBSERVE, Streaming.GATE])
def test_a_stream_that_is_followed_comes_in_pieces_behind_pending_headers(streaming: Streaming) -> None:
    """The route's defaults are overwritten, and what would describe the backend's body is removed."""
    session = at_response(Pipeline(), made(streaming=streaming))
    head = response(
        **STREAM, content_length="100", etag="1", x_truthlens_status="unchecked", x_truthlens_reason="unavailable",
        x_truthlens_score="0.00",
    )  # fmt: skip
    reply = session.receive(head)
    assert isinstance(reply, Continue)
    assert reply.response_body is BodyMode.STREAMED
    assert dict(reply.set_headers) == {"x-truthlens-enabled": "true", "x-truthlens-status": "pending"}
    assert set(reply.remove_headers) == {
        "content-length", "etag", "x-truthlens-reason", "x-truthlens-score"
    }  # fmt: skip
    assert session.state is State.STREAM
    assert session.receive(ResponseBody(b"data: 1", False)) == StreamPiece(b"data: 1", False)
    assert session.receive(ResponseBody(b"", True)) == StreamPiece(b"", True)


def test_pieces_pass_in_order_and_the_outcome_is_told_once() -> None:
    """The figures for the access log ride on the first piece that leaves once they are known."""
    session = at_response(Pipeline(), made(streaming=Streaming.OBSERVE))
    session.receive(response(**STREAM))
    outcome = Outcome(PLAN, Verdict(Status.CHECKED, score=0.5, threshold=0.4))
    assert session.passed(None, end=False, outcome=None) == Continue(Phase.RESPONSE_BODY)
    assert not session.concluded
    told = session.passed(b"x", end=False, outcome=outcome)
    assert isinstance(told, Continue)
    assert (told.body, told.metadata["score"], told.metadata["detected"]) == (b"x", 0.5, True)
    assert session.concluded
    assert session.passed(None, end=True, outcome=outcome) == Continue(Phase.RESPONSE_BODY)
    assert session.state is State.ENDED


@pytest.mark.parametrize(
    ("headers", "reason"),
    [({"content_encoding": "gzip"}, Reason.ENCODING), ({}, Reason.NO_CONTEXT)],
)
def test_a_stream_that_cannot_be_followed_passes_with_its_reason(
    headers: dict[str, str], reason: Reason
) -> None:
    """Its headers say so at once, and no body is shipped."""
    pipeline = Pipeline()
    session = at_response(pipeline, made(streaming=Streaming.GATE, details=False))
    reply = session.receive(response(**STREAM, **headers))
    assert isinstance(reply, Continue)
    assert (pipeline.skipped, reply.response_body) == ([reason], None)
    assert reply.set_headers["x-truthlens-reason"] == reason.value


REWRITING = (
    "Given the following conversation and a follow up question, rephrase the follow up question to be a standalone question.\n\n"
    "Chat History:\nHuman: hi\nAI: hello\nFollow Up Input: what does it cost?\nStandalone question:"
)
CALL = Request(
    Endpoint.CHAT, "m", (Message("user", REWRITING),), (), stream=False, structured=False, echoed=""
)


@pytest.mark.parametrize(
    ("on_unchecked", "calls", "read"),
    [
        (OnUnchecked.ANNOTATE, IntermediateCalls.ALL, False),
        (OnUnchecked.BLOCK, IntermediateCalls.ALL, False),
        (OnUnchecked.ANNOTATE, IntermediateCalls.DETECT, False),
        (OnUnchecked.BLOCK, IntermediateCalls.DETECT, True),
        (OnUnchecked.ANNOTATE, IntermediateCalls.NONE, True),
    ],
)
def test_an_answer_for_a_program_is_not_even_read(
    on_unchecked: OnUnchecked, calls: IntermediateCalls, read: bool
) -> None:
    """Where it passes whatever it says, it costs no time; its headers say why it was not checked."""
    rules = EvidenceRules(intermediate_calls=calls)
    plan = replace(PLAN, on_unchecked=on_unchecked, details=True, evidence=rules)
    reading = LazyRequest(CALL, rules, size=1)
    reading.read()
    ticket = Ticket(POLICY, HEAD, RequestKind.CHAT, plan, reading=reading)
    pipeline = Pipeline()
    reply = at_response(pipeline, ticket).receive(response())
    assert isinstance(reply, Continue)
    assert (reply.response_body is BodyMode.BUFFERED) is read
    assert pipeline.skipped == ([] if read else [Reason.NOT_AN_ANSWER])


def test_a_json_answer_is_held_whole_whatever_is_done_with_streams() -> None:
    session = at_response(Pipeline(), made(streaming=Streaming.OBSERVE, details=False))
    reply = session.receive(response())
    assert isinstance(reply, Continue)
    assert reply.response_body is BodyMode.BUFFERED


@pytest.mark.parametrize("block", [False, True])
def test_a_stream_for_which_there_is_no_room_is_refused_by_the_plan(block: bool) -> None:
    """It passes with its reason, or is blocked: never is that left to a timeout of Envoy's."""
    pipeline = Pipeline(block=block, crowded=True)
    session = at_response(pipeline, made(streaming=Streaming.OBSERVE))
    reply = session.receive(response(content_type="text/event-stream"))
    assert pipeline.skipped == [Reason.OVERLOADED]
    if block:
        assert isinstance(reply, Respond)
        assert reply.status == 424
    else:
        assert isinstance(reply, Continue)
        assert reply.set_headers["x-truthlens-reason"] == "overloaded"
    assert session.state is State.ENDED


def test_a_buffered_stream_needs_no_room_among_the_streams() -> None:
    pipeline = Pipeline(crowded=True)
    session = at_response(pipeline, made(streaming=Streaming.BUFFER))
    session.receive(response(content_type="text/event-stream"))
    assert (pipeline.skipped, session.state) == ([], State.RESPONSE_BODY)

"""One ext_proc stream as a state machine: an event in, one reply or one piece of work out. No I/O.

    request headers ─▶ request body ─▶ response headers ─▶ response body ─▶ ended
            │                │                 │  └─────▶ pieces of a stream ─┘
            └── bypass: no body is shipped ────┴── nothing to score: headers only

The session knows HTTP: which bodies to ask Envoy for, which headers must go or be made right. What an answer
is worth is the pipeline's business: the session hands it work (``Open``, ``Assess``) and gets a record back.
Exactly one reply is given for every event; to the pieces of a streamed body in their order, but not at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from truthlens.core.errors import TruthLensError
from truthlens.core.own_headers import own_headers
from truthlens.core.records.enums import Action, Reason, Status, Streaming
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.core.records.outcome import Outcome
from truthlens.exchange.ticket import Conclusion, Ticket
from truthlens.gateway.events import (
    BODY_PASSES,
    BodyMode,
    Continue,
    Event,
    FilterModes,
    Phase,
    Reply,
    RequestBody,
    RequestHeaders,
    Respond,
    ResponseBody,
    ResponseHeaders,
    Trailers,
)

# Set by the Envoy route, overwritten by us: they stay until the verdict is known, so that a fail-open in
# between is visible to the client.
_ROUTE_DEFAULTS = frozenset({"x-truthlens-enabled", "x-truthlens-status", "x-truthlens-reason"})
_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "br", "deflate"})
# Client libraries raise it at once, where they would try again after a 5xx.
_BLOCKED_STATUS = 424
# A body that may change is not the entity that these describe.
_ENTITY_HEADERS = ("etag", "content-md5", "digest")


class ProtocolError(TruthLensError):
    """Envoy sent a message that does not follow from the last one, or is configured in a way that cannot work."""


class PipelinePort(Protocol):
    """The pure half of the pipeline, called by the session itself."""

    @property
    def max_body_bytes(self) -> int:
        """Largest response body that is asked for, in bytes."""

    def admit(self, head: RequestHead) -> Ticket:
        """Return the ticket of an exchange of which only the request head is known."""

    def skip(self, ticket: Ticket, reason: Reason) -> Conclusion:
        """Conclude an exchange whose answer is not scored."""

    def admits_stream(self, ticket: Ticket) -> bool:
        """Return whether there is room for one more stream that is not buffered."""

    def pending(self, ticket: Ticket) -> Mapping[str, str]:
        """Return the ``x-truthlens-*`` headers of a stream whose verdict comes at its end."""


@dataclass(frozen=True, slots=True)
class Open:
    """Work: read the request. Ends with ``Session.opened``."""

    ticket: Ticket
    body: bytes


@dataclass(frozen=True, slots=True)
class Assess:
    """Work: assess the response. Ends with ``Session.assessed``."""

    ticket: Ticket
    head: ResponseHead
    body: bytes


@dataclass(frozen=True, slots=True)
class StreamPiece:
    """The next piece of a streamed response; each is answered by one ``Session.passed``, in order."""

    body: bytes
    end: bool


Work = Open | Assess | StreamPiece


class State(Enum):
    """Which message comes next."""

    REQUEST_HEADERS = auto()
    REQUEST_BODY = auto()
    RESPONSE_HEADERS = auto()
    RESPONSE_BODY = auto()
    STREAM = auto()
    ENDED = auto()


class Session:
    """One exchange."""

    def __init__(self, pipeline: PipelinePort) -> None:
        self.state = State.REQUEST_HEADERS
        self.ticket: Ticket | None = None
        self.concluded = False
        self._pipeline = pipeline
        self._response = ResponseHead(0, {})
        self._bodiless = False
        self._told = False

    @property
    def response(self) -> ResponseHead:
        """Status and headers of the backend's response, once they have come."""
        return self._response

    def receive(self, event: Event) -> Reply | Work:
        """Take the next event.

        Raises:
            ProtocolError: the event is out of order, or the filter's configuration cannot work.
        """
        match event:
            case RequestHeaders() if self.state is State.REQUEST_HEADERS:
                return self._request_headers(event)
            case RequestBody() if self.state is State.REQUEST_BODY:
                assert self.ticket is not None
                return Open(self.ticket, event.body)
            case ResponseHeaders() if self.state in (State.RESPONSE_HEADERS, State.REQUEST_BODY):
                # After REQUEST_BODY: Envoy answered by itself (413, say) before the client's body was complete.
                return self._response_headers(event)
            case ResponseHeaders() if self.state is State.REQUEST_HEADERS and _is_bare(event):
                # Envoy, or a filter that comes first, answered by itself before the request reached this filter.
                return self._let_be(event.head)
            case ResponseBody() if self.state is State.RESPONSE_BODY:
                assert self.ticket is not None
                if not event.end_of_stream:
                    return self._pass(Phase.RESPONSE_BODY, Reason.TOO_LARGE)
                return Assess(self.ticket, self._response, event.body)
            case ResponseBody() if self.state is State.STREAM:
                return StreamPiece(event.body, event.end_of_stream)
            case Trailers():
                return Continue(event.phase)
            case RequestBody() | ResponseBody() if self.state in (State.RESPONSE_HEADERS, State.ENDED):
                # The rest of a body that was not asked for, or that was given up on.
                phase = Phase.REQUEST_BODY if isinstance(event, RequestBody) else Phase.RESPONSE_BODY
                return Continue(phase)
        raise ProtocolError(
            f"{type(event).__name__} in state {self.state.name}: the ext_proc stream is out of step"
        )

    def opened(self, ticket: Ticket) -> Reply:
        """The request has been read."""
        self.ticket = ticket
        self.state = State.RESPONSE_HEADERS
        if ticket.request_body is None:
            return Continue(Phase.REQUEST_BODY)
        return Continue(
            Phase.REQUEST_BODY,
            set_headers={"content-length": str(len(ticket.request_body))},
            # The new body is plain, whatever the client's was.
            remove_headers=("content-encoding",),
            body=ticket.request_body,
        )

    def assessed(self, conclusion: Conclusion) -> Reply:
        """The response has been assessed."""
        self.state = State.ENDED
        self.concluded = True
        outcome = conclusion.outcome
        if outcome.action is Action.BLOCK:
            return _blocked(conclusion)
        headers = dict(conclusion.headers)
        remove = _stale(headers)
        if outcome.body is not None:
            headers["content-length"] = str(len(outcome.body))
            # A changed body leaves uncompressed, and is not the entity that these described.
            remove += tuple(h for h in ("content-encoding", *_ENTITY_HEADERS) if h in self._response.headers)
        return Continue(
            Phase.RESPONSE_BODY,
            set_headers=headers,
            remove_headers=remove,
            body=outcome.body,
            metadata=_metadata(outcome),
        )

    def passed(self, body: bytes | None, *, end: bool, outcome: Outcome | None) -> Reply:
        """A piece of a stream may go.

        Args:
            body: what leaves in its place, or ``None`` where it leaves as it came.
            end: whether it was the last one.
            outcome: of the exchange, once it is known.
        """
        if outcome is not None:
            self.concluded = True
        if end:
            self.state = State.ENDED
        told, self._told = self._told, self._told or outcome is not None
        if body is None and (outcome is None or told):
            return BODY_PASSES
        return Continue(
            Phase.RESPONSE_BODY,
            body=body,
            metadata=_metadata(outcome) if outcome is not None and not told else {},
        )

    def _request_headers(self, event: RequestHeaders) -> Reply:
        _check_modes(event.modes)
        self.ticket = self._pipeline.admit(event.head)
        spoofed = own_headers(event.head.headers)
        self.concluded = self.ticket.no_answer
        self._bodiless = event.end_of_stream
        if self.concluded or self.ticket.reason is not None or event.end_of_stream:
            self.state = State.RESPONSE_HEADERS
            return Continue(
                Phase.REQUEST_HEADERS,
                remove_headers=spoofed,
                request_body=BodyMode.NONE,
                response_body=BodyMode.NONE,
            )
        self.state = State.REQUEST_BODY
        buffered = event.modes is None or event.modes.request_body is BodyMode.BUFFERED
        return Continue(
            Phase.REQUEST_HEADERS,
            set_headers={"accept-encoding": "identity"},
            remove_headers=spoofed,
            request_body=None if buffered else BodyMode.BUFFERED,
        )

    def _response_headers(self, event: ResponseHeaders) -> Reply:
        assert self.ticket is not None
        self._response = event.head
        if self.ticket.no_answer:
            return self._let_be(event.head)
        streams = event.head.streams and self.ticket.plan.streaming is not Streaming.BUFFER
        for reason in self._reasons(event, self.ticket, streams=streams):
            if reason is not None:
                return self._pass(Phase.RESPONSE_HEADERS, reason)
        if streams:
            return self._stream(event.head)
        self.state = State.RESPONSE_BODY
        return Continue(
            Phase.RESPONSE_HEADERS,
            remove_headers=tuple(
                name for name in own_headers(event.head.headers) if name not in _ROUTE_DEFAULTS
            ),
            response_body=BodyMode.BUFFERED,
        )

    def _reasons(self, event: ResponseHeaders, ticket: Ticket, *, streams: bool) -> Iterator[Reason | None]:
        """Yield why the answer is not scored, the first counts; ``streams``: it comes piece by piece."""
        seen = _reason_of(
            event.head,
            ended=event.end_of_stream,
            streams=streams,
            max_body_bytes=self._pipeline.max_body_bytes,
        )
        if seen is Reason.UPSTREAM_ERROR and ticket.reason is not Reason.DISABLED:
            # An error is no answer, whatever could be made of the request.
            yield seen
        yield ticket.reason
        yield seen
        yield ticket.unread_reason
        if streams:
            yield ticket.stream_reason
        if self.state is State.REQUEST_BODY:
            yield Reason.UPSTREAM_ERROR
        if self._bodiless:
            yield Reason.DIALECT
        # Asked last: a refusal is counted.
        if streams and not self._pipeline.admits_stream(ticket):
            yield Reason.OVERLOADED

    def _stream(self, head: ResponseHead) -> Reply:
        """The headers leave now, the body piece by piece."""
        self.state = State.STREAM
        assert self.ticket is not None
        headers = dict(self._pipeline.pending(self.ticket))
        spoofed = tuple(name for name in own_headers(head.headers) if name not in headers)
        # Envoy would send the old length with whatever is put into the body.
        stale = tuple(name for name in ("content-length", *_ENTITY_HEADERS) if name in head.headers)
        return Continue(
            Phase.RESPONSE_HEADERS,
            set_headers=headers,
            remove_headers=tuple(dict.fromkeys(spoofed + _stale(headers) + stale)),
            response_body=BodyMode.STREAMED,
        )

    def _let_be(self, head: ResponseHead) -> Reply:
        """End what was no exchange: there is no answer of a model, and nothing is said of it."""
        self.state = State.ENDED
        self.concluded = True
        return Continue(Phase.RESPONSE_HEADERS, remove_headers=own_headers(head.headers))

    def _pass(self, phase: Phase, reason: Reason) -> Reply:
        """End the exchange without scoring: the backend's bytes pass as they are."""
        assert self.ticket is not None
        conclusion = self._pipeline.skip(self.ticket, reason)
        self.state = State.ENDED
        self.concluded = True
        if conclusion.outcome.action is Action.BLOCK:
            return _blocked(conclusion)
        headers = dict(conclusion.headers)
        spoofed = tuple(name for name in own_headers(self._response.headers) if name not in headers)
        return Continue(
            phase,
            set_headers=headers,
            remove_headers=tuple(dict.fromkeys(spoofed + _stale(headers))),
            metadata=_metadata(conclusion.outcome),
        )


def _blocked(conclusion: Conclusion) -> Respond:
    outcome = conclusion.outcome
    return Respond(
        status=_BLOCKED_STATUS,
        headers={"content-type": "application/json", **conclusion.headers},
        body=outcome.body or b"",
        details=f"truthlens_blocked_{outcome.verdict.reason or 'score'}",
    )


def _stale(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Route defaults that the final headers do not replace (``reason`` of a checked answer)."""
    return tuple(sorted(_ROUTE_DEFAULTS - headers.keys()))


def _is_bare(event: ResponseHeaders) -> bool:
    """Whether a response can hold no answer of a model: an error, a redirect, or headers alone."""
    return event.end_of_stream or not 200 <= event.head.status < 300


def _check_modes(modes: FilterModes | None) -> None:
    if modes is not None and BodyMode.FULL_DUPLEX_STREAMED in (modes.request_body, modes.response_body):
        raise ProtocolError(
            "the ext_proc filter is configured with FULL_DUPLEX_STREAMED, under which Envoy ignores mode overrides;"
            " set request_body_mode: BUFFERED, response_body_mode: NONE and allow_mode_override: true"
        )
    if modes is not None and modes.response_body is not BodyMode.NONE:
        raise ProtocolError(
            f"the ext_proc filter is configured with response_body_mode: {modes.response_body}, under which Envoy"
            " rejects long streams before they can be let through; set response_body_mode: NONE and"
            " allow_mode_override: true"
        )


def _reason_of(head: ResponseHead, *, ended: bool, streams: bool, max_body_bytes: int) -> Reason | None:
    """Why a response can be told not to be scored from its head alone; ``streams``: its body comes piece by piece."""
    if not 200 <= head.status < 300:
        return Reason.UPSTREAM_ERROR
    if ended:
        return Reason.EMPTY_ANSWER
    if head.media_type != "application/json" and not (head.streams or head.media_type.endswith("+json")):
        return Reason.DIALECT
    encodings = {each.strip() for each in head.headers.get("content-encoding", "").lower().split(",")}
    # What is compressed is read as a whole or not at all; the backend was asked for a plain answer.
    if not encodings <= ({"", "identity"} if streams else _ENCODINGS):
        return Reason.ENCODING
    if streams:
        return None
    length = head.headers.get("content-length", "")
    if length.isdigit() and int(length) > max_body_bytes:
        return Reason.TOO_LARGE
    return None


def _metadata(outcome: Outcome) -> dict[str, str | float | bool]:
    """Figures for Envoy's access log (``%DYNAMIC_METADATA(truthlens:score)%``)."""
    verdict = outcome.verdict
    metadata: dict[str, str | float | bool] = {
        "status": verdict.status.value,
        "decision": outcome.plan.decision,
        "mode": outcome.mode.value,
        "action": outcome.action.value,
    }
    if verdict.reason is not None:
        metadata["reason"] = verdict.reason.value
    if verdict.score is not None and verdict.status is not Status.UNCHECKED:
        metadata["score"] = round(verdict.score, 4)
        metadata["detected"] = verdict.flagged
    return metadata

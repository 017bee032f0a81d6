"""Events that a session takes and commands that it gives: the border between protobuf and the state machine.

No protobuf and no I/O here; ``wire`` translates both ways and ``server`` carries the commands out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from truthlens.core.records.exchange import RequestHead, ResponseHead

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Phase(StrEnum):
    """The message of an ext_proc stream that an event or a reply belongs to."""

    REQUEST_HEADERS = "request_headers"
    REQUEST_BODY = "request_body"
    REQUEST_TRAILERS = "request_trailers"
    RESPONSE_HEADERS = "response_headers"
    RESPONSE_BODY = "response_body"
    RESPONSE_TRAILERS = "response_trailers"


class BodyMode(StrEnum):
    """How Envoy sends a body to the processor."""

    NONE = "NONE"
    STREAMED = "STREAMED"
    BUFFERED = "BUFFERED"
    BUFFERED_PARTIAL = "BUFFERED_PARTIAL"
    FULL_DUPLEX_STREAMED = "FULL_DUPLEX_STREAMED"
    GRPC = "GRPC"


@dataclass(frozen=True, slots=True)
class FilterModes:
    """The body modes that the Envoy filter is configured with."""

    request_body: BodyMode
    response_body: BodyMode


# --- events -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """First message of every stream. ``modes`` is ``None`` where Envoy did not say."""

    head: RequestHead
    end_of_stream: bool
    modes: FilterModes | None = None


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The client's whole body (BUFFERED)."""

    body: bytes
    end_of_stream: bool


@dataclass(frozen=True, slots=True)
class ResponseHeaders:
    """The backend's status and headers."""

    head: ResponseHead
    end_of_stream: bool


@dataclass(frozen=True, slots=True)
class ResponseBody:
    """The backend's whole body (BUFFERED), or the next piece of it (STREAMED)."""

    body: bytes
    end_of_stream: bool


@dataclass(frozen=True, slots=True)
class Trailers:
    """Trailers of either side; never changed."""

    phase: Phase


Event = RequestHeaders | RequestBody | ResponseHeaders | ResponseBody | Trailers


# --- replies ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Continue:
    """Let the message of ``phase`` pass, changed as told.

    ``body`` replaces the body of the message; where that is the whole body, ``content-length`` must be among
    ``set_headers``. The two body modes
    override the filter's; ``None`` for both leaves them. An override is absolute: Envoy takes a body mode that
    is left out of it as NONE, hence both are always sent together.
    """

    phase: Phase
    set_headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    remove_headers: tuple[str, ...] = ()
    body: bytes | None = None
    request_body: BodyMode | None = None
    response_body: BodyMode | None = None
    metadata: Mapping[str, str | float | bool] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer the client in place of the backend."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    details: str


@dataclass(frozen=True, slots=True)
class MoreTime:
    """Not a reply yet: Envoy waits for it up to ``seconds`` from now, in place of its ``message_timeout``.

    Envoy takes it once a message, and not at all where ``seconds`` exceeds its ``max_message_timeout``.
    """

    seconds: float


Reply = Continue | Respond

BODY_PASSES = Continue(Phase.RESPONSE_BODY)
"""What most pieces of most streams get."""

"""Our proto against an independent build of Envoy's, and the translation both ways."""

from __future__ import annotations

import pytest
from envoy_data_plane.envoy.config.core import v3 as core
from envoy_data_plane.envoy.extensions.filters.http.ext_proc import v3 as filters
from envoy_data_plane.envoy.service.ext_proc import v3 as envoy

from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.gateway import wire
from truthlens.gateway._pb import ext_proc_pb2 as pb
from truthlens.gateway.events import (
    BodyMode,
    Continue,
    FilterModes,
    MoreTime,
    Phase,
    RequestBody,
    RequestHeaders,
    Respond,
    ResponseBody,
    ResponseHeaders,
    Trailers,
)

MESSAGES = [
    (pb.ProcessingRequest, envoy.ProcessingRequest),
    (pb.ProcessingResponse, envoy.ProcessingResponse),
    (pb.ProtocolConfiguration, envoy.ProtocolConfiguration),
    (pb.HttpHeaders, envoy.HttpHeaders),
    (pb.HttpBody, envoy.HttpBody),
    (pb.HttpTrailers, envoy.HttpTrailers),
    (pb.HeadersResponse, envoy.HeadersResponse),
    (pb.BodyResponse, envoy.BodyResponse),
    (pb.TrailersResponse, envoy.TrailersResponse),
    (pb.CommonResponse, envoy.CommonResponse),
    (pb.ImmediateResponse, envoy.ImmediateResponse),
    (pb.HeaderMutation, envoy.HeaderMutation),
    (pb.BodyMutation, envoy.BodyMutation),
    (pb.ProcessingMode, filters.ProcessingMode),
    (pb.HeaderMap, core.HeaderMap),
    (pb.HeaderValue, core.HeaderValue),
    (pb.HeaderValueOption, core.HeaderValueOption),
]


@pytest.mark.parametrize(("ours", "theirs"), MESSAGES, ids=lambda m: m.__name__)
def test_every_field_number_is_envoys(ours: type, theirs: type) -> None:
    """Each field of our subset has the name and number that Envoy's own message has."""
    numbers = {name: meta.number for name, meta in theirs._betterproto.meta_by_field_name.items()}
    assert ours.DESCRIPTOR.fields
    for field in ours.DESCRIPTOR.fields:
        assert numbers[field.name] == field.number


def test_enum_values_are_envoys() -> None:
    """Modes have Envoy's values."""
    assert dict(pb.BodySendMode.items()) == {m.name: m.value for m in filters.ProcessingModeBodySendMode}


REPLIES = [
    Continue(
        Phase.REQUEST_HEADERS, {"a": "b"}, ("c",), request_body=BodyMode.NONE, response_body=BodyMode.BUFFERED
    ),
    Continue(
        Phase.RESPONSE_BODY, {"content-length": "2"}, body=b"{}", metadata={"score": 0.5, "detected": True}
    ),
    Continue(Phase.RESPONSE_TRAILERS),
    Continue(Phase.REQUEST_BODY),
    Respond(424, {"content-type": "application/json"}, b"{}", "why"),
]


@pytest.mark.parametrize("reply", REPLIES, ids=lambda r: type(r).__name__)
def test_an_independent_codec_reads_our_bytes_whole(reply: Continue | Respond) -> None:
    """Bytes parsed and written again by another implementation are the same bytes: nothing is unknown to it."""
    ours = wire.render(reply).SerializeToString(deterministic=True)
    assert bytes(envoy.ProcessingResponse.parse(ours)) == ours


def test_a_reply_keeps_its_phase_even_when_empty() -> None:
    """An empty message would be a protocol error for Envoy."""
    for phase in Phase:
        assert wire.render(Continue(phase)).WhichOneof("response") == phase.value


def test_header_values_travel_as_raw_bytes() -> None:
    """Envoy takes ``value`` as an empty header."""
    (option,) = wire.render(
        Continue(Phase.REQUEST_HEADERS, {"a": "b"})
    ).request_headers.response.header_mutation.set_headers
    assert (option.header.raw_value, option.header.value) == (b"b", "")


def test_requests_become_events() -> None:
    """Pseudo headers are taken out, names are lower case, repeated headers are joined."""
    message = pb.ProcessingRequest()
    for key, value in (
        (":method", b"POST"),
        (":path", b"/v1/x"),
        ("X-A", b"1"),
        ("x-a", b"2"),
        ("x-b", b"\xff"),
    ):
        message.request_headers.headers.headers.add(key=key, raw_value=value)
    message.protocol_config.request_body_mode = pb.BUFFERED
    event = wire.parse(message, {"d": "finance"})
    assert event == RequestHeaders(
        RequestHead("POST", "/v1/x", {"x-a": "1, 2", "x-b": "\ufffd"}, {"d": "finance"}),
        False,
        FilterModes(BodyMode.BUFFERED, BodyMode.NONE),
    )


def test_the_other_messages_become_events() -> None:
    """Status and bodies come through."""
    head = pb.ProcessingRequest()
    head.response_headers.headers.headers.add(key=":status", raw_value=b"201")
    head.response_headers.end_of_stream = True
    assert wire.parse(head, {}) == ResponseHeaders(ResponseHead(201, {}), True)
    body = pb.ProcessingRequest(request_body=pb.HttpBody(body=b"x", end_of_stream=True))
    assert wire.parse(body, {}) == RequestBody(b"x", True)
    body = pb.ProcessingRequest(response_body=pb.HttpBody(body=b"y"))
    assert wire.parse(body, {}) == ResponseBody(b"y", False)
    assert wire.parse(pb.ProcessingRequest(response_trailers=pb.HttpTrailers()), {}) == Trailers(
        Phase.RESPONSE_TRAILERS
    )


def test_a_message_without_a_phase_is_refused() -> None:
    """An unknown message cannot be answered."""
    with pytest.raises(wire.WireError, match="without a known phase"):
        wire.parse(pb.ProcessingRequest(), {})


def test_more_time_is_a_message_of_its_own() -> None:
    """Envoy takes the override only from a message without a reply in it."""
    message = wire.render(MoreTime(35.25))
    assert message.WhichOneof("response") is None
    assert message.override_message_timeout.ToMilliseconds() == 35250
    assert (
        envoy.ProcessingResponse.parse(message.SerializeToString()).override_message_timeout.total_seconds()
        == 35.25
    )

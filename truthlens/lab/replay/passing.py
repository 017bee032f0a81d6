"""Take one exchange through a pipeline, as the gateway does with the messages of Envoy."""

from __future__ import annotations

import asyncio

from truthlens.core.records.enums import Reason
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.exchange.ticket import Ticket
from truthlens.gateway.events import RequestBody, RequestHeaders, ResponseBody, ResponseHeaders
from truthlens.gateway.session import Assess, Open, Session, State
from truthlens.pipeline import Pipeline
from truthlens.streaming.types import Ack

ANSWER_NOT_KEPT = "answer-not-kept"
"""Why an exchange cannot be replayed: the policy in force then never asked for the answer, and this one would."""

NO_ANSWER = "no-answer"
"""Why an exchange cannot be replayed: its path holds no answers of models."""

_PIECE = 16 << 10
# What the head of a response says, whatever the policy.
_OF_RESPONSE = frozenset({
    Reason.UPSTREAM_ERROR, Reason.ENCODING, Reason.TOO_LARGE, Reason.EMPTY_ANSWER, Reason.DIALECT, Reason.OVERLOADED,
})  # fmt: skip


async def passed(
    pipeline: Pipeline,
    request: tuple[RequestHead, bytes],
    response: tuple[ResponseHead, bytes] | None,
    *,
    reason: Reason | None = None,
) -> str:
    """Take an exchange through ``pipeline``, which concludes it; return why it did not, ``""`` where it did.

    Args:
        pipeline: does all of it.
        request: what the client sent.
        response: what the backend gave, ``None`` where its body is not known.
        reason: why the body is not known.
    """
    session = Session(pipeline)
    head, body = request
    session.receive(RequestHeaders(head, end_of_stream=False))
    if session.concluded:
        return NO_ANSWER
    if session.state is State.REQUEST_BODY:
        work = session.receive(RequestBody(body, end_of_stream=True))
        assert isinstance(work, Open)
        session.opened(await pipeline.open(work.ticket, work.body))
        assert session.ticket is not None
        session.ticket = await pipeline.prepare(session.ticket)
    assert session.ticket is not None
    if response is None:
        return _without_response(pipeline, session.ticket, reason)
    head_back, body_back = response
    session.receive(ResponseHeaders(head_back, end_of_stream=not body_back))
    if session.state is State.RESPONSE_BODY:
        assess = session.receive(ResponseBody(body_back, end_of_stream=True))
        assert isinstance(assess, Assess)
        session.assessed(await pipeline.assess(assess.ticket, assess.head, assess.body))
    elif session.state is State.STREAM:
        await _streamed(pipeline, session.ticket, body_back)
    return ""


def _without_response(pipeline: Pipeline, ticket: Ticket, reason: Reason | None) -> str:
    known = (ticket.reason, reason if reason in _OF_RESPONSE else None, ticket.unread_reason)
    streamed = ticket.stream_reason
    found = next((each for each in (*known, streamed if streamed is reason else None) if each), None)
    if found is None:
        pipeline.abandon(ticket)
        return ANSWER_NOT_KEPT
    pipeline.skip(ticket, found)
    return ""


async def _streamed(pipeline: Pipeline, ticket: Ticket, body: bytes) -> None:
    pieces = [body[start : start + _PIECE] for start in range(0, len(body), _PIECE)]
    passed_on, taken = 0, asyncio.Event()

    async def emit(_ack: Ack) -> None:
        nonlocal passed_on
        passed_on += 1
        if passed_on == len(pieces):
            taken.set()

    flow = pipeline.flow(ticket, emit)
    try:
        for number, piece in enumerate(pieces, 1):
            await flow.room()
            await flow.feed(piece, end=number == len(pieces))
        await taken.wait()
    finally:
        await flow.aclose()

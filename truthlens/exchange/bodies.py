"""Read the bodies of exchanges, off the event loop where that takes long, and write the answer's new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import structlog

from truthlens.api.encoding import decode_body
from truthlens.api.responses import Response, rewrite_response
from truthlens.api.sse.buffered import StreamedResponse, rewrite_stream
from truthlens.core.deadline import Deadline
from truthlens.core.errors import (
    BodyEncodingError,
    BodyTooLargeError,
    DialectError,
    OverloadedError,
    StoppedError,
)
from truthlens.core.limits import Limits
from truthlens.core.records.enums import OnUnchecked, Reason
from truthlens.core.records.exchange import Exchange, RequestHead, ResponseHead
from truthlens.core.records.outcome import Outcome
from truthlens.delivery import truthlens_object, usage_object, warn
from truthlens.exchange.reading_pool import Pool
from truthlens.exchange.ticket import HeldTotal, Ticket

log = structlog.get_logger("truthlens.exchange.bodies")

INLINE_BYTES = 4 << 10
"""Largest body that is read on the event loop.

Reading takes about 2 ms and 1.5 ms per KB of a short request, most of it the search for evidence, and of
hostile text 6 ms; larger bodies go to a worker thread, so that one long request does not hold up the others.
"""

# Why a body was not read.
_UNREAD: Mapping[type[Exception], Reason] = {
    DialectError: Reason.DIALECT,
    BodyEncodingError: Reason.ENCODING,
    BodyTooLargeError: Reason.TOO_LARGE,
    OverloadedError: Reason.OVERLOADED,
    StoppedError: Reason.TIMEOUT,
    TimeoutError: Reason.TIMEOUT,
}

_T = TypeVar("_T")


class BodyReader:
    """Reads bodies: short ones at once, others on the threads of ``pool``."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self, work: Callable[[], _T], size: int, timeout_s: float) -> _T:
        """Return the result of ``work`` on ``size`` bytes of a client or backend.

        Raises:
            OverloadedError: too many bodies wait to be read.
            TimeoutError: it takes longer than ``timeout_s``; the work ends.
        """
        if size <= INLINE_BYTES:
            return work()
        return await self._pool.run(work, size=size, timeout_s=timeout_s)

    async def decoded(
        self, limits: Limits, head: RequestHead | ResponseHead, body: bytes, deadline: Deadline
    ) -> bytes:
        """Return ``body`` without its content encoding.

        Raises:
            BodyEncodingError: the encoding is not known, or the body is damaged.
            BodyTooLargeError: it is larger than the limit, as it is or decoded.
            OverloadedError: as ``read``.
            TimeoutError: as ``read``.
        """
        encoding, limit = head.headers.get("content-encoding", ""), limits.max_body_bytes
        if not encoding or len(body) > limit:
            return decode_body(body, encoding, limit=limit)
        # A few bytes may hold megabytes.
        return await self._pool.run(
            lambda: decode_body(body, encoding, limit=limit), size=len(body), timeout_s=deadline.remaining_s
        )


def counting_kept(ticket: Ticket, held: HeldTotal) -> Ticket:
    """Return the ticket with its kept request counted; without it where it would go beyond the bound."""
    size = len(ticket.plain)
    if not held.has_room(ticket.policy.limits, size):
        return replace(ticket, plain=b"")
    # The count is the first ticket's too: a client may leave before the gateway has this one.
    ticket.held.add(size)
    return ticket


def why_unread(error: Exception) -> Reason:
    """Return the reason of an answer that is unchecked because reading a body failed with ``error``."""
    reason = _UNREAD.get(type(error))
    if reason is None:
        # The type alone: a message or a traceback may quote the text that was being read.
        log.error("reading a body failed", error=type(error).__name__)
        return Reason.DETECTOR_ERROR
    return reason


def rewritten(
    ticket: Ticket, exchange: Exchange, response: Response | StreamedResponse, outcome: Outcome
) -> Outcome:
    """Return the outcome with its new body, where the plan or the client wants one."""
    warned = warn(outcome, exchange, response.answers)
    intended = ticket.plan.intended or ticket.plan
    silent = outcome.verdict.score is None and intended.on_unchecked is OnUnchecked.PASS
    details = truthlens_object(warned, exchange) if ticket.wants_details and not silent else None
    if not warned.texts and details is None and not response.forged:
        return warned.outcome
    usage = usage_object(outcome)
    if warned.texts and details is None and usage is not None:
        # The body's own usage stays the first call's; whoever pays must see the rest.
        details = {"calls": len(outcome.calls_made), "usage": usage}
    if isinstance(response, StreamedResponse):
        return replace(warned.outcome, body=rewrite_stream(response, warned.texts, details))
    return replace(warned.outcome, body=rewrite_response(response, warned.texts, details))

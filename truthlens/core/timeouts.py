"""How long an answer may be held, and the time that Envoy is asked to allow for it.

Nothing here waits or counts time; that is for ``Deadline`` and for the gateway.
"""

from __future__ import annotations

from truthlens.core.enums import Mode, Streaming
from truthlens.core.plan import Plan

MARGIN_S = 2.0
"""Seconds between the end of a hold and the moment at which Envoy gives up: for the way of the body and of the reply."""

_STANDARD_S = 30.0
_ABOVE_STANDARD_S = 60.0


def hold_s(plan: Plan) -> float:
    """The most seconds that an answer is held under ``plan``, counted from its last byte, detection included.

    In mode lightweight that is the time of one detection; in the modes that call models it is the plan's deadline, or
    the mode's default.
    """
    if plan.mode is Mode.LIGHTWEIGHT:
        return plan.timeout_s
    if plan.mitigation.deadline_s is not None:
        return plan.mitigation.deadline_s
    return _STANDARD_S if plan.mode is Mode.STANDARD else _ABOVE_STANDARD_S


def override_s(plan: Plan) -> float | None:
    """Seconds to ask Envoy for when the answer arrives, or ``None`` where its own ``message_timeout`` is to do.

    Source: ``ProcessingResponse.override_message_timeout``. Envoy takes one for each message, and ignores one that is
    longer than the filter's ``max_message_timeout`` (left out: every one).
    """
    return None if plan.mode is Mode.LIGHTWEIGHT else hold_s(plan) + MARGIN_S


def streamed_hold_s(plan: Plan) -> float | None:
    """The most seconds that a message of a streamed answer is held, or ``None`` where streams are held whole.

    Under ``observe`` only the end of the stream is held, for one detection; under ``gate`` text waits until its sentence
    is complete or ``max_hold_s`` is over, and then for its detection. Envoy's own ``message_timeout`` must exceed it:
    what it is asked for in ``override_s`` does not outlast one message of a stream.
    """
    match plan.streaming:
        case Streaming.OBSERVE:
            return plan.timeout_s
        case Streaming.GATE:
            return plan.stream.max_hold_s + plan.timeout_s
    return None

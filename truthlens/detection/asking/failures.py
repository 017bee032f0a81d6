"""Tell why a call that failed, or a reply of no use, leaves an answer, or a part of it, unjudged. Pure."""

from __future__ import annotations

from truthlens.core.errors import CallError, DetectorError
from truthlens.core.records.calls import CallFailure
from truthlens.core.records.enums import Reason

# Time and room have reasons of their own.
_REASONS = {
    CallFailure.DEADLINE: Reason.TIMEOUT,
    CallFailure.TIMEOUT: Reason.TIMEOUT,
    CallFailure.BUSY: Reason.OVERLOADED,
}


class ReplyError(DetectorError):
    """A model's reply, or too many of them, cannot be read; the message holds none of it."""


def reason_of(error: CallError) -> Reason:
    """Return the reason of a verdict that lacks what the call was to give."""
    return _REASONS.get(error.failure, Reason.DETECTOR_ERROR)

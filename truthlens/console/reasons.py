"""Say in a sentence why an answer was not, or not wholly, checked."""

from __future__ import annotations

from truthlens.core.records.enums import Reason

_WHY = {
    Reason.DISABLED: "checking is switched off for it, or nothing is listed that could check it",
    Reason.NO_CONTEXT: "no evidence was found, or none that it can be compared with",
    Reason.UNSURE_CONTEXT: "it is not clear which part of the request is evidence",
    Reason.NOT_AN_ANSWER: "the request is a step of an application, not a question of a user",
    Reason.EMPTY_ANSWER: "the answer is empty or claims nothing",
    Reason.TOOL_CALL: "the answer calls a tool and says nothing",
    Reason.DIALECT: "the request or the response is in a form that is not read",
    Reason.ENCODING: "the body's encoding cannot be read",
    Reason.TOO_LARGE: "a limit on size was reached",
    Reason.UPSTREAM_ERROR: "the model's server gave an error",
    Reason.DETECTOR_ERROR: "a detector failed",
    Reason.TIMEOUT: "the time for checking was over",
    Reason.OVERLOADED: "too much is being checked at present",
    Reason.LANGUAGE: "a detector does not read the answer's language",
    Reason.UNAVAILABLE: "something that a detector needs cannot be reached",
}


def why(reason: Reason) -> str:
    """Return the sentence for ``reason``, without capital and full stop."""
    return _WHY[reason]


def described(reason: str) -> str:
    """Return the sentence for the value of a reason, ``""`` for a value that is none."""
    return _WHY[Reason(reason)] if reason in list(Reason) else ""

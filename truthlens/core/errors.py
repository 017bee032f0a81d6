"""The errors that cross a border, drawn as a tree.

TruthLensError
├── PolicyError        the YAML cannot be used; carries file, line, key, remedy
├── ModelError         a model folder cannot be loaded
├── DetectorError      a detector failed on one answer, or cannot be built
├── OverloadedError    a bounded queue is full; the caller reports ``overloaded``
├── DialectError       a body is not of an API that is handled
├── BodyEncodingError  a body's content-encoding is unknown or its data are damaged
├── BodyTooLargeError  a body is larger than its limit, after decoding
├── StoppedError       work was given up, because nobody waits for it any more
├── CallError          a call to a model gave no usable text
└── StartError         the process cannot start (port taken, binary missing)

A message says what happened, with which value, what was expected and where to fix it; it never holds
text of a user, a document or a model.
"""

from __future__ import annotations

from truthlens.core.records.calls import CallFailure


class TruthLensError(Exception):
    """Base of all errors that TruthLens raises on purpose."""


class PolicyError(TruthLensError):
    """The policy file cannot be used: one or more mistakes, each with file, line, key and remedy."""


class ModelError(TruthLensError):
    """A model folder is missing, damaged or of a kind that cannot be run here."""


class DetectorError(TruthLensError):
    """A detector failed on one answer, or cannot be built; ``decision`` is then the plan that lists it."""

    def __init__(self, message: str = "", *, decision: str = "") -> None:
        super().__init__(message)
        self.decision = decision


class OverloadedError(TruthLensError):
    """A bounded queue is full."""


class DialectError(TruthLensError):
    """A body is not of an API that TruthLens handles."""


class BodyEncodingError(TruthLensError):
    """A content-encoding is unknown, or the encoded data are damaged."""


class BodyTooLargeError(TruthLensError):
    """A body is larger than its limit."""


def check(measured: int, limit: int, *, key: str) -> None:
    """Raise ``BodyTooLargeError`` where ``measured`` exceeds ``limit``, which stands in the policy as ``limits.key``."""
    if measured > limit:
        raise BodyTooLargeError(f"{measured} is more than limits.{key} allows ({limit}); raise it")


class StoppedError(TruthLensError):
    """Work was given up, because nobody waits for it any more."""


class CallError(TruthLensError):
    """A call to a model gave no usable text.

    ``failure`` is a ``truthlens.core.records.calls.CallFailure``; ``code`` says more where more is known, such as
    ``http-400:context-length``, and is the failure's name where not. The message holds no text of users or models.
    """

    def __init__(self, failure: CallFailure, message: str = "", *, code: str = "") -> None:
        super().__init__(message or failure.value)
        self.failure = failure
        self.code = code or failure.value


class StartError(TruthLensError):
    """The process cannot start; the message says what to change."""

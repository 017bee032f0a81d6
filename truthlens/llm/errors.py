"""Define why an attempt of a call gave nothing.

A message names statuses, codes and counts, no text of users.
"""

from __future__ import annotations

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Usage
from truthlens.llm.http.causes import Cause


class AttemptError(CallError):
    """One attempt gave no usable text.

    ``again`` says that another attempt may do better, not sooner than ``least_wait_s`` from now. ``usage`` is
    what the backend said that the attempt used, ``cause`` what it said of a request that it refused.
    """

    def __init__(
        self,
        failure: CallFailure,
        message: str = "",
        *,
        again: bool = False,
        least_wait_s: float = 0.0,
        cause: Cause | None = None,
    ) -> None:
        super().__init__(failure, message, code=cause.code if cause else "")
        self.cause = cause
        self.again = again
        self.least_wait_s = least_wait_s
        self.usage = Usage()

"""The error of a refused request."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException


class AccessError(HTTPException):
    """A request is refused.

    Args:
        status: of the response.
        message: what is wrong and what to do, for the user.
        code: a name for programs.
        headers: of the response.
    """

    def __init__(
        self, status: int, message: str, code: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.code = code

"""Tokens that show that a change was asked for by a page of the console (CSRF)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from truthlens.console.access.errors import AccessError
from truthlens.console.access.rules import FORM_TYPE

CSRF_HEADER = "X-CSRF-Token"


@dataclass(frozen=True, slots=True)
class Csrf:
    """The token of one session or user; ``needed`` is false where a program logs in anew with each request."""

    token: str
    needed: bool

    @classmethod
    def of(cls, key: bytes, owner: str, *, needed: bool) -> Csrf:
        """Make the token of ``owner``."""
        return cls(hmac.new(key, f"csrf {owner}".encode(), hashlib.sha256).hexdigest(), needed)


def csrf_token(request: HTTPConnection) -> str:
    """Return the token for the forms of a page, and for the header ``X-CSRF-Token`` of its scripts.

    Raises:
        KeyError: the request did not pass the access control.
    """
    csrf: Csrf = request.scope["csrf"]
    return csrf.token


def check_csrf(request: HTTPConnection, given: str | None) -> None:
    """Check the token of a request that changes something.

    Not needed by programs: a request with ``Authorization: Bearer``, or one of JSON that no browser sent (without
    ``Origin``, ``Sec-Fetch-Site`` and ``Cookie``).

    Args:
        request: it passed the access control.
        given: the token from the form; ``None`` to read it from the header ``X-CSRF-Token``.

    Raises:
        AccessError: 403, the token is missing or not that of this session or user.
    """
    csrf: Csrf = request.scope["csrf"]
    headers = request.headers
    form = headers.get("content-type", "").lower().startswith(FORM_TYPE)
    browser = form or any(name in headers for name in ("origin", "sec-fetch-site", "cookie"))
    if not csrf.needed or not browser:
        return
    text = headers.get(CSRF_HEADER, "") if given is None else given
    if not hmac.compare_digest(text.encode(), csrf.token.encode()):
        raise AccessError(403, "the page is out of date; load it again and repeat the change", "invalid_csrf")

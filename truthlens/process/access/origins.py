"""Whether a request is meant for this console, and whether a page of another site made it: hosts, origins, CSRF tokens."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Scope

from truthlens.core.net import is_loopback
from truthlens.process.access import rules
from truthlens.process.access.rules import AccessError

CSRF_HEADER = "X-CSRF-Token"
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:\[\]@/?#]+?))\.?(?::[0-9]+)?", re.IGNORECASE)


class Origins:
    """Refuses other hosts (DNS rebinding) and other origins (cross-site requests).

    Starlette's ``TrustedHostMiddleware`` takes a fixed list for all paths; here the address of the connection
    counts as well.

    Args:
        hosts: names beside the loopback ones and the connection's address; ``None`` for any.
    """

    def __init__(self, hosts: Iterable[str] | None) -> None:
        self._hosts = None if hosts is None else frozenset(map(plain_host, hosts))

    def check(self, scope: Scope, headers: Headers) -> None:
        """Check ``Host``, ``Origin`` and ``Sec-Fetch-Site``.

        Raises:
            AccessError: 403.
        """
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(plain_host(hosts[0]), scope):
            message = "this Host is not one of the console's; name it with --console-host"
            raise AccessError(403, message, "invalid_host")
        origins = headers.getlist("origin")
        cross_site = scope["method"] not in rules.SAFE_METHODS and any(
            # "none" is of the user's own doing, such as loading a page again.
            site.lower() not in ("same-origin", "none")
            for site in headers.getlist("sec-fetch-site")
        )
        if cross_site or any(origin.lower().partition("://")[2] != hosts[0].lower() for origin in origins):
            raise AccessError(403, "pages of other origins may not use the console", "invalid_origin")

    def _is_ours(self, host: str, scope: Scope) -> bool:
        server = scope.get("server")
        return (
            self._hosts is None
            or host in self._hosts
            or host == "localhost"
            or is_loopback(host)
            or (server is not None and host == server[0])
        )


def check_body(scope: Scope, headers: Headers) -> None:
    """Check the media type of a body, which must be one that other sites' forms cannot send.

    A page with a form takes what forms send in its place, and then only with the console's own ``Origin``, which
    browsers send with every form.

    Raises:
        AccessError: 415, or 403 for a form without ``Origin``.
    """
    if scope["method"] not in rules.METHODS_WITH_BODY:
        return
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    wanted = rules.body_type(scope["path"])
    if media_type != wanted:
        raise AccessError(415, f"content-type must be {wanted}", "invalid_content_type")
    if wanted == rules.FORM_TYPE and "origin" not in headers:
        raise AccessError(403, "a form must come from a page of the console", "invalid_origin")


def plain_host(host: str) -> str:
    """Return a host in lower case without port, brackets and final dot; ``""`` where it cannot be one."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


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
    form = headers.get("content-type", "").lower().startswith(rules.FORM_TYPE)
    browser = form or any(name in headers for name in ("origin", "sec-fetch-site", "cookie"))
    if not csrf.needed or not browser:
        return
    text = headers.get(CSRF_HEADER, "") if given is None else given
    if not hmac.compare_digest(text.encode(), csrf.token.encode()):
        raise AccessError(403, "the page is out of date; load it again and repeat the change", "invalid_csrf")

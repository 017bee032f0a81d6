"""Decide who may use the console and what browsers may do with its pages; an ASGI middleware.

Probes and Prometheus reach ``/healthz``, ``/readyz`` and ``/metrics`` by whatever address they know, and
these hold figures and names from the configuration alone: they are open. Everything else is checked, in this
order:

1. ``Host`` must be a loopback name, the address that the connection came in at, or a configured name. A page
   of another site whose name was pointed at this machine (DNS rebinding) cannot send one of these.
2. ``Origin``, where a browser sends one, must be the console's own: other sites' pages get 403.
3. A token, where one is configured: ``Authorization: Bearer TOKEN``, or Basic with it as the password
   (browsers ask).
4. A body must be ``application/json``, which other sites' forms cannot send: else 415. A page with a form of its own
   takes what forms send in its place, and then only with the console's own ``Origin``, which browsers send with
   every form: else 403.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
import secrets
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})

FORM_PATHS = frozenset({"/evidence", "/playground"})
"""Pages with a form that works without scripts."""

_HEADERS = {
    # Nothing but what the console serves itself: no inline script or style, no frame around it, no form to
    # elsewhere.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_FORM_HEADERS = {
    **_HEADERS,
    "content-security-policy": _HEADERS["content-security-policy"].replace(
        "form-action 'none'", "form-action 'self'"
    ),
    # Without a referrer browsers send `Origin: null` with a form.
    "referrer-policy": "same-origin",
}
_FORM_TYPE = "application/x-www-form-urlencoded"
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:\[\]@/?#]+?))\.?(?::[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use the console.

    ``hosts`` are names in addition to the loopback ones and the console's own address, ``None`` for any (a
    unix socket, where the proxy in front of it checks them). ``token`` is wanted where there is one.
    """

    hosts: frozenset[str] | None = frozenset()
    token: str | None = None


class Security:
    """Refuses what ``access`` does not allow, and puts the protective headers on every response.

    Starlette's ``TrustedHostMiddleware`` takes a fixed list for all paths; here the address of the connection
    counts as well, and probes are let through.
    """

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._hosts = None if access.hosts is None else frozenset(map(_plain_host, access.hosts))
        self._token = None if access.token is None else access.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(protective)
            await send(message)

        protective = _FORM_HEADERS if scope["path"] in FORM_PATHS else _HEADERS
        refused = None if scope["path"] in OPEN_PATHS else self._refusal(scope)
        await (refused or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(_plain_host(hosts[0]), scope):
            return _refused(
                403, "this Host is not one of the console's; name it with --console-host", "invalid_host"
            )
        origins = headers.getlist("origin")
        if any(origin.lower().partition("://")[2] != hosts[0].lower() for origin in origins):
            return _refused(403, "pages of other origins may not use the console", "invalid_origin")
        if self._token is not None and not self._holds_token(headers.get("authorization", "")):
            return _refused(
                401,
                "the console wants its token: Authorization: Bearer TOKEN, or Basic with it as the password",
                "invalid_token",
                {"www-authenticate": 'Basic realm="TruthLens console", charset="UTF-8"'},
            )
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        wanted = _FORM_TYPE if scope["path"] in FORM_PATHS else "application/json"
        if scope["method"] in _WITH_BODY and media_type != wanted:
            return _refused(415, f"content-type must be {wanted}", "invalid_content_type")
        if scope["method"] in _WITH_BODY and wanted == _FORM_TYPE and not origins:
            return _refused(403, "a form must come from a page of the console", "invalid_origin")
        return None

    def _is_ours(self, host: str, scope: Scope) -> bool:
        server = scope.get("server")
        return (
            self._hosts is None
            or host in self._hosts
            or host == "localhost"
            or _is_loopback(host)
            or (server is not None and host == server[0])
        )

    def _holds_token(self, authorization: str) -> bool:
        assert self._token is not None
        scheme, _, credentials = authorization.partition(" ")
        given = credentials.strip().encode()
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != "bearer":
            return False
        return secrets.compare_digest(given, self._token)


def _plain_host(host: str) -> str:
    """Return a host in lower case without port, brackets and final dot; ``""`` where it cannot be one."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> JSONResponse:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return JSONResponse({"error": error}, status_code=status, headers=headers)

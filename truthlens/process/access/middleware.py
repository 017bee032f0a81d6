"""Decide about every request to the console; an ASGI middleware.

Probes and Prometheus reach ``/healthz``, ``/readyz`` and ``/metrics`` by whatever address they know: these are open.
Everything else is checked, in this order:

1. ``Host``, ``Origin`` and ``Sec-Fetch-Site``: the console's own (403).
2. How often the client's address asks (429).
3. Who asks (401, or the login page), whether they may (403), and how often they ask (429).
4. The body's media type (415); forms come from the console's own pages (403).
"""

from __future__ import annotations

import contextlib

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truthlens.process.access import rules
from truthlens.process.access.control import AccessControl, login_path
from truthlens.process.access.identity import Identity
from truthlens.process.access.origins import check_body
from truthlens.process.access.pages import refusal, signed_in, wants_page
from truthlens.process.access.rules import AccessError

# What every response tells browsers that its pages may do.
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


class Security:
    """Refuses what is not allowed, tells the console who asks, and puts the protective headers on every response."""

    def __init__(self, app: ASGIApp, *, control: AccessControl, pages: bool = True) -> None:
        self._app, self._control, self._pages = app, control, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # nothing here uses one
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        form = rules.within(scope["path"], rules.FORM_TREES)
        added = MutableHeaders(_FORM_HEADERS if form else _HEADERS)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in added.items():
                    if name == "set-cookie":
                        headers.append(name, value)
                    else:
                        headers[name] = value
            await send(message)

        app: ASGIApp = self._app
        if scope["path"] not in rules.OPEN_PATHS:
            try:
                app = self._decide(scope, added) or app
            except AccessError as error:
                app = refusal(HTTPConnection(scope).headers, error, pages=self._pages)
        # A client that is gone in the middle of its request is owed no answer, and is no fault to log.
        with contextlib.suppress(ClientDisconnect):
            await app(scope, receive, guarded)

    def _decide(self, scope: Scope, added: MutableHeaders) -> Response | None:
        request, control = HTTPConnection(scope), self._control
        method, path = scope["method"], scope["path"]
        client = control.client(request)
        scope["truthlens.address"] = client.address
        if client.https:
            scope["scheme"] = "https"
        # Of another context than the request before it on this connection only if it is set.
        signed_in.set(None)
        control.origins.check(scope, request.headers)
        limit = control.writes if rules.is_write(method, path) else control.reads
        counted = not rules.within(path, rules.UNCOUNTED_TREES)
        if counted:
            limit.take(f"address {client.address}")
        if not rules.within(path, rules.PUBLIC_TREES):
            try:
                identity = control.identities.of(request, client)
            except AccessError as error:
                page = self._pages and method in rules.SAFE_METHODS and wants_page(request.headers)
                if error.status_code == 401 and page and control.has_login_page:
                    return RedirectResponse(login_path(request), 303)
                raise
            if identity.user.role < rules.role_needed(method, path):
                needed = rules.role_needed(method, path)
                message = f"{identity.user.name} is a {identity.user.role}; this needs a {needed}"
                raise AccessError(403, message, "role_needed")
            if counted:
                limit.take(f"user {identity.user.name}")
            self._admit(identity, request, added)
        check_body(scope, request.headers)
        return None

    def _admit(self, identity: Identity, request: HTTPConnection, added: MutableHeaders) -> None:
        scope, session = request.scope, identity.session
        scope["user"] = identity.user
        scope["csrf"] = self._control.csrf(identity)
        scope["truthlens.session"] = session
        if session and self._control.sessions:
            signed_in.set(identity.user)
            renewed = Response()
            self._control.sessions.renew(session, request, renewed)
            for value in renewed.headers.getlist("set-cookie"):
                added.append("set-cookie", value)

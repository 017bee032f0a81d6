"""Log browsers in and out: the routes and pages of that, and the sessions.

Only a console at whose page people log in (by a token, or at an OpenID provider) imports this.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from truthlens.process.access.identity import Tokens
from truthlens.process.access.origins import check_csrf, csrf_token
from truthlens.process.access.pages import page
from truthlens.process.access.proxies import Client
from truthlens.process.access.rules import AccessError
from truthlens.process.access.sessions import LoginSession, Sessions
from truthlens.process.settings import Access, Login

if TYPE_CHECKING:
    from truthlens.process.access.oidc import OidcLogin

_LONGEST_FORM = 8192
_LONGEST_NEXT = 2000
# A path of this console: browsers read "//", "/\" and both with control characters between as another host.
_LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")
_WRONG = "This token is not right, or the name cannot be used."
_NAMELESS = "Your name is missing. It stands beside your reviews, so that others know whose they are."


class Logins:
    """Logins of a console that has some: ``token`` or ``oidc``; ``derived`` gives the key for a purpose."""

    def __init__(
        self,
        access: Access,
        tokens: Tokens,
        *,
        derived: Callable[[str], bytes],
        client: Callable[[HTTPConnection], Client],
    ) -> None:
        self._tokens, self._client = tokens, client
        self.sessions = Sessions(derived("session"))
        self._oidc: OidcLogin | None = None
        if access.login is Login.OIDC:
            # Authlib is there where this login is used (extra "oidc").
            from truthlens.process.access.oidc import OidcLogin

            self._oidc = OidcLogin(access, derived("oidc"))

    @property
    def routes(self) -> list[Route]:
        """Return the routes of login and logout."""
        if self._oidc:
            login = [
                Route("/login", self._start, methods=["GET"]),
                Route("/login/callback", self._finish, methods=["GET"]),
            ]
        else:
            login = [Route("/login", self._login, methods=["GET", "POST"])]
        return [*login, Route("/logout", self._logout, methods=["GET", "POST"])]

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return page("login", next=local_path(request.query_params.get("next", "")), problem="", name="")
        form = await _form(request)
        name, next_path = form.get("name", "").strip(), local_path(form.get("next", ""))
        if not name:
            return page("login", status=422, next=next_path, problem=_NAMELESS, name=name)
        user = self._tokens.user(name, form.get("token", "").strip().encode(), self._client(request))
        if user is None:
            return page("login", status=401, next=next_path, problem=_WRONG, name=name)
        response = RedirectResponse(next_path, 303)
        self.sessions.start(user, request, response)
        return response

    async def _start(self, request: Request) -> Response:
        assert self._oidc
        return await self._oidc.start(request, local_path(request.query_params.get("next", "")))

    async def _finish(self, request: Request) -> Response:
        assert self._oidc
        address = self._client(request).address
        self._tokens.failures.check(address)
        try:
            user, next_path = await self._oidc.finish(request)
        except AccessError as error:
            self._tokens.failures.count(address)
            response: Response = page(
                "refused", status=error.status_code, title="You are not logged in", error=error
            )
        else:
            response = RedirectResponse(next_path, 303)
            self.sessions.start(user, request, response)
        self._oidc.forget(request, response)
        return response

    async def _logout(self, request: Request) -> Response:
        session: LoginSession | None = request.scope["truthlens.session"]
        if request.method != "POST":
            return page("logout", csrf=csrf_token(request), has_session=session is not None, done=False)
        check_csrf(request, (await _form(request)).get("csrf", ""))
        response = page("logout", csrf="", has_session=session is not None, done=True)
        if session:
            self.sessions.end(session, request, response)
        return response


def local_path(text: str) -> str:
    """Return ``text`` if it is a path of this console, else ``/``."""
    return text if len(text) <= _LONGEST_NEXT and _LOCAL_PATH.fullmatch(text) else "/"


async def _form(request: Request) -> dict[str, str]:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LONGEST_FORM:
                raise AccessError(400, "the form is too large", "invalid_form")
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=4, errors="strict"))
    except (ValueError, ClientDisconnect):
        raise AccessError(400, "the form cannot be read", "invalid_form") from None

"""The access control of the console: its parts, made from the settings, and the routes of login and logout."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import astuple, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from truthlens.console.access.csrf import Csrf, check_csrf, csrf_token
from truthlens.console.access.errors import AccessError
from truthlens.console.access.identity import Identities, Identity, Tokens, unauthorized
from truthlens.console.access.origins import Origins
from truthlens.console.access.pages import page
from truthlens.console.access.proxies import Client, client_of
from truthlens.console.access.rate_limits import READS_PER_MINUTE, WRITES_PER_MINUTE, RateLimit
from truthlens.console.access.sessions import Session, Sessions
from truthlens.settings import Access, Login

if TYPE_CHECKING:
    from truthlens.console.access.oidc import OidcLogin

_LONGEST_FORM = 8192
_LONGEST_NEXT = 2000
# A path of this console: browsers read "//", "/\" and either of them with control characters between as another host.
_LOCAL_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")
_WRONG = "This token is not right, or the name cannot be used."


class AccessControl:
    """Decides about requests as the settings say, and logs browsers in and out."""

    def __init__(self, access: Access) -> None:
        self._access = access
        key = _key(access)
        self.origins = Origins(access.hosts)
        self.sessions = Sessions(_derived(key, "session"))
        self.reads, self.writes = RateLimit(READS_PER_MINUTE), RateLimit(WRITES_PER_MINUTE)
        self._tokens = Tokens(access)
        self._identities = Identities(access, self._tokens, self.sessions)
        self._csrf_key = _derived(key, "csrf")
        self._oidc: OidcLogin | None = None
        if access.login is Login.OIDC:
            # Authlib is there where this login is used (extra "oidc").
            from truthlens.console.access.oidc import OidcLogin

            self._oidc = OidcLogin(access, _derived(key, "oidc"))

    @property
    def has_login_page(self) -> bool:
        """Return whether browsers log in at ``/login``."""
        return self._access.login in (Login.TOKEN, Login.OIDC)

    @property
    def routes(self) -> list[Route]:
        """Return the routes of login and logout."""
        if self._oidc:
            login = [
                Route("/login", self._start, methods=["GET"]),
                Route("/login/callback", self._finish, methods=["GET"]),
            ]
        elif self.has_login_page:
            login = [Route("/login", self._login, methods=["GET", "POST"])]
        else:
            return []
        return [*login, Route("/logout", self._logout, methods=["GET", "POST"])]

    def client(self, request: HTTPConnection) -> Client:
        """Return where a request comes from."""
        return client_of(request.scope, request.headers, self._access.trusted_proxies)

    def identify(self, request: HTTPConnection, client: Client) -> Identity:
        """Return who sent a request.

        Raises:
            AccessError: 400, 401 or 429.
        """
        identity = self._identities.of(request, client)
        if identity is None:
            raise unauthorized(self._access)
        return identity

    def csrf(self, identity: Identity) -> Csrf:
        """Return the CSRF token of a user or session."""
        return Csrf.of(self._csrf_key, identity.owner, needed=not identity.bearer)

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return page("login", next=local_path(request.query_params.get("next", "")), problem="", name="")
        form = await _form(request)
        name, next_path = form.get("name", ""), local_path(form.get("next", ""))
        user = self._tokens.user(
            name or "token", form.get("token", "").strip().encode(), self.client(request)
        )
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
        address = self.client(request).address
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
        session: Session | None = request.scope["truthlens.session"]
        if request.method != "POST":
            return page("logout", csrf=csrf_token(request), has_session=session is not None, done=False)
        check_csrf(request, (await _form(request)).get("csrf", ""))
        response = page("logout", csrf="", has_session=session is not None, done=True)
        if session:
            self.sessions.end(session, request, response)
        return response


def login_path(request: HTTPConnection) -> str:
    """Return the path of the login page that leads back to what was asked for."""
    query = request.scope["query_string"].decode("latin-1")
    return f"/login?{urlencode({'next': request.scope['path'] + (query and f'?{query}')})}"


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


def _key(access: Access) -> bytes:
    """Return a key that changes with the settings: who was logged in under other ones logs in again."""
    # The set of hosts has no order that other processes share.
    settings = replace(access, hosts=None, session_key=access.session_key or secrets.token_bytes(32))
    return hashlib.sha256(repr(astuple(settings)).encode()).digest()


def _derived(key: bytes, purpose: str) -> bytes:
    return hashlib.blake2b(purpose.encode(), key=key, digest_size=32).digest()

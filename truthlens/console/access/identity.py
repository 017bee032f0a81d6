"""Who sent a request: a program by its token, a browser by its session, a proxy's user by a header."""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from truthlens.console.access.errors import AccessError
from truthlens.console.access.proxies import Client
from truthlens.console.access.rate_limits import FAILED_LOGINS_PER_MINUTE, RateLimit
from truthlens.console.access.sessions import Session, Sessions
from truthlens.console.access.users import Role, User, is_name, role_of
from truthlens.settings import Access, Login

LOCAL_USER = User("local", Role.REVIEWER)
"""Everybody, where nobody has to log in."""

_NAMELESS = "token"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sent a request.

    Args:
        user: who.
        session: the session that says so, where one does.
        bearer: whether a program's token says so, which no browser sends by itself.
    """

    user: User
    session: Session | None = None
    bearer: bool = False

    @property
    def owner(self) -> str:
        """Return what a CSRF token is bound to."""
        return f"session {self.session.id}" if self.session else f"user {self.user.name}"


class Tokens:
    """Compares tokens; a client address that gave too many wrong ones has to wait."""

    def __init__(self, access: Access) -> None:
        pairs = ((access.token, Role.REVIEWER), (access.viewer_token, Role.VIEWER))
        self._roles = [(token.encode(), role) for token, role in pairs if token is not None]
        self.failures = RateLimit(FAILED_LOGINS_PER_MINUTE)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._roles)

    def user(self, name: str, token: bytes, client: Client) -> User | None:
        """Return who holds ``token``; ``None`` if it is wrong, or ``name`` cannot be one.

        Raises:
            AccessError: 429, before the token was looked at.
        """
        self.failures.check(client.address)
        roles = [role for known, role in self._roles if secrets.compare_digest(token, known)]
        if roles and is_name(name):
            return User(name, max(roles))
        self.failures.count(client.address)
        return None


class Identities:
    """Recognises the senders of requests as the settings say."""

    def __init__(self, access: Access, tokens: Tokens, sessions: Sessions) -> None:
        self._access, self._tokens, self._sessions = access, tokens, sessions

    def of(self, request: HTTPConnection, client: Client) -> Identity | None:
        """Return who sent a request, ``None`` where it says nothing of that.

        Raises:
            AccessError: 400, 401 or 429: what it says is wrong.
        """
        if self._access.login is Login.NONE:
            return Identity(LOCAL_USER)
        if self._access.login is Login.PROXY:
            return self._forwarded(request) if client.behind_proxy else None
        if self._tokens and "authorization" in request.headers:
            return self._authorized(request, client)
        session = self._sessions.read(request)
        return Identity(session.user, session) if session else None

    def _forwarded(self, request: HTTPConnection) -> Identity | None:
        name = _single(request, self._access.user_header)
        if name is None:
            return None
        if not is_name(name):
            raise AccessError(
                400, f"{self._access.user_header} holds no name that can be used", "invalid_header"
            )
        groups = (_single(request, self._access.groups_header) or "").split(",")
        return Identity(User(name, role_of(name, {group.strip() for group in groups} - {""}, self._access)))

    def _authorized(self, request: HTTPConnection, client: Client) -> Identity:
        scheme, _, credentials = (_single(request, "Authorization") or "").partition(" ")
        bearer = scheme.lower() == "bearer"
        name, token = _NAMELESS, credentials.strip().encode()
        if scheme.lower() == "basic":
            try:
                given, _, token = base64.b64decode(token, validate=True).partition(b":")
                name = given.decode() or _NAMELESS
            except (binascii.Error, UnicodeDecodeError):
                token = b""
        elif not bearer:
            token = b""
        user = self._tokens.user(name, token, client)
        if user is None:
            raise unauthorized(self._access)
        return Identity(user, bearer=bearer)


def unauthorized(access: Access) -> AccessError:
    """Return the error of a request that says nothing, or something wrong, of who sent it."""
    match access.login:
        case Login.PROXY:
            message = f"the console is used through its proxy, which has to send {access.user_header}"
            return AccessError(401, message, "no_user")
        case Login.OIDC:
            return AccessError(401, "log in at /login", "no_session")
        case _:
            message = (
                "the console wants its token: Authorization: Bearer TOKEN, or Basic with it as the password"
            )
            challenge = 'Basic realm="TruthLens console", charset="UTF-8"'
            return AccessError(401, message, "invalid_token", {"www-authenticate": challenge})


def _single(request: HTTPConnection, name: str) -> str | None:
    values = [value for key, value in request.scope["headers"] if key == name.lower().encode()]
    if len(values) > 1:
        raise AccessError(400, f"{name} is there more than once", "invalid_header")
    try:
        return values[0].decode() if values else None
    except UnicodeDecodeError:
        raise AccessError(400, f"{name} is not UTF-8", "invalid_header") from None

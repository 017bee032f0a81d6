"""Who sent a request: a program by its token, a browser by its session, a proxy's user by a header."""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from truthlens.process.access.proxies import Client
from truthlens.process.access.rate_limits import FAILED_LOGINS_PER_MINUTE, RateLimit
from truthlens.process.access.rules import AccessError
from truthlens.process.access.users import Role, User, is_name, role_of
from truthlens.process.settings import Access, Login

if TYPE_CHECKING:
    from truthlens.process.access.sessions import LoginSession, Sessions

LOCAL_USER = User("local", Role.REVIEWER)
"""Everybody, where nobody has to log in."""

# A program says who it is by its token alone; of a person a name is asked.
_PROGRAM = "token"
_BASIC = {"www-authenticate": 'Basic realm="TruthLens console", charset="UTF-8"'}
# A token as the documentation has it made is twice as long; at 20 requests a second (``READS_PER_MINUTE``) none is guessed.
_LONG_BYTES = 16


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sent a request.

    Args:
        user: who.
        session: the session that says so, where one does.
        bearer: whether a program's token says so, which no browser sends by itself.
    """

    user: User
    session: LoginSession | None = None
    bearer: bool = False

    @property
    def owner(self) -> str:
        """Return what a CSRF token is bound to."""
        return f"session {self.session.id}" if self.session else f"user {self.user.name}"


class Tokens:
    """Compares tokens; a client address that gave too many wrong ones has to wait.

    A long token does not: nobody guesses it, so that waiting would protect nothing and let anybody at the same address, such as that
    of a proxy, lock its holder out.
    """

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
            AccessError: 429, whether a short token is right or wrong.
        """
        roles = [role for known, role in self._roles if secrets.compare_digest(token, known)]
        if not roles or len(token) < _LONG_BYTES:
            self.failures.check(client.address)
        if roles and is_name(name):
            return User(name, max(roles))
        self.failures.count(client.address)
        return None


class Identities:
    """Recognises the senders of requests as the settings say."""

    def __init__(self, access: Access, tokens: Tokens, sessions: Sessions | None) -> None:
        self._access, self._tokens, self._sessions = access, tokens, sessions

    def of(self, request: HTTPConnection, client: Client) -> Identity:
        """Return who sent a request.

        Raises:
            AccessError: 400, 401 or 429: it says nothing, or something wrong, of that.
        """
        if (found := self._found(request, client)) is None:
            raise unauthorized(self._access)
        return found

    def _found(self, request: HTTPConnection, client: Client) -> Identity | None:
        if self._access.login is Login.NONE:
            return Identity(LOCAL_USER)
        if self._access.login is Login.PROXY:
            return self._forwarded(request) if client.behind_proxy else None
        if self._tokens and "authorization" in request.headers:
            return self._authorized(request, client)
        session = self._sessions.read(request) if self._sessions else None
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
        name, token = _PROGRAM, credentials.strip().encode()
        if scheme.lower() == "basic":
            try:
                given, _, token = base64.b64decode(token, validate=True).partition(b":")
                name = given.decode().strip()
            except (binascii.Error, UnicodeDecodeError):
                token = b""
            if not name:
                message = (
                    "give your name as the user, it stands beside your reviews, and the token as the password"
                )
                raise AccessError(401, message, "invalid_token", _BASIC)
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
            return AccessError(401, message, "invalid_token", _BASIC)


def _single(request: HTTPConnection, name: str) -> str | None:
    values = [value for key, value in request.scope["headers"] if key == name.lower().encode()]
    if len(values) > 1:
        raise AccessError(400, f"{name} is there more than once", "invalid_header")
    try:
        return values[0].decode() if values else None
    except UnicodeDecodeError:
        raise AccessError(400, f"{name} is not UTF-8", "invalid_header") from None

"""Sessions of browsers: a signed cookie, bounded in age, that a logout ends."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from itsdangerous import BadData, URLSafeSerializer
from starlette.requests import HTTPConnection
from starlette.responses import Response

from truthlens.process.access.users import Role, User

LONGEST_S = 12 * 3600
LONGEST_IDLE_S = 3600
# The cookie is renewed no more often than this.
_RENEWED_S = 60
_MOST_ENDED = 10_000


@dataclass(frozen=True, slots=True)
class SignedCookie:
    """A cookie whose content can be read, but not made, by its holder.

    Over https its name begins with ``__Host-`` or ``__Secure-``, so that neither another host of the domain nor a
    connection without TLS can set it.

    Args:
        key: signs it.
        name: without prefix.
        age_s: how long browsers keep it.
        path: where browsers send it.
    """

    key: bytes
    name: str
    age_s: int
    path: str = "/"

    def read(self, request: HTTPConnection) -> Any:
        """Return the content of the request's cookie; ``None`` where there is none with a valid signature."""
        try:
            return self._serializer.loads(request.cookies.get(self._full_name(request), ""))
        except BadData:
            return None

    def write(self, content: Any, request: HTTPConnection, response: Response) -> None:
        """Set the cookie by a response."""
        value = self._serializer.dumps(content)
        assert isinstance(value, str)
        response.set_cookie(self._full_name(request), value, max_age=self.age_s, **self._marks(request))

    def delete(self, request: HTTPConnection, response: Response) -> None:
        """Delete the cookie by a response."""
        response.delete_cookie(self._full_name(request), **self._marks(request))

    def _marks(self, request: HTTPConnection) -> dict[str, Any]:
        # Lax: a link in a message opens the page that it names. Changes need the console's own Origin.
        return {"path": self.path, "secure": _is_https(request), "httponly": True, "samesite": "lax"}

    def _full_name(self, request: HTTPConnection) -> str:
        if not _is_https(request):
            return self.name
        return f"{'__Host-' if self.path == '/' else '__Secure-'}{self.name}"

    @property
    def _serializer(self) -> URLSafeSerializer:
        return URLSafeSerializer(
            self.key, self.name, signer_kwargs={"key_derivation": "hmac", "digest_method": sha256}
        )


def _is_https(request: HTTPConnection) -> bool:
    return request.scope.get("scheme") == "https"


@dataclass(frozen=True, slots=True)
class LoginSession:
    """One login of one browser; ``started`` and ``seen`` are seconds since 1970."""

    id: str
    user: User
    started: float
    seen: float


class Sessions:
    """Starts, recognises, renews and ends sessions.

    Args:
        key: signs the cookies; processes with the same one know each other's sessions, but not which of them were
            ended by a logout.
        clock: seconds since 1970.
    """

    def __init__(self, key: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._cookie, self._clock = SignedCookie(key, "truthlens", LONGEST_S), clock
        self._ended: OrderedDict[str, None] = OrderedDict()

    def start(self, user: User, request: HTTPConnection, response: Response) -> None:
        """Log ``user`` in by a response; a session that the browser had is not continued."""
        now = self._clock()
        self._write(LoginSession(secrets.token_urlsafe(16), user, now, now), request, response)

    def read(self, request: HTTPConnection) -> LoginSession | None:
        """Return the session of a request; ``None`` where there is none, or it is too old, idle or ended."""
        content = self._cookie.read(request)
        if content is None:
            return None
        name, role, number, started, seen = content
        now = self._clock()
        if now - started > LONGEST_S or now - seen > LONGEST_IDLE_S or number in self._ended:
            return None
        return LoginSession(number, User(name, Role(role)), started, seen)

    def renew(self, session: LoginSession, request: HTTPConnection, response: Response) -> None:
        """Note by a response that the session is in use; a minute is not counted."""
        now = self._clock()
        if now - session.seen > _RENEWED_S and session.id not in self._ended:
            self._write(replace(session, seen=now), request, response)

    def end(self, session: LoginSession, request: HTTPConnection, response: Response) -> None:
        """End a session: its cookie is deleted, and copies of it are worth nothing to this process."""
        self._ended[session.id] = None
        if len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)
        self._cookie.delete(request, response)

    def _write(self, session: LoginSession, request: HTTPConnection, response: Response) -> None:
        user = session.user
        self._cookie.write(
            [user.name, user.role, session.id, session.started, session.seen], request, response
        )

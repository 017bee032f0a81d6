"""The access control of the console: its parts, made from the settings."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import astuple, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import HTTPConnection
from starlette.routing import Route

from truthlens.process.access.identity import Identities, Identity, Tokens
from truthlens.process.access.origins import Csrf, Origins
from truthlens.process.access.proxies import Client, client_of
from truthlens.process.access.rate_limits import READS_PER_MINUTE, WRITES_PER_MINUTE, RateLimit
from truthlens.process.settings import Access, Login

if TYPE_CHECKING:
    from truthlens.process.access.logins import Logins
    from truthlens.process.access.sessions import Sessions


class AccessControl:
    """Decides about requests as the settings say; has logins of browsers where these ask for them."""

    def __init__(self, access: Access) -> None:
        self._access = access
        key = _key(access)
        self.origins = Origins(access.hosts)
        self.reads, self.writes = RateLimit(READS_PER_MINUTE), RateLimit(WRITES_PER_MINUTE)
        self._csrf_key = _derived(key, "csrf")
        tokens = Tokens(access)
        self._logins: Logins | None = None
        if access.login in (Login.TOKEN, Login.OIDC):
            from truthlens.process.access.logins import Logins

            self._logins = Logins(access, tokens, derived=partial(_derived, key), client=self.client)
        self.identities = Identities(access, tokens, self.sessions)

    @property
    def sessions(self) -> Sessions | None:
        """Return the sessions of browsers, ``None`` where none log in."""
        return self._logins.sessions if self._logins else None

    @property
    def has_login_page(self) -> bool:
        """Return whether browsers log in at ``/login``."""
        return self._logins is not None

    @property
    def routes(self) -> list[Route]:
        """Return the routes of login and logout."""
        return self._logins.routes if self._logins else []

    def client(self, request: HTTPConnection) -> Client:
        """Return where a request comes from."""
        return client_of(request.scope, request.headers, self._access.trusted_proxies)

    def csrf(self, identity: Identity) -> Csrf:
        """Return the CSRF token of a user or session."""
        return Csrf.of(self._csrf_key, identity.owner, needed=not identity.bearer)


def login_path(request: HTTPConnection) -> str:
    """Return the path of the login page that leads back to what was asked for."""
    query = request.scope["query_string"].decode("latin-1")
    return f"/login?{urlencode({'next': request.scope['path'] + (query and f'?{query}')})}"


def _key(access: Access) -> bytes:
    """Return a key that changes with the settings: who was logged in under other ones logs in again."""
    # The set of hosts has no order that other processes share.
    settings = replace(access, hosts=None, session_key=access.session_key or secrets.token_bytes(32))
    return hashlib.sha256(repr(astuple(settings)).encode()).digest()


def _derived(key: bytes, purpose: str) -> bytes:
    return hashlib.blake2b(purpose.encode(), key=key, digest_size=32).digest()

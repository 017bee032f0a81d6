"""Login at an OpenID provider: authorization code with PKCE, by Authlib.

Source: OpenID Connect Core 1.0, section 3.1; RFC 7636.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pydantic
import structlog
from authlib.integrations.starlette_client import OAuth, OAuthError
from joserfc.errors import JoseError
from starlette.requests import Request
from starlette.responses import Response

from truthlens.process.access.rules import AccessError
from truthlens.process.access.sessions import SignedCookie
from truthlens.process.access.users import User, is_name, role_of
from truthlens.process.settings import Access

log = structlog.get_logger("truthlens.desk")

CALLBACK = "/login/callback"
_LONGEST_S = 600
_PATIENCE_S = 10.0
# Signatures by a key that the provider alone has: neither "none" nor those by the client's secret.
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class _Discovery(pydantic.BaseModel):
    """What is used of a discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    id_token_signing_alg_values_supported: list[str] = []


class _Keys(pydantic.BaseModel):
    """A set of keys (RFC 7517)."""

    keys: list[dict[str, Any]]


class _ProviderError(Exception):
    """The provider publishes something that is none of its documents."""


# Authlib calls by httpx2, which the extra "oidc" brings for it.
_NO_PROVIDER = (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, _ProviderError)


class OidcLogin:
    """Sends browsers to the provider and reads what they come back with.

    What is to be remembered in between (state, nonce, PKCE verifier, page) is kept in a signed cookie for ten minutes.

    Args:
        access: with the provider.
        key: signs the cookie.
        clock: seconds since 1970.
        patience_s: how long the provider may take for one step of a login, however it spends the time.
    """

    def __init__(
        self,
        access: Access,
        key: bytes,
        *,
        clock: Callable[[], float] = time.time,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        assert access.oidc is not None
        self._access, self._settings, self._clock = access, access.oidc, clock
        self._patience_s = patience_s
        self._cookie = SignedCookie(key, "truthlens-login", _LONGEST_S, path="/login")
        self._provider = OAuth().register(
            "console",
            client_id=self._settings.client_id,
            client_secret=self._settings.client_secret,
            server_metadata_url=f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={"scope": self._settings.scope, "code_challenge_method": "S256"},
        )

    async def start(self, request: Request, next_path: str) -> Response:
        """Return the redirect to the provider; the login ends at ``next_path``.

        Raises:
            AccessError: 502, the provider does not answer as one.
        """
        request.scope["session"] = {}
        try:
            async with asyncio.timeout(self._patience_s):
                await self._discover()
                response: Response = await self._provider.authorize_redirect(
                    request, f"{request.scope['scheme']}://{request.headers['host']}{CALLBACK}"
                )
        except (OAuthError, *_NO_PROVIDER, ValueError, KeyError, RuntimeError) as error:
            raise _no_provider(error) from error
        self._cookie.write([self._clock(), next_path, request.session], request, response)
        return response

    async def finish(self, request: Request) -> tuple[User, str]:
        """Return who logged in, and the path where the login ends.

        Raises:
            AccessError: 400, the login was not started by this browser, is too old or was already finished;
                401, the provider refused it, or its ID token is not valid; 502, it does not answer.
        """
        content = self._cookie.read(request)
        if content is None or self._clock() - content[0] > _LONGEST_S:
            raise AccessError(
                400, "this login was not started here, or too long ago; log in again", "invalid_state"
            )
        _, next_path, request.scope["session"] = content
        try:
            async with asyncio.timeout(self._patience_s):
                await self._discover()
                await self._read_keys()
                token = await self._provider.authorize_access_token(
                    request,
                    claims_options={
                        "iss": {"essential": True, "value": self._settings.issuer},
                        "aud": {"essential": True, "value": self._settings.client_id},
                        "nonce": {"essential": True},
                    },
                )
            claims: dict[str, Any] = token["userinfo"]
        except _NO_PROVIDER as error:
            raise _no_provider(error) from error
        except (OAuthError, JoseError, ValueError, KeyError, TypeError, RuntimeError) as error:
            log.warning("a login was refused", error=type(error).__name__)
            if getattr(error, "error", "") == "mismatching_state":
                message = "this login was not started here, or is already finished; log in again"
                raise AccessError(400, message, "invalid_state") from error
            raise AccessError(
                401, "the identity provider's answer is not valid; log in again", "invalid_login"
            ) from error
        return self._user(claims), next_path

    def forget(self, request: Request, response: Response) -> None:
        """Delete what was remembered of a login."""
        self._cookie.delete(request, response)

    async def _discover(self) -> None:
        """Read the provider's discovery document, once.

        Raises:
            _ProviderError: it is that of another issuer, or none.
        """
        try:
            found = _Discovery.model_validate(await self._provider.load_server_metadata())
        except (ValueError, TypeError) as error:
            self._provider.server_metadata = {}
            raise _ProviderError("the discovery document is none") from error
        if found.issuer != self._settings.issuer:
            self._provider.server_metadata = {}
            raise _ProviderError("the discovery document is of another issuer")
        # Of those that are left out here, Authlib would take any that the provider names.
        self._provider.server_metadata["id_token_signing_alg_values_supported"] = [
            name for name in _ALGORITHMS if name in found.id_token_signing_alg_values_supported
        ]

    async def _read_keys(self) -> None:
        """Read the provider's keys, at each login: they may change at any time, also under the same name.

        Raises:
            _ProviderError: they are none.
        """
        try:
            _Keys.model_validate(await self._provider.fetch_jwk_set(force=True))
        except (ValueError, TypeError, RuntimeError) as error:
            raise _ProviderError("the keys of the provider cannot be read") from error

    def _user(self, claims: dict[str, Any]) -> User:
        claim = self._settings.name_claim
        name = claims.get(claim)
        unverified = claim == "email" and claims.get("email_verified") is not True
        if not isinstance(name, str) or not is_name(name) or unverified:
            raise AccessError(
                401, f"the identity provider gives no usable name in the claim {claim}", "invalid_user"
            )
        groups = claims.get(self._settings.groups_claim)
        listed = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        return User(name, role_of(name, {group for group in listed if isinstance(group, str)}, self._access))


def _no_provider(error: Exception) -> AccessError:
    log.warning("the identity provider does not answer as one", error=type(error).__name__)
    return AccessError(502, "the identity provider does not answer; try again later", "no_provider")

"""A small OpenID provider over HTTP: it logs in whoever comes, and can be told to issue wrong ID tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

CLIENT_ID, CLIENT_SECRET = "console", "secret-of-the-console"
DISCOVERY, KEYS, TOKEN = "/.well-known/openid-configuration", "/keys", "/token"
_Handler = Callable[[Request], Awaitable[Response]]


class OidcProvider:
    """Serves discovery, keys, authorization and tokens until ``close``.

    ``claims`` are added to each ID token (``None`` leaves one out); ``sign`` makes the token of the claims. ``faults`` are what a path
    answers instead, ``keys`` what it publishes.
    """

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.key, self.other_key = (RSAKey.generate_key(2048, {"kid": "k1"}) for _ in range(2))
        self.reset()
        self._codes: dict[str, dict[str, str]] = {}
        app = Starlette(
            routes=[
                Route(DISCOVERY, self._or_fault(self._discovery)),
                Route(KEYS, self._or_fault(self._keys)),
                Route("/authorize", self._authorize),
                Route(TOKEN, self._or_fault(self._token), methods=["POST"]),
            ]
        )
        self._server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def reset(self) -> None:
        """Issue right tokens again."""
        self.claims: dict[str, Any] = {}
        self.algorithms = ["RS256"]
        self.discovery: dict[str, Any] = {}
        self.sign = self.signed
        self.with_id_token = True
        self.faults: dict[str, Response] = {}
        self.keys = [self.key]

    def close(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        self._thread.join()

    def _or_fault(self, handler: _Handler) -> _Handler:
        async def answer(request: Request) -> Response:
            return self.faults.get(request.url.path) or await handler(request)

        return answer

    def signed(self, claims: dict[str, Any]) -> str:
        """Sign as a provider should."""
        return jwt.encode({"alg": "RS256", "kid": "k1"}, claims, self.key)

    def signed_by_another(self, claims: dict[str, Any]) -> str:
        """Sign by a key that is not published, under the name of one that is."""
        return jwt.encode({"alg": "RS256", "kid": "k1"}, claims, self.other_key)

    def unsigned(self, claims: dict[str, Any]) -> str:
        """Sign nothing, ``alg: none``."""
        parts = [json.dumps({"alg": "none", "kid": "k1"}), json.dumps(claims)]
        return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts) + "."

    def signed_by_the_secret(self, claims: dict[str, Any]) -> str:
        """Sign by HMAC with the client's secret."""
        return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(CLIENT_SECRET))

    def signed_by_the_public_key(self, claims: dict[str, Any]) -> str:
        """Sign by HMAC with the text of the public key."""
        text = self.key.as_pem(private=False)
        head = {"alg": "HS256", "kid": "k1"}
        parts = [
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in (head, claims)
        ]
        mac = hmac.new(text, ".".join(parts).encode(), hashlib.sha256).digest()
        return ".".join([*parts, base64.urlsafe_b64encode(mac).decode().rstrip("=")])

    async def _discovery(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "id_token_signing_alg_values_supported": self.algorithms,
                **self.discovery,
            }
        )

    async def _keys(self, _request: Request) -> Response:
        return JSONResponse({"keys": [key.as_dict(private=False) for key in self.keys]})

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(8)
        self._codes[code] = asked
        return RedirectResponse(
            f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
        )

    async def _token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        asked = self._codes.pop(form.get("code", ""), None)
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            asked is None
            or request.headers.get("authorization") != f"Basic {basic}"
            or base64.urlsafe_b64encode(challenge).decode().rstrip("=") != asked["code_challenge"]
            or form.get("redirect_uri") != asked["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        now = int(time.time())
        claims = {
            "iss": self.issuer, "sub": "u1", "aud": CLIENT_ID, "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], "preferred_username": "ada", **self.claims,
        }  # fmt: skip
        reply = {"access_token": "a", "token_type": "Bearer", "expires_in": 300}
        if self.with_id_token:
            reply["id_token"] = self.sign({key: value for key, value in claims.items() if value is not None})
        return JSONResponse(reply)

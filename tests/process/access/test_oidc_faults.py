"""What an OpenID provider may do wrong: nobody is logged in by it, the console says so, and the next login works again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.fakes.guarded_app import client_of
from tests.fakes.oidc_provider import CLIENT_ID, CLIENT_SECRET, DISCOVERY, KEYS, TOKEN, OidcProvider
from tests.fakes.ports import free_port
from truthlens.process.access.oidc import OidcLogin
from truthlens.process.access.rules import AccessError
from truthlens.process.settings import Access, Login, Oidc

HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def serving() -> Iterator[OidcProvider]:
    provider = OidcProvider(free_port())
    yield provider
    provider.close()


@pytest.fixture
def provider(serving: OidcProvider) -> OidcProvider:
    serving.reset()
    return serving


def access_of(provider: OidcProvider) -> Access:
    return Access(login=Login.OIDC, oidc=Oidc(provider.issuer, CLIENT_ID, CLIENT_SECRET))


async def log_in(client: httpx.AsyncClient) -> httpx.Response:
    """Go through a login as a browser does; return the last answer of the console."""
    start = await client.get("/login", headers=HTML)
    if start.status_code != 302:
        return start
    async with httpx.AsyncClient() as browser:
        back = (await browser.get(start.headers["location"])).headers["location"]
    return await client.get(back, headers=HTML)


def told(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json")


FAULTS = {
    "500": HTMLResponse("<h1>oops</h1>", 500),
    "404": told({"error": "not found"}, 404),
    "a page": HTMLResponse("<h1>maintenance</h1>"),
    "nothing": Response(b""),
    "half of it": Response(b'{"issuer": "http', media_type="application/json"),
    "bytes": Response(bytes(range(256)) * 64, media_type="application/json"),
    "a list": told([]),
    "null": told(None),
    "a text": told("issuer"),
    "a number": told(7),
    "empty": told({}),
    "nested": Response(b"[" * 50_000, media_type="application/json"),
    "a loop": RedirectResponse("/keys"),
}


@pytest.mark.parametrize("path", [DISCOVERY, KEYS, TOKEN])
@pytest.mark.parametrize("fault", FAULTS)
async def test_an_answer_that_is_none_logs_nobody_in(provider: OidcProvider, path: str, fault: str) -> None:
    """4xx or 502 and never an error of the console; once the provider is well again, so is the login."""
    async with client_of(access_of(provider)) as client:
        provider.faults[path] = FAULTS[fault]
        refused = await log_in(client)
        assert refused.status_code in (401, 502), refused.text
        assert "set-cookie" not in refused.headers or "Max-Age=0" in refused.headers["set-cookie"]
        assert (await client.get("/")).status_code == 401
        provider.faults.clear()
        assert (await log_in(client)).status_code == 303


async def drops() -> AsyncIterator[bytes]:
    """A byte now and then, for ever."""
    while True:
        yield b" "
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", [DISCOVERY, KEYS, TOKEN])
async def test_a_provider_that_never_ends_its_answer_is_left(provider: OidcProvider, path: str) -> None:
    """However it spends the time; a login at it ends by itself."""
    own = OidcLogin(access_of(provider), b"k" * 32, patience_s=1.0)

    async def guarded(step: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
        try:
            return await step(request)
        except AccessError as error:
            return Response(status_code=error.status_code)

    async def start(request: Request) -> Response:
        return await own.start(request, "/")

    async def finish(request: Request) -> Response:
        user, _ = await own.finish(request)
        return Response(user.name)

    routes = [
        Route("/login", partial(guarded, start)),
        Route("/login/callback", partial(guarded, finish)),
    ]
    transport = httpx.ASGITransport(Starlette(routes=routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8088") as client:
        provider.faults[path] = StreamingResponse(drops(), media_type="application/json")
        assert (await log_in(client)).status_code == 502
        provider.faults.clear()
        assert (await log_in(client)).text == "ada"


@pytest.mark.parametrize(
    "discovery",
    [
        {"authorization_endpoint": None},
        {"authorization_endpoint": 7},
        {"authorization_endpoint": ["x"]},
        {"token_endpoint": None},
        {"token_endpoint": "http://127.0.0.1:9/nobody"},
        {"token_endpoint": "ftp://127.0.0.1/x"},
        {"token_endpoint": {}},
        {"jwks_uri": None},
        {"jwks_uri": "no address"},
        {"jwks_uri": "http://127.0.0.1:9/nobody"},
        {"id_token_signing_alg_values_supported": "RS256"},
        {"id_token_signing_alg_values_supported": 7},
        {"id_token_signing_alg_values_supported": [[]]},
    ],
    ids=str,
)
async def test_a_discovery_document_that_cannot_be_used_logs_nobody_in(
    provider: OidcProvider, discovery: dict[str, Any]
) -> None:
    """Whichever of its values is wrong."""
    provider.discovery = discovery
    async with client_of(access_of(provider)) as client:
        refused = await log_in(client)
        assert refused.status_code in (401, 502), refused.text
        assert (await client.get("/")).status_code == 401


@pytest.mark.parametrize(
    "token",
    [
        {"id_token": ""},
        {"id_token": "a.b.c"},
        {"id_token": 7},
        {"id_token": ["a"]},
        {"id_token": "." * 10_000},
        {"id_token": "e30.e30.e30"},
        {"error": "server_error", "error_description": "<script>"},
    ],
    ids=lambda token: str(token)[:40],
)
async def test_a_token_that_is_none_logs_nobody_in(provider: OidcProvider, token: dict[str, Any]) -> None:
    """Nor is anything of it a part of the page."""
    provider.faults[TOKEN] = told({"access_token": "a", "token_type": "Bearer", **token})
    async with client_of(access_of(provider)) as client:
        refused = await log_in(client)
        assert refused.status_code == 401
        assert "<script>" not in refused.text
        assert (await client.get("/")).status_code == 401


@pytest.mark.parametrize("name", ["k2", "k1", None], ids=["a new name", "the same name", "no name"])
async def test_keys_may_change_at_any_time(provider: OidcProvider, name: str | None) -> None:
    """A login after a rotation works without a restart; one by a key that was taken back does not."""
    async with client_of(access_of(provider)) as client:
        assert (await log_in(client)).status_code == 303
        new = RSAKey.generate_key(2048, {"kid": name} if name else {}, auto_kid=False)
        provider.keys = [new]
        provider.sign = lambda claims: jwt.encode(
            {"alg": "RS256"} | ({"kid": name} if name else {}), claims, new
        )
        assert (await log_in(client)).status_code == 303
        client.cookies.clear()
        provider.sign = provider.signed
        assert (await log_in(client)).status_code == 401


@pytest.mark.parametrize(("ahead", "status"), [(-30, 303), (30, 303), (-86_400, 401), (86_400, 401)], ids=str)
async def test_a_clock_that_is_a_little_wrong_is_borne(
    provider: OidcProvider, ahead: int, status: int
) -> None:
    """Seconds are, a day is not."""
    now = int(time.time()) + ahead
    provider.claims = {"iat": now, "nbf": now, "exp": now + 300}
    async with client_of(access_of(provider)) as client:
        assert (await log_in(client)).status_code == status

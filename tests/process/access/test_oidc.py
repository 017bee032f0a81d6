"""Login at an OpenID provider, over HTTP with one of the tests' own."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.fakes.guarded_app import client_of
from tests.fakes.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcProvider
from tests.fakes.ports import free_port
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


def access_of(provider: OidcProvider, **more: Any) -> Access:
    return Access(login=Login.OIDC, oidc=Oidc(provider.issuer, CLIENT_ID, CLIENT_SECRET), **more)


async def at_provider(start: httpx.Response) -> str:
    """Follow the redirect to the provider; return where it sends the browser back to."""
    assert start.status_code == 302
    async with httpx.AsyncClient() as browser:
        return (await browser.get(start.headers["location"])).headers["location"]


async def log_in(client: httpx.AsyncClient, path: str = "/login") -> httpx.Response:
    return await client.get(await at_provider(await client.get(path)), headers=HTML)


async def test_a_browser_logs_in_and_comes_back_to_its_page(provider: OidcProvider) -> None:
    """By way of the provider, with PKCE, and with a new session cookie."""
    async with client_of(access_of(provider)) as client:
        asked = await client.get("/evidence?x=1&y=2", headers=HTML)
        assert asked.status_code == 303
        finished = await log_in(client, asked.headers["location"])
        assert (finished.status_code, finished.headers["location"]) == (303, "/evidence?x=1&y=2")
        assert "httponly" in finished.headers["set-cookie"].lower()
        assert (await client.get("/")).json()["name"] == "ada"
        assert "truthlens-login" not in client.cookies


async def test_without_a_session_programs_get_401(provider: OidcProvider) -> None:
    async with client_of(access_of(provider)) as client:
        reply = await client.get("/")
    assert reply.status_code == 401
    assert "/login" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("claims", "more", "role"),
    [
        ({}, {}, "viewer"),
        ({}, {"reviewers": ("ada",)}, "reviewer"),
        ({"groups": ["a", "checkers"]}, {"reviewer_groups": ("checkers",)}, "reviewer"),
        ({"groups": "checkers"}, {"reviewer_groups": ("checkers",)}, "reviewer"),
        ({"groups": ["checkers2"]}, {"reviewer_groups": ("checkers",)}, "viewer"),
        ({"groups": {"checkers": 1}}, {"reviewer_groups": ("checkers",)}, "viewer"),
        ({"groups": [["checkers"]]}, {"reviewer_groups": ("checkers",)}, "viewer"),
    ],
)
async def test_roles_come_from_names_and_groups(
    provider: OidcProvider, claims: dict[str, Any], more: dict[str, Any], role: str
) -> None:
    provider.claims = claims
    async with client_of(access_of(provider, **more)) as client:
        await log_in(client)
        assert (await client.get("/")).json()["role"] == role


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": "another", "azp": CLIENT_ID},
        {"aud": ["another", CLIENT_ID]},
        {"aud": None},
        {"exp": int(time.time()) - 600},
        {"exp": None},
        {"iat": int(time.time()) + 6000},
        {"iss": "http://127.0.0.1:1"},
        {"iss": None},
        {"sub": None},
        {"preferred_username": None},
        {"preferred_username": ""},
        {"preferred_username": "a\nb"},
        {"preferred_username": "a" * 200},
        {"preferred_username": ["ada"]},
    ],
    ids=lambda claims: str({k: "a time" if isinstance(v, int) else v for k, v in claims.items()}),
)
async def test_wrong_claims_log_nobody_in(provider: OidcProvider, claims: dict[str, Any]) -> None:
    """Of another login, another client, another issuer, out of date, or nobody's."""
    provider.claims = claims
    async with client_of(access_of(provider)) as client:
        finished = await log_in(client)
        assert finished.status_code == 401
        assert (await client.get("/")).status_code == 401


@pytest.mark.parametrize(
    "how", ["signed_by_another", "unsigned", "signed_by_the_secret", "signed_by_the_public_key"]
)
@pytest.mark.parametrize("algorithms", [["RS256"], ["RS256", "HS256", "none"], ["none"], ["HS256"], []])
async def test_wrong_signatures_log_nobody_in(
    provider: OidcProvider, how: str, algorithms: list[str]
) -> None:
    """Whatever algorithms the provider claims to use."""
    provider.sign, provider.algorithms = getattr(provider, how), algorithms
    async with client_of(access_of(provider)) as client:
        assert (await log_in(client)).status_code == 401
        assert (await client.get("/")).status_code == 401


async def test_an_answer_without_id_token_logs_nobody_in(provider: OidcProvider) -> None:
    provider.with_id_token = False
    async with client_of(access_of(provider)) as client:
        assert (await log_in(client)).status_code == 401


@pytest.mark.parametrize("verified", [None, False, "true"])
async def test_an_unverified_address_is_nobodys_name(provider: OidcProvider, verified: Any) -> None:
    """Users may write any address into many providers' profiles."""
    provider.claims = {"email": "boss@example.com", "email_verified": verified}
    access = access_of(provider, reviewers=("boss@example.com",))
    assert access.oidc
    async with client_of(replace(access, oidc=replace(access.oidc, name_claim="email"))) as client:
        assert (await log_in(client)).status_code == 401
        provider.claims["email_verified"] = True
        await log_in(client)
        assert (await client.get("/")).json() == {"name": "boss@example.com", "role": "reviewer"} | {
            "csrf": (await client.get("/")).json()["csrf"]
        }


async def test_a_state_is_good_for_one_login_of_one_browser(provider: OidcProvider) -> None:
    """Not again, not in another browser (login CSRF), and not with the cookie kept from before."""
    async with client_of(access_of(provider)) as client, client_of(access_of(provider)) as other:
        back = await at_provider(await client.get("/login"))
        kept = dict(client.cookies)
        assert (await other.get(back)).status_code == 400
        assert (await client.get(back)).status_code == 303
        client.cookies.clear()
        assert (await client.get(back)).status_code == 400
        client.cookies.update(kept)
        assert (await client.get(back)).status_code == 401  # the provider takes a code once
        client.cookies.clear()
        assert (await client.get("/")).status_code == 401


@pytest.mark.parametrize(
    "query", ["", "?code=x", "?state=x", "?code=x&state=x", "?error=access_denied&state=x"]
)
async def test_a_callback_out_of_nowhere_is_refused(provider: OidcProvider, query: str) -> None:
    """With and without a login under way."""
    async with client_of(access_of(provider)) as client:
        assert (await client.get(f"/login/callback{query}")).status_code == 400
        await client.get("/login")
        assert (await client.get(f"/login/callback{query}")).status_code in (400, 401)
        assert (await client.get("/")).status_code == 401


@pytest.mark.parametrize(
    "to",
    ["https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "/\n//evil.example",
     "javascript:alert(1)", "evil.example", "", "///evil.example", "http:evil.example", "/%5c\x00evil", "/" + "a" * 3000],
)  # fmt: skip
async def test_a_login_ends_on_the_console(provider: OidcProvider, to: str) -> None:
    """Whatever the address of the login said."""
    async with client_of(access_of(provider)) as client:
        start = await client.get("/login", params={"next": to})
        finished = await client.get(await at_provider(start))
    assert finished.headers["location"] == "/"


async def test_the_address_to_come_back_to_is_the_one_that_the_browser_used(provider: OidcProvider) -> None:
    """Behind a trusted proxy that ends TLS: https, and cookies that never leave it."""
    access = access_of(
        provider,
        hosts=frozenset({"tl.example"}),
        trusted_proxies=(ipaddress.ip_network("127.0.0.1"),),
    )
    headers = {"host": "tl.example", "x-forwarded-proto": "https"}
    async with client_of(access) as client:
        start = await client.get("/login", headers=headers)
    asked = parse_qs(urlsplit(start.headers["location"]).query)
    assert asked["redirect_uri"] == ["https://tl.example/login/callback"]
    assert "; secure" in start.headers["set-cookie"].lower()
    assert start.headers["set-cookie"].startswith("__Secure-")


@pytest.mark.parametrize("discovery", [{"issuer": "http://evil.example"}, {"issuer": None}])
async def test_a_discovery_document_of_another_issuer_is_not_used(
    provider: OidcProvider, discovery: dict[str, Any]
) -> None:
    """And the right one is, as soon as it is there."""
    provider.discovery = discovery
    async with client_of(access_of(provider)) as client:
        assert (await client.get("/login")).status_code == 502
        provider.discovery = {}
        assert (await client.get("/login")).status_code == 302


async def test_a_provider_that_is_down_is_said_so() -> None:
    access = Access(login=Login.OIDC, oidc=Oidc(f"http://127.0.0.1:{free_port()}", CLIENT_ID, CLIENT_SECRET))
    async with client_of(access) as client:
        reply = await client.get("/login", headers=HTML)
    assert reply.status_code == 502
    assert "does not answer" in reply.text


async def test_failed_callbacks_are_limited(provider: OidcProvider) -> None:
    async with client_of(access_of(provider)) as client:
        codes = [(await client.get("/login/callback")).status_code for _ in range(12)]
    assert codes == [400] * 10 + [429] * 2


async def test_programs_can_have_a_token_beside(provider: OidcProvider) -> None:
    """They cannot log in at a provider."""
    async with client_of(access_of(provider, token="t" * 32)) as client:
        reply = await client.get("/", headers={"authorization": f"Bearer {'t' * 32}"})
        assert reply.json()["role"] == "reviewer"
        assert (await client.get("/", headers={"authorization": "Bearer x"})).status_code == 401

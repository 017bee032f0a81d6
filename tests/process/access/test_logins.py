"""Who a request is from: nobody in particular, a token, a session, a proxy's header."""

from __future__ import annotations

import base64
import ipaddress
from typing import Any

import httpx
import pytest

from tests.fakes.guarded_app import client_of
from truthlens.process.settings import Access, Login

TOKEN, VIEWER_TOKEN = "r" * 32, "v" * 32
HTML = {"accept": "text/html"}
TOKENS = Access(login=Login.TOKEN, token=TOKEN, viewer_token=VIEWER_TOKEN)


def basic(name: str, token: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{token}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def proxied(*networks: str, **more: Any) -> Access:
    return Access(
        login=Login.PROXY, trusted_proxies=tuple(map(ipaddress.ip_network, networks or ["127.0.0.1"])), **more
    )


async def who(client: httpx.AsyncClient, headers: Any = None) -> tuple[str, str] | int:
    reply = await client.get("/", headers=headers)
    return (reply.json()["name"], reply.json()["role"]) if reply.status_code == 200 else reply.status_code


async def test_where_nobody_logs_in_everybody_is_the_local_user() -> None:
    async with client_of(Access()) as client:
        assert await who(client) == ("local", "reviewer")
        assert await who(client, {"x-forwarded-user": "ada"}) == ("local", "reviewer")
        assert (await client.get("/login")).status_code == 404


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (bearer(TOKEN), ("token", "reviewer")),
        (bearer(VIEWER_TOKEN), ("token", "viewer")),
        (basic("ada", TOKEN), ("ada", "reviewer")),
        (basic("Zoë", VIEWER_TOKEN), ("Zoë", "viewer")),
        (basic("", TOKEN), 401),
        (basic(" ", TOKEN), 401),
        (basic("a\nb", TOKEN), 401),
        (basic("a" * 129, TOKEN), 401),
        (basic("ada", TOKEN + VIEWER_TOKEN), 401),
        (bearer(""), 401),
        ([("authorization", f"Bearer {TOKEN}"), ("authorization", "Bearer x")], 400),
        ([("authorization", f"Bearer {TOKEN}"), ("authorization", f"Bearer {TOKEN}")], 400),
        ({"authorization": f"Bearer x, Bearer {TOKEN}"}, 401),
        ({"x-authorization": f"Bearer {TOKEN}"}, 401),
        ({"authorization_": f"Bearer {TOKEN}"}, 401),
        ({"proxy-authorization": f"Bearer {TOKEN}"}, 401),
        ({"cookie": f"authorization=Bearer {TOKEN}"}, 401),
        ({"x-forwarded-user": "ada"}, 401),
        ([("authorization", b"Bearer \xff\xfe")], 400),
    ],
)
async def test_tokens_say_the_role_and_basic_the_name(headers: Any, expected: Any) -> None:
    async with client_of(TOKENS) as client:
        assert await who(client, headers) == expected


async def test_a_token_is_taken_once_and_a_cookie_remembers_it() -> None:
    """For phones, whose browsers forget passwords of Basic."""
    async with client_of(TOKENS) as client:
        asked = await client.get("/reviews?open=1", headers=HTML)
        assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=%2Freviews%3Fopen%3D1")
        page = await client.get(asked.headers["location"], headers=HTML)
        assert 'value="/reviews?open=1"' in page.text
        assert "form-action 'self'" in page.headers["content-security-policy"]
        form = {"name": "ada", "token": f" {TOKEN} ", "next": "/reviews?open=1"}
        done = await client.post("/login", data=form, headers={"origin": "http://localhost:8088"})
        assert (done.status_code, done.headers["location"]) == (303, "/reviews?open=1")
        assert {"httponly", "samesite=lax", "path=/"} <= set(done.headers["set-cookie"].lower().split("; "))
        assert TOKEN not in done.headers["set-cookie"]
        assert await who(client) == ("ada", "reviewer")


@pytest.mark.parametrize(
    ("form", "headers", "status"),
    [
        ({"name": "ada", "token": "wrong"}, {"origin": "http://localhost:8088"}, 401),
        ({"token": TOKEN}, {"origin": "http://localhost:8088"}, 422),
        ({"name": " ", "token": TOKEN}, {"origin": "http://localhost:8088"}, 422),
        ({"name": "ada"}, {"origin": "http://localhost:8088"}, 401),
        ({"token": TOKEN, "name": "a\x00b"}, {"origin": "http://localhost:8088"}, 401),
        ({"token": TOKEN}, {}, 403),
        ({"token": TOKEN}, {"origin": "http://evil.example"}, 403),
        ({"token": TOKEN}, {"origin": "null"}, 403),
        ({"token": TOKEN}, {"origin": "http://localhost:8088", "sec-fetch-site": "cross-site"}, 403),
        ({"token": TOKEN}, {"origin": "http://localhost:8088", "sec-fetch-site": "same-site"}, 403),
        ({"token": "x" * 9000}, {"origin": "http://localhost:8088"}, 400),
        ({"a": "", "b": "", "c": "", "d": "", "e": ""}, {"origin": "http://localhost:8088"}, 400),
    ],
)
async def test_wrong_logins_get_no_cookie(form: dict[str, str], headers: dict[str, str], status: int) -> None:
    """Nor does a page of another site log anybody in."""
    async with client_of(TOKENS) as client:
        reply = await client.post("/login", data=form, headers=headers)
        assert reply.status_code == status
        assert "set-cookie" not in reply.headers
        assert await who(client) == 401


async def test_what_was_typed_is_no_part_of_the_page() -> None:
    async with client_of(TOKENS) as client:
        form = {"name": '"><script>', "token": "no", "next": '/"><script>'}
        reply = await client.post("/login", data=form, headers={"origin": "http://localhost:8088"})
    assert "<script>" not in reply.text


async def test_a_login_ends_on_the_console() -> None:
    async with client_of(TOKENS) as client:
        for to in ("https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example"):
            form = {"name": "ada", "token": TOKEN, "next": to}
            done = await client.post("/login", data=form, headers={"origin": "http://localhost:8088"})
            assert done.headers["location"] == "/"


async def test_guesses_do_not_lock_out_who_has_a_long_token() -> None:
    """Nobody guesses it: it is taken from the address of the guesses too, in every way; guesses stay refused."""
    async with client_of(TOKENS) as client:
        origin = {"origin": "http://localhost:8088"}
        codes = [await who(client, bearer(f"guess {n}")) for n in range(11)]
        assert codes == [401] * 10 + [429]
        assert await who(client, bearer(TOKEN)) == ("token", "reviewer")
        assert await who(client, basic("ada", VIEWER_TOKEN)) == ("ada", "viewer")
        assert await who(client, bearer(TOKEN[:-1])) == 429
        assert (
            await client.post("/login", data={"name": "ada", "token": TOKEN}, headers=origin)
        ).status_code == 303


async def test_guesses_of_a_short_token_are_limited_even_if_the_last_is_right() -> None:
    """By address, whichever way they are made; who has a session goes on."""
    short = "r" * 15
    async with client_of(Access(login=Login.TOKEN, token=short)) as client:
        origin = {"origin": "http://localhost:8088"}
        await client.post("/login", data={"name": "ada", "token": short}, headers=origin)
        for n in range(5):
            assert await who(client, bearer(f"guess {n}")) == 401
            wrong = await client.post("/login", data={"name": "ada", "token": f"guess {n}"}, headers=origin)
            assert wrong.status_code == 401
        reply = await client.get("/", headers=bearer(short))
        assert reply.status_code == 429
        assert 0 < int(reply.headers["retry-after"]) <= 6
        assert (
            await client.post("/login", data={"name": "ada", "token": short}, headers=origin)
        ).status_code == 429
        assert await who(client) == ("ada", "reviewer")


async def test_scripts_make_browsers_ask_for_no_password() -> None:
    """A page whose session has ended gets 401 without the browser's own question."""
    async with client_of(TOKENS) as client:
        program = await client.get("/")
        script = await client.get(
            "/", headers={"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", **HTML}
        )
    assert "www-authenticate" in program.headers
    assert script.status_code == 401
    assert "www-authenticate" not in script.headers


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-forwarded-user": "ada"}, ("ada", "viewer")),
        ({"x-forwarded-user": "bob"}, ("bob", "reviewer")),
        ({"x-forwarded-user": "Bob"}, ("Bob", "viewer")),
        ({"x-forwarded-user": "ada", "x-forwarded-groups": "a, checkers"}, ("ada", "reviewer")),
        ({"x-forwarded-user": "ada", "x-forwarded-groups": "checkers-not,,"}, ("ada", "viewer")),
        ([("x-forwarded-user", "Zoë".encode())], ("Zoë", "viewer")),
        ({}, 401),
        ({"x_forwarded_user": "bob"}, 401),
        ({"x-forwarded-user": ""}, 400),
        ({"x-forwarded-user": "a" * 129}, 400),
        ([("x-forwarded-user", b"a\xff")], 400),
        ([("x-forwarded-user", b"a\x07b")], 400),
        ([("x-forwarded-user", "a\u202eb".encode())], 400),
        ([("x-forwarded-user", "ada"), ("x-forwarded-user", "bob")], 400),
        ([("x-forwarded-user", "ada"), ("X-Forwarded-User", "ada")], 400),
        ([("x-forwarded-user", "a"), ("x-forwarded-groups", "x"), ("x-forwarded-groups", "checkers")], 400),
        ({**bearer(TOKEN)}, 401),
    ],
)
async def test_a_trusted_proxy_says_who_asks(headers: Any, expected: Any) -> None:
    access = proxied(reviewers=("bob",), reviewer_groups=("checkers",))
    async with client_of(access) as client:
        assert await who(client, headers) == expected


@pytest.mark.parametrize(
    ("networks", "peer", "expected"),
    [
        (["10.0.0.0/8"], "10.1.2.3", ("ada", "viewer")),
        (["10.0.0.0/8"], "::ffff:10.1.2.3", ("ada", "viewer")),
        (["10.0.0.0/8"], None, ("ada", "viewer")),
        (["fd00::/8"], "fd00::1", ("ada", "viewer")),
        (["10.0.0.0/8"], "11.1.2.3", 401),
        (["10.0.0.0/8"], "127.0.0.1", 401),
        (["10.0.0.0/8"], "::1", 401),
    ],
)
async def test_nobody_else_does(networks: list[str], peer: str | None, expected: Any) -> None:
    """Also not by saying that they come from the proxy; loopback has to be named, unix sockets not."""
    async with client_of(proxied(*networks), peer=peer) as client:
        headers = {"x-forwarded-user": "ada", "x-forwarded-for": "10.0.0.1", "forwarded": "for=10.0.0.1"}
        assert await who(client, headers) == expected


async def test_other_headers_can_be_chosen() -> None:
    access = proxied(user_header="Remote-User", groups_header="Remote-Groups", reviewer_groups=("g",))
    async with client_of(access) as client:
        assert await who(client, {"remote-user": "ada", "remote-groups": "g"}) == ("ada", "reviewer")
        assert await who(client, {"x-forwarded-user": "ada"}) == 401


async def test_a_browser_past_the_proxy_sees_what_is_missing() -> None:
    async with client_of(proxied()) as client:
        reply = await client.get("/", headers=HTML)
    assert reply.status_code == 401
    assert "X-Forwarded-User" in reply.text
    assert reply.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("access", [TOKENS, proxied()])
async def test_probes_need_nothing(access: Access) -> None:
    async with client_of(access) as client:
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await client.get(path, headers={"host": "10.0.0.9"})).status_code == 200


@pytest.mark.parametrize("login", [Login.NONE, Login.PROXY])
def test_a_token_that_nobody_would_ask_for_is_a_mistake(login: Login) -> None:
    with pytest.raises(ValueError, match="nobody"):
        Access(login=login, token=TOKEN)

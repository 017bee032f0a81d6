"""Sessions: what a cookie is worth, for how long, and to whom."""

from __future__ import annotations

from dataclasses import replace
from http.cookies import SimpleCookie

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import HTTPConnection
from starlette.responses import Response

from tests.fakes.guarded_app import client_of
from tests.process.access.test_logins import TOKEN, TOKENS, who
from truthlens.process.access import Role, User
from truthlens.process.access.sessions import LONGEST_IDLE_S, LONGEST_S, Sessions
from truthlens.process.settings import Access

ORIGIN = {"origin": "http://localhost:8088"}
ADA = User("ada", Role.VIEWER)


class Clock:
    """A clock that is put forward by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def request(cookie: str = "", *, scheme: str = "http") -> HTTPConnection:
    headers = [(b"host", b"localhost"), (b"cookie", cookie.encode("latin-1"))]
    return HTTPConnection(
        {"type": "http", "scheme": scheme, "path": "/", "query_string": b"", "headers": headers}
    )


def cookie_of(response: Response) -> str:
    return response.headers["set-cookie"].partition(";")[0]


def started(sessions: Sessions, user: User = ADA) -> str:
    response = Response()
    sessions.start(user, request(), response)
    return cookie_of(response)


def test_a_session_ends_when_idle_and_when_old() -> None:
    clock = Clock()
    sessions = Sessions(b"k" * 32, clock=clock)
    cookie, begun = started(sessions), clock.now
    clock.now += LONGEST_IDLE_S + 1
    assert sessions.read(request(cookie)) is None
    clock.now = begun
    while clock.now - begun <= LONGEST_S:
        session = sessions.read(request(cookie))
        assert session is not None
        assert session.user == ADA
        response = Response()
        sessions.renew(session, request(cookie), response)
        cookie = cookie_of(response) if "set-cookie" in response.headers else cookie
        clock.now += LONGEST_IDLE_S / 2
    assert sessions.read(request(cookie)) is None


def test_a_session_is_renewed_once_a_minute() -> None:
    clock = Clock()
    sessions = Sessions(b"k" * 32, clock=clock)
    cookie = started(sessions)
    for forward_s, renewed in ((30, False), (61, True)):
        clock.now += forward_s
        session, response = sessions.read(request(cookie)), Response()
        assert session
        sessions.renew(session, request(cookie), response)
        assert ("set-cookie" in response.headers) is renewed


def test_a_cookie_of_another_key_is_none() -> None:
    assert Sessions(b"a" * 32).read(request(started(Sessions(b"b" * 32)))) is None
    assert Sessions(b"a" * 32).read(request(started(Sessions(b"a" * 32)))) is not None


@given(st.integers(0, 10_000), st.text("abcXYZ019-_.", max_size=3))
def test_a_changed_cookie_is_none(at: int, new: str) -> None:
    """Whichever of its characters is changed, left out or added."""
    sessions = Sessions(b"k" * 32)
    name, _, value = started(sessions).partition("=")
    at %= len(value)
    changed = value[:at] + new + value[at + 1 :]
    found = sessions.read(request(f"{name}={changed}"))
    # The last character of a text in base 64 has bits that say nothing.
    assert found is None or changed[:-1] == value[:-1]
    assert found is None or found.user == ADA


@given(st.text(st.characters(max_codepoint=255)))
def test_any_cookie_may_come(text: str) -> None:
    assert Sessions(b"k" * 32).read(request(f"truthlens={text}")) is None


def test_names_and_https_mark_the_cookie() -> None:
    """Over https it is Secure, and no other host of the domain can set it."""
    sessions, response = Sessions(b"k" * 32), Response()
    sessions.start(ADA, request(scheme="https"), response)
    (morsel,) = SimpleCookie(response.headers["set-cookie"]).values()
    assert morsel.key == "__Host-truthlens"
    assert morsel["secure"]
    assert morsel["httponly"]
    assert morsel["path"] == "/"
    assert not morsel["domain"]
    assert sessions.read(request(f"truthlens={morsel.value}", scheme="https")) is None


async def test_a_logout_ends_the_session_and_its_copies() -> None:
    async with client_of(TOKENS) as client:
        await client.post("/login", data={"name": "ada", "token": TOKEN}, headers=ORIGIN)
        copy = dict(client.cookies)
        csrf = (await client.get("/")).json()["csrf"]
        page = await client.get("/logout", headers={"accept": "text/html"})
        assert csrf in page.text
        assert (await client.post("/logout", data={"csrf": "x"}, headers=ORIGIN)).status_code == 403
        assert (await client.post("/logout", data={"csrf": csrf})).status_code == 403  # no Origin
        assert await who(client) == ("ada", "reviewer")
        done = await client.post("/logout", data={"csrf": csrf}, headers=ORIGIN)
        assert "logged out" in done.text
        assert not client.cookies
        client.cookies.update(copy)
        assert await who(client) == 401


async def test_a_login_continues_no_session_that_was_there() -> None:
    """A cookie that somebody else put into the browser (fixation) is not the one after the login."""
    async with client_of(TOKENS) as client:
        await client.post("/login", data={"name": "mallory", "token": TOKEN}, headers=ORIGIN)
        planted, csrf = dict(client.cookies), (await client.get("/")).json()["csrf"]
        await client.post("/login", data={"name": "ada", "token": TOKEN}, headers=ORIGIN)
        assert dict(client.cookies) != planted
        seen = (await client.get("/")).json()
        assert (seen["name"], seen["csrf"] != csrf) == ("ada", True)


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"token": "n" * 32}, False),
        ({"viewer_token": None}, False),
        ({"session_key": None}, False),
    ],
)
async def test_a_session_holds_in_processes_of_the_same_settings(change: dict[str, str], kept: bool) -> None:
    """A new token logs everybody out who came by the old one."""
    access: Access = replace(TOKENS, session_key=b"k" * 32, hosts=frozenset({"a.example", "b.example", "c"}))
    async with client_of(access) as client, client_of(replace(access, **change)) as other:
        await client.post("/login", data={"name": "ada", "token": TOKEN}, headers=ORIGIN)
        other.cookies.update(dict(client.cookies))
        assert await who(other) == (("ada", "reviewer") if kept else 401)

"""Who may use the console: hosts, origins, tokens, media types; and what every response tells browsers."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.desk.test_console import Parts
from truthlens.desk.app import desk_app
from truthlens.process.access.origins import plain_host
from truthlens.process.endpoints import WebParts
from truthlens.process.settings import Access, Login

BODY = {"context": ["Tea is free."], "response": "Tea is free."}
OPEN = ("/healthz", "/readyz", "/metrics")
GUARDED = ("/", "/exchanges/none", "/static/console.css", "/static/console.js", "/nowhere")
TOKEN = "correct-horse-battery-staple"


@asynccontextmanager
async def console(
    access: Access | None = None, *, url: str = "http://10.2.3.4:8088"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a console; the connection comes in at the host of ``url``, whatever ``Host`` says."""
    parts = Parts()
    app = desk_app(
        WebParts(
            policy=parts.policy,
            pipeline=parts.pipeline,
            signals=parts.signals,
            recent=parts.recent,
            readiness=parts.readiness,
            access=access,
        )
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=url) as client:
        yield client


@pytest.mark.parametrize("path", [*OPEN, *GUARDED])
async def test_every_response_tells_browsers_what_its_pages_may_do(path: str) -> None:
    """No script, style or frame but the console's own; nothing is guessed, sent on or kept."""
    async with console() as client:
        headers = (await client.get(path)).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


async def test_refusals_and_failures_have_the_same_headers() -> None:
    """Of a refused request, of a wrong body, and of an error of the console's own."""
    async with console() as client:
        refused = await client.get("/", headers={"host": "evil.example"})
        wrong = await client.post("/v1/detect", json={})
    parts = Parts()
    parts.readiness.models = None  # type: ignore[assignment]
    transport = httpx.ASGITransport(parts.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        failed = await client.get("/")
    assert (refused.status_code, wrong.status_code, failed.status_code) == (403, 422, 500)
    for response in (refused, wrong, failed):
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8088", "localhost.", "127.0.0.1:8088", "127.8.9.1", "[::1]:8088", "10.2.3.4:8088",
     "console.example.com", "Console.Example.com.:443"],
)  # fmt: skip
async def test_own_hosts_are_let_in(host: str) -> None:
    """Loopback, the address of the connection, configured names; in any case, with any port."""
    async with console(Access(frozenset({"console.example.com"}))) as client:
        assert (await client.get("/", headers={"host": host})).status_code == 200
        assert (await client.post("/v1/detect", json=BODY, headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8088", "localhost.evil.example", "127.0.0.1.evil.example", "10.2.3.5", "",
     "localhost@evil.example", "evil.example#localhost", "localhost/evil", "[::1", "console.example.com.evil",
     "0x7f.1", "2130706433"],
)  # fmt: skip
async def test_other_hosts_are_refused_where_they_could_read_or_score(host: str) -> None:
    """A name that was pointed at this machine (DNS rebinding) gets no page and no score; probes are let through."""
    async with console(Access(frozenset({"console.example.com"}))) as client:
        for path in GUARDED:
            assert (await client.get(path, headers={"host": host})).status_code == 403
        assert (await client.post("/v1/detect", json=BODY, headers={"host": host})).status_code == 403
        for path in OPEN:
            assert (await client.get(path, headers={"host": host})).status_code == 200


async def test_two_hosts_are_none() -> None:
    """Which of them a proxy meant cannot be known."""
    async with console() as client:
        response = await client.get("/", headers=[("host", "localhost"), ("host", "evil.example")])
    assert response.status_code == 403


async def test_a_unix_socket_is_asked_by_any_name() -> None:
    """Whoever stands before it has checked the name."""
    async with console(Access(hosts=None)) as client:
        assert (await client.get("/", headers={"host": "anything.example"})).status_code == 200


@given(st.text())
def test_no_host_raises(text: str) -> None:
    """A header is any text."""
    assert isinstance(plain_host(text), str)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:8088", 200),
        ("https://localhost:8088", 200),  # behind a proxy that ends TLS
        ("http://LOCALHOST:8088", 200),
        ("http://evil.example", 403),
        ("http://localhost:9999", 403),
        ("http://localhost", 403),
        ("http://localhost:8088.evil.example", 403),
        ("null", 403),
        ("", 403),
        ("file://", 403),
    ],
)
async def test_pages_of_other_origins_may_not_score(origin: str, status: int) -> None:
    """A web page in an operator's browser cannot put work on the gateway."""
    headers = {"host": "localhost:8088", "origin": origin}
    async with console() as client:
        assert (await client.post("/v1/detect", json=BODY, headers=headers)).status_code == status


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("text/plain; application/json", 415),
        ("application/jsonp", 415),
        (None, 415),
    ],
)
async def test_bodies_are_json(media_type: str | None, status: int) -> None:
    """What a form of another site can send is none; curl's default neither."""
    headers = {} if media_type is None else {"content-type": media_type}
    body = b'{"context": ["Tea is free."], "response": "Tea is free."}'
    async with console() as client:
        response = await client.post("/v1/detect", content=body, headers=headers)
    assert response.status_code == status
    if status == 415:
        assert "application/json" in response.json()["error"]["message"]


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN}", 200),
        (basic(TOKEN), 200),
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        ("Bearer tökén", 401),
        (TOKEN, 401),
        (basic("wrong"), 401),
        ("Basic !!!", 401),
        ("Basic " + base64.b64encode(TOKEN.encode()).decode(), 401),
    ],
)
async def test_a_configured_token_is_wanted(authorization: str | None, status: int) -> None:
    """For pages and scores; never for probes, metrics, and the files that the login page needs."""
    headers = [] if authorization is None else [("authorization", authorization.encode())]
    async with console(Access(login=Login.TOKEN, token=TOKEN)) as client:
        replies = [await client.get(path, headers=headers) for path in ("/", "/exchanges/none")]
        replies.append(await client.post("/v1/detect", json=BODY, headers=headers))
        assert {reply.status_code for reply in replies} == ({401} if status == 401 else {200, 404})
        if status == 401:
            assert all(reply.headers["www-authenticate"].startswith("Basic ") for reply in replies)
            assert all(TOKEN not in reply.text for reply in replies)
        for path in (*OPEN, "/static/console.css"):
            assert (await client.get(path)).status_code == 200


async def test_a_token_does_not_open_the_console_to_other_sites() -> None:
    """A browser that remembers it sends it along with whatever another site asks for."""
    headers = {"authorization": f"Bearer {TOKEN}", "host": "localhost", "origin": "http://evil.example"}
    async with console(Access(login=Login.TOKEN, token=TOKEN)) as client:
        assert (await client.post("/v1/detect", json=BODY, headers=headers)).status_code == 403


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/"]
)
async def test_only_its_own_files_are_served(path: str) -> None:
    """Nothing above the folder, no list of what is in it."""
    async with console() as client:
        assert (await client.get(path)).status_code == 404

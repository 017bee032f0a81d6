"""What needs which role, and what a change needs beside it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.fakes.guarded_app import client_of
from tests.process.access.test_logins import TOKEN, TOKENS, VIEWER_TOKEN, bearer, proxied
from truthlens.process.access import AccessControl, Role, Security, rules
from truthlens.process.settings import Access

ORIGIN = "http://localhost:8088"
FORM = {"content-type": "application/x-www-form-urlencoded", "origin": ORIGIN}
JSON = {"content-type": "application/json"}


def test_roles_are_ordered() -> None:
    """Not by the alphabet, as texts are."""
    viewer, reviewer = Role.VIEWER, Role.REVIEWER
    assert viewer < reviewer
    assert viewer <= reviewer
    assert reviewer > viewer
    assert reviewer >= viewer
    assert not viewer > reviewer
    assert not viewer >= reviewer
    assert viewer >= Role("viewer")
    assert max(Role) is reviewer


@pytest.mark.parametrize(
    ("method", "path", "viewer"),
    [
        ("GET", "/", True),
        ("GET", "/reviews", True),
        ("GET", "/api/reviews", True),
        ("POST", "/v1/detect", True),
        ("POST", "/v1/evidence", True),
        ("POST", "/v1/ask", True),
        ("POST", "/evidence", True),
        ("POST", "/playground", True),
        ("POST", "/playground/ask", True),
        ("POST", "/reviews/1/labels", False),
        ("POST", "/api/reviews", False),
        ("PATCH", "/api/reviews/1", False),
        ("PUT", "/api/reviews/1", False),
        ("DELETE", "/api/reviews/1", False),
        # What nobody thought of.
        ("POST", "/", False),
        ("POST", "/unknown", False),
        ("POST", "/playgrounds", False),
        ("POST", "/evidence2", False),
        ("POST", "/V1/detect", False),
        ("PROPFIND", "/", False),
    ],
)
async def test_viewers_look_and_reviewers_change(method: str, path: str, viewer: bool) -> None:
    headers = FORM if rules.within(path, rules.FORM_TREES) else JSON
    async with client_of(TOKENS) as client:
        seen = await client.request(method, path, headers={**headers, **bearer(VIEWER_TOKEN)})
        done = await client.request(method, path, headers={**headers, **bearer(TOKEN)})
    assert (seen.status_code == 403) is not viewer
    assert done.status_code != 403
    if not viewer and method != "HEAD":
        assert "needs a reviewer" in seen.json()["error"]["message"]


async def test_browsers_get_a_page() -> None:
    headers = {**FORM, **bearer(VIEWER_TOKEN), "accept": "text/html,*/*"}
    async with client_of(TOKENS) as client:
        reply = await client.post("/reviews/1/labels", headers=headers)
    assert reply.status_code == 403
    assert reply.headers["content-type"].startswith("text/html")
    assert "needs a reviewer" in reply.text
    assert "default-src 'none'" in reply.headers["content-security-policy"]


async def test_names_are_no_part_of_a_page() -> None:
    headers = {**FORM, "accept": "text/html", "x-forwarded-user": "<script>x</script>"}
    async with client_of(proxied()) as client:
        reply = await client.post("/reviews/1/labels", headers=headers)
    assert reply.status_code == 403
    assert "<script>x" not in reply.text


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        ("/reviews/1/labels", "application/json", 415),
        ("/reviews/1/labels", "text/plain", 415),
        ("/api/reviews", "application/x-www-form-urlencoded", 415),
        ("/api/reviews", "text/plain", 415),
        ("/playground", "multipart/form-data; boundary=x", 415),
        ("/v1/detect", "application/x-www-form-urlencoded", 415),
        ("/reviews/1/labels", "application/x-www-form-urlencoded", 403),  # without Origin
    ],
)
async def test_bodies_have_the_type_of_their_path(path: str, kind: str, status: int) -> None:
    async with client_of(Access()) as client:
        assert (await client.post(path, headers={"content-type": kind})).status_code == status


@pytest.mark.parametrize("site", ["cross-site", "same-site", "CROSS-SITE", "", "nonsense"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH"])
async def test_browsers_say_when_another_site_asks(method: str, site: str) -> None:
    """Changes are refused, links are followed."""
    headers = {**JSON, "sec-fetch-site": site}
    async with client_of(Access()) as client:
        assert (await client.request(method, "/api/reviews", headers=headers)).status_code == 403
        assert (await client.get("/", headers=headers)).status_code == 200


async def test_a_form_needs_the_token_of_its_user() -> None:
    async with client_of(proxied(reviewers=("ada", "bob"))) as client:
        tokens = {
            name: (await client.get("/", headers={"x-forwarded-user": name})).json()["csrf"]
            for name in ("ada", "bob")
        }
        client.headers.update({"x-forwarded-user": "ada", "origin": ORIGIN})
        for given, status in (
            (tokens["ada"], 200),
            (tokens["bob"], 403),
            ("", 403),
            (None, 403),
            (tokens["ada"][:-1], 403),
            ("é", 403),
        ):
            form = {} if given is None else {"csrf": given}
            reply = await client.post("/reviews/1/labels", data={"x": "", **form})
            assert reply.status_code == status, given


async def test_a_script_sends_the_token_in_a_header() -> None:
    async with client_of(Access()) as client:
        token = (await client.get("/")).json()["csrf"]
        for headers, status in (
            ({"origin": ORIGIN, "x-csrf-token": token}, 200),
            ({"origin": ORIGIN}, 403),
            ({"sec-fetch-site": "same-origin"}, 403),
            ({"cookie": "a=b"}, 403),
            ({"origin": ORIGIN, "x-csrf-token": "x"}, 403),
            ({}, 200),  # a program
        ):
            reply = await client.post("/api/reviews", json={}, headers=headers)
            assert reply.status_code == status, headers
            if status == 403:
                assert reply.json()["error"]["code"] == "invalid_csrf"


async def test_bearers_need_no_csrf_token() -> None:
    """No browser sends a Bearer token by itself."""
    async with client_of(TOKENS) as client:
        headers = {"origin": ORIGIN, **bearer(TOKEN)}
        assert (await client.post("/api/reviews", json={}, headers=headers)).status_code == 200


async def test_websockets_are_refused() -> None:
    """Nothing here uses one, and none of the checks would be made."""
    reached, sent = [], []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await Security(app, control=AccessControl(Access()))({"type": "websocket", "path": "/"}, receive, send)
    assert (reached, sent) == ([], ["websocket.close"])


def test_trees_end_at_slashes() -> None:
    for tree, end in itertools.product(rules.FORM_TREES, ("x", "2/", ".")):
        assert not rules.within(tree + end, (tree,))
        assert rules.within(f"{tree}/{end}", (tree,))

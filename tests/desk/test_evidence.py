"""What the console tells of the evidence of requests: as JSON, on a page of its own, and on the page of an exchange."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import httpx
import pytest

from tests.desk.test_console import POLICY, Parts
from tests.desk.test_pages import FULL, NOW, _Tags, allow_text, page_of, words
from tests.desk.test_security import TOKEN, basic, console
from truthlens.core.records.enums import Endpoint, Provenance
from truthlens.core.records.exchange import Exchange, LeftText, Message, Passage
from truthlens.policy import compile_policy
from truthlens.process.settings import Access, Login

REQUEST = """{"messages": [
  {"role": "kb", "content": "The tower has 12 bells."},
  {"role": "user", "content": "<context>Tea is <b>free</b>.</context>\\nIs tea free?"}]}"""
FORM = {"content-type": "application/x-www-form-urlencoded", "origin": "http://localhost"}
BELLS = (
    POLICY
    + """\
  - name: bells
    rules: {type: domain, name: finance}
    plugins: [{type: hallucination, configuration: {evidence: {roles: [kb]}}}]
"""
)


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
async def client(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(parts.app), base_url="http://localhost"
    ) as client:
        yield client


async def post(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    return await client.post("/evidence", content=urlencode(fields), headers=FORM)


async def ask(client: httpx.AsyncClient, body: str | bytes = REQUEST, **query: str) -> httpx.Response:
    headers = {"content-type": "application/json"}
    return await client.post("/v1/evidence", content=body, headers=headers, params=query)


async def test_a_request_gets_its_evidence_as_json(client: httpx.AsyncClient, parts: Parts) -> None:
    """The body is that of a request to the model; the decision may be named."""
    parts.policy.swap(compile_policy(BELLS, file="p.yaml"))
    shown = (await ask(client)).json()
    assert list(shown) == ["status", "reason", "query", "passages", "left"]
    assert (shown["status"], shown["query"]) == ("checked", "Is tea free?")
    assert "The tower has 12 bells." not in {each["text"] for each in shown["passages"]}
    bells = (await ask(client, decision="bells")).json()
    assert "The tower has 12 bells." in {each["text"] for each in bells["passages"]}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("{", 422, "not JSON"),
        ('{"messages": 7}', 422, "expected a list"),
        (b"\xff\xfe\x00", 422, "body"),
        ("x" * 3000, 413, "max_body_bytes"),
    ],
)
async def test_what_cannot_be_read_is_refused(
    client: httpx.AsyncClient, parts: Parts, body: str | bytes, status: int, message: str
) -> None:
    """With the gateway's limits."""
    parts.policy.swap(compile_policy(POLICY + "limits: {max_body_bytes: 2000}\n", file="p.yaml"))
    response = await ask(client, body)
    assert response.status_code == status
    assert message in response.json()["error"]["message"]


async def test_a_decision_that_is_not_loaded_is_refused(client: httpx.AsyncClient) -> None:
    """With those that are."""
    response = await ask(client, decision="nope")
    assert response.status_code == 422
    assert "known: strict, default" in response.json()["error"]["message"]


async def test_bodies_beyond_what_may_be_held_wait(client: httpx.AsyncClient, parts: Parts) -> None:
    """As for ``/v1/detect``; what was held is let go."""
    parts.policy.swap(compile_policy(POLICY + "limits: {max_held_bytes: 1024}\n", file="p.yaml"))
    assert (await ask(client, REQUEST + " " * 1024)).status_code == 503
    assert (await post(client, body=REQUEST + " " * 1024)).status_code == 503
    assert parts.signals.registry.get_sample_value("truthlens_held_bytes") == 0


async def test_the_form_works_without_scripts(client: httpx.AsyncClient) -> None:
    """It is sent to the page itself, which shows passages with their rules, what was left, and the question; escaped."""
    page = (await client.get("/evidence")).text
    assert 'method="post" action="/evidence"' in page
    fields = re.findall(r'<(?:textarea|select)[^>]* name="(\w+)"', page)
    assert fields == ["body", "decision"]
    response = await post(client, body=REQUEST.replace("\n", "\r\n"), decision="strict")
    shown = words(response.text)
    assert response.status_code == 200
    for told in ("can be checked", "Question Is tea free?", "1 · user ·", "Tea is <b>free</b>."):
        assert told in shown
    assert "<b>" not in response.text
    assert "<option selected>strict</option>" in response.text
    assert html.unescape(response.text).count("The tower has 12 bells.") >= 1


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"body": "{"}, 422, "not JSON"),
        ({}, 422, "not JSON"),
        ({"body": REQUEST, "decision": "nope"}, 422, "known: strict, default"),
        ({"body": REQUEST, **{f"more{number}": "x" for number in range(10)}}, 422, "cannot be read"),
    ],
)
async def test_the_form_says_what_is_wrong(
    client: httpx.AsyncClient, fields: dict[str, str], status: int, message: str
) -> None:
    """On the page itself."""
    response = await post(client, **fields)
    assert response.status_code == status
    assert message in words(response.text)
    assert "<form" in response.text


async def test_a_large_request_has_a_page_of_bounded_size(client: httpx.AsyncClient) -> None:
    """Beginnings of texts, and how many more there are."""
    documents = ", ".join(f'"Fact number {number}: {"x" * 5000}"' for number in range(300))
    body = f'{{"documents": [{documents}], "messages": [{{"role": "user", "content": "Why?"}}]}}'
    page = (await post(client, body=body)).text
    assert "100 more texts are not shown" in page
    assert len(page) < 600_000


async def test_the_index_links_the_page(client: httpx.AsyncClient) -> None:
    assert 'href="/evidence"' in (await client.get("/")).text


async def test_the_pages_obey_their_policy(client: httpx.AsyncClient) -> None:
    """No inline script, style or handler; the form may go to the console alone."""
    for response in (await client.get("/evidence"), await post(client, body=REQUEST)):
        reader = _Tags()
        reader.feed(response.text)
        for tag, attributes in reader.tags:
            assert tag not in ("style", "iframe", "object", "embed", "base")
            assert not [name for name in attributes if name.startswith("on") or name == "style"]
            assert tag != "script" or attributes.get("src")
        policy = response.headers["content-security-policy"]
        assert "form-action 'self'" in policy
        assert "script-src 'self'" in policy
        # With no-referrer browsers would send `Origin: null`.
        assert response.headers["referrer-policy"] == "same-origin"
    assert "form-action 'none'" in (await client.get("/")).headers["content-security-policy"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://localhost:8088"}, 200),
        ({}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:8088", "host": "evil.example"}, 403),
        ({"origin": "http://localhost:8088", "content-type": "application/json"}, 415),
        ({"origin": "http://localhost:8088", "content-type": "multipart/form-data; boundary=x"}, 415),
        ({"origin": "http://localhost:8088", "content-type": "text/plain"}, 415),
    ],
)
async def test_the_form_is_taken_from_the_console_alone(headers: dict[str, str], status: int) -> None:
    """A form of another site can be sent with no question asked: its origin gives it away."""
    given = {"host": "localhost:8088", "content-type": FORM["content-type"], **headers}
    async with console() as client:
        response = await client.post("/evidence", content=urlencode({"body": REQUEST}), headers=given)
        assert response.status_code == status
        # Nothing else takes what forms send.
        plain = {"host": "localhost:8088", **FORM, "origin": "http://localhost:8088"}
        for path in ("/v1/evidence", "/v1/detect"):
            assert (await client.post(path, content="body=x", headers=plain)).status_code == 415


async def test_a_configured_token_is_wanted() -> None:
    """For the page, its form and the JSON."""
    async with console(Access(login=Login.TOKEN, token=TOKEN), url="http://localhost") as client:
        assert (await client.get("/evidence")).status_code == 401
        assert (await post(client, body=REQUEST)).status_code == 401
        assert (await ask(client)).status_code == 401
        client.headers["authorization"] = basic(TOKEN)
        assert (await client.get("/evidence")).status_code == 200
        assert (await post(client, body=REQUEST)).status_code == 200
        assert (await ask(client)).status_code == 200


EXCHANGE = Exchange(
    Endpoint.CHAT,
    "m",
    "What does <u>tea</u> cost?",
    (
        Passage("Tea costs nine euros.", Provenance.TOOL, "d<1>", "T", rule="source-role"),
        Passage("Milk is extra.", Provenance.TOOL, rule="source-role"),
    ),
    messages=(Message("system", "Be <i>brief</i>. " + "Really. " * 60),),
    left=(LeftText(0, 0, 496, "instruction"),),
)


async def test_the_page_of_an_exchange_tells_its_evidence_in_figures(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """Rules, counts and lengths; no text, title or id of anybody."""
    parts.recent.add(FULL, time=NOW, exchange=EXCHANGE)
    page = await page_of(client, parts)
    shown = words(page)
    for told in ("tool source-role 2 35", "instruction 1 496", "Question 26 characters", "log_text: false"):
        assert told in shown
    for text in ("nine", "Milk", "brief", "tea", "d<1>", "d&lt;1"):
        assert text not in page


async def test_the_page_of_an_exchange_shows_texts_where_the_policy_allows_them(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """Evidence and question whole, the beginning of what was left; escaped."""
    allow_text(parts)
    parts.recent.add(FULL, time=NOW, exchange=EXCHANGE, keep_text=True)
    page = await page_of(client, parts)
    shown = words(page)
    for told in (
        "Question What does <u>tea</u> cost?", "1 · tool · source-role · d<1> · T Tea costs nine euros.",
        "instruction Be <i>brief</i>. Really.", "… 196 more characters",
    ):  # fmt: skip
        assert told in shown
    for markup in ("<u>", "<i>", "d<1>"):
        assert markup not in page
    parts.policy.swap(compile_policy(POLICY, file="p.yaml"))
    assert "brief" not in await page_of(client, parts)


async def test_an_exchange_whose_request_was_not_read_has_a_page(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """Without evidence there are no figures."""
    parts.recent.add(FULL, time=NOW)
    assert "The request was not read" in words(await page_of(client, parts))

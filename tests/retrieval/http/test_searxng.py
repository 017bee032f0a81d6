"""SearXNG's search API, by answers as a server gives them."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from tests.fakes.http_sources import answering, found, opened, result, source_server
from truthlens.core.records.retrieval import SearchResult

FOUND = {
    "query": "warranty",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://example.org/terms",
            "title": "Terms",
            "content": "The warranty is two years.",
            "engine": "duckduckgo",
            "engines": ["duckduckgo", "brave"],
            "positions": [1, 2],
            "score": 3.0,
            "category": "general",
            "publishedDate": None,
        },
        {"url": "https://example.org/picture", "title": "A picture", "content": None, "score": 1.0},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": [],
    "unresponsive_engines": [["google", "CAPTCHA"]],
}


async def test_the_request_and_what_is_read_of_the_answer() -> None:
    async with (
        source_server(answering(FOUND)) as server,
        opened("searxng", base_url=server.url, engines="brave,ddg", language="de") as source,
    ):
        (passage,) = await found(source, "Wärme & Kälte?\ud800")
    (asked,) = server.asked
    assert asked.target == "POST /search HTTP/1.1", "the question is in no address"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(asked.body.decode(), strict_parsing=True) == {
        "q": ["Wärme & Kälte??"],
        "format": ["json"],
        "engines": ["brave,ddg"],
        "language": ["de"],
    }
    assert (passage.text, passage.id, passage.title, passage.score) == (
        "The warranty is two years.",
        "https://example.org/terms",
        "Terms",
        3.0,
    )


async def test_words_of_a_question_command_nothing() -> None:
    async with (
        source_server(answering(FOUND)) as server,
        opened("searxng", base_url=server.url) as source,
    ):
        await found(source, "!!g !files :fr <9999 ? what is !important! in CSS: a < b")
        await found(source, "word " * 1000)
    first, second = (parse_qs(asked.body.decode()) for asked in server.asked)
    assert first["q"] == ["g files fr 9999 what is important! in CSS: a b"]
    assert len(second["q"][0]) <= 400


async def test_engines_that_did_not_answer_are_no_empty_web() -> None:
    async with source_server() as server, opened("searxng", base_url=server.url) as source:
        server.answer = answering({**FOUND, "results": []})
        assert await result(source) is SearchResult.UNAVAILABLE
        server.answer = answering({**FOUND, "results": [], "unresponsive_engines": []})
        assert await result(source) is SearchResult.EMPTY


@pytest.mark.parametrize("kind", ["searxng", "ddgs"])
async def test_a_filter_is_refused_for_it_cannot_be_applied(kind: str) -> None:
    """Here too, whatever the policy's check has let through."""
    options = {"base_url": "http://127.0.0.1:9"} if kind == "searxng" else {}
    async with opened(kind, **options) as source:
        assert await result(source, tenant="acme") is SearchResult.REFUSED

"""The web by the library ddgs, with clients that ask nobody."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from ddgs.ddgs import DDGS
from ddgs.exceptions import DDGSException, TimeoutException
from pydantic import ValidationError

from tests.fakes.http_sources import context, found, result
from truthlens.core.records.retrieval import SearchResult
from truthlens.core.registry import source_types
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.sources.ddgs import DdgsOptions, DdgsSource

HITS = [
    {"title": "Terms", "href": "https://example.org/terms", "body": "The warranty is two years."},
    {"title": "Same page", "href": "https://example.org/terms", "body": "Again."},
    {"title": "Empty", "href": "https://example.org/empty", "body": ""},
    {"title": "Repairs", "href": "https://example.org/repairs", "body": "Repairs are free."},
]


def source(give: Callable[..., Any], **options: Any) -> tuple[DdgsSource, list[dict[str, Any]]]:
    """The source with a client that gives what ``give`` returns, and the list of what it was asked."""
    asked: list[dict[str, Any]] = []

    class Client:
        def __init__(self, **settings: Any) -> None:
            inspect.signature(DDGS).bind(**settings)
            self._settings = settings

        def text(self, query: str, **how: Any) -> Any:
            inspect.signature(DDGS._search_sync).bind(self, "text", query, **how)
            asked.append({"query": query, "thread": threading.current_thread().name, **self._settings, **how})
            return give()

    return DdgsSource(DdgsOptions(**options), Client), asked


async def test_hits_of_the_web_are_passages() -> None:
    web, asked = source(lambda: HITS, region="de-de", engines="duckduckgo,wikipedia", safesearch="on")
    first, second = await found(web, "word " * 1000, k=3)
    assert (first.id, first.title, first.text, first.score) == (
        "https://example.org/terms",
        "Terms",
        "The warranty is two years.",
        None,
    )
    assert second.text == "Repairs are free."
    (one,) = asked
    assert one.pop("thread").startswith("truthlens-ddgs")
    assert one == {
        "query": ("word " * 80).strip(),
        "timeout": 20,
        "region": "de-de",
        "safesearch": "on",
        "backend": "duckduckgo,wikipedia",
        "max_results": 3,
    }
    await web.aclose()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutException("secret"), SearchResult.TIMEOUT),
        (DDGSException("No results found."), SearchResult.UNAVAILABLE),
        (RuntimeError("secret"), SearchResult.UNAVAILABLE),
    ],
)
async def test_a_failure_of_the_library_is_told_by_its_kind_alone(
    error: Exception, expected: SearchResult
) -> None:
    def fail() -> Any:
        raise error

    web, _ = source(fail)
    with pytest.raises(SourceError) as caught:
        await found(web)
    assert caught.value.result is expected
    assert str(caught.value) == type(error).__name__
    assert caught.value.__suppress_context__
    await web.aclose()


@pytest.mark.parametrize(
    "given", [None, "text", {}, [None], [["href"]], [{}], [{"body": 7}], [{"body": None, "href": 1}]]
)
async def test_what_is_not_the_librarys_shape_is_a_bad_response(given: Any) -> None:
    web, _ = source(lambda: given)
    assert await result(web) is SearchResult.BAD_RESPONSE
    await web.aclose()


async def test_odd_members_and_many_hits_are_bounded() -> None:
    odd = [{"body": f"Text {n} \ud800", "href": [n], "title": {}} for n in range(50_000)]
    web, _ = source(lambda: odd)
    passages = await found(web)
    assert [each.text for each in passages] == [f"Text {n} ?" for n in range(5)]
    assert len({each.id for each in passages}) == 5
    await web.aclose()


async def test_a_thread_counts_until_its_search_ends() -> None:
    release = threading.Event()

    def hold() -> Any:
        release.wait(20)
        return HITS

    web, asked = source(hold, max_concurrency=1)
    try:
        assert await result(web, within_s=0.05) is SearchResult.TIMEOUT
        assert await result(web) is SearchResult.OVERLOADED
        assert len(asked) == 1
        release.set()
        async with asyncio.timeout(20):
            while await result(web) is SearchResult.OVERLOADED:
                await asyncio.sleep(0.001)
        assert await result(web) is SearchResult.OK
    finally:
        release.set()
        await web.aclose()


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)
    with pytest.raises(
        ValueError, match=r"'handbook' needs the library ddgs: pip install 'truthlens\[web\]'"
    ):
        source_types()["ddgs"].build(context("ddgs", {}))


async def test_the_library_is_the_one_that_is_declared() -> None:
    built = source_types()["ddgs"].build(context("ddgs", {}))
    assert isinstance(built, DdgsSource)
    await built.aclose()


@pytest.mark.parametrize(
    "options", [{"auth": "passthrough"}, {"region": "DE"}, {"engines": ""}, {"safesearch": "no"}]
)
def test_options_that_would_do_nothing_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        context("ddgs", options)

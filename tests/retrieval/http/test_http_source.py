"""Every source that is reached over HTTP, against servers that fail, lie or never end."""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from tests.fakes.http_sources import (
    JSON,
    Asked,
    answering,
    bomb,
    context,
    dripping,
    dropping,
    endless,
    found,
    opened,
    reply,
    result,
    silent,
    source_server,
)
from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.registry import source_types
from truthlens.retrieval.http_source import MOST_TEXT_CHARS
from truthlens.retrieval.interfaces import SourceError

OPTIONS: dict[str, dict[str, Any]] = {
    "vector_store": {"store_id": "vs_1"},
    "opensearch": {"index": "docs"},
    "searxng": {},
}
KINDS = list(OPTIONS)


def hit(kind: str, text: object, name: object, **more: object) -> dict[str, Any]:
    """One hit as a server of that kind gives it."""
    if kind == "vector_store":
        return {"file_id": name, "filename": f"{name}.md", "score": 0.7, "attributes": {"tenant": "acme"}} | {
            "content": [{"type": "text", "text": text}],
            **more,
        }
    if kind == "opensearch":
        source = {"text": text, "title": f"{name}.md"}
        return {"_index": "docs", "_id": name, "_score": 7.5, "_source": source} | more
    return {"url": f"https://example.org/{name}", "title": f"{name}.md", "content": text, "score": 1.5} | more


def page(kind: str, hits: object) -> dict[str, Any]:
    """The answer that has these hits."""
    if kind == "vector_store":
        return {"object": "vector_store.search_results.page", "data": hits, "has_more": False}
    if kind == "opensearch":
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        return {"took": 3, "timed_out": False, "_shards": shards, "hits": {"max_score": 7.5, "hits": hits}}
    return {"query": "q", "number_of_results": 0, "results": hits, "unresponsive_engines": []}


async def announcing(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(f"HTTP/1.1 200 OK\r\n{JSON}\r\ncontent-length: 99999999\r\n\r\n ".encode())
    await asyncio.sleep(3600)


GOOD = "The warranty is two years."
NESTED = b"[" * 100_000
WHOLE = [
    ("slow", silent, SearchResult.TIMEOUT),
    ("dripping", dripping, SearchResult.TIMEOUT),
    ("endless", endless, SearchResult.BAD_RESPONSE),
    ("bomb", bomb(), SearchResult.BAD_RESPONSE),
    ("announced", announcing, SearchResult.BAD_RESPONSE),
    ("two lengths", answering(b"{}", JSON, "content-length: 900"), SearchResult.UNAVAILABLE),
    ("dropped", dropping, SearchResult.UNAVAILABLE),
    ("html", answering(b"<html>Log in", "content-type: text/html"), SearchResult.BAD_RESPONSE),
    ("html as json", answering(b"<html>Log in"), SearchResult.BAD_RESPONSE),
    ("brotli", answering(b"x", "content-encoding: br"), SearchResult.BAD_RESPONSE),
    ("no gzip", answering(b"{}", "content-encoding: gzip"), SearchResult.BAD_RESPONSE),
    ("nothing", answering(b""), SearchResult.BAD_RESPONSE),
    ("a list", answering([]), SearchResult.BAD_RESPONSE),
    ("other json", answering({"error": {"message": "no"}}), SearchResult.BAD_RESPONSE),
    ("nested", answering(NESTED), SearchResult.BAD_RESPONSE),
    ("latin-1", answering(b'{"a": "\xe4"}'), SearchResult.BAD_RESPONSE),
    ("long number", answering(b'{"a": ' + b"9" * 10_000 + b"}"), SearchResult.BAD_RESPONSE),
    ("400", answering({}, status="400 Bad Request"), SearchResult.BAD_RESPONSE),
    ("401", answering({}, status="401 Unauthorized"), SearchResult.REFUSED),
    ("403", answering(b"no", "content-type: text/plain", status="403 Forbidden"), SearchResult.REFUSED),
    ("404", answering({}, status="404 Not Found"), SearchResult.BAD_RESPONSE),
    ("429", answering({}, status="429 Too Many Requests"), SearchResult.OVERLOADED),
    ("500", answering({}, status="500 Oh"), SearchResult.UNAVAILABLE),
    ("503", answering({}, status="503 Later"), SearchResult.UNAVAILABLE),
]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_fails_is_told_by_how_it_failed(kind: str) -> None:
    ends = {}
    async with source_server() as server, opened(kind, base_url=server.url, **OPTIONS[kind]) as source:
        for name, server.answer, expected in WHOLE:
            ends[name] = await result(source, within_s=0.1 if expected is SearchResult.TIMEOUT else 20.0)
    assert ends == {name: expected for name, _, expected in WHOLE}


@pytest.mark.parametrize("kind", KINDS)
async def test_passages_of_a_good_answer(kind: str) -> None:
    hits = [hit(kind, GOOD, "a"), hit(kind, "Repairs are free.", "b")]
    async with (
        source_server(answering(page(kind, hits))) as server,
        opened(kind, base_url=server.url + "/prefix/", **OPTIONS[kind]) as source,
    ):
        first, second = await found(source)
        assert (first.text, first.title, second.text) == (GOOD, "a.md", "Repairs are free.")
        assert first.score is not None
        assert first.id != second.id
        assert [first, second] == list(await found(source)), "ids stay"
        assert [first] == list(await found(source, k=1)), "a server that gives more than was asked for"
        assert source.revision == ""
    assert server.asked[0].target.startswith("POST /prefix/")
    assert server.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("kind", KINDS)
async def test_no_hit_is_a_fact_and_hits_without_text_are_none(kind: str) -> None:
    async with source_server() as server, opened(kind, base_url=server.url, **OPTIONS[kind]) as source:
        server.answer = answering(page(kind, []))
        assert await found(source) == ()
        server.answer = answering(page(kind, [hit(kind, None, "a"), hit(kind, " \n", "b")]))
        assert await result(source) is SearchResult.BAD_RESPONSE
        server.answer = answering(page(kind, [hit(kind, None, "a"), hit(kind, GOOD, "b")]))
        assert [each.text for each in await found(source)] == [GOOD]


@pytest.mark.parametrize("kind", KINDS)
async def test_of_one_id_the_first_passage_counts(kind: str) -> None:
    hits = [hit(kind, GOOD, "a"), hit(kind, GOOD, "a"), hit(kind, "Other.", "b")]
    async with (
        source_server(answering(page(kind, hits))) as server,
        opened(kind, base_url=server.url, **OPTIONS[kind]) as source,
    ):
        assert [each.text for each in await found(source)] == [GOOD, "Other."]


@pytest.mark.parametrize("kind", KINDS)
async def test_fifty_thousand_hits_give_k_passages(kind: str) -> None:
    if kind == "vector_store":
        hits = [{"file_id": n, "content": [{"type": "text", "text": f"t{n}"}]} for n in range(50_000)]
    else:
        bare = {"opensearch": "_source", "searxng": "content"}[kind]
        hits = [{bare: {"text": f"t{n}"} if kind == "opensearch" else f"t{n}"} for n in range(50_000)]
    body = json.dumps(page(kind, hits), separators=(",", ":")).encode()
    assert len(body) < 4 << 20
    async with (
        source_server(answering(body)) as server,
        opened(kind, base_url=server.url, **OPTIONS[kind]) as source,
    ):
        assert [each.text for each in await found(source)] == ["t0", "t1", "t2", "t3", "t4"]


async def test_a_response_may_be_four_mebibytes_and_no_longer() -> None:
    body = json.dumps(page("searxng", [hit("searxng", GOOD, "a")])).encode()
    async with source_server() as server, opened("searxng", base_url=server.url) as source:
        server.answer = answering(body.ljust(4 << 20))
        assert await result(source) is SearchResult.OK
        for longer in (body.ljust((4 << 20) + 1), gzip.compress(body.ljust((4 << 20) + 1))):
            encoding = "identity" if longer.startswith(b"{") else "gzip"
            server.answer = answering(longer, JSON, f"content-encoding: {encoding}")
            assert await result(source) is SearchResult.BAD_RESPONSE


@pytest.mark.parametrize("kind", KINDS)
async def test_garbage_in_texts_ids_and_titles_is_made_harmless(kind: str) -> None:
    long = "Every word of this sentence counts. " * 1000
    hits = [
        hit(kind, "half \ud800 pair \x00 \u202e", "\udfff" * 3),
        hit(kind, long, "i" * 100_000),
        hit(kind, "x" * 100_000, "c"),
        hit(kind, f"{'x' * 6000} {'y' * 6000}", "d"),
    ]
    async with (
        source_server(answering(page(kind, hits))) as server,
        opened(kind, base_url=server.url, **OPTIONS[kind]) as source,
    ):
        passages = await found(source)
    assert [each.text for each in passages] == [
        "half ? pair \x00 \u202e",
        passages[1].text,
        "x" * MOST_TEXT_CHARS,
        "x" * 6000,
    ]
    assert MOST_TEXT_CHARS - 100 < len(passages[1].text) <= MOST_TEXT_CHARS
    assert passages[1].text.endswith("counts.")
    for each in passages:
        f"{each.id}{each.title}{each.parent_id}".encode()  # no half surrogates
        assert 0 < len(each.id) <= 1_020
        assert len(each.title) <= 500


def mutations(value: Any, junk: Any) -> Iterator[Any]:
    """Copies of ``value`` in each of which one member, at any depth, is ``junk``."""
    yield junk
    for key in (
        list(value) if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    ):
        for inner in mutations(value[key], junk):
            changed = copy.copy(value)
            changed[key] = inner
            yield changed


JUNK = [None, 0, -(10**400), True, "", "x", [], [None], ["x"], [[]], {}, {"x": None}]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_member_of_the_wrong_type_gives_passages_or_a_failure(kind: str) -> None:
    more = {"fields": {"tenant": ["acme"]}} if kind == "opensearch" else {}
    good = page(kind, [hit(kind, GOOD, "a", **more), hit(kind, "Repairs are free.", "b", **more)])
    wanted = {} if kind == "searxng" else {"tenant": "acme"}
    ends = set()
    async with source_server() as server, opened(kind, base_url=server.url, **OPTIONS[kind]) as source:
        for body in (each for junk in JUNK for each in mutations(good, junk)):
            server.answer = answering(body)
            try:
                passages = await found(source, **wanted)
            except SourceError as error:
                ends.add(error.result)
                continue
            ends.add(SearchResult.OK)
            for each in passages:
                assert isinstance(each, FoundPassage)
                assert all(isinstance(part, str) for part in (each.text, each.id, each.title, each.parent_id))
                assert each.score is None or isinstance(each.score, float)
    failures = {SearchResult.BAD_RESPONSE, SearchResult.TIMEOUT, SearchResult.UNAVAILABLE}
    assert {SearchResult.OK, SearchResult.BAD_RESPONSE} <= ends <= failures | {SearchResult.OK}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_redirect_is_not_followed_and_the_key_stays(kind: str) -> None:
    async with source_server(answering({})) as other, source_server() as server:
        async with opened(
            kind, {"KEY": "secret"}, base_url=server.url, api_key_env="KEY", **OPTIONS[kind]
        ) as source:
            for status in ("301 Moved", "302 Found", "307 Temporary", "308 Permanent"):
                to = f"location: {other.url}/search"
                server.answer = answering(b"", "content-type: application/json", to, status=status)
                with pytest.raises(SourceError) as caught:
                    await found(source)
                assert caught.value.result is SearchResult.BAD_RESPONSE
                assert "secret" not in f"{caught.value!r}"
        assert other.asked == []
        assert len(server.asked) == 4


@pytest.mark.parametrize("kind", KINDS)
async def test_a_connection_that_fails_is_tried_once_more(kind: str) -> None:
    async def first_dropped(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if len(server.asked) == 1:
            writer.transport.abort()
        else:
            writer.write(reply(json.dumps(page(kind, [hit(kind, GOOD, "a")])).encode()))

    async with (
        source_server(first_dropped) as server,
        opened(kind, base_url=server.url, **OPTIONS[kind]) as source,
    ):
        assert await result(source) is SearchResult.OK
        server.answer = dropping
        assert await result(source) is SearchResult.UNAVAILABLE
        assert len(server.asked) == 4
        server.answer = answering({}, status="503 Later")
        assert await result(source) is SearchResult.UNAVAILABLE
        assert len(server.asked) == 5
    async with opened(kind, base_url=server.url, **OPTIONS[kind]) as source:  # nobody listens any more
        assert await result(source) is SearchResult.UNAVAILABLE


async def test_connections_are_bounded_and_so_is_the_queue_for_them() -> None:
    open_now, most, release = 0, 0, asyncio.Event()

    async def held(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await release.wait()
        open_now -= 1
        writer.write(reply(json.dumps(page("searxng", [hit("searxng", GOOD, "a")])).encode()))

    async with (
        source_server(held) as server,
        opened("searxng", base_url=server.url, max_concurrency=2) as source,
    ):
        tasks = [asyncio.create_task(result(source)) for _ in range(12)]
        while len(server.asked) < 2:
            await asyncio.sleep(0.001)
        release.set()
        ends = await asyncio.gather(*tasks)
    assert most == 2
    assert sorted(ends) == [SearchResult.OK] * 10 + [SearchResult.OVERLOADED] * 2


async def test_a_search_that_is_cancelled_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def hang(asked: Asked, writer: asyncio.StreamWriter) -> None:
        try:
            await dripping(asked, writer)
        except ConnectionError:
            closed.set()

    async with source_server(hang) as server, opened("searxng", base_url=server.url) as source:
        task = asyncio.create_task(found(source))
        while not server.asked:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(20):
            await closed.wait()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_clients_header_goes_where_the_options_say_so_and_never_with_a_key(kind: str) -> None:
    async with source_server(answering(page(kind, [hit(kind, GOOD, "a")]))) as server:
        own = {"base_url": server.url, **OPTIONS[kind]}
        async with opened(kind, **own) as source:
            await found(source, authorization="Bearer client")
        async with opened(kind, {"KEY": " secret\n"}, api_key_env="KEY", **own) as source:
            await found(source, authorization="Bearer client")
        async with opened(kind, auth="passthrough", **own) as source:
            await found(source, authorization="Bearer client")
            await found(source)
            # A header within the header: nothing is sent.
            assert await result(source, authorization="Bearer x\r\nx-evil: 1") is SearchResult.REFUSED
    scheme = "ApiKey" if kind == "opensearch" else "Bearer"
    sent = [asked.headers.get("authorization") for asked in server.asked]
    assert sent == [None, f"{scheme} secret", "Bearer client", None]
    with pytest.raises(ValidationError, match="exclude each other"):
        context(kind, {**own, "auth": "passthrough", "api_key_env": "KEY"})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("environ", [{}, {"KEY": "  "}, {"KEY": "two\nlines"}, {"KEY": "schlüssel"}])
def test_a_key_that_is_missing_or_cannot_be_sent_is_told_without_it(
    kind: str, environ: dict[str, str]
) -> None:
    built = context(kind, {"base_url": "http://h", "api_key_env": "KEY", **OPTIONS[kind]}, environ)
    with pytest.raises(ValueError, match="'handbook' cannot be used: environment variable KEY") as caught:
        source_types()[kind].build(built)
    assert "lines" not in str(caught.value)
    assert "schl" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "ftp://h",
        "http://",
        "file:///etc/passwd",
        "http://user:word@h",
        "http://h?q=1",
        "http://h#f",
        "http://h\n",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        context("searxng", {"base_url": url})
    assert [problem["loc"] for problem in caught.value.errors()] == [("base_url",)]


async def test_a_deadline_that_is_over_asks_nobody() -> None:
    async with source_server(silent) as server, opened("searxng", base_url=server.url) as source:
        with pytest.raises(SourceError) as caught:
            await source.search(Search("q"), k=1, deadline=Deadline.after(0))
        assert caught.value.result is SearchResult.TIMEOUT
    assert server.asked == []

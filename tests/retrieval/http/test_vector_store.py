"""A vector store by OpenAI's API, against a server that does what the API's description says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from openai.types import VectorStoreSearchResponse

from tests.fakes.http_sources import Asked, found, opened, reply, result, source_server
from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.interfaces import SourceError

FILES = [
    ("file-1", "warranty.md", {"tenant": "acme", "lang": "en"}, 0.9, "The warranty is two years."),
    ("file-1", "warranty.md", {"tenant": "acme", "lang": "en"}, 0.8, "It begins with the purchase."),
    ("file-2", "garantie.md", {"tenant": "acme", "lang": "de"}, 0.7, "Die Garantie gilt zwei Jahre."),
    ("file-3", "secret.md", {"tenant": "globex", "lang": "en"}, 0.6, "The warranty is nine years."),
    ("file-4", "number.md", {"tenant": 7, "lang": "en"}, 0.5, "Seven."),
    ("file-5", "none.md", None, 0.4, "Without attributes."),
]


def applies(wanted: dict[str, Any] | None, attributes: dict[str, Any] | None) -> bool:
    match wanted:
        case None:
            return True
        case {"type": "and", "filters": list(filters)} if len(filters) > 1:
            return all(applies(each, attributes) for each in filters)
        case {"type": "eq", "key": str(key), "value": value}:
            return (attributes or {}).get(key) == value
    raise AssertionError(wanted)


async def store(asked: Asked, writer: asyncio.StreamWriter, *, filters: bool = True) -> None:
    """Answer as ``POST /v1/vector_stores/{id}/search`` is described to."""
    assert asked.target == "POST /v1/vector_stores/vs_1/search HTTP/1.1"
    body = asked.json
    assert set(body) <= {"query", "filters", "max_num_results", "ranking_options", "rewrite_query"}
    assert 1 <= body["max_num_results"] <= 50
    least = body.get("ranking_options", {}).get("score_threshold", 0.0)
    wanted = body.get("filters") if filters else None
    data = [
        {
            "file_id": file_id,
            "filename": name,
            "score": score,
            "attributes": attributes,
            "content": [{"type": "text", "text": text}],
        }
        for file_id, name, attributes, score, text in FILES
        if score >= least and applies(wanted, attributes)
    ]
    for each in data:
        VectorStoreSearchResponse.model_validate(each)
    page = {
        "object": "vector_store.search_results.page",
        "search_query": [body["query"]],
        "data": data[: body["max_num_results"]],
        "has_more": False,
        "next_page": None,
    }
    writer.write(reply(json.dumps(page).encode()))


async def unfiltered(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A server that takes filters and ignores them, as several behind LiteLLM do."""
    await store(asked, writer, filters=False)


async def test_passages_of_one_file_have_ids_of_their_own() -> None:
    async with (
        source_server(store) as server,
        opened("vector_store", base_url=server.url + "/v1", store_id="vs_1") as source,
    ):
        first, second, third = await found(source, k=3)
    assert (first.text, first.title, first.parent_id, first.score) == (
        "The warranty is two years.",
        "warranty.md",
        "file-1",
        0.9,
    )
    assert first.parent_id == second.parent_id != third.parent_id
    assert first.id != second.id
    assert first.id.startswith("file-1#")


async def test_a_request_is_the_one_of_openais_own_client() -> None:
    options = {"store_id": "vs_1", "api_key_env": "KEY", "score_threshold": 0.5, "rewrite_query": True}
    async with source_server(store) as server:
        async with opened("vector_store", {"KEY": "k"}, base_url=server.url + "/v1", **options) as source:
            await found(source, k=4, tenant="acme", lang="en")
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="k") as client:
            page = await client.vector_stores.search(
                "vs_1",
                query="How long is the warranty?",
                max_num_results=4,
                rewrite_query=True,
                ranking_options={"score_threshold": 0.5},
                filters={
                    "type": "and",
                    "filters": [
                        {"type": "eq", "key": "tenant", "value": "acme"},
                        {"type": "eq", "key": "lang", "value": "en"},
                    ],
                },
            )
    ours, theirs = server.asked
    assert len(page.data) == 2
    assert ours.json == theirs.json
    for name in ("authorization", "content-type", "openai-beta"):
        assert ours.headers[name] == theirs.headers[name]


@pytest.mark.parametrize("tenant", ["acme", "initech", "7"])
async def test_another_tenants_passages_fail_the_search_where_the_server_ignores_filters(tenant: str) -> None:
    """Also those that are its own; a number is no text: the API's "eq" does not take 7 for "7" either."""
    async with (
        source_server(unfiltered) as server,
        opened("vector_store", base_url=server.url + "/v1", store_id="vs_1") as source,
    ):
        with pytest.raises(SourceError, match="'tenant'") as caught:
            await found(source, k=10, tenant=tenant)
    assert caught.value.result is SearchResult.BAD_RESPONSE
    assert not any(text in str(caught.value) for *_, text in FILES)


async def test_a_filter_that_the_server_applies_and_that_nothing_has_is_empty() -> None:
    async with (
        source_server(store) as server,
        opened("vector_store", base_url=server.url + "/v1", store_id="vs_1") as source,
    ):
        assert await result(source, tenant="initech") is SearchResult.EMPTY


async def test_the_value_of_a_scope_is_data_whatever_it_holds() -> None:
    values = ["a\r\nx-evil: 1", '"}, "query": "all"', "\ud800", "a" * 100_000, "../../vs_2"]
    async with (
        source_server(store) as server,
        opened("vector_store", base_url=server.url + "/v1", store_id="vs_1") as source,
    ):
        for value in values:
            assert await result(source, tenant=value) is SearchResult.EMPTY
    for asked, value in zip(server.asked, values, strict=True):
        assert asked.json["filters"] == {"type": "eq", "key": "tenant", "value": value}
        assert "x-evil" not in asked.headers


async def test_hits_below_the_threshold_are_left_out_and_queries_and_results_bounded() -> None:
    async with (
        source_server(store) as server,
        opened("vector_store", base_url=server.url + "/v1", store_id="vs_1", score_threshold=0.85) as source,
    ):
        assert [each.score for each in await found(source, "word " * 10_000, k=500)] == [0.9]
    (asked,) = server.asked
    assert asked.json["max_num_results"] == 50
    assert len(asked.json["query"]) == 1999
    assert asked.json["query"].endswith("word")

    async def all_scores(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await store(Asked(asked.target, asked.headers, b'{"query": "", "max_num_results": 50}'), writer)

    async with (
        source_server(all_scores) as server,
        opened("vector_store", base_url=server.url + "/v1", store_id="vs_1", score_threshold=0.95) as source,
    ):
        assert await result(source) is SearchResult.EMPTY


async def test_the_id_of_a_store_cannot_leave_its_place_in_the_path() -> None:
    async def none(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(reply(b'{"data": []}'))

    async with (
        source_server(none) as server,
        opened("vector_store", base_url=server.url, store_id="a/../../admin?x#y z") as source,
    ):
        await found(source)
    assert server.asked[0].target.split()[1] == "/vector_stores/a%2F..%2F..%2Fadmin%3Fx%23y%20z/search"

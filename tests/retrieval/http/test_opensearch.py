"""OpenSearch and Elasticsearch, by requests and answers as their documentation has them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from tests.fakes.http_sources import answering, context, found, opened, result, source_server
from truthlens.core.records.retrieval import SearchResult
from truthlens.core.registry import source_types

SHARDS = {"total": 5, "successful": 5, "skipped": 0, "failed": 0}


def answer(*hits: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An answer of ``_search`` without totals."""
    return {
        "took": 12,
        "timed_out": False,
        "_shards": SHARDS,
        "hits": {"max_score": 1.3862944, "hits": list(hits)},
    } | more


WARRANTY = {
    "_index": "handbook-000002",
    "_id": "K3xQ",
    "_score": 1.3862944,
    "_source": {
        "body": {"text": ["The warranty is two years.", "It begins with the purchase."]},
        "body.title": "Terms",
    },
    "fields": {"tenant.keyword": ["acme"], "level": [2], "open": [True]},
}


async def test_the_request_and_what_is_read_of_the_answer() -> None:
    options = {
        "index": "handbook-*,faq",
        "fields": ["body.title^2", "body.text"],
        "text_field": "body.text",
        "title_field": "body.title",
    }
    query = 'warranty" OR tenant:globex AND _exists_:x (]'
    wanted = {"tenant.keyword": "acme", "level": "2", "open": "true"}
    async with (
        source_server(answering(answer(WARRANTY))) as server,
        opened("opensearch", base_url=server.url + "/es", **options) as source,
    ):
        (passage,) = await found(source, query, k=3, **wanted)
    (asked,) = server.asked
    path = "/es/handbook-*,faq/_search?allow_partial_search_results=false&allow_no_indices=false"
    assert asked.target == f"POST {path} HTTP/1.1"
    body = asked.json
    milliseconds = body.pop("timeout")
    assert milliseconds.endswith("ms")
    assert 0 < int(milliseconds.removesuffix("ms")) <= 20_000
    assert body == {
        "size": 3,
        "track_total_hits": False,
        "_source": {"includes": ["body.text", "body.title"]},
        "docvalue_fields": ["tenant.keyword", "level", "open"],
        "query": {
            "bool": {
                "must": [{"multi_match": {"query": query, "fields": ["body.title^2", "body.text"]}}],
                "filter": [
                    {"term": {"tenant.keyword": "acme"}},
                    {"term": {"level": "2"}},
                    {"term": {"open": "true"}},
                ],
            }
        },
    }
    assert passage.text == "The warranty is two years.\nIt begins with the purchase."
    assert (passage.id, passage.title, passage.score) == ("handbook-000002/K3xQ", "Terms", 1.3862944)


async def test_an_id_may_be_a_field_and_a_query_has_a_bound() -> None:
    hits = [{"_index": "i", "_id": "1", "_score": None, "_source": {"text": "Text.", "number": 17}}]
    async with (
        source_server(answering(answer(*hits))) as server,
        opened("opensearch", base_url=server.url, index="i", id_field="number") as source,
    ):
        (passage,) = await found(source, "word " * 10_000)
    assert (passage.id, passage.title, passage.score) == ("17", "", None)
    body = server.asked[0].json
    assert body["_source"] == {"includes": ["text", "title", "number"]}
    assert "docvalue_fields" not in body
    assert body["query"]["bool"] == {
        "must": [{"multi_match": {"query": ("word " * 200).strip(), "fields": ["text"]}}]
    }


PARTS = [
    ({"timed_out": True}, SearchResult.TIMEOUT),
    ({"timed_out": "false"}, SearchResult.TIMEOUT),
    ({"_shards": {**SHARDS, "successful": 4, "failed": 1}}, SearchResult.UNAVAILABLE),
    ({"_shards": {}}, SearchResult.UNAVAILABLE),
    ({"_shards": None}, SearchResult.BAD_RESPONSE),
    ({"terminated_early": True}, SearchResult.UNAVAILABLE),
    ({"terminated_early": False}, SearchResult.OK),
    ({"hits": {"hits": None}}, SearchResult.BAD_RESPONSE),
    ({"hits": []}, SearchResult.BAD_RESPONSE),
]


async def test_a_part_of_the_hits_is_no_answer() -> None:
    async with (
        source_server() as server,
        opened("opensearch", base_url=server.url, index="i", text_field="body.text") as source,
    ):
        for partial, expected in PARTS:
            server.answer = answering(answer(WARRANTY, **partial))
            assert await result(source) is expected, partial


@pytest.mark.parametrize("fields", [{"tenant.keyword": ["acme west"]}, {}], ids=["longer", "none"])
async def test_a_hit_that_lacks_the_value_which_was_asked_for_fails_the_search(
    fields: dict[str, Any],
) -> None:
    other = {**WARRANTY, "_id": "other", "fields": fields}
    async with (
        source_server(answering(answer(WARRANTY, other))) as server,
        opened("opensearch", base_url=server.url, index="i", text_field="body.text") as source,
    ):
        assert await result(source, **{"tenant.keyword": "acme"}) is SearchResult.BAD_RESPONSE


async def test_a_field_of_words_as_filter_is_refused_by_the_server() -> None:
    reason = "Text fields are not optimised for operations that require per-document field data"
    error = {
        "error": {"root_cause": [{"type": "illegal_argument_exception", "reason": reason}]},
        "status": 400,
    }
    async with (
        source_server(answering(error, status="400 Bad Request")) as server,
        opened("opensearch", base_url=server.url, index="i") as source,
    ):
        assert await result(source, tenant="acme") is SearchResult.BAD_RESPONSE


async def test_keys_are_sent_as_the_scheme_has_them() -> None:
    async with source_server(answering(answer())) as server:
        for scheme, key in (("ApiKey", "aWQ6a2V5"), ("Basic", "user:wo:rd"), ("Bearer", "token")):
            options = {"base_url": server.url, "index": "i", "api_key_env": "KEY", "key_scheme": scheme}
            async with opened("opensearch", {"KEY": key}, **options) as source:
                assert await result(source) is SearchResult.EMPTY
    encoded = base64.b64encode(b"user:wo:rd").decode()
    assert [asked.headers["authorization"] for asked in server.asked] == [
        "ApiKey aWQ6a2V5",
        f"Basic {encoded}",
        "Bearer token",
    ]
    options = {"base_url": "http://h", "index": "i", "api_key_env": "KEY", "key_scheme": "Basic"}
    with pytest.raises(ValueError, match="holds no user:password") as caught:
        source_types()["opensearch"].build(context("opensearch", options, {"KEY": "secret"}))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("index", ["", "_all", "_search/scroll", "a/_doc", "a?q=x", "a b"])
def test_an_index_that_would_be_another_endpoint_is_refused(index: str) -> None:
    with pytest.raises(ValidationError):
        context("opensearch", {"base_url": "http://h", "index": index})

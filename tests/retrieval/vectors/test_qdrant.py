"""Passages in Qdrant: local mode for real, and a server by golden bodies and by faults."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from tests.retrieval.vectors.conftest import VECTORS, Asked, Reply, ScriptedServer, build
from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.retrieval.interfaces import SourceError

SECRET = "key-of-the-tests"
HOSTILE = 'o\'Brien"}], "should": [{'
FIELDS: dict[str, object] = {"collection": "facts", "title": "about.title", "parent_id": "about.doc"}

Sources = Callable[..., Any]


@pytest.fixture
async def sources(tmp_path: Path) -> AsyncIterator[Sources]:
    opened: list[Any] = []

    def open_one(**options: object) -> Any:
        opened.append(build("qdrant", FIELDS | options, tmp_path, KEY=SECRET))
        return opened[-1]

    yield open_one
    for source in opened:
        await source.aclose()


def filled(folder: Path, distance: Distance = Distance.COSINE, *, name: str | None = None) -> None:
    """Make a folder of local mode with the four passages, and one without text."""
    client = QdrantClient(path=str(folder))
    params = VectorParams(size=3, distance=distance)
    client.create_collection("facts", params if name is None else {name: params})
    points = [
        PointStruct(
            id=place,
            vector=list(vector) if name is None else {name: list(vector)},
            payload={
                "text": f"the {word}" + "." * (9_000 if word == "tax" else 0),
                "about": {"title": "T", "doc": 7, "tenant": (HOSTILE, "b")[place % 2], "in": ["x", word]},
                "never asked for": "z",
            },
        )
        for place, (word, vector) in enumerate(VECTORS.items())
    ]
    bare = PointStruct(id=str(b"0123456789abcdef".hex()), vector=points[0].vector, payload={"text": None})
    client.upsert("facts", [*points, bare])
    client.close()


def find(source: Any, *, k: int = 10, seconds: float = 30.0, **filter_: str) -> Awaitable[list[FoundPassage]]:
    named = {name.replace("__", "."): value for name, value in filter_.items()}
    return source.search(Search("rent", named), k=k, deadline=Deadline.after(seconds))  # type: ignore[no-any-return]


async def failure(source: Any, *, seconds: float = 30.0, **filter_: str) -> SourceError:
    with pytest.raises(SourceError) as raised:
        await find(source, seconds=seconds, **filter_)
    told = f"{raised.value} {raised.value.__cause__}"
    assert not any(secret in told for secret in ("rent", SECRET, HOSTILE))
    return raised.value


@pytest.mark.parametrize(
    ("distance", "scores"),
    [
        (Distance.COSINE, [1.0, 0.8, 0.0, 0.0]),
        (Distance.DOT, [1.0, 0.8, 0.0, 0.0]),
        (Distance.EUCLID, [0.0, -(0.4**0.5), -(2**0.5), -(2**0.5)]),
    ],
)
@pytest.mark.parametrize("name", [None, "dense"])
async def test_the_nearest_come_first_with_the_higher_score(
    tmp_path: Path, sources: Sources, distance: Distance, scores: list[float], name: str | None
) -> None:
    filled(tmp_path / "q", distance, name=name)
    source = sources(path="q", vector=name or "")
    found = await find(source)
    assert [each.score for each in found] == pytest.approx(scores, abs=1e-6)
    assert found[0] == FoundPassage("the rent", "0", "T", "7", found[0].score)
    assert [each.id for each in found[:2]] == ["0", "1"]
    assert {len(each.text) for each in found} == {8, 9, 7, 8_000}
    assert len(await find(source, k=2)) <= 2


async def test_the_filter_is_applied_and_all_of_it_is_asked_for(tmp_path: Path, sources: Sources) -> None:
    filled(tmp_path / "q")
    source = sources(path="q", filter={"about.tenant": "x-tenant"})
    assert [each.id for each in await find(source, about__tenant=HOSTILE)] == ["0", "2"]
    assert [each.id for each in await find(source, about__tenant="b")] == ["1", "3"]
    assert list(await find(source, about__tenant="nobody")) == []
    for filter_ in ({}, {"about__tenant": ""}, {"about__tenant": "b", "text": "x"}, {"text": "x"}):
        assert (await failure(source, **filter_)).result is SearchResult.NO_SCOPE
    await source.aclose()
    source = sources(path="q", filter={"about.in": "x-in"}, score_threshold=0.5)
    assert [each.id for each in await find(source, about__in="x")] == ["0", "1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"collection": "others"}, "see `collection`"),
        ({"vector": "dense"}, "has no vector 'dense'; it has: ''"),
        ({"text": "content"}, "no point has a text in the field 'content'"),
    ],
)
async def test_a_collection_that_does_not_fit_is_said(
    tmp_path: Path, sources: Sources, options: dict[str, object], message: str
) -> None:
    filled(tmp_path / "q")
    error = await failure(sources(path="q", **options))
    assert error.result is SearchResult.BAD_RESPONSE
    assert message in str(error)


async def test_vectors_of_another_dimension_are_said(tmp_path: Path, sources: Sources) -> None:
    client = QdrantClient(path=str(tmp_path / "q"))
    client.create_collection("facts", VectorParams(size=384, distance=Distance.COSINE))
    client.close()
    assert "have 384 dimensions, those of questions 3" in str(await failure(sources(path="q")))


# The library leaves the lock's file open where it cannot lock it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
async def test_a_folder_is_not_made_nor_taken_from_another(tmp_path: Path, sources: Sources) -> None:
    assert (await failure(sources(path="nowhere"))).result is SearchResult.UNAVAILABLE
    assert not (tmp_path / "nowhere").exists()
    filled(tmp_path / "q")
    first, second = sources(path="q"), sources(path=str(tmp_path / "q"))
    assert len(await find(first)) == 4
    assert "has the folder `path` open" in str(await failure(second))
    await first.aclose()
    assert len(await find(second)) == 4
    assert (await failure(first)).result is SearchResult.UNAVAILABLE


async def test_many_searches_share_one_thread(tmp_path: Path, sources: Sources) -> None:
    filled(tmp_path / "q")
    source = sources(path="q", max_concurrency=20)
    ended = await asyncio.gather(*(find(source) for _ in range(200)), return_exceptions=True)
    refused = [each for each in ended if isinstance(each, SourceError)]
    assert {each.result for each in refused} == {SearchResult.OVERLOADED}
    assert {len(each) for each in ended if isinstance(each, list)} == {4}
    tasks = [asyncio.ensure_future(find(source)) for _ in range(10)]
    await asyncio.sleep(0)
    for task in tasks[1:]:
        task.cancel()
    assert len(await tasks[0]) == 4
    assert len(await find(source)) == 4


# As a server of version 1.20 documents its answers.
INFO = {
    "result": {
        "status": "green", "optimizer_status": "ok", "indexed_vectors_count": 0, "points_count": 2, "segments_count": 1,
        "config": {
            "params": {"vectors": {"size": 3, "distance": "Cosine"}, "shard_number": 1, "replication_factor": 1, "on_disk_payload": True},
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000, "max_indexing_threads": 0, "on_disk": False},
            "optimizer_config": {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0, "flush_interval_sec": 5},
            "wal_config": {"wal_capacity_mb": 32, "wal_segments_ahead": 0},
        },
        "payload_schema": {},
    },
    "status": "ok", "time": 0.0001,
}  # fmt: skip


def points(*payloads: object) -> Reply:
    items = [
        {"id": n, "version": 3, "score": 0.9 - n / 10, "payload": each} for n, each in enumerate(payloads)
    ]
    return Reply(json.dumps({"result": {"points": items}, "status": "ok", "time": 0.001}).encode())


def server(reply: Reply) -> Callable[[Asked], Reply]:
    return lambda asked: Reply(json.dumps(INFO).encode()) if asked.method == "GET" else reply


async def test_a_server_is_asked_as_it_documents(served: ScriptedServer, sources: Sources) -> None:
    served.answer = server(
        points({"text": "a", "tenant": HOSTILE, "about": {"title": 5, "doc": "d"}}, {"tenant": HOSTILE})
    )
    source = sources(
        url=f"{served.url}/prefix/",
        api_key_env="KEY",
        filter={"tenant": "x-t"},
        score_threshold=0.25,
        timeout_s=3,
    )
    for _ in range(2):
        (found,) = await source.search(Search("rent", {"tenant": HOSTILE}), k=5, deadline=Deadline.after(2.5))
        assert found == FoundPassage("a", "0", "", "d", 0.9)
    info, query, _ = served.asked
    assert (info.method, info.path) == ("GET", "/prefix/collections/facts")
    assert (query.method, query.path) == ("POST", "/prefix/collections/facts/points/query?timeout=3")
    assert {each.headers["api-key"] for each in served.asked} == {SECRET}
    assert query.body == {
        "query": {"nearest": [1.0, 0.0, 0.0]},
        "filter": {"must": [{"key": "tenant", "match": {"value": HOSTILE}}]},
        "score_threshold": 0.25,
        "limit": 5,
        "with_payload": ["text", "about.title", "about.doc", "tenant"],
        "with_vector": False,
    }


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        (Reply(b'{"status": {"error": "rent"}}', 401), SearchResult.REFUSED),
        (Reply(b"key-of-the-tests", 403), SearchResult.REFUSED),
        (Reply(b'{"status": {"error": "rent"}}', 404), SearchResult.BAD_RESPONSE),
        (Reply(status=307, headers={"location": "/elsewhere"}), SearchResult.BAD_RESPONSE),
        (Reply(status=429), SearchResult.OVERLOADED),
        (Reply(b'{"status": {"error": "rent"}}', 429, {"retry-after": "7"}), SearchResult.OVERLOADED),
        (Reply(b"{}", 429, {"retry-after": "rent"}), SearchResult.OVERLOADED),
        (Reply(b"rent", 500), SearchResult.UNAVAILABLE),
        (Reply(b"<html>rent"), SearchResult.BAD_RESPONSE),
        (Reply(b'{"result": null}'), SearchResult.BAD_RESPONSE),
        (Reply(b'{"result": {"points": [{"id": 1.5}]}}'), SearchResult.BAD_RESPONSE),
        (Reply(b'{"result": {"points": [{"id": 1, "version": 1, "score": 1, "payload": "rent"}]}}'), SearchResult.BAD_RESPONSE),
        (Reply(b"[" * 100_000), SearchResult.BAD_RESPONSE),
        (Reply(b"x", headers={"content-encoding": "gzip"}), SearchResult.BAD_RESPONSE),
        (Reply(b" " * 1_000_000, endless=True), SearchResult.BAD_RESPONSE),
        (points({"text": "rent", "tenant": "other"}), SearchResult.BAD_RESPONSE),
        (points({"text": "rent"}), SearchResult.BAD_RESPONSE),
        (points({"text": ["rent"], "tenant": "b"}), SearchResult.BAD_RESPONSE),
    ],
)  # fmt: skip
async def test_what_a_server_gives_is_not_trusted(
    served: ScriptedServer, sources: Sources, reply: Reply, result: SearchResult
) -> None:
    served.answer = server(reply)
    source = sources(url=served.url, api_key_env="KEY", filter={"tenant": "x-t"})
    assert (await failure(source, tenant="b")).result is result
    assert len(served.asked) == 2


async def test_a_server_that_hangs_or_is_gone_costs_no_more_than_the_deadline(
    served: ScriptedServer, sources: Sources
) -> None:
    served.answer = server(Reply(hang=True))
    source = sources(url=served.url)
    assert (await failure(source, seconds=0.3)).result is SearchResult.TIMEOUT
    served.answer = server(points({"text": "a"}))
    found = await asyncio.gather(*(find(source) for _ in range(50)))
    assert {each[0].text for each in found} == {"a"}
    served.close()
    assert (await failure(sources(url=served.url))).result is SearchResult.UNAVAILABLE


@pytest.mark.parametrize(
    "options",
    [{}, {"url": "http://h", "path": "/q"}, {"url": "h:6333"}, {"url": "http://u:p@h"}, {"path": "q", "api_key_env": "K"},
     {"url": "http://h", "collection": ""}, {"url": "http://h", "auth": "passthrough"},
     {"url": "http://h", "score_threshold": float("nan")}],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(options: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="validation error"):
        build("qdrant", FIELDS | options, tmp_path)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [each for each in sys.modules if each.startswith("truthlens.retrieval.sources.qdrant.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(ValueError, match=r"'qdrant_client'; pip install 'truthlens\[qdrant\]'"):
        build("qdrant", FIELDS | {"url": "http://h"}, tmp_path)

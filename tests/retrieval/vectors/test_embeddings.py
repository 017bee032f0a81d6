"""Vectors of texts from a server: what is sent, what is believed, and how failures are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.retrieval.vectors.conftest import Asked, Reply, ScriptedServer, embed
from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import SearchResult
from truthlens.core.registry import SourceContext
from truthlens.retrieval.embeddings import BundledEmbedder, Embedder, EmbeddingOptions, open_embedder
from truthlens.retrieval.interfaces import SourceError

SECRET = "sk-of-the-tests"
QUESTION = "what is the rent"


def opened(served: ScriptedServer, **more: Any) -> Embedder:
    options = EmbeddingOptions(base_url=f"{served.url}/v1/", model="embedder", api_key_env="KEY", **more)
    return open_embedder(options, SourceContext("s", None, Path(), {"KEY": f"{SECRET}\n"}, embed))


def answered(vectors: Callable[[int], list[Any]]) -> Callable[[Asked], Reply]:
    """Answer the texts of a request with the vectors for their count, last first."""

    def answer(asked: Asked) -> Reply:
        items = [{"object": "embedding", "index": n, "embedding": v}
                 for n, v in enumerate(vectors(len(asked.body["input"])))]  # fmt: skip
        return Reply(
            json.dumps({"object": "list", "data": items[::-1], "usage": {"total_tokens": 1}}).encode()
        )

    return answer


async def failure(embedder: Embedder, *, seconds: float = 20.0) -> SourceError:
    with pytest.raises(SourceError) as raised:
        await embedder.embed([QUESTION, "b"], deadline=Deadline.after(seconds))
    await embedder.aclose()
    assert SECRET not in str(raised.value)
    assert QUESTION not in str(raised.value)
    assert raised.value.__cause__ is None
    return raised.value


async def test_texts_are_sent_in_bounded_requests_and_vectors_come_back_in_order(
    served: ScriptedServer,
) -> None:
    served.answer = answered(lambda count: [[n + 1.0, 0.0, 5] for n in range(count)])
    embedder = opened(served, dimensions=3)
    found = await embedder.embed(["\ud800" + "x" * 9_000] * 130, deadline=Deadline.after(20))
    await embedder.aclose()
    assert [len(each.body["input"]) for each in served.asked] == [64, 64, 2]
    assert {len(text) for each in served.asked for text in each.body["input"]} == {8_000}
    first = served.asked[0]
    assert (first.method, first.path, first.headers["authorization"]) == (
        "POST", "/v1/embeddings", f"Bearer {SECRET}",
    )  # fmt: skip
    assert {name: value for name, value in first.body.items() if name != "input"} == {
        "model": "embedder", "encoding_format": "float", "dimensions": 3,
    }  # fmt: skip
    assert found.shape == (130, 3)
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx(1.0)
    assert list(found[:64, 0] / found[:64, 2] * 5) == pytest.approx(range(1, 65))


@pytest.mark.parametrize(
    "body",
    [
        b"no json", b"[]", b"{}", b'{"data": null}', b"[" * 100_000,
        b'{"data": [{"index": 0, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 0, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 2, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]}',
        b'{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": [1, NaN]}, {"index": 1, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 1e999]}, {"index": 1, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": ["1", 2]}, {"index": 1, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [0, 0]}, {"index": 1, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1e308, 1e308]}, {"index": 1, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": "what is the rent"}, {"index": 1, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, 3]}, {"index": 1, "embedding": [1, 2, 3]}]}',
    ],
)  # fmt: skip
async def test_a_reply_that_is_not_the_expected_one_is_a_bad_response(
    served: ScriptedServer, body: bytes
) -> None:
    served.answer = lambda _: Reply(body)
    assert (await failure(opened(served, dimensions=2))).result is SearchResult.BAD_RESPONSE


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        (Reply(b'{"error": "what is the rent"}', 401), SearchResult.REFUSED),
        (Reply(b'{"error": "sk-of-the-tests"}', 403), SearchResult.REFUSED),
        (Reply(status=404), SearchResult.REFUSED),
        (Reply(status=429), SearchResult.OVERLOADED),
        (Reply(status=500), SearchResult.UNAVAILABLE),
        (Reply(b"<html>", headers={"content-type": "text/html"}), SearchResult.BAD_RESPONSE),
        (Reply(b"\1\2", headers={"content-encoding": "br"}), SearchResult.BAD_RESPONSE),
        (Reply(b" " * 1_000_000, endless=True), SearchResult.BAD_RESPONSE),
    ],
)
async def test_failures_are_named_by_their_kind(
    served: ScriptedServer, reply: Reply, result: SearchResult
) -> None:
    served.answer = lambda _: reply
    assert (await failure(opened(served))).result is result


async def test_a_redirect_is_not_followed(served: ScriptedServer) -> None:
    served.answer = lambda _: Reply(status=307, headers={"location": f"{served.url}/elsewhere"})
    assert (await failure(opened(served))).result is SearchResult.REFUSED
    assert len(served.asked) == 1


async def test_a_server_that_hangs_or_is_gone_costs_no_more_than_the_deadline(served: ScriptedServer) -> None:
    served.answer = lambda _: Reply(hang=True)
    assert (await failure(opened(served), seconds=0.2)).result is SearchResult.TIMEOUT
    served.close()
    assert (await failure(opened(served))).result is SearchResult.UNAVAILABLE


async def test_a_failing_sentence_model_is_a_failed_search() -> None:
    async def broken(texts: object) -> None:
        raise RuntimeError(QUESTION)

    assert (await failure(BundledEmbedder(broken))).result is SearchResult.UNAVAILABLE


@pytest.mark.parametrize(
    "url", ["ftp://host", "http://", "http://user:pw@host", "http://host?a=b", "no url", "http://x:port"]
)
def test_an_address_that_is_none_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(ValueError, match="expected http") as raised:
        EmbeddingOptions(base_url=url, model="m")
    assert "pw" not in raised.value.errors()[0]["msg"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [None, " ", "schlüssel"])
def test_a_key_that_is_not_there_is_said_at_the_start(value: str | None) -> None:
    environ = {} if value is None else {"KEY": value}
    options = EmbeddingOptions(base_url="http://host", model="m", api_key_env="KEY")
    with pytest.raises(ValueError, match="KEY holds no key"):
        open_embedder(options, SourceContext("s", None, Path(), environ, embed))

"""What a model takes: learned from its server, kept for a while, and bounded."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.fakes.llm_backends import Backend, Clock
from truthlens.llm.context_windows import ContextWindows, read_windows

URL = httpx.URL("http://backend/prefix/v1/chat/completions?api-version=1")


def listing(*entries: object) -> httpx.Response:
    return httpx.Response(200, json={"object": "list", "data": list(entries)})


async def test_the_list_of_models_is_asked_once_and_kept_for_a_while() -> None:
    backend, clock = (
        Backend(listing({"id": "m", "max_model_len": 4096}), listing({"id": "m", "max_model_len": 8192})),
        Clock(),
    )
    async with httpx.AsyncClient(transport=backend.transport) as http:
        windows = ContextWindows(http, clock)
        headers = {"authorization": b"Bearer k", "content-type": b"application/json"}
        assert [await windows.of("m", URL, headers, time_s=1.0) for _ in range(3)] == [4096] * 3
        assert await windows.of("other", URL, {}, time_s=1.0) is None
        clock.advance(601.0)
        assert await windows.of("m", URL, {}, time_s=1.0) == 8192
    assert [str(each.url) for each in backend.requests] == [
        "http://backend/prefix/v1/models?api-version=1"
    ] * 2
    assert backend.requests[0].headers["authorization"] == "Bearer k"


@pytest.mark.parametrize(
    "answer",
    [
        httpx.ConnectError("down"),
        httpx.Response(404),
        httpx.Response(200, content=b"{not json"),
        httpx.Response(200, content=b"x" * (3 << 20)),
        httpx.Response(302, headers={"location": "http://evil/"}),
        ValueError("odd"),
    ],
)
async def test_a_server_that_does_not_tell_is_asked_again_only_later(
    answer: httpx.Response | Exception,
) -> None:
    backend, clock = Backend(answer, listing({"id": "m", "max_model_len": 4096})), Clock()
    async with httpx.AsyncClient(transport=backend.transport) as http:
        windows = ContextWindows(http, clock)
        assert [await windows.of("m", URL, {}, time_s=1.0) for _ in range(3)] == [None] * 3
        clock.advance(61.0)
        assert await windows.of("m", URL, {}, time_s=1.0) == 4096
    assert len(backend.requests) == 2


async def test_what_an_error_told_is_kept() -> None:
    backend = Backend(listing({"id": "m", "max_model_len": 8192}))
    async with httpx.AsyncClient(transport=backend.transport) as http:
        windows = ContextWindows(http, Clock())
        assert await windows.of("m", URL, {}, time_s=1.0) == 8192
        windows.learn("m", URL, 4096)
        assert await windows.of("m", URL, {}, time_s=1.0) == 4096


async def test_servers_are_forgotten_beyond_a_bound() -> None:
    async def answer(_request: httpx.Request) -> httpx.Response:
        return listing({"id": "m", "max_model_len": 4096})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        windows = ContextWindows(http, Clock())
        for number in range(200):
            url = httpx.URL(f"http://backend{number}/v1/chat/completions")
            assert await windows.of("m", url, {}, time_s=1.0) == 4096
        assert len(windows._servers) == 64


@pytest.mark.parametrize(
    ("entry", "window"),
    [
        ({"max_model_len": 4096}, 4096),
        ({"context_length": 131072}, 131072),
        ({"context_window": 8192}, 8192),
        ({"meta": {"n_ctx": 2048, "n_ctx_train": 32768}}, 2048),
        ({"max_model_len": None, "meta": {"n_ctx": 2048}}, 2048),
        *(({"max_model_len": value}, None) for value in (0, -1, 1.5, True, "4096", 10**30, [], None)),
        ({}, None),
    ],
)
def test_windows_of_several_servers_are_read(entry: dict[str, object], window: int | None) -> None:
    body = json.dumps({"data": [{"id": "m", **entry}, "text", {"id": 3}, None]}).encode()
    assert read_windows(body).get("m") == window


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"data": 3}', b'{"data": {"id": "m"}}', b"[" * 100_000]
)
def test_what_is_no_list_of_models_tells_nothing(body: bytes) -> None:
    assert read_windows(body) == {}

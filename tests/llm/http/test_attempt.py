"""One attempt over HTTP, with a scripted transport and with real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator
from email.utils import formatdate

import httpx
import pytest

from tests.fakes.llm_backends import Backend, head, tcp_server
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure
from truthlens.llm.client import open_pool
from truthlens.llm.errors import AttemptError
from truthlens.llm.http import attempt
from truthlens.llm.http.attempt import post

NOW = 1_700_000_000.0
JSON = {"content-type": "application/json"}


class Bytes(httpx.AsyncByteStream):
    """A body in chunks that counts how many were taken."""

    def __init__(self, *chunks: bytes, repeat: int = 1) -> None:
        self._chunks = chunks * repeat
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            self.taken += 1
            yield chunk


async def posted(answer: httpx.Response | Exception, *, most_bytes: int = attempt.MOST_BYTES) -> bytes:
    async with open_pool(None, Backend(answer).transport) as http:
        url = httpx.URL("http://backend/v1")
        return await post(http, url, b"{}", {}, most_bytes=most_bytes, wall_clock=lambda: NOW)


async def failure(
    answer: httpx.Response | Exception, *, most_bytes: int = attempt.MOST_BYTES
) -> AttemptError:
    with pytest.raises(AttemptError) as caught:
        await posted(answer, most_bytes=most_bytes)
    return caught.value


async def test_a_json_answer_is_handed_over_as_it_is() -> None:
    kind = {"content-type": "application/vnd.api+json; charset=utf-8"}
    assert await posted(httpx.Response(200, content=b'{"a": 1}', headers=kind)) == b'{"a": 1}'


@pytest.mark.parametrize(
    ("status", "expected", "again"),
    [
        (429, CallFailure.RATE_LIMITED, True),
        (500, CallFailure.SERVER_ERROR, True),
        (502, CallFailure.SERVER_ERROR, True),
        (503, CallFailure.SERVER_ERROR, True),
        (504, CallFailure.SERVER_ERROR, True),
        (501, CallFailure.SERVER_ERROR, False),
        (408, CallFailure.CLIENT_ERROR, True),
        (400, CallFailure.CLIENT_ERROR, False),
        (401, CallFailure.CLIENT_ERROR, False),
        (404, CallFailure.CLIENT_ERROR, False),
        (302, CallFailure.CLIENT_ERROR, False),
    ],
)
async def test_a_status_says_what_failed_and_whether_to_try_again(
    status: int, expected: CallFailure, again: bool
) -> None:
    body = Bytes(b"secret", repeat=1000)
    error = await failure(httpx.Response(status, stream=body, headers={"location": "http://evil/"}))
    assert (error.failure, error.again) == (expected, again)
    assert str(error) == f"status {status}"
    # Of what was wrong with a request, the beginning is read.
    assert body.taken == (1000 if status in (400, 401, 404) else 0)


@pytest.mark.parametrize(
    ("error", "expected", "again"),
    [
        (httpx.ConnectError("secret"), CallFailure.CONNECTION, True),
        (httpx.ReadError("secret"), CallFailure.CONNECTION, True),
        (httpx.RemoteProtocolError("secret"), CallFailure.CONNECTION, True),
        (httpx.ConnectTimeout("secret"), CallFailure.CONNECTION, True),
        (httpx.ReadTimeout("secret"), CallFailure.TIMEOUT, False),
        (httpx.WriteTimeout("secret"), CallFailure.TIMEOUT, False),
        (RuntimeError("secret of a layer below"), CallFailure.CONNECTION, True),
    ],
)
async def test_what_fails_on_the_way_is_told_by_its_kind_alone(
    error: Exception, expected: CallFailure, again: bool
) -> None:
    raised = await failure(error)
    assert (raised.failure, raised.again) == (expected, again)
    assert "secret" not in str(raised)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 0.0),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, 0.0),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "9" * 400}, 0.0),
        ({"retry-after": "Mon, 99 Foo 99999 99:99:99 GMT"}, 0.0),
    ],
)
async def test_the_wait_that_a_backend_asks_for_is_read(headers: dict[str, str], expected: float) -> None:
    assert (await failure(httpx.Response(429, headers=headers))).least_wait_s == expected


@pytest.mark.parametrize(
    "kind", ["text/event-stream", "text/html; charset=utf-8", "application/octet-stream", ""]
)
async def test_what_is_not_json_by_its_head_is_refused_unread(kind: str) -> None:
    body = Bytes(b"data: {}\n\n", repeat=1000)
    error = await failure(httpx.Response(200, stream=body, headers={"content-type": kind}))
    assert (error.failure, error.again, body.taken) == (CallFailure.BAD_RESPONSE, False, 0)


async def test_an_answer_without_a_content_type_is_left_to_the_reader() -> None:
    assert await posted(httpx.Response(200, stream=Bytes(b"{}"))) == b"{}"


async def test_a_body_is_read_no_further_than_its_bound() -> None:
    body = Bytes(b" " * 300, repeat=1000)
    error = await failure(httpx.Response(200, stream=body, headers=JSON), most_bytes=1000)
    assert (error.failure, body.taken) == (CallFailure.BAD_RESPONSE, 4)
    assert await posted(httpx.Response(200, stream=Bytes(b" " * 1000), headers=JSON), most_bytes=1000)


async def test_a_body_that_is_announced_as_too_large_is_not_read() -> None:
    body = Bytes(b" ")
    headers = {**JSON, "content-length": str(attempt.MOST_BYTES + 1)}
    assert (
        await failure(httpx.Response(200, stream=body, headers=headers))
    ).failure is CallFailure.BAD_RESPONSE
    assert body.taken == 0


async def test_a_gzip_answer_is_inflated_and_a_bomb_is_not() -> None:
    headers = {**JSON, "content-encoding": "gzip"}
    assert await posted(httpx.Response(200, stream=Bytes(gzip.compress(b"{}")), headers=headers)) == b"{}"
    bomb = gzip.compress(bytes(4 * attempt.MOST_BYTES))
    error = await failure(httpx.Response(200, stream=Bytes(bomb), headers=headers))
    assert (error.failure, str(error)) == (
        CallFailure.BAD_RESPONSE,
        f"the answer is larger than {attempt.MOST_BYTES} bytes",
    )


async def test_what_one_chunk_of_gzip_becomes_is_bounded() -> None:
    """A bomb in one chunk costs about its bound in memory, also where it stands in the body of a refusal."""
    headers, bomb = {**JSON, "content-encoding": "gzip"}, gzip.compress(bytes(64 << 20))
    for status in (200, 400):
        tracemalloc.start()
        await failure(httpx.Response(status, stream=Bytes(bomb), headers=headers), most_bytes=1 << 20)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 16 << 20


async def test_what_follows_the_end_of_gzip_is_not_read() -> None:
    body = Bytes(gzip.compress(b"{}"), *[b"garbage"] * 1000)
    assert (
        await posted(httpx.Response(200, stream=body, headers={**JSON, "content-encoding": "gzip"})) == b"{}"
    )
    assert body.taken == 1


async def test_damaged_gzip_is_a_bad_response() -> None:
    headers = {**JSON, "content-encoding": "gzip"}
    error = await failure(httpx.Response(200, stream=Bytes(b"no gzip at all"), headers=headers))
    assert error.failure is CallFailure.BAD_RESPONSE


async def test_an_encoding_that_was_not_asked_for_is_a_bad_response() -> None:
    headers = {**JSON, "content-encoding": "br"}
    assert (
        await failure(httpx.Response(200, stream=Bytes(b"x"), headers=headers))
    ).failure is CallFailure.BAD_RESPONSE


async def test_cookies_are_not_kept() -> None:
    backend = Backend(
        httpx.Response(200, json={}, headers={"set-cookie": "session=1; Path=/"}),
        httpx.Response(200, json={}),
    )
    async with open_pool(None, backend.transport) as http:
        for _ in range(2):
            await post(http, httpx.URL("http://backend/v1"), b"{}", {})
    assert "cookie" not in backend.requests[1].headers


async def test_a_key_goes_before_a_user_name_in_the_address() -> None:
    backend = Backend(httpx.Response(200, json={}), httpx.Response(200, json={}))
    async with open_pool(None, backend.transport) as http:
        url = httpx.URL("http://user:word@backend/v1")
        await post(http, url, b"{}", {"authorization": b"Bearer k"})
        await post(http, url, b"{}", {})
    seen = [request.headers["authorization"].partition(" ")[0] for request in backend.requests]
    assert seen == ["Bearer", "Basic"]


async def over_socket(base: str) -> bytes:
    async with open_pool(base) as http, asyncio.timeout(20):
        return await post(http, httpx.URL(base + "/v1"), b"{}", {})


async def test_a_connection_that_is_dropped_before_the_head_is_a_connection_failure() -> None:
    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with tcp_server(drop) as base:
        with pytest.raises(CallError) as caught:
            await over_socket(base)
    assert caught.value.failure is CallFailure.CONNECTION


async def test_a_connection_that_is_dropped_within_the_body_is_a_connection_failure() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head("content-type: application/json", "content-length: 1000") + b'{"choices"')
        await writer.drain()

    async with tcp_server(half) as base:
        with pytest.raises(CallError) as caught:
            await over_socket(base)
    assert caught.value.failure is CallFailure.CONNECTION


async def test_nobody_there_is_a_connection_failure() -> None:
    async with tcp_server(lambda _reader, _writer: asyncio.sleep(0)) as base:
        pass
    with pytest.raises(CallError) as caught:
        await over_socket(base)
    assert caught.value.failure is CallFailure.CONNECTION


async def test_a_body_that_trickles_in_is_put_together() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head("content-type: application/json", "connection: close"))
        for byte in json.dumps({"a": "b" * 20}).encode():
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)

    async with tcp_server(trickle) as base:
        assert json.loads(await over_socket(base)) == {"a": "b" * 20}


async def test_an_endless_stream_is_refused_at_its_head_and_the_connection_closed() -> None:
    closed = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head("content-type: text/event-stream", "transfer-encoding: chunked"))
        try:
            while not reader.at_eof():
                writer.write(b"8\r\ndata: x\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.001)
        finally:
            closed.set()

    async with tcp_server(endless) as base, open_pool(base) as http, asyncio.timeout(20):
        with pytest.raises(CallError) as caught:
            await post(http, httpx.URL(base + "/v1"), b"{}", {})
        await closed.wait()
    assert caught.value.failure is CallFailure.BAD_RESPONSE


@pytest.mark.parametrize("begun", [False, True])
async def test_cancellation_closes_the_connection(begun: bool) -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if begun:
            writer.write(head("content-type: application/json", "content-length: 1000") + b"{")
            await writer.drain()
        asked.set()
        assert await reader.read() == b""
        closed.set()

    async with tcp_server(hang) as base, open_pool(base) as http, asyncio.timeout(20):
        task = asyncio.create_task(post(http, httpx.URL(base + "/v1"), b"{}", {}))
        await asked.wait()
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await closed.wait()


async def test_a_proxy_of_the_environment_is_not_used_for_the_upstream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head("content-type: application/json", "content-length: 2") + b"{}")

    async with tcp_server(answer) as base:
        assert await over_socket(base) == b"{}"

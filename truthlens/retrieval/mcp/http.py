"""Speak with an MCP server over streamable HTTP, by the SDK's transport and a bounded client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.mcp.allowance import Allowance, CheckedStream

_NAMED_STATUSES: dict[int, SearchResult] = {
    HTTPStatus.UNAUTHORIZED: SearchResult.REFUSED,
    HTTPStatus.FORBIDDEN: SearchResult.REFUSED,
    HTTPStatus.TOO_MANY_REQUESTS: SearchResult.OVERLOADED,
}


@asynccontextmanager
async def http_transport(
    url: str, *, key: str | None, allowance: Allowance
) -> AsyncGenerator[tuple[Any, Any]]:
    """Give the SDK's streams of messages from and to the server at ``url``.

    Redirects are followed within the origin of ``url`` alone; no cookie is kept. ``key`` is sent as a bearer
    token.
    """
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Counted(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._stream:
                if not allowance.take(octets=len(chunk)):
                    raise httpx2.ReadError("more than a call may bring")
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def check(response: httpx2.Response) -> None:
        if not allowance.take(messages=1):
            raise httpx2.ReadError("more than a call may bring")
        if (named := _NAMED_STATUSES.get(response.status_code)) is not None:
            allowance.fail(named, f"the server answered with status {response.status_code}")
            raise SourceError(named)
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            # A few bytes could become any number.
            allowance.fail(SearchResult.BAD_RESPONSE, "the server compressed its answer though not asked to")
            raise SourceError(SearchResult.BAD_RESPONSE)
        response.stream = Counted(response.stream)

    headers = {"accept-encoding": "identity"} | (
        {"authorization": f"Bearer {key}"} if key is not None else {}
    )
    async with (
        httpx2.AsyncClient(
            headers=headers,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=httpx2.Timeout(connect=5.0, read=300.0, write=30.0, pool=5.0),
            event_hooks={"response": [check]},
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=None) as (read, write),
    ):
        yield CheckedStream(read.receive, read.aclose, allowance), write

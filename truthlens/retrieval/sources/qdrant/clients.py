"""Call Qdrant: a server over HTTP, with bounded answers, or local mode on a thread."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import httpx
import pydantic
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.sources.qdrant import QdrantOptions
from truthlens.retrieval.vector_search import BlockingCalls

MOST_BYTES = 16 * 1024 * 1024
"""Of one answer of a server."""

_STORAGE = "meta.json"


class QdrantCaller(Protocol):
    """Calls methods that ``QdrantClient`` and ``AsyncQdrantClient`` have in common."""

    async def call(self, method: str, **arguments: Any) -> Any:
        """Return what the method returns."""

    async def aclose(self) -> None:
        """Give back connections, files and threads."""


class ServerClient:
    """A server; ``key`` is sent as ``api-key``."""

    def __init__(self, options: QdrantOptions, key: str | None) -> None:
        headers = {"accept-encoding": "identity"}
        if key is not None:
            # As `api_key`, the library would write a warning wherever a server is reached by http.
            headers["api-key"] = key
        self._client = AsyncQdrantClient(
            url=options.url,
            headers=headers,
            timeout=math.ceil(options.timeout_s),
            check_compatibility=False,
            limits=httpx.Limits(max_connections=options.max_concurrency),
            event_hooks={"response": [_bound]},
        )

    async def call(self, method: str, **arguments: Any) -> Any:
        """Return what the method of ``AsyncQdrantClient`` returns."""
        return await getattr(self._client, method)(**arguments)

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.close()


class FolderClient:
    """Local mode. It is opened by the first search, and everything runs on one thread."""

    def __init__(self, options: QdrantOptions, folder: Path) -> None:
        self._folder = folder / (options.path or "")
        self._thread = BlockingCalls("truthlens-qdrant", threads=1, waiting=options.max_concurrency)
        self._client: QdrantClient | None = None

    async def call(self, method: str, **arguments: Any) -> Any:
        """Return what the method of ``QdrantClient`` returns."""
        return await self._thread.run(lambda: getattr(self._opened(), method)(**arguments))

    async def aclose(self) -> None:
        """Close the folder, and end the thread."""
        await self._thread.aclose(self._close)

    def _opened(self) -> QdrantClient:
        if self._client is None:
            if not (self._folder / _STORAGE).is_file():  # the library would make an empty one
                raise SourceError(
                    SearchResult.UNAVAILABLE, "the folder `path` holds no collections of Qdrant"
                )
            try:
                self._client = QdrantClient(path=str(self._folder))
            except RuntimeError:
                raise SourceError(
                    SearchResult.UNAVAILABLE, "another process or source has the folder `path` open"
                ) from None
        return self._client

    def _close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


async def _bound(response: httpx.Response) -> None:
    """Let an answer end that is too long, before it is in memory.

    Raises:
        SourceError: it is compressed, which was not asked for and has no bound.
    """
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise SourceError(SearchResult.BAD_RESPONSE, "a content-encoding that was not asked for")
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx.AsyncByteStream):
    """A body of at most ``MOST_BYTES``; a longer one raises ``SourceError``."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._stream:
            read += len(chunk)
            if read > MOST_BYTES:
                raise SourceError(SearchResult.BAD_RESPONSE, f"the answer is larger than {MOST_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def failure_of(error: Exception) -> SourceError:
    """Return a failure of the library as one of the search, without its message."""
    if isinstance(error, ResponseHandlingException):
        return _failure_of_transport(error.source)
    if isinstance(error, QdrantException):  # raised for this status alone
        return SourceError(SearchResult.OVERLOADED, "Qdrant answered with status 429")
    if isinstance(error, UnexpectedResponse):
        status = error.status_code or 0
        result = {401: SearchResult.REFUSED, 403: SearchResult.REFUSED, 429: SearchResult.OVERLOADED}.get(
            status, SearchResult.UNAVAILABLE if status >= 500 else SearchResult.BAD_RESPONSE
        )
        return SourceError(result, f"Qdrant answered with status {status}")
    if isinstance(error, ValueError | TypeError | KeyError | AssertionError | RecursionError):
        # Local mode says so of a collection or a vector that is not there; a server's answer is no JSON of Qdrant.
        return SourceError(
            SearchResult.BAD_RESPONSE,
            f"Qdrant cannot run the query ({type(error).__name__}); see `collection`",
        )
    return SourceError(SearchResult.UNAVAILABLE, type(error).__name__)


def _failure_of_transport(error: Exception) -> SourceError:
    if isinstance(error, SourceError):
        return error
    if isinstance(error, httpx.PoolTimeout):
        return SourceError(SearchResult.OVERLOADED, "all connections to Qdrant are in use")
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return SourceError(SearchResult.TIMEOUT, "Qdrant did not answer in time")
    if isinstance(error, pydantic.ValidationError | ValueError):
        return SourceError(SearchResult.BAD_RESPONSE, "the answer is not one of Qdrant")
    return SourceError(SearchResult.UNAVAILABLE, type(error).__name__)

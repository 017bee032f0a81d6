"""Make vectors of texts, by the bundled sentence model or by a server with OpenAI's ``/embeddings``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Protocol

import httpx
import numpy as np
import pydantic
from numpy.typing import NDArray
from pydantic import Field

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure
from truthlens.core.records.retrieval import SearchResult
from truthlens.core.registry import SourceContext
from truthlens.llm.client import open_pool
from truthlens.llm.http.attempt import post
from truthlens.retrieval.interfaces import SourceError

MOST_CHARS = 8_000
"""Of a longer text so many characters are sent to a server."""

MOST_TEXTS = 64
"""Of one request; more texts take several requests, one after another."""

# Larger answers are read on a thread, so that one does not hold up the event loop.
_INLINE_BYTES = 64 << 10
_RESULTS = {
    CallFailure.RATE_LIMITED: SearchResult.OVERLOADED,
    CallFailure.TIMEOUT: SearchResult.TIMEOUT,
    CallFailure.BAD_RESPONSE: SearchResult.BAD_RESPONSE,
    CallFailure.CLIENT_ERROR: SearchResult.REFUSED,
}

EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


class EmbeddingOptions(pydantic.BaseModel):
    """The server that makes vectors; the key ``embeddings`` of a source."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    base_url: str = Field(
        max_length=2048,
        description="Where the API begins; /embeddings is put behind it. http(s), no user name.",
    )
    model: str = Field(min_length=1, max_length=256, description="The model's name there.")
    api_key_env: EnvironmentName | None = Field(
        default=None, description="The environment variable that holds the key; without it none is sent."
    )
    dimensions: int | None = Field(
        default=None,
        ge=1,
        le=16_000,
        description="How long vectors are to be, for models that can shorten them.",
    )

    @pydantic.field_validator("base_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        return http_url(value)


class Embedder(Protocol):
    """Makes vectors of texts."""

    async def embed(self, texts: Sequence[str], *, deadline: Deadline) -> NDArray[np.float32]:
        """Return vectors of length 1, shape (texts, dimension), in the order of ``texts`` (one or more).

        Raises:
            SourceError: there are none, or not in time.
        """

    async def aclose(self) -> None:
        """Give back connections."""


def open_embedder(options: EmbeddingOptions | None, context: SourceContext) -> Embedder:
    """Return what makes the vectors of a source.

    Args:
        options: of the server; ``None`` for the bundled model.
        context: of the source.

    Raises:
        ValueError: the key is not in the environment.
    """
    if options is None:
        return BundledEmbedder(context.embed)
    return ServedEmbedder(options, key=key_in(context.environ, options.api_key_env), http=open_pool(None))


def http_url(value: str) -> str:
    """Return a URL that requests may be sent to, without a slash at its end.

    Raises:
        ValueError: it is none, or it holds a user name, a query or a fragment; the message does not quote it.
    """
    try:
        url = httpx.URL(value)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise ValueError("expected http(s)://host[:port][/path], without a user name, a query or a fragment")
    return value.rstrip("/")


def key_in(environ: Mapping[str, str], variable: str | None) -> str | None:
    """Return the key in an environment variable; ``None`` where no variable is named.

    Raises:
        ValueError: the variable holds no key.
    """
    if variable is None:
        return None
    key = environ.get(variable, "").strip()  # secrets mounted as files end in a line break
    if not key or not key.isascii() or not key.isprintable():
        raise ValueError(f"the environment variable {variable} holds no key; set it where the server runs")
    return key


class BundledEmbedder:
    """The bundled sentence model, by the function that ``SourceContext.embed`` is."""

    def __init__(self, embed: Callable[[Sequence[str]], Awaitable[Any]]) -> None:
        self._embed = embed

    async def embed(self, texts: Sequence[str], *, deadline: Deadline) -> NDArray[np.float32]:
        """Return the vectors, as ``Embedder.embed`` does; the model cuts long texts by itself."""
        try:
            async with asyncio.timeout(deadline.remaining_s):
                return np.asarray(await self._embed(texts), dtype=np.float32)
        except TimeoutError:
            raise SourceError(SearchResult.TIMEOUT, "the sentence model gave no vectors in time") from None
        except Exception as error:  # noqa: BLE001 - whatever the model raises costs this search alone
            raise SourceError(
                SearchResult.UNAVAILABLE, f"the sentence model failed ({type(error).__name__})"
            ) from None

    async def aclose(self) -> None:
        """Do nothing: the model is the process's."""


class ServedEmbedder:
    """A server with OpenAI's ``POST /embeddings``.

    Args:
        options: its address and model.
        key: sent as ``Authorization: Bearer``.
        http: carries requests; closed with this object.
    """

    def __init__(self, options: EmbeddingOptions, *, key: str | None, http: httpx.AsyncClient) -> None:
        self._options, self._http = options, http
        self._url = httpx.URL(f"{options.base_url}/embeddings")
        self._headers = {
            "content-type": b"application/json",
            "accept": b"application/json",
            "accept-encoding": b"identity",
        }
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}".encode("ascii")

    async def embed(self, texts: Sequence[str], *, deadline: Deadline) -> NDArray[np.float32]:
        """Return the vectors, as ``Embedder.embed`` does."""
        parts = [texts[start : start + MOST_TEXTS] for start in range(0, len(texts), MOST_TEXTS)]
        try:
            async with asyncio.timeout(deadline.remaining_s):
                found = [await self._request(part) for part in parts]
        except TimeoutError:
            raise SourceError(
                SearchResult.TIMEOUT, "the server of embeddings did not answer in time"
            ) from None
        if len({each.shape[1] for each in found}) != 1:
            raise _bad("vectors of several lengths")
        return np.concatenate(found)

    async def aclose(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def _request(self, texts: Sequence[str]) -> NDArray[np.float32]:
        options = self._options
        wanted: dict[str, object] = {
            "model": options.model,
            "input": [text[:MOST_CHARS] for text in texts],
            "encoding_format": "float",
        }
        if options.dimensions is not None:
            wanted["dimensions"] = options.dimensions
        try:
            # ASCII alone: a client's text may hold lone surrogates, which no UTF-8 can.
            body = await post(self._http, self._url, json.dumps(wanted).encode("ascii"), self._headers)
        except CallError as error:
            result = _RESULTS.get(error.failure, SearchResult.UNAVAILABLE)
            raise SourceError(result, f"the server of embeddings: {error}") from None
        read = partial(_vectors, body, len(texts), options.dimensions)
        return read() if len(body) <= _INLINE_BYTES else await asyncio.to_thread(read)


class _Item(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, allow_inf_nan=False)

    index: int
    embedding: list[float] = Field(min_length=1)


class _EmbeddingsReply(pydantic.BaseModel):
    data: list[_Item]


def _vectors(body: bytes, count: int, dimensions: int | None) -> NDArray[np.float32]:
    """Return the vectors of a reply, shape (count, dimension).

    Raises:
        SourceError: it is not the reply that was asked for.
    """
    try:
        items = sorted(_EmbeddingsReply.model_validate_json(body).data, key=lambda item: item.index)
    except pydantic.ValidationError:
        raise _bad("no JSON of vectors with finite numbers") from None  # the error quotes the reply
    if [item.index for item in items] != list(range(count)):
        raise _bad(f"not one vector for each of {count} texts")
    lengths = {len(item.embedding) for item in items}
    if len(lengths) != 1:
        raise _bad("vectors of several lengths")
    if dimensions is not None and lengths != {dimensions}:
        raise _bad(f"vectors of {lengths.pop()} dimensions, where {dimensions} were asked for")
    rows = np.array([item.embedding for item in items], dtype=np.float64)
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.all(np.isfinite(norms) & (norms > 0.0)):
        raise _bad("a vector without a direction")
    return np.asarray(rows / norms, dtype=np.float32)


def _bad(what: str) -> SourceError:
    return SourceError(SearchResult.BAD_RESPONSE, f"the server of embeddings gave {what}")

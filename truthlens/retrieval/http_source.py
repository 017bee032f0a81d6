"""Ask sources over HTTP, and make passages of what they answer without trusting it.

One client a source. It posts only, so that no question stands in an address and with it in the access logs
of servers; it follows no redirect, verifies TLS (``SSL_CERT_FILE`` names further authorities), and a key
goes to the source's own address alone.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Self, TypeVar
from urllib.parse import urlencode

import pydantic

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.registry import SourceContext, SourceOptions
from truthlens.llm.client import open_pool
from truthlens.llm.errors import AttemptError
from truthlens.llm.http.attempt import post
from truthlens.llm.http.request_builder import FIXED_HEADERS, checked_url, credentials, key_in
from truthlens.llm.http.response_parser import json_object
from truthlens.llm.retries import Limiter
from truthlens.retrieval.interfaces import SourceError
from truthlens.text.sentences import sentences

MOST_BYTES = 4 << 20
"""A response may be as long, decoded."""

MOST_TEXT_CHARS = 8_000
"""A passage is cut to so many characters."""

_MOST_TITLE_CHARS = 500
_LONGEST_ID = 1_000
# Larger answers are read on a thread, so that one does not hold up the event loop.
_INLINE_BYTES = 64 << 10
_WHOLE_WORDS = re.compile(r".*(?=\s)", re.DOTALL)
_REFUSING = frozenset({401, 402, 403})

_T = TypeVar("_T")
Hit = dict[str, object]
"""One hit as a server gave it: a JSON object of which nothing is known."""


class HttpOptions(SourceOptions):
    """Options of every source that is reached over HTTP."""

    base_url: str = pydantic.Field(
        max_length=2_000, description="Address of the server, http:// or https://, with any prefix."
    )
    api_key_env: str | None = pydantic.Field(
        default=None, min_length=1, description="Environment variable with the key that goes to this source."
    )

    @pydantic.field_validator("base_url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        try:
            url = checked_url(value)
        except CallError as error:
            raise ValueError(str(error)) from None
        if url.userinfo or url.query or url.fragment:
            raise ValueError("the address has a user, a query or a fragment; a key stands in api_key_env")
        return value.rstrip("/")

    @pydantic.model_validator(mode="after")
    def _one_authorization(self) -> Self:
        if self.api_key_env is not None and self.auth == "passthrough":
            raise ValueError(
                "api_key_env and `auth: passthrough` exclude each other: a request has one Authorization"
            )
        return self


class HttpSource:
    """A source that is asked over HTTP by its ``_client``."""

    revision = ""
    _client: SourceClient

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()


class SourceClient:
    """Posts the searches of one source.

    Args:
        context: what the source is built from; its options are ``HttpOptions``.
        scheme: how the key stands in the Authorization header: ``Bearer``, ``ApiKey``, or ``Basic`` (then the
            key is ``user:password``).
        headers: sent along; lower-case names.

    Raises:
        ValueError: the environment variable holds no key that could be sent.
    """

    def __init__(
        self, context: SourceContext, *, scheme: str = "Bearer", headers: Mapping[str, bytes] | None = None
    ) -> None:
        options: HttpOptions = context.options
        self._base_url = options.base_url
        self._passes_on = options.auth == "passthrough"
        self._headers = {**FIXED_HEADERS, **(headers or {})}
        if options.api_key_env is not None:
            key = _key(context, options.api_key_env, scheme)
            self._headers["authorization"] = scheme.encode("ascii") + b" " + key
        # A connection serves one search, so that its bound bounds the connections, too.
        self._places = Limiter(options.max_concurrency)
        self._http = open_pool(None)

    async def ask(
        self,
        path: str,
        fields: Mapping[str, object],
        read: Callable[[Hit], _T],
        *,
        search: Search,
        deadline: Deadline,
        form: bool = False,
    ) -> _T:
        """Post ``fields`` and return what ``read`` makes of the JSON object that is answered.

        A connection that fails is tried once more.

        Args:
            path: below the base URL, with its query; escaped.
            fields: JSON, or with ``form`` the fields of a form.
            read: gets the answer, on another thread where that is long.
            search: whose Authorization header is passed on, if the options say so.
            deadline: ends it.
            form: whether the server takes a form in place of JSON.

        Raises:
            SourceError: it failed, or ``read`` raised it.
        """
        kind = b"application/x-www-form-urlencoded" if form else b"application/json"
        content = (urlencode(fields) if form else json.dumps(fields, allow_nan=False)).encode("ascii")
        headers = {**self._headers, "content-type": kind}
        try:
            if self._passes_on and search.authorization is not None:
                headers["authorization"] = credentials(search.authorization)
            send = partial(
                post, self._http, checked_url(self._base_url + path), content, headers, most_bytes=MOST_BYTES
            )
            async with self._places.slot(deadline.remaining_s), asyncio.timeout(deadline.remaining_s):
                try:
                    body = await send()
                except AttemptError as error:
                    if error.failure is not CallFailure.CONNECTION:
                        raise
                    body = await send()
                if len(body) > _INLINE_BYTES:
                    return await asyncio.to_thread(lambda: read(json_object(body)))
                return read(json_object(body))
        except TimeoutError:
            raise SourceError(SearchResult.TIMEOUT) from None
        except CallError as error:
            raise SourceError(_result_of(error), str(error)) from None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()


def _key(context: SourceContext, variable: str, scheme: str) -> bytes:
    try:
        key = key_in(context.environ, variable)
    except CallError as error:
        raise ValueError(f"the source {context.name!r} cannot be used: {error}") from None
    if scheme != "Basic":
        return key
    if b":" not in key:
        raise ValueError(
            f"the source {context.name!r} cannot be used: "
            f"environment variable {variable} holds no user:password"
        )
    return base64.b64encode(key)


def _result_of(error: CallError) -> SearchResult:
    cause = error.cause if isinstance(error, AttemptError) else None
    match error.failure:
        case CallFailure.BUSY | CallFailure.RATE_LIMITED:
            return SearchResult.OVERLOADED
        case CallFailure.CONNECTION | CallFailure.SERVER_ERROR:
            return SearchResult.UNAVAILABLE
        case CallFailure.TIMEOUT:
            return SearchResult.TIMEOUT
        case CallFailure.NO_KEY:
            return SearchResult.REFUSED
    return SearchResult.REFUSED if cause and cause.status in _REFUSING else SearchResult.BAD_RESPONSE


def hits_in(value: object) -> list[Hit]:
    """Return ``value``, where it is a list of JSON objects.

    Raises:
        SourceError: ``bad-response``: it is something else.
    """
    if not isinstance(value, list) or not all(isinstance(hit, dict) for hit in value):
        raise SourceError(SearchResult.BAD_RESPONSE, "the answer has no list of hits")
    return value


def passages_of(
    hits: Sequence[Hit], read: Callable[[Hit], FoundPassage | None], k: int
) -> tuple[FoundPassage, ...]:
    """Return the first ``k`` passages that ``read`` finds, each id once; hits without text have none.

    Raises:
        SourceError: ``bad-response``: there are hits, and not one has text.
    """
    found: dict[str, FoundPassage] = {}
    for hit in hits:
        read_hit = read(hit)
        if read_hit is not None:
            found.setdefault(read_hit.id, read_hit)
        if len(found) >= k:
            break
    if hits and not found:
        raise SourceError(
            SearchResult.BAD_RESPONSE, f"none of {len(hits)} hits has text where it was expected"
        )
    return tuple(found.values())


def passage(
    text: object,
    *,
    hit_id: object = "",
    title: object = "",
    parent_id: object = "",
    score: object = None,
) -> FoundPassage | None:
    """Return a passage of a hit's members, whatever they are; ``None`` where ``text`` holds none.

    Without an id that can be used, it is named by its text.
    """
    kept = clean(text, MOST_TEXT_CHARS)
    if not kept:
        return None
    return FoundPassage(
        text=kept,
        id=_id(hit_id) or digest(kept),
        title=" ".join(clean(title, _MOST_TITLE_CHARS).split()),
        parent_id=_id(parent_id),
        score=number(score),
    )


def clean(text: object, most_chars: int) -> str:
    """Return ``text`` stripped, cut where a sentence or a word ends; ``""`` where it is no text.

    Half surrogates, which JSON can hold and UTF-8 cannot, become question marks.
    """
    if not isinstance(text, str):
        return ""
    text = text.strip()
    head = text[:most_chars].encode("utf-8", "replace").decode("utf-8")
    if len(text) <= most_chars:
        return head
    # The last sentence is probably cut short; without one before it the last word is.
    words = _WHOLE_WORDS.match(text, 0, most_chars + 1)
    for end in (sentences(head)[-1][0], words.end() if words else 0):
        if end > most_chars // 2:
            return head[:end].rstrip()
    return head


def digest(text: str) -> str:
    """Return a short name for ``text``, the same for the same text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def number(value: object) -> float | None:
    """Return ``value`` as a finite number; ``None`` if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        score = float(value)
    except OverflowError:
        return None
    return score if math.isfinite(score) else None


def _id(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and len(value) > _LONGEST_ID:
        return digest(value)
    return clean(value, _LONGEST_ID)

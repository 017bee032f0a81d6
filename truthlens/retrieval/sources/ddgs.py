"""Search the web by the library ``ddgs`` (extra ``web``), which asks public engines as a browser would.

A search runs on a thread that cannot be stopped: the library has timeouts of its own, and a thread counts
until it ends. The library holds whole pages in memory, whatever their length. It does not tell nothing
found from engines that refuse, so that a search without hits is a failure.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import pydantic

from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.registry import SourceContext, SourceOptions, SourceType
from truthlens.retrieval.http_source import Hit, clean, hits_in, passage, passages_of
from truthlens.retrieval.interfaces import SourceError

_MOST_QUERY_CHARS = 400


class DdgsOptions(SourceOptions):
    """Options of the search of the web. It cannot filter, and no client's header goes to public engines."""

    auth: Literal["none"] = pydantic.Field(default="none", description="No header of a client goes out.")
    region: str = pydantic.Field(
        default="us-en", pattern="^[a-z]{2}-[a-z]{2,3}$", description="Country and language, such as de-de."
    )
    safesearch: Literal["on", "moderate", "off"] = pydantic.Field(
        default="moderate", description="How strictly engines leave out pages for adults."
    )
    engines: str = pydantic.Field(
        default="auto",
        pattern="^[a-z_]+(,[a-z_]+)*$",
        description="Engines that are asked, parted by commas, such as duckduckgo,wikipedia; auto: all.",
    )


class DdgsSource:
    """The web, by the library ``ddgs``.

    Args:
        options: of the policy.
        client: makes a client of the library with a ``timeout`` in whole seconds.
    """

    revision = ""

    def __init__(self, options: DdgsOptions, client: Callable[..., Any]) -> None:
        self._options = options
        self._client = client
        self._threads = ThreadPoolExecutor(options.max_concurrency, thread_name_prefix="truthlens-ddgs")
        self._places = threading.BoundedSemaphore(options.max_concurrency)

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        """Return at most ``k`` passages, what engines quote of pages; errors as in ``EvidenceSource``."""
        if search.filter:
            raise SourceError(SearchResult.REFUSED, "this source cannot filter")
        if not self._places.acquire(blocking=False):
            raise SourceError(SearchResult.OVERLOADED)
        future = self._threads.submit(self._ask, search.text, k, deadline)
        future.add_done_callback(lambda _: self._places.release())
        try:
            async with asyncio.timeout(deadline.remaining_s):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise SourceError(SearchResult.TIMEOUT) from None

    async def aclose(self) -> None:
        """Give threads back as their searches end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, text: str, k: int, deadline: Deadline) -> tuple[FoundPassage, ...]:
        client = self._client(timeout=max(1, math.ceil(deadline.remaining_s)))
        try:
            hits = client.text(
                clean(text, _MOST_QUERY_CHARS),
                region=self._options.region,
                safesearch=self._options.safesearch,
                backend=self._options.engines,
                max_results=k,
            )
        except Exception as error:  # noqa: BLE001 - of any library below; their texts may quote the query
            name = type(error).__name__
            timed_out = name == "TimeoutException"
            raise SourceError(SearchResult.TIMEOUT if timed_out else SearchResult.UNAVAILABLE, name) from None
        return passages_of(hits_in(hits), _passage, k)


def _passage(hit: Hit) -> FoundPassage | None:
    return passage(hit.get("body"), hit_id=hit.get("href"), title=hit.get("title"))


def _build(context: SourceContext) -> DdgsSource:
    """Return the source.

    Raises:
        ValueError: the library is not installed.
    """
    try:
        from ddgs import DDGS
    except ImportError:
        raise ValueError(
            f"the source {context.name!r} needs the library ddgs: pip install 'truthlens[web]'"
        ) from None
    return DdgsSource(context.options, DDGS)


SOURCE = SourceType("ddgs", _build, DdgsOptions, tool=ToolName.INTERNET_SEARCH)

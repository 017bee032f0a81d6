"""Search the web, or what else a company's SearXNG reaches: ``POST {base_url}/search`` with ``format=json``.

SearXNG takes GET and POST alike; a form keeps the question out of the access logs of it and of proxies. The
server has to list ``json`` under ``search.formats`` (else it answers 403), and its limiter has to let this
machine pass (else 429).

Source: docs.searxng.org, "Search API" and "Search syntax".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pydantic

from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.registry import SourceContext, SourceType
from truthlens.retrieval.http_source import (
    Hit,
    HttpOptions,
    HttpSource,
    SourceClient,
    clean,
    hits_in,
    passage,
    passages_of,
)
from truthlens.retrieval.interfaces import SourceError

_MOST_QUERY_CHARS = 400
# Before a word they choose engines and languages, set a timeout, or send the client elsewhere.
_COMMANDS = "!:<?"


class SearxngOptions(HttpOptions):
    """Options of a SearXNG server. It cannot filter."""

    engines: str = pydantic.Field(
        default="",
        max_length=500,
        description="Engines that are asked, parted by commas; none: the server's.",
    )
    language: str = pydantic.Field(
        default="", max_length=20, description="Language of the results, such as de; none: the server's."
    )


class SearxngSource(HttpSource):
    """A SearXNG server.

    Args:
        context: what it is built from.

    Raises:
        ValueError: its key is missing.
    """

    def __init__(self, context: SourceContext) -> None:
        options: SearxngOptions = context.options
        self._client = SourceClient(context)
        self._chosen = {"engines": options.engines, "language": options.language}

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        """Return at most ``k`` passages, what engines quote of pages; errors as in ``EvidenceSource``."""
        if search.filter:
            raise SourceError(SearchResult.REFUSED, "this source cannot filter")
        words = (word.lstrip(_COMMANDS) for word in clean(search.text, _MOST_QUERY_CHARS).split())
        fields = {"q": " ".join(word for word in words if word), "format": "json"}
        fields |= {name: value for name, value in self._chosen.items() if value}
        read = partial(_read, k=k)
        return await self._client.ask("/search", fields, read, search=search, deadline=deadline, form=True)


def _read(content: Hit, *, k: int) -> tuple[FoundPassage, ...]:
    hits = hits_in(content.get("results"))
    if not hits and content.get("unresponsive_engines"):
        raise SourceError(SearchResult.UNAVAILABLE, "no engine found anything, and some did not answer")
    return passages_of(hits, _passage, k)


def _passage(hit: Hit) -> FoundPassage | None:
    return passage(hit.get("content"), hit_id=hit.get("url"), title=hit.get("title"), score=hit.get("score"))


SOURCE = SourceType(
    "searxng", SearxngSource, SearxngOptions, passes_authorization=True, tool=ToolName.INTERNET_SEARCH
)

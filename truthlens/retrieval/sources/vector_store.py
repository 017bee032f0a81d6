"""Search a vector store by OpenAI's API: ``POST {base_url}/vector_stores/{store_id}/search``.

OpenAI, Llama Stack, LiteLLM (for some ten kinds of stores behind it) and semantic-router speak it. A filter
is sent as OpenAI has it, and the hits are compared with it once more, for not every one of these servers
applies it.

Source: openai/openai-openapi, ``VectorStoreSearchRequest`` and ``VectorStoreSearchResultsPage``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import quote

import pydantic

from truthlens.core.deadline import Deadline
from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.records.retrieval import FoundPassage, Search
from truthlens.core.registry import SourceContext, SourceType
from truthlens.retrieval.filters import check_hit
from truthlens.retrieval.http_source import (
    MOST_TEXT_CHARS,
    Hit,
    HttpOptions,
    HttpSource,
    SourceClient,
    clean,
    digest,
    hits_in,
    number,
    passage,
    passages_of,
)

_MOST_QUERY_CHARS = 2_000
_MOST_RESULTS = 50  # the API's own bound


class VectorStoreOptions(HttpOptions):
    """Options of a vector store; ``base_url`` ends before ``/vector_stores``."""

    store_id: str = pydantic.Field(min_length=1, max_length=512, description="Id of the vector store.")
    score_threshold: float | None = pydantic.Field(
        default=None, ge=0, le=1, allow_inf_nan=False, description="Hits with a lower score are left out."
    )
    rewrite_query: bool = pydantic.Field(
        default=False, description="Whether the server may reword the question before it searches."
    )


class VectorStoreSource(HttpSource):
    """A vector store behind OpenAI's API.

    Args:
        context: what it is built from.

    Raises:
        ValueError: its key is missing.
    """

    def __init__(self, context: SourceContext) -> None:
        self._options: VectorStoreOptions = context.options
        # OpenAI's own clients say so for all of its vector stores.
        self._client = SourceClient(context, headers={"openai-beta": b"assistants=v2"})

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        """Return at most ``k`` passages, and at most 50; errors are those of ``EvidenceSource.search``."""
        threshold = self._options.score_threshold
        fields: dict[str, object] = {
            "query": clean(search.text, _MOST_QUERY_CHARS),
            "max_num_results": min(k, _MOST_RESULTS),
            "rewrite_query": self._options.rewrite_query,
        }
        if threshold is not None:
            fields["ranking_options"] = {"score_threshold": threshold}
        if search.filter:
            fields["filters"] = _filters(search.filter)
        path = f"/vector_stores/{quote(self._options.store_id, safe='')}/search"
        read = partial(self._read, search=search, k=k)
        return await self._client.ask(path, fields, read, search=search, deadline=deadline)

    def _read(self, content: Hit, *, search: Search, k: int) -> tuple[FoundPassage, ...]:
        hits = hits_in(content.get("data"))
        for hit in hits:
            check_hit(search.filter, partial(_attribute, hit))
        least = self._options.score_threshold
        if least is not None:
            hits = [hit for hit in hits if (score := number(hit.get("score"))) is None or score >= least]
        return passages_of(hits, _passage, k)


def _filters(wanted: Mapping[str, str]) -> dict[str, object]:
    filters: list[dict[str, object]] = [
        {"type": "eq", "key": key, "value": value} for key, value in wanted.items()
    ]
    return filters[0] if len(filters) == 1 else {"type": "and", "filters": filters}


def _attribute(hit: Hit, field: str) -> tuple[object, ...]:
    attributes = hit.get("attributes")
    return (attributes.get(field),) if isinstance(attributes, dict) else ()


def _passage(hit: Hit) -> FoundPassage | None:
    content, file_id = hit.get("content"), hit.get("file_id")
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    text = clean("\n".join(each for each in texts if isinstance(each, str)), MOST_TEXT_CHARS)
    # A file has many passages, and the API names none of them: the text does.
    own = f"{file_id}#{digest(text)}" if isinstance(file_id, str) and file_id else ""
    return passage(text, hit_id=own, title=hit.get("filename"), parent_id=file_id, score=hit.get("score"))


SOURCE = SourceType(
    "vector_store",
    VectorStoreSource,
    VectorStoreOptions,
    filters=True,
    passes_authorization=True,
    tool=ToolName.VECTOR_SEARCH,
)

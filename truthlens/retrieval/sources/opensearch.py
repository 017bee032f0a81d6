"""Search an index of OpenSearch or Elasticsearch by words: ``POST {base_url}/{index}/_search``.

A partial answer (a shard failed, or its time was over) is a failure: what it lacks may be what was asked
for. For the same reason ``terminate_after`` is not sent; ``timeout`` bounds the search on the server. A
filter is a ``term`` of each field, and the server is asked for the doc values of these fields: it refuses
that for a field that is cut into words, in which one tenant's name would match another's, and every hit is
compared with them.

It was tested with requests and answers as the two servers' documentation has them, and not with a server.

Source: docs.opensearch.org and elastic.co, "Search API", "Multi-match query", "Term query", "Retrieve
selected fields".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal
from urllib.parse import quote

import pydantic

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.core.registry import SourceContext, SourceType
from truthlens.retrieval.filters import check_hit
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

# Words times fields must stay below the server's bound on clauses, 1,024 by default.
_MOST_QUERY_CHARS = 1_000

_Field = Annotated[str, pydantic.Field(min_length=1, max_length=300)]


class OpenSearchOptions(HttpOptions):
    """Options of an index. A filter's fields are of type ``keyword``, or numbers."""

    index: str = pydantic.Field(
        pattern=r"^[^_/?#\s][^/?#\s]{0,511}$",
        description="Index, alias, or pattern of indices that is searched.",
    )
    fields: tuple[_Field, ...] = pydantic.Field(
        default=(), max_length=20, description="Fields that are searched, such as title^2; none: text_field."
    )
    text_field: _Field = pydantic.Field(default="text", description="Field with the passage.")
    title_field: _Field = pydantic.Field(default="title", description="Field with its title.")
    id_field: _Field | None = pydantic.Field(
        default=None, description="Field with its id; left out, index and _id are its id."
    )
    key_scheme: Literal["ApiKey", "Basic", "Bearer"] = pydantic.Field(
        default="ApiKey", description="What api_key_env holds; Basic: user:password."
    )


class OpenSearchSource(HttpSource):
    """An index of OpenSearch or Elasticsearch.

    Args:
        context: what it is built from.

    Raises:
        ValueError: its key is missing.
    """

    def __init__(self, context: SourceContext) -> None:
        options: OpenSearchOptions = context.options
        self._options = options
        self._client = SourceClient(context, scheme=options.key_scheme)
        self._path = (
            f"/{quote(options.index, safe='*,')}/_search"
            "?allow_partial_search_results=false&allow_no_indices=false"
        )

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        """Return at most ``k`` passages; errors are those of ``EvidenceSource.search``."""
        read = partial(self._read, search=search, k=k)
        fields = self._fields(search, k, timeout_ms=max(1, int(deadline.remaining_s * 1000)))
        return await self._client.ask(self._path, fields, read, search=search, deadline=deadline)

    def _fields(self, search: Search, k: int, *, timeout_ms: int) -> dict[str, object]:
        options = self._options
        shown = dict.fromkeys((options.text_field, options.title_field, options.id_field))
        words = clean(search.text, _MOST_QUERY_CHARS)
        query: dict[str, object] = {
            "must": [
                {"multi_match": {"query": words, "fields": list(options.fields or (options.text_field,))}}
            ]
        }
        fields: dict[str, object] = {
            "size": k,
            "timeout": f"{timeout_ms}ms",
            "track_total_hits": False,
            "_source": {"includes": [name for name in shown if name]},
            "query": {"bool": query},
        }
        if search.filter:
            query["filter"] = [{"term": {field: value}} for field, value in search.filter.items()]
            fields["docvalue_fields"] = list(search.filter)
        return fields

    def _read(self, content: Hit, *, search: Search, k: int) -> tuple[FoundPassage, ...]:
        _check_whole(content)
        hits = content.get("hits")
        listed = hits_in(hits.get("hits") if isinstance(hits, dict) else None)
        for hit in listed:
            check_hit(search.filter, partial(_doc_values, hit))
        return passages_of(listed, self._passage, k)

    def _passage(self, hit: Hit) -> FoundPassage | None:
        options = self._options
        if options.id_field is not None:
            own = _member(hit, options.id_field)
        else:
            own = "/".join(each for each in (hit.get("_index"), hit.get("_id")) if isinstance(each, str))
        text, title = _member(hit, options.text_field), _member(hit, options.title_field)
        return passage(_text(text), hit_id=own, title=_text(title), score=hit.get("_score"))


def _check_whole(content: Hit) -> None:
    """Raise ``SourceError`` where an answer may lack hits."""
    shards = content.get("_shards")
    if not isinstance(shards, dict) or "timed_out" not in content:
        raise SourceError(SearchResult.BAD_RESPONSE, "not an answer of _search")
    if content["timed_out"] is not False:
        raise SourceError(SearchResult.TIMEOUT, "the server ran out of time and gave a part of the hits")
    if shards.get("failed") != 0 or content.get("terminated_early"):
        raise SourceError(SearchResult.UNAVAILABLE, "not all shards answered in full")


def _doc_values(hit: Hit, field: str) -> list[object]:
    fields = hit.get("fields")
    values = fields.get(field) if isinstance(fields, dict) else None
    if not isinstance(values, list):
        return []
    # A value is text in a filter, whatever the field's type.
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def _member(hit: Hit, path: str) -> object:
    """Return the member of ``_source`` at ``path``: by this name, or level by level at its dots."""
    value: object = hit.get("_source")
    if isinstance(value, dict) and path in value:
        return value[path]
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: object) -> object:
    """Return the text of a field, which may have several values without being declared so."""
    return "\n".join(each for each in value if isinstance(each, str)) if isinstance(value, list) else value


SOURCE = SourceType(
    "opensearch", OpenSearchSource, OpenSearchOptions, filters=True, passes_authorization=True
)

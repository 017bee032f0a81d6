"""Search a collection of Qdrant by the nearness of its vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from qdrant_client.http.models import FieldCondition, Filter, MatchValue, ScoredPoint

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.retrieval.embeddings import Embedder
from truthlens.retrieval.filters import check_filter, check_hit
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.sources.qdrant import DEFAULT_VECTOR, QdrantOptions
from truthlens.retrieval.sources.qdrant.clients import QdrantCaller, failure_of
from truthlens.retrieval.vector_search import found_passage, in_time

# Of these distances the smallest is the nearest.
_FALLING = frozenset(("Euclid", "Manhattan"))


@dataclass(frozen=True, slots=True)
class CollectionVectors:
    """The vectors of a collection: their dimension, and whether the smallest score is the nearest."""

    dimension: int
    falling: bool


class QdrantSource:
    """One collection.

    Args:
        options: of the source.
        client: of the server or the folder; closed with the source.
        embedder: makes the vectors of questions; closed with the source.
    """

    def __init__(self, options: QdrantOptions, client: QdrantCaller, embedder: Embedder) -> None:
        self._options, self._client, self._embedder = options, client, embedder
        self._stored: CollectionVectors | None = None
        optional = (name for name in (options.title, options.parent_id) if name is not None)
        self._fields = list(dict.fromkeys((options.text, *optional, *options.filter)))

    @property
    def revision(self) -> str:
        """Return ``""``: what a collection holds has no version that costs nothing to ask for."""
        return ""

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        """Return the ``k`` nearest passages, as ``EvidenceSource.search`` does; the first search checks the collection."""
        check_filter(search, self._options.filter)
        async with in_time(deadline):
            vector = (await self._embedder.embed([search.text], deadline=deadline))[0]
            stored = self._stored = self._stored or await self._check_collection()
            if stored.dimension != len(vector):
                raise SourceError(
                    SearchResult.BAD_RESPONSE,
                    f"the vectors in {self._options.collection!r} have {stored.dimension} dimensions, those of"
                    f" questions {len(vector)}; name under `embeddings` the model that made them",
                )
            reply = await self._call(
                "query_points",
                query=vector.tolist(),
                using=self._options.vector or None,
                query_filter=_must(search.filter),
                limit=k,
                with_payload=self._fields,
                score_threshold=self._options.score_threshold,
                timeout=max(1, math.ceil(deadline.remaining_s)),
            )
        return self._passages(reply.points[:k], search.filter, falling=stored.falling)

    async def aclose(self) -> None:
        """Give back connections, files and threads."""
        await self._client.aclose()
        await self._embedder.aclose()

    async def _call(self, method: str, **arguments: Any) -> Any:
        try:
            return await self._client.call(method, collection_name=self._options.collection, **arguments)
        except SourceError:
            raise
        except Exception as error:  # noqa: BLE001 - the library raises what it finds; its messages may quote payloads
            failure = failure_of(error)
            if failure.result is SearchResult.BAD_RESPONSE:
                self._stored = None  # the collection may have changed
            raise failure from None

    async def _check_collection(self) -> CollectionVectors:
        """Return what the collection's vectors are.

        Raises:
            SourceError: it has none of the name that the options say.
        """
        vectors = (await self._call("get_collection")).config.params.vectors or {}
        named = vectors if isinstance(vectors, dict) else {DEFAULT_VECTOR: vectors}
        chosen = named.get(self._options.vector)
        if chosen is None:
            known = ", ".join(repr(name) for name in sorted(named)[:40])
            raise SourceError(
                SearchResult.BAD_RESPONSE,
                f"the collection {self._options.collection!r} has no vector {self._options.vector!r}; it has: {known}",
            )
        return CollectionVectors(chosen.size, str(chosen.distance.value) in _FALLING)

    def _passages(
        self, points: Sequence[ScoredPoint], values: Mapping[str, str], *, falling: bool
    ) -> Sequence[FoundPassage]:
        options = self._options
        found, texts = [], 0
        for point in points:
            payload = point.payload or {}
            check_hit(values, partial(_values, payload))
            text = _field(payload, options.text)
            if not isinstance(text, str):
                continue
            texts += 1
            passage = found_passage(
                text,
                str(point.id),
                title=_field(payload, options.title),
                parent_id=_field(payload, options.parent_id),
                score=-point.score if falling else point.score,
            )
            if passage is not None:
                found.append(passage)
        if points and not texts:
            raise SourceError(SearchResult.BAD_RESPONSE, f"no point has a text in the field {options.text!r}")
        return found


def _must(values: Mapping[str, str]) -> Filter | None:
    conditions = [FieldCondition(key=name, match=MatchValue(value=value)) for name, value in values.items()]
    return Filter(must=conditions) if conditions else None


def _values(payload: Mapping[str, Any], name: str) -> list[Any]:
    held = _field(payload, name)
    return held if isinstance(held, list) else [held]


def _field(payload: Mapping[str, Any], name: str | None) -> Any:
    """Return a field of a payload by its name with dots; ``None`` where there is none."""
    if name is None:
        return None
    held: Any = payload
    for part in name.split("."):
        held = held.get(part) if isinstance(held, dict) else None
    return held

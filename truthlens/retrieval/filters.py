"""Hold a source to the filter of its searches.

A passage that does not have the values which were asked for shows that the border between tenants is open
there: the server ignores the filter, or reads a value as one word of many. Such a search fails as a whole,
whichever source it is, and nothing of it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from truthlens.core.records.retrieval import Search, SearchResult
from truthlens.retrieval.interfaces import SourceError


def check_filter(search: Search, configured: Mapping[str, str]) -> None:
    """Refuse a search whose filter is not the one that the source is configured with, field by field.

    Raises:
        SourceError: a field has no value, or a value is for a field that is not configured.
    """
    if search.filter.keys() != configured.keys() or not all(search.filter.values()):
        raise SourceError(SearchResult.NO_SCOPE, "the search lacks a value for a field of `filter`")


def check_hit(wanted: Mapping[str, str], values: Callable[[str], Container[object]]) -> None:
    """Refuse a hit that does not carry every value of the filter.

    Args:
        wanted: the filter of the search.
        values: returns what the hit has in a field, as it would stand in the filter.

    Raises:
        SourceError: ``bad-response``: it has others.
    """
    for field, value in wanted.items():
        if value not in values(field):
            raise SourceError(
                SearchResult.BAD_RESPONSE,
                f"a passage has another value in the field {field!r} than was asked for; "
                "see that the server applies filters, to fields that hold the value whole",
            )

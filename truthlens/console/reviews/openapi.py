"""Describe the review API as an OpenAPI 3.1 document, from the models that it is made of."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from truthlens import __version__
from truthlens.console.reviews.schemas import ID_PATTERN, BulkBody, ChangeBody, FilterQuery, ListQuery

_AT = "#/components/schemas/{model}"
_ERRORS = {
    "404": "No such entry, or the review queue is switched off.",
    "409": "Somebody else has changed the entry; `entry` is as it is now.",
    "413": "The body is too large.",
    "422": "Something in the request is wrong; the message says what.",
    "503": "The database does not answer; nothing was changed.",
}
_SECURITY: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic"},
}


def document(replies: Mapping[str, TypeAdapter[Any]]) -> bytes:
    """Return the document as JSON; ``replies`` are what the API gives, by name."""
    return _document(tuple(replies.items()))


@functools.cache
def _document(replies: tuple[tuple[str, TypeAdapter[Any]], ...]) -> bytes:
    bodies = [("Change", TypeAdapter(ChangeBody)), ("Bulk", TypeAdapter(BulkBody))]
    inputs = [(name, "validation", adapter) for name, adapter in bodies]
    outputs = [(name, "serialization", adapter) for name, adapter in replies]
    schemas, definitions = TypeAdapter.json_schemas([*inputs, *outputs], ref_template=_AT)  # type: ignore[list-item]
    given = {name: schema for (name, _), schema in schemas.items()}

    def operation(
        name: str,
        summary: str,
        reply: str,
        *errors: str,
        query: type[FilterQuery] | None = None,
        body: str = "",
        entry: bool = False,
    ) -> dict[str, Any]:
        parameters = [_ENTRY_ID] if entry else []
        shown: dict[str, Any] = {
            "operationId": name,
            "summary": summary,
            "tags": ["reviews"],
            "parameters": [*parameters, *(_parameters(query) if query else ())],
            "responses": {
                "200": {"description": summary, "content": _json(given[reply])},
                **{
                    code: {"description": _ERRORS[code], "content": _json(given["Problem"])}
                    for code in sorted({*errors, "404", "503"})
                },
            },
        }
        if body:
            shown["requestBody"] = {"required": True, "content": _json(given[body])}
        return shown

    told = "Settled entries with kept texts as labelled rows, which `truthlens eval`, `calibrate` and `train` read"
    export = operation("exportReviews", told, "Problem", "422", query=FilterQuery)
    lines = {"schema": {"type": "string", "description": "One JSON object a line."}}
    export["responses"]["200"]["content"] = {"application/jsonl": lines}
    shown = {
        "openapi": "3.1.0",
        "info": {
            "title": "TruthLens reviews",
            "version": __version__,
            "description": "The queue of answers that await review. Times are seconds since 1970, UTC; scores and shares 0..1; "
            "positions count characters (code points).",
        },
        "security": [{"bearer": []}, {"basic": []}, {}],
        "paths": {
            "/api/reviews": {
                "get": operation(
                    "listReviews", "Entries that fit the filters", "Page", "422", query=ListQuery
                )
            },
            "/api/reviews/counts": {
                "get": operation(
                    "countReviews",
                    "How many entries fit the filters, by status",
                    "Counts",
                    "422",
                    query=FilterQuery,
                )
            },
            "/api/reviews/stats": {
                "get": operation(
                    "reviewStats", "How right the detectors were by the reviewers' decisions", "Stats"
                )
            },
            "/api/reviews/export": {"get": export},
            "/api/reviews/bulk": {
                "post": operation(
                    "changeReviews", "What became of each change", "BulkReply", "413", "422", body="Bulk"
                )
            },
            "/api/reviews/{id}": {
                "get": operation("getReview", "One entry with all that is kept of it", "Entry", entry=True),
                "patch": operation(
                    "changeReview",
                    "The entry as it is after the change",
                    "Entry",
                    "409",
                    "413",
                    "422",
                    body="Change",
                    entry=True,
                ),
            },
            "/api/openapi.json": {
                "get": {
                    "operationId": "getOpenapi",
                    "summary": "This document",
                    "responses": {
                        "200": {"description": "This document", "content": _json({"type": "object"})}
                    },
                }
            },
        },
        "components": {"schemas": definitions.get("$defs", {}), "securitySchemes": _SECURITY},
    }
    return json.dumps(shown).encode()


_ENTRY_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "As in the response header `X-TruthLens-Review-Id`.",
    "schema": {"type": "string", "pattern": f"^{ID_PATTERN}$"},
}


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _parameters(query: type[FilterQuery]) -> list[dict[str, Any]]:
    schema = query.model_json_schema(ref_template=_AT)
    own = schema.get("$defs", {})

    def inlined(value: Any) -> Any:
        if isinstance(value, dict):
            if reference := value.get("$ref"):
                return inlined(own[str(reference).rpartition("/")[2]])
            return {name: inlined(each) for name, each in value.items()}
        return [inlined(each) for each in value] if isinstance(value, list) else value

    return [
        {"name": name, "in": "query", "description": each.get("description", ""), "schema": inlined(each)}
        for name, each in schema["properties"].items()
    ]

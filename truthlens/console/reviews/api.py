"""The review queue as JSON.

GET   /api/reviews          list       GET  /api/reviews/counts    how many, by status
GET   /api/reviews/{id}     one entry  GET  /api/reviews/stats     how right the detectors were
PATCH /api/reviews/{id}     change it  POST /api/reviews/bulk      change many
GET   /api/reviews/export   labelled rows, as JSON lines
GET   /api/openapi.json     this API, as OpenAPI
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain
from typing import Any

import pydantic
import structlog
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from truthlens.console.access import check_csrf, user_of
from truthlens.console.reviews import openapi
from truthlens.console.reviews.desk import OFF, UNAVAILABLE, Desk, read_body
from truthlens.console.reviews.schemas import (
    ID_PATTERN,
    BulkBody,
    BulkReply,
    BulkResult,
    ChangeBody,
    ErrorText,
    FilterQuery,
    ListQuery,
    Problem,
    Stats,
    problems_of,
    query_values,
)
from truthlens.core.errors import BodyTooLargeError
from truthlens.review.learning.labelled import labelled_rows
from truthlens.review.records import (
    Change,
    Changed,
    ChangedEntryError,
    Entry,
    EntrySummary,
    Page,
    QueueUnavailableError,
    ReviewError,
    ReviewStatus,
    UnknownEntryError,
)

log = structlog.get_logger("truthlens.console")

_MOST_BODY = 1 << 20
_ID = re.compile(ID_PATTERN)
_Handler = Callable[[Request, Desk], Awaitable[Response]]

COUNTS: TypeAdapter[dict[ReviewStatus, int]] = TypeAdapter(dict[ReviewStatus, int])
REPLIES: dict[str, TypeAdapter[Any]] = {
    "Page": TypeAdapter(Page),
    "Entry": TypeAdapter(Entry),
    "Counts": COUNTS,
    "Stats": TypeAdapter(Stats),
    "BulkReply": TypeAdapter(BulkReply),
    "Problem": TypeAdapter(Problem),
}


def api_routes(desk: Desk | None) -> list[Route]:
    """Return the routes of the API; all but the description of it answer 404 where ``desk`` is ``None``."""

    def route(path: str, handler: _Handler, method: str = "GET") -> Route:
        return Route(path, functools.partial(_guarded, desk=desk, handler=handler), methods=[method])

    return [
        Route("/api/openapi.json", _openapi, methods=["GET"]),
        route("/api/reviews", _list),
        route("/api/reviews/counts", _counts),
        route("/api/reviews/stats", _stats),
        route("/api/reviews/export", _export),
        route("/api/reviews/bulk", _bulk, "POST"),
        route("/api/reviews/{id}", _get),
        route("/api/reviews/{id}", _patch, "PATCH"),
    ]


async def _guarded(request: Request, *, desk: Desk | None, handler: _Handler) -> Response:
    """What ``handler`` answers, or why it cannot."""
    if desk is None:
        return _problem(404, OFF)
    try:
        return await handler(request, desk)
    except pydantic.ValidationError as error:
        return _problem(422, problems_of(error))
    except UnknownEntryError as error:
        return _problem(404, str(error))
    except BodyTooLargeError as error:
        return _problem(413, str(error))
    except QueueUnavailableError as error:
        log.warning("the review queue does not answer", error=str(error))
        return _problem(503, UNAVAILABLE)
    except (ReviewError, ValueError) as error:
        return _problem(422, str(error))


async def _list(request: Request, desk: Desk) -> Response:
    asked = ListQuery.model_validate(query_values(request.query_params.multi_items()))
    page = await desk.run(
        desk.queue.listed, asked.filters, order=asked.order, cursor=asked.cursor, limit=asked.limit
    )
    return _reply(REPLIES["Page"], page)


async def _counts(request: Request, desk: Desk) -> Response:
    asked = FilterQuery.model_validate(query_values(request.query_params.multi_items()))
    return _reply(COUNTS, await desk.run(desk.queue.counts, asked.filters))


async def _stats(_request: Request, desk: Desk) -> Response:
    return _reply(REPLIES["Stats"], await desk.stats())


async def _export(request: Request, desk: Desk) -> Response:
    asked = FilterQuery.model_validate(query_values(request.query_params.multi_items()))
    rows = labelled_rows(desk.queue, asked.filters)
    # Before the status is sent: a database that does not answer is no empty export.
    first = await desk.run(next, rows, None)
    return StreamingResponse(_lines(first, rows), media_type="application/jsonl")


def _lines(first: dict[str, Any] | None, rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    if first is None:
        return
    for row in chain((first,), rows):
        yield json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


async def _get(request: Request, desk: Desk) -> Response:
    return _reply(REPLIES["Entry"], await desk.run(desk.queue.get, entry_id(request)))


async def _patch(request: Request, desk: Desk) -> Response:
    check_csrf(request, None)
    own_id = entry_id(request)
    body = ChangeBody.model_validate_json(await read_body(request, _MOST_BODY))
    try:
        return _reply(REPLIES["Entry"], await desk.change(body.change(own_id), user_of(request).name))
    except ChangedEntryError as error:
        present = await desk.run(desk.queue.get, own_id)
        return _problem(409, str(error), present.summary)


async def _bulk(request: Request, desk: Desk) -> Response:
    check_csrf(request, None)
    body = BulkBody.model_validate_json(await read_body(request, _MOST_BODY))
    changes = [each.change(each.id) for each in body.changes]
    results = await desk.run(change_many, desk, changes, user_of(request).name)
    return _reply(REPLIES["BulkReply"], BulkReply(results))


def change_many(desk: Desk, changes: list[Change], actor: str) -> list[BulkResult]:
    """Carry out changes, each for itself; blocks."""
    refused: dict[int, Changed] = {}
    for place, each in enumerate(changes):
        try:
            desk.check_spans(each)
        except ReviewError as error:
            refused[place] = Changed(each.id, None, str(error))
    done = iter(
        desk.queue.change_many([each for at, each in enumerate(changes) if at not in refused], actor=actor)
    )
    return [
        _result(desk, each, refused[at] if at in refused else next(done)) for at, each in enumerate(changes)
    ]


def _result(desk: Desk, change: Change, changed: Changed) -> BulkResult:
    if changed.entry is not None:
        return BulkResult(change.id, 200, changed.entry, "")
    present: EntrySummary | None
    try:
        present = desk.queue.get(change.id).summary
    except UnknownEntryError:
        present = None
    status = 404 if present is None else 409 if present.version != change.version else 422
    return BulkResult(change.id, status, present, changed.problem)


def entry_id(request: Request) -> str:
    """Return the id in a request's path.

    Raises:
        UnknownEntryError: it cannot be one.
    """
    text = str(request.path_params["id"])
    if not _ID.fullmatch(text):
        raise UnknownEntryError("there is no entry of that id, or none any more")
    return text


async def _openapi(_request: Request) -> Response:
    return Response(openapi.document(REPLIES), media_type="application/json")


def _reply(adapter: TypeAdapter[Any], value: Any, status: int = 200) -> Response:
    return Response(adapter.dump_json(value), status, media_type="application/json")


def _problem(status: int, message: str, present: EntrySummary | None = None) -> Response:
    return Response(
        REPLIES["Problem"].dump_json(Problem(ErrorText(message), present), exclude_none=present is None),
        status,
        media_type="application/json",
    )

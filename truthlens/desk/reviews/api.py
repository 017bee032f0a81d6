"""The review queue as JSON, a FastAPI application that describes itself (``GET /api/openapi.json``).

GET   /api/reviews          list       GET  /api/reviews/counts    how many, by status
GET   /api/reviews/{id}     one entry  GET  /api/reviews/stats     how right the detectors were
PATCH /api/reviews/{id}     change it  POST /api/reviews/bulk      change many
GET   /api/reviews/export   labelled rows, as JSON lines
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from itertools import chain
from typing import Annotated, Any

import pydantic
import structlog
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from truthlens import __version__
from truthlens.core.errors import BodyTooLargeError
from truthlens.desk.labelled import labelled_rows
from truthlens.desk.reviews.desk import OFF, UNAVAILABLE, Desk, read_body
from truthlens.desk.reviews.schemas import (
    ID_PATTERN,
    BulkBody,
    BulkReply,
    ChangeBody,
    ErrorText,
    FilterQuery,
    ListQuery,
    Problem,
    Stats,
    check_once,
)
from truthlens.process.access import AccessError, check_csrf, refusal, user_of
from truthlens.process.detect_api import problems_of
from truthlens.process.detect_schema import DetectProblem, DetectReply, DetectRequest
from truthlens.process.questions.schema import AskProblem, AskReply, AskRequest
from truthlens.review.records import (
    ChangedEntryError,
    Entry,
    EntrySummary,
    Page,
    QueueUnavailableError,
    ReviewError,
    ReviewStatus,
    UnknownEntryError,
)
from truthlens.review.store.changes import UNKNOWN

log = structlog.get_logger("truthlens.desk")

Answering = Callable[[Request], Awaitable[Response]]

_MOST_BODY = 1 << 20
_PROBLEM = TypeAdapter(Problem)
_ERRORS = {
    404: "No such entry, or the review queue is switched off.",
    409: "Somebody else has changed the entry; `entry` is as it is now.",
    413: "The body is too large.",
    422: "Something in the request is wrong; the message says what.",
    503: "The database does not answer; nothing was changed.",
}
_REFUSED = (HTTPException, RequestValidationError, BodyTooLargeError, ReviewError, ValueError)
_DETECT_ERRORS: dict[int | str, dict[str, Any]] = {
    413: {"model": DetectProblem, "description": _ERRORS[413]},
    422: {"model": DetectProblem, "description": _ERRORS[422]},
    503: {"model": DetectProblem, "description": "Too much is being checked at present; try again later."},
}
_ASK_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": AskProblem, "description": text}
    for code, text in {
        403: "Only a reviewer may say a scope or search a source with a filter; or another site asks.",
        409: "The policy or the process lacks what questions need; the message says what to configure.",
        413: _ERRORS[413],
        422: _ERRORS[422],
        429: "Too many questions of this user or address; `Retry-After` has the seconds to wait.",
        502: "A model failed (`call-failed`, `bad-decision`), or searches did (`search-failed`).",
        503: "Too many questions are being answered, the process stops, or a model takes no calls.",
        504: "A model did not answer in time.",
    }.items()
}


def _errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem, "description": _ERRORS[code]} for code in codes}


class _Read(Request):
    """A request whose body was read, by pydantic: its messages say where JSON is wrong."""

    def __init__(self, request: Request, content: bytes) -> None:
        super().__init__(request.scope)
        self._content = content
        try:
            self._value = from_json(content)
        except ValueError as error:
            raise ValueError(f"body: invalid JSON: {error}") from None

    async def body(self) -> bytes:
        return self._content

    async def json(self) -> Any:
        return self._value


class _Route(APIRoute):
    """Reads bodies within bounds, and only from who may send them; FastAPI checks what is in them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            await _opened(request)
            if self.dependant.query_params:
                # Of several values FastAPI would take the last.
                check_once(request.query_params.multi_items())
            if self.body_field is None:
                return await handle(request)
            check_csrf(request, None)
            return await handle(_Read(request, await read_body(request, _MOST_BODY)))

        return guarded


async def _opened(request: Request) -> Desk:
    desk: Desk | None = request.app.state.desk
    if desk is None:
        raise UnknownEntryError(OFF)
    return desk


_Opened = Annotated[Desk, Depends(_opened)]
_EntryId = Annotated[
    str, Path(pattern=f"^{ID_PATTERN}$", description="As in the response header `X-TruthLens-Review-Id`.")
]
_Filter = Annotated[FilterQuery, Query()]
_router = APIRouter(
    prefix="/api/reviews", tags=["reviews"], route_class=_Route, responses=_errors(404, 422, 503)
)


@_router.get("")
def list_reviews(asked: Annotated[ListQuery, Query()], desk: _Opened) -> Page:
    """Give the entries that fit the filters."""
    return desk.queue.listed(asked.filters, order=asked.order, cursor=asked.cursor, limit=asked.limit)


@_router.get("/counts")
def count_reviews(asked: _Filter, desk: _Opened) -> dict[ReviewStatus, int]:
    """Count the entries that fit the filters, by status."""
    return desk.queue.counts(asked.filters)


@_router.get("/stats")
async def review_stats(desk: _Opened) -> Stats:
    """Tell how right the detectors were by the reviewers' decisions."""
    return await desk.stats()


_LINES = {"application/jsonl": {"schema": {"type": "string", "description": "One JSON object a line."}}}


@_router.get("/export", response_class=StreamingResponse, responses={200: {"content": _LINES}})
def export_reviews(asked: _Filter, desk: _Opened) -> Response:
    """Give settled entries with kept texts as labelled rows, which `truthlens eval`, `calibrate` and `train` read."""
    rows = labelled_rows(desk.queue, asked.filters)
    # Before the status is sent: a database that does not answer is no empty export.
    first = next(rows, None)
    return StreamingResponse(_lines(first, rows), media_type="application/jsonl")


def _lines(first: dict[str, Any] | None, rows: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    for row in chain((first,), rows) if first is not None else ():
        yield json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


@_router.post("/bulk", responses=_errors(413))
def change_reviews(body: BulkBody, desk: _Opened, request: Request) -> BulkReply:
    """Carry out changes, each for itself, and tell what became of each."""
    return BulkReply(desk.change_many([each.change(each.id) for each in body.changes], user_of(request).name))


@_router.get("/{id}")
def get_review(id: _EntryId, desk: _Opened) -> Entry:  # noqa: A002 - the parameter's name in the path
    """Give one entry with all that is kept of it."""
    return desk.queue.get(id)


@_router.patch("/{id}", response_model=Entry, responses=_errors(409, 413))
def change_review(id: _EntryId, body: ChangeBody, desk: _Opened, request: Request) -> Any:  # noqa: A002
    """Change an entry; give it as it is then."""
    try:
        return desk.change(body.change(id), user_of(request).name)
    except ChangedEntryError as error:
        return _problem(409, str(error), desk.queue.get(id).summary)


class _ReviewApi(FastAPI):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Starlette's routes of GET answer HEAD, FastAPI's do not; the server leaves the body out.
        await super().__call__({**scope, "method": scope["method"].replace("HEAD", "GET")}, receive, send)

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        document["security"] = [{"bearer": []}, {"basic": []}, {}]
        schemes = {name: {"type": "http", "scheme": name} for name in ("bearer", "basic")}
        document["components"]["securitySchemes"] = schemes
        return document


def review_api(desk: Desk | None, detect: Answering, ask: Answering) -> FastAPI:
    """Return the application; its calls of reviews answer 404 where ``desk`` is ``None``.

    ``detect`` is ``/v1/detect``, ``ask`` is ``/v1/ask``.
    """
    api = _ReviewApi(
        title="TruthLens",
        version=__version__,
        description="Answers scored on request, questions answered from sources, and the queue of answers that "
        "await review. Times are seconds since 1970, UTC; scores and shares 0..1; positions count characters "
        "(code points).",
        openapi_url=None,
        separate_input_output_schemas=False,
        generate_unique_id_function=lambda route: to_camel(route.name),
        exception_handlers=dict.fromkeys(_REFUSED, _refused),
        # Its spans and logs would hold queries and messages of errors, which are texts of users.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    api.state.desk = desk
    api.include_router(_router)

    @api.get("/api/openapi.json")
    async def get_openapi() -> dict[str, Any]:
        """Describe these calls."""
        return api.openapi()

    api.post(
        "/v1/detect",
        tags=["detect"],
        response_model=DetectReply,
        responses=_DETECT_ERRORS,
        openapi_extra={"requestBody": _read_as(DetectRequest)},
    )(detect)
    api.post(
        "/v1/ask",
        tags=["ask"],
        response_model=AskReply,
        responses=_ASK_ERRORS,
        openapi_extra={"requestBody": _read_as(AskRequest)},
    )(ask)
    return api


def _read_as(body: type[pydantic.BaseModel]) -> dict[str, Any]:
    """Describe the body of a call that reads it itself."""
    return {"required": True, "content": {"application/json": {"schema": body.model_json_schema()}}}


async def _refused(request: Request, error: Exception) -> Response:
    match error:
        case AccessError():
            return refusal(request.headers, error)
        case HTTPException():
            return _problem(error.status_code, error.detail)
        case RequestValidationError() if any(each["loc"][0] == "path" for each in error.errors()):
            return _problem(404, UNKNOWN)
        case RequestValidationError():
            return _problem(422, problems_of([{**each, "loc": each["loc"][1:]} for each in error.errors()]))
        case QueueUnavailableError():
            log.warning("the review queue does not answer", error=str(error))
            return _problem(503, UNAVAILABLE)
        case UnknownEntryError():
            return _problem(404, str(error))
        case BodyTooLargeError():
            return _problem(413, str(error))
        case _:
            return _problem(422, str(error))


def _problem(status: int, message: str, present: EntrySummary | None = None) -> Response:
    body = _PROBLEM.dump_json(Problem(ErrorText(message), present), exclude_none=present is None)
    return Response(body, status, media_type="application/json")

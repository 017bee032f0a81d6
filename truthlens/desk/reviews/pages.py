"""The review queue as pages that work without scripts; ``static/reviews.js`` adds keys and marks by selection.

GET  /reviews         the list     POST /reviews         settle those that are ticked, undo the last step
GET  /reviews/{id}    one entry    POST /reviews/{id}    settle it, put it back, note, mark
GET  /reviews/stats   how right the detectors were
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from truthlens.core.errors import BodyTooLargeError
from truthlens.desk.pages import Pages
from truthlens.desk.reviews import views
from truthlens.desk.reviews.desk import OFF, UNAVAILABLE, Desk, read_body
from truthlens.desk.reviews.queries import MOST_FORM, Asked, ReviewForm, asked_of, with_status
from truthlens.desk.reviews.schemas import ID_PATTERN
from truthlens.process.access import Role, check_csrf, user_of
from truthlens.review.records import (
    Change,
    ChangedEntryError,
    Entry,
    Filters,
    QueueUnavailableError,
    ReviewError,
    ReviewStatus,
    UnknownEntryError,
)
from truthlens.telemetry.recent_exchanges import Recent

log = structlog.get_logger("truthlens.desk")

# A tab says "5,000+" of more: nobody works through them, and to count them all would take the time of the page.
_MOST_COUNTED = 5_000
_UNDO_S = 12 * 3600.0
_ACTIONS = {
    "approve": ReviewStatus.APPROVED,
    "reject": ReviewStatus.REJECTED,
    "take": ReviewStatus.REVIEWED,
    "putback": ReviewStatus.PENDING,
}
_Handler = Callable[[Request], Awaitable[Response]]


class ReviewPages:
    """The pages.

    Args:
        pages: renders them.
        desk: the queue; ``None`` where it is switched off.
        recent: the last exchanges, to which entries link.
        clock: seconds since 1970.
    """

    def __init__(
        self, pages: Pages, desk: Desk | None, recent: Recent, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._pages, self._desk, self._recent, self._clock = pages, desk, recent, clock

    @property
    def routes(self) -> list[Route]:
        """Return the routes."""

        def route(path: str, handler: _Handler, *methods: str) -> Route:
            return Route(path, functools.partial(self._guarded, handler), methods=methods)

        return [
            route("/reviews", self._list, "GET"),
            route("/reviews", self._many, "POST"),
            route("/reviews/stats", self._stats, "GET"),
            route("/reviews/{id}", self._entry, "GET"),
            route("/reviews/{id}", self._change, "POST"),
        ]

    async def _guarded(self, handler: _Handler, request: Request) -> Response:
        """What ``handler`` answers, or a page that says why it cannot."""
        if self._desk is None:
            return self._told(request, 200, "The review queue is switched off", OFF)
        try:
            return await handler(request)
        except UnknownEntryError:
            why = "It was deleted because it was old or the queue was full, or its id was never one."
            return self._told(request, 404, "There is no such entry", why)
        except BodyTooLargeError as error:
            return self._told(request, 413, "This was not saved", str(error))
        except QueueUnavailableError as error:
            log.warning("the review queue does not answer", error=str(error))
            return self._told(request, 503, "The review queue does not answer", UNAVAILABLE)
        except ReviewError as error:
            return self._told(request, 422, "This was not done", str(error))

    def _told(self, request: Request, status: int, title: str, why: str, **values: Any) -> Response:
        return self._pages.page(
            request,
            "reviews_told.html.j2",
            status=status,
            title=title,
            why=why,
            **{"results": (), "back": "", **values},
        )

    @property
    def _open(self) -> Desk:
        assert self._desk is not None
        return self._desk

    # --- the list -----------------------------------------------------------------------------------------

    async def _list(self, request: Request) -> Response:
        return await run_in_threadpool(self._list_page, request, asked_of(request.url.query))

    def _list_page(self, request: Request, asked: Asked) -> Response:
        queue, query = self._open.queue, asked.query
        try:
            page = queue.listed(query.filters, order=query.order, cursor=query.cursor, limit=query.limit)
        except ReviewError as error:
            if isinstance(error, QueueUnavailableError):
                raise
            return self._list_page(request, replace(asked_of(asked.text), problem=str(error)))
        counts = queue.counts(query.filters, most=_MOST_COUNTED)
        tabs = [(each.value, text.name, _counted(counts[each])) for each, text in views.STATUSES.items()]
        tabs.append(("all", "All", _counted(*counts.values())))
        return self._pages.page(
            request,
            "reviews.html.j2",
            status=422 if asked.problem else 200,
            asked=asked,
            query=query,
            entries=page.entries,
            cursor=page.cursor,
            tabs=[(value, name, count, with_status(asked.text, value)) for value, name, count in tabs],
            choices=queue.choices(),
            # Nothing at all was queued yet, which wants another sentence than a filter that nothing fits.
            empty=not page.entries and not any(queue.counts().values()),
            **self._common(request),
        )

    async def _many(self, request: Request) -> Response:
        form = await self._form(request)
        if form.action == "undo":
            return await self._undo(request, form)
        status = _ACTIONS.get(form.action)
        if status is None or not form.picks:
            raise ReviewError("nothing was chosen: tick entries, then press a button")
        changes = [Change(own_id, version, status) for own_id, version in form.picks]
        results = await run_in_threadpool(self._open.change_many, changes, user_of(request).name)
        if all(each.status == 200 for each in results):
            return RedirectResponse(f"/reviews?{form.back}", 303)
        refused = [each for each in results if each.status != 200]
        why = f"{len(results) - len(refused)} of {len(results)} entries were changed. These were not:"
        return await run_in_threadpool(
            self._told, request, 409, "Not all were changed", why, results=refused, back=form.back
        )

    async def _undo(self, request: Request, form: ReviewForm) -> Response:
        queue = self._open.queue
        results = await run_in_threadpool(queue.undo, form.step, actor=user_of(request).name)
        if refused := [each for each in results if each.entry is None]:
            why = f"{len(results) - len(refused)} of {len(results)} entries are as they were before. These are not:"
            return await run_in_threadpool(
                self._told, request, 409, "Not all was undone", why, results=refused, back=form.back
            )
        # Where one entry was decided, the reviewer wants to see it again.
        path = f"/reviews/{results[0].id}" if len(results) == 1 else "/reviews"
        return RedirectResponse(f"{path}?{form.back}", 303)

    # --- one entry ----------------------------------------------------------------------------------------

    async def _entry(self, request: Request) -> Response:
        own_id = _entry_id(request)
        return await run_in_threadpool(self._entry_page, request, own_id, asked_of(request.url.query))

    def _entry_page(
        self,
        request: Request,
        own_id: str,
        asked: Asked,
        *,
        status: int = 200,
        problem: str = "",
        form: ReviewForm | None = None,
    ) -> Response:
        queue, query = self._open.queue, asked.query
        entry = queue.get(own_id)
        shown = views.shown_review(entry)
        if form is not None and status != 200:
            shown = replace(
                shown, lines=form.marks if form.own_marks else shown.lines, own_marks=form.own_marks
            )
        around = [
            queue.neighbour(entry.summary.number, query.filters, later=later, order=query.order)
            for later in (False, True)
        ]
        return self._pages.page(
            request,
            "review.html.j2",
            status=status,
            problem=problem,
            conflict=status == 409,
            asked=asked,
            entry=entry,
            shown=shown,
            e=entry.summary,
            note=form.note if form is not None and status != 200 else entry.summary.note,
            before=around[0],
            after=around[1],
            exchange=next(
                (each.id for each in self._recent.entries() if each.outcome.review_id == own_id), None
            ),
            **self._common(request),
        )

    async def _change(self, request: Request) -> Response:
        own_id, form = _entry_id(request), await self._form(request)
        asked = asked_of(form.back)
        work = functools.partial(self._entry_page, request, own_id, asked, form=form)
        try:
            entry = await self._carry_out(form, own_id, user_of(request).name)
        except ChangedEntryError as error:
            return await run_in_threadpool(work, status=409, problem=str(error))
        except ReviewError as error:
            if isinstance(error, UnknownEntryError | QueueUnavailableError):
                raise
            return await run_in_threadpool(work, status=422, problem=str(error))
        path = f"/reviews/{own_id}"
        if entry.summary.status.label is not None and form.action in ("approve", "reject"):
            following = await run_in_threadpool(self._next_pending, entry, asked)
            path = f"/reviews/{following}" if following else "/reviews"
        return RedirectResponse(f"{path}?{asked.text}", 303)

    async def _carry_out(self, form: ReviewForm, own_id: str, actor: str) -> Entry:
        before = await run_in_threadpool(self._open.queue.get, own_id)
        status = before.summary.status if form.action == "save" else _ACTIONS.get(form.action)
        if status is None:
            raise ReviewError("nothing was chosen: press one of the buttons")
        # An answer that is right has nothing unsupported in it.
        own_marks = form.own_marks and status is not ReviewStatus.APPROVED
        change = Change(
            own_id,
            form.version,
            status,
            note=form.checked_note(),
            spans=form.corrections() if own_marks else None,
            clear_spans=not own_marks and before.spans is not None,
        )
        return await run_in_threadpool(self._open.change, change, actor)

    def _next_pending(self, entry: Entry, asked: Asked) -> str | None:
        """The next pending entry of the same list, from its beginning where there is none after this one."""
        queue, query = self._open.queue, asked.query
        wanted: Filters = replace(query.filters, statuses=(ReviewStatus.PENDING,))
        following = queue.neighbour(entry.summary.number, wanted, later=True, order=query.order)
        if following is None:
            first = queue.listed(wanted, order=query.order, limit=1).entries
            following = first[0].id if first else None
        return following

    # --- figures ------------------------------------------------------------------------------------------

    async def _stats(self, request: Request) -> Response:
        stats = await self._open.stats()
        return await run_in_threadpool(
            self._pages.page,
            request,
            "review_stats.html.j2",
            stats=stats,
            now=self._clock(),
            plots={name: views.points_of(getattr(stats, name)) for name in ("weekly", "daily")},
            width=views.WIDTH,
            height=views.HEIGHT,
            bar=views.bar_of,
            lasting=views.lasting,
        )

    # --- both ---------------------------------------------------------------------------------------------

    async def _form(self, request: Request) -> ReviewForm:
        form = ReviewForm.read(await read_body(request, MOST_FORM))
        check_csrf(request, form.csrf)
        return form

    def _common(self, request: Request) -> dict[str, Any]:
        """What list and entry both show: who asks, what they may, and what they did last."""
        user = user_of(request)
        may_review = user.role >= Role.REVIEWER
        last = self._open.queue.last_step(user.name, since=self._clock() - _UNDO_S) if may_review else None
        return {"may_review": may_review, "last": last, "statuses": views.STATUSES, "when": views.when}


def _entry_id(request: Request) -> str:
    own_id = str(request.path_params["id"])
    if not re.fullmatch(ID_PATTERN, own_id):
        raise UnknownEntryError(own_id)
    return own_id


def _counted(*counts: int) -> str:
    bounded = any(count > _MOST_COUNTED for count in counts)
    return f"{sum(min(count, _MOST_COUNTED) for count in counts):,}{'+' if bounded else ''}"

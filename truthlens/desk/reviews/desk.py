"""Ask the review queue off the event loop: what API and pages have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from truthlens.core.errors import BodyTooLargeError
from truthlens.desk.accuracy import (
    DAY_S,
    Grouping,
    SettledTally,
    accuracy_of,
    backlog,
    by_period,
    by_value,
    tallies,
)
from truthlens.desk.reviews.schemas import BulkResult, PeriodFigures, Stats
from truthlens.review.records import Change, Changed, Entry, EntrySummary, ReviewError, UnknownEntryError
from truthlens.review.store.queue import ReviewQueue

OFF = "the review queue is switched off: no database is configured for it"
UNAVAILABLE = "the review queue's database does not answer; nothing was changed; try again in a moment"
_MOST_WEEKS, _MOST_DAYS = 26, 30
_FIGURES_S = 10.0


@dataclass(slots=True)
class _Kept:
    stats: Stats
    at: float


class Desk:
    """The queue as pages and API ask it; what blocks says so.

    All calls raise ``QueueUnavailableError`` where the database does not answer.

    Args:
        queue: of the answers that await review.
        clock: seconds that only grow, for how long figures are kept.
    """

    def __init__(self, queue: ReviewQueue, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.queue = queue
        self._clock = clock
        self._kept: _Kept | None = None

    def change(self, change: Change, actor: str) -> Entry:
        """Carry out one change; return the entry as it is then. Blocks.

        Raises:
            ReviewError: as ``ReviewQueue.change``, and where spans are not within the answer.
        """
        self._check_spans(change)
        self.queue.change(change, actor=actor)
        return self.queue.get(change.id)

    def change_many(self, changes: list[Change], actor: str) -> list[BulkResult]:
        """Carry out changes, each for itself. Blocks."""
        refused: dict[int, Changed] = {}
        for place, each in enumerate(changes):
            try:
                self._check_spans(each)
            except ReviewError as error:
                refused[place] = Changed(each.id, None, str(error))
        done = iter(
            self.queue.change_many(
                [each for at, each in enumerate(changes) if at not in refused], actor=actor
            )
        )
        return [
            self._result(each, refused[at] if at in refused else next(done))
            for at, each in enumerate(changes)
        ]

    def _result(self, change: Change, changed: Changed) -> BulkResult:
        if changed.entry is not None:
            return BulkResult(change.id, 200, changed.entry, "")
        present: EntrySummary | None
        try:
            present = self.queue.get(change.id).summary
        except UnknownEntryError:
            present = None
        status = 404 if present is None else 409 if present.version != change.version else 422
        return BulkResult(change.id, status, present, changed.problem)

    def _check_spans(self, change: Change) -> None:
        if not change.spans:
            return
        lengths = [int(each.get("chars", 0)) for each in self.queue.get(change.id).content.get("choices", ())]
        for each in change.spans:
            if each.choice >= len(lengths):
                raise ReviewError(f"span {each.start}-{each.end}: there is no choice {each.choice}")
            if not 0 <= each.start < each.end <= lengths[each.choice]:
                raise ReviewError(
                    f"span {each.start}-{each.end} is not within the {lengths[each.choice]} characters of the answer"
                )

    async def stats(self) -> Stats:
        """Return the figures, some seconds old at most."""
        if self._kept is None or self._clock() - self._kept.at > _FIGURES_S:
            self._kept = _Kept(await run_in_threadpool(self._stats), self._clock())
        return self._kept.stats

    def _stats(self) -> Stats:
        groups = {group: tallies(self.queue.database, group) for group in Grouping}
        everything = groups[Grouping.ALL]
        return Stats(
            counts=self.queue.counts(),
            backlog=backlog(self.queue.database),
            all=accuracy_of(everything),
            weekly=_periods(everything, 7, _MOST_WEEKS),
            daily=_periods(everything, 1, _MOST_DAYS),
            decision=by_value(groups[Grouping.DECISION]),
            detector=by_value(groups[Grouping.DETECTOR]),
            kind=by_value(groups[Grouping.KIND]),
        )


async def read_body(request: Request, most: int) -> bytes:
    """Return a request's body.

    Raises:
        BodyTooLargeError: it has more than ``most`` bytes.
        ReviewError: the client went away.
    """
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise BodyTooLargeError(f"the body has more than {most} bytes")
    except ClientDisconnect:
        raise ReviewError("the body is incomplete") from None
    return bytes(body)


def _periods(everything: list[SettledTally], days: int, most: int) -> list[PeriodFigures]:
    return [
        PeriodFigures(datetime.fromtimestamp(start * DAY_S, UTC).strftime("%Y-%m-%d"), figures)
        for start, figures in by_period(everything, days=days, most=most)
    ]

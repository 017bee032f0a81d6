"""List, count, settle and delete the entries of the review queue."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from truthlens.review.entry.explanations import explained_content
from truthlens.review.records import (
    Change,
    Changed,
    Entry,
    EntrySummary,
    Filters,
    LastStep,
    NewEntry,
    Order,
    Page,
    ReviewError,
    ReviewStatus,
    UnknownEntryError,
)
from truthlens.review.store.changes import UNKNOWN, ReviewStep, last_step, undone
from truthlens.review.store.database import ReviewDatabase
from truthlens.review.store.queries import after, conditions, cursor_of, distinct
from truthlens.review.store.rows import entry_of_row, rows_of, summary_of
from truthlens.review.store.tables import contents, entries, events, facets

MOST_LISTED = 200
"""Entries of one page at most."""
MOST_CHANGED = 500
"""Changes of one call at most."""
SETTLED = (ReviewStatus.APPROVED, ReviewStatus.REJECTED)
_AT_ONCE = 500


class ReviewQueue:
    """The entries in one database. Calls block; safe for many threads and processes.

    All calls raise ``QueueUnavailableError`` where the database does not answer, is read-only or full.

    Args:
        database: with the tables of this version.
        clock: seconds since 1970, UTC.
    """

    def __init__(self, database: ReviewDatabase, *, clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self._clock = clock

    # --- writing ------------------------------------------------------------------------------------------

    def add(self, new: Sequence[NewEntry]) -> None:
        """Add entries, all of them or none; those whose id is there already stay as they are."""
        self.insert([Entry(EntrySummary.of(each), each.content, None, ()) for each in new])

    def insert(self, new: Sequence[Entry]) -> int:
        """Add entries with marks and audit trails, as ``add`` does; return how many were not there yet."""
        by_id = {each.summary.id: each for each in new}
        if not by_id:
            return 0
        with self.database.writing() as connection:
            there = sa.select(entries.c.id, entries.c.number).where(entries.c.id.in_(list(by_id)))
            known = {row.id for row in connection.execute(there)}
            fresh = {own_id: rows_of(each) for own_id, each in by_id.items() if own_id not in known}
            if fresh:
                connection.execute(
                    sa.insert(entries), [row for rows in fresh.values() for row in rows[entries]]
                )
                numbers = {row.id: row.number for row in connection.execute(there)}
                for table in (contents, facets, events):
                    below = [
                        {**row, "number": numbers[own_id]}
                        for own_id, rows in fresh.items()
                        for row in rows[table]
                    ]
                    if below:
                        connection.execute(sa.insert(table), below)
        return len(fresh)

    def change(self, change: Change, *, actor: str) -> EntrySummary:
        """Carry out one change; return the entry as it is then.

        Raises:
            UnknownEntryError: there is no such entry.
            ChangedEntryError: it is not at ``change.version`` any more.
            ReviewError: the note is too long, or there are too many spans.
        """
        with self.database.writing() as connection:
            return ReviewStep(connection, actor, self._clock()).change(change)

    def change_many(self, changes: Sequence[Change], *, actor: str) -> Sequence[Changed]:
        """Carry out changes, each for itself; those that cannot be say why. For ``undo`` they are one step.

        Raises:
            ReviewError: there are more than ``MOST_CHANGED``.
        """
        if len(changes) > MOST_CHANGED:
            raise ReviewError(f"{len(changes)} changes at once; at most {MOST_CHANGED}")
        done: list[Changed] = []
        with self.database.writing() as connection:
            step = ReviewStep(connection, actor, self._clock())
            for each in changes:
                try:
                    done.append(Changed(each.id, step.change(each)))
                except ReviewError as error:
                    done.append(Changed(each.id, None, str(error)))
        return done

    def last_step(self, actor: str, *, since: float) -> LastStep | None:
        """Return what ``actor`` did last, after ``since``, to entries that nobody has changed again."""
        with self.database.reading() as connection:
            return last_step(connection, actor[:200], since)

    def undo(self, step: str, *, actor: str) -> Sequence[Changed]:
        """Undo what ``actor`` did in one step; entries that somebody has changed again say so and stay.

        Statuses are what they were before it, and so are marks that it took away; notes and marks that it wrote stay.

        Raises:
            ReviewError: this user did no such step, or all of it is undone.
        """
        with self.database.writing() as connection:
            return undone(connection, step, actor[:200], self._clock())

    def drop_texts(self, *, before: float, most: int = _AT_ONCE) -> int:
        """Take the texts out of entries that are older than ``before``; return of how many."""
        with self.database.writing() as connection:
            chosen = sa.select(entries.c.number).where(entries.c.has_text, entries.c.created < before)
            numbers = list(connection.scalars(chosen.order_by(entries.c.created).limit(most)))
            if not numbers:
                return 0
            kept = connection.execute(sa.select(contents).where(contents.c.number.in_(numbers)))
            for row in kept.all():
                connection.execute(
                    sa.update(contents)
                    .where(contents.c.number == row.number)
                    .values(content=without_text(row.content))
                )
            connection.execute(
                sa.update(entries).where(entries.c.number.in_(numbers)).values(has_text=False, excerpt="")
            )
        return len(numbers)

    def delete_old(self, *, before: float, most: int = _AT_ONCE) -> int:
        """Delete entries that are older than ``before``; return how many."""
        chosen = sa.select(entries.c.number).where(entries.c.created < before).order_by(entries.c.created)
        return self._delete(chosen.limit(most))

    def delete_beyond(self, limit: int, *, most: int = _AT_ONCE) -> int:
        """Delete what is more than ``limit`` entries, settled ones first, then the oldest; return how many."""
        with self.database.reading() as connection:
            count = connection.scalar(sa.select(sa.func.count()).select_from(entries)) or 0
        beyond = min(most, count - limit)
        if beyond <= 0:
            return 0
        chosen = sa.select(entries.c.number).order_by(entries.c.settled.is_(None), entries.c.number)
        return self._delete(chosen.limit(beyond))

    def _delete(self, chosen: sa.Select[Any]) -> int:
        with self.database.writing() as connection:
            numbers = list(connection.scalars(chosen))
            if numbers:
                connection.execute(sa.delete(entries).where(entries.c.number.in_(numbers)))
        return len(numbers)

    # --- reading ------------------------------------------------------------------------------------------

    def listed(
        self,
        filters: Filters = Filters(),  # noqa: B008 - it cannot be changed
        *,
        order: Order = Order.NEWEST,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page:
        """Return entries that fit ``filters``, ``limit`` of them (1 to ``MOST_LISTED``) after ``cursor``.

        Raises:
            ReviewError: the cursor is none of this order's.
        """
        limit = max(1, min(limit, MOST_LISTED))
        query = sa.select(entries).where(*conditions(filters))
        match order:
            case Order.NEWEST:
                query = query.order_by(entries.c.number.desc())
            case Order.OLDEST:
                query = query.order_by(entries.c.number)
            case Order.SCORE:
                query = query.order_by(entries.c.score.desc(), entries.c.number.desc())
        if cursor is not None:
            query = query.where(after(cursor, order))
        with self.database.reading() as connection:
            rows = connection.execute(query.limit(limit + 1)).all()
        page = tuple(summary_of(row) for row in rows[:limit])
        return Page(page, cursor_of(page[-1], order) if len(rows) > limit else None)

    def neighbour(
        self, number: int, filters: Filters, *, later: bool, order: Order = Order.NEWEST
    ) -> str | None:
        """Return the id of the entry next to ``number`` in ``order``; ``later`` for the one after it."""
        c = entries.c
        falls = (order is not Order.OLDEST) == later
        place: sa.ColumnElement[int] = sa.literal(number)
        found: sa.ColumnElement[bool] = c.number < place if falls else c.number > place
        columns: list[sa.ColumnElement[Any]] = [c.number]
        if order is Order.SCORE:
            score = sa.select(c.score).where(c.number == number).scalar_subquery()
            rows, row = sa.tuple_(c.score, c.number), sa.tuple_(score, place)
            found = rows < row if falls else rows > row
            columns.insert(0, c.score)
        query = sa.select(c.id).where(*conditions(filters), found)
        query = query.order_by(*(each.desc() if falls else each for each in columns))
        with self.database.reading() as connection:
            return connection.scalar(query.limit(1))

    def counts(
        self,
        filters: Filters = Filters(),  # noqa: B008
        *,
        most: int | None = None,
    ) -> dict[ReviewStatus, int]:
        """Return how many entries fit ``filters``, by status, whatever statuses these name.

        With ``most`` counting a status ends at ``most`` + 1, so that a filter which most entries fit takes no longer than others.
        """
        fitting = conditions(replace(filters, statuses=()))
        if most is None:
            query = sa.select(entries.c.status, sa.func.count()).where(*fitting).group_by(entries.c.status)
        else:
            parts = []
            for status in ReviewStatus:
                own = sa.select(entries.c.number).where(entries.c.status == status.value, *fitting)
                bounded = own.limit(most + 1).subquery()
                parts.append(sa.select(sa.literal(status.value), sa.func.count()).select_from(bounded))
            query = sa.union_all(*parts)  # type: ignore[assignment]
        with self.database.reading() as connection:
            found = {ReviewStatus(status): count for status, count in connection.execute(query)}
        return {status: found.get(status, 0) for status in ReviewStatus}

    def oldest_pending(self) -> float | None:
        """Return when the oldest entry that awaits review was made, ``None`` where none does."""
        pending = entries.c.status == ReviewStatus.PENDING.value
        with self.database.reading() as connection:
            return connection.scalar(
                sa.select(entries.c.created).where(pending).order_by(entries.c.number).limit(1)
            )

    def get(self, entry_id: str) -> Entry:
        """Return the entry of that id with all that is kept of it.

        Raises:
            UnknownEntryError: there is none.
        """
        query = (
            sa.select(entries, contents.c.content, contents.c.spans)
            .join(contents)
            .where(entries.c.id == entry_id)
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                raise UnknownEntryError(UNKNOWN)
            trail = connection.execute(
                sa.select(events).where(events.c.number == row.number).order_by(events.c.event)
            ).all()
        entry = entry_of_row(row, trail)
        return replace(entry, content=explained_content(entry.content))

    def all(self, filters: Filters = Filters(), *, at_once: int = 100) -> Iterable[Entry]:  # noqa: B008
        """Yield every entry that fits ``filters``, oldest first, without its audit trail; never more than ``at_once`` in memory."""
        last = 0
        while True:
            query = (
                sa.select(entries, contents.c.content, contents.c.spans)
                .join(contents)
                .where(*conditions(filters), entries.c.number > last)
                .order_by(entries.c.number)
            )
            with self.database.reading() as connection:
                rows = connection.execute(query.limit(at_once)).all()
            if not rows:
                return
            last = rows[-1].number
            for row in rows:
                yield entry_of_row(row, ())

    def summaries(
        self,
        filters: Filters = Filters(),  # noqa: B008
        *,
        order: Order = Order.OLDEST,
    ) -> Iterator[EntrySummary]:
        """Yield the summaries of all entries that fit ``filters``, in order; never more than a page in memory."""
        cursor = None
        while True:
            page = self.listed(filters, order=order, cursor=cursor, limit=MOST_LISTED)
            yield from page.entries
            if page.cursor is None:
                return
            cursor = page.cursor

    def settled(self, filters: Filters = Filters()) -> Iterator[EntrySummary]:  # noqa: B008
        """Yield the summaries of all settled entries that fit ``filters``, oldest first."""
        return self.summaries(replace(filters, statuses=SETTLED))

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the values that entries can be filtered by: ``decision``, ``detector``, ``kind``, ``level``."""
        with self.database.reading() as connection:
            found = {name: distinct(entries.c[name]) for name in ("decision", "level")}
            found |= {name: distinct(facets.c.value, facets.c.facet == name) for name in ("detector", "kind")}
            return {
                name: [str(value) for value in connection.scalars(query)] for name, query in found.items()
            }


def without_text(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of an entry without texts: what is under ``texts`` goes, notes of models, and what claims say."""
    kept = json.loads(json.dumps({name: value for name, value in content.items() if name != "texts"}))
    for choice in kept.get("choices", ()):
        for span in choice.get("spans", ()):
            span.pop("note", None)
        for claim in choice.get("claims", ()):
            for name in ("value", "original_text"):
                claim.pop(name, None)
    return dict(kept)

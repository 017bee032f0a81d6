"""Change entries in steps, each of which can be undone as one; the audit trail keeps both."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from truthlens.review.records import (
    Change,
    Changed,
    ChangedEntryError,
    EntrySummary,
    Event,
    LastStep,
    ReviewError,
    ReviewStatus,
    UnknownEntryError,
)
from truthlens.review.store.rows import summary_of
from truthlens.review.store.tables import contents, entries, events

LONGEST_NOTE = 4_000
MOST_SPANS = 1_000
UNKNOWN = "there is no entry of that id, or none any more"
_CHANGED = "somebody else has changed it since you opened it"
_CHANGED_AGAIN = "somebody has changed it again since"


class ReviewStep:
    """What one user does at once, to one entry or to many.

    Args:
        connection: of the transaction that all of it is in.
        actor: who.
        now: seconds since 1970.
    """

    def __init__(self, connection: Connection, actor: str, now: float) -> None:
        self._connection, self._actor, self._now = connection, actor[:200], now
        self._id = secrets.token_hex(16)

    def change(self, change: Change) -> EntrySummary:
        """Carry out one change, as ``ReviewQueue.change`` says."""
        if change.note is not None and len(change.note) > LONGEST_NOTE:
            raise ReviewError(f"the note has {len(change.note)} characters; at most {LONGEST_NOTE}")
        if change.spans is not None and len(change.spans) > MOST_SPANS:
            raise ReviewError(f"{len(change.spans)} spans; at most {MOST_SPANS}")
        found = sa.select(entries, contents.c.spans).join(contents).where(entries.c.id == change.id)
        row = self._connection.execute(found).one_or_none()
        if row is None:
            raise UnknownEntryError(UNKNOWN)
        before = {"status": row.status, "reviewer": row.reviewer, "settled": row.settled}
        values = self._values(change)
        # Once more when it is written, for another process may change the entry in between.
        if row.version != change.version or not _written(
            self._connection, row.number, change.version, self._now, values
        ):
            raise ChangedEntryError(_CHANGED)
        if change.clear_spans:
            before["spans"] = row.spans
            _mark(self._connection, row.number, None)
        elif change.spans is not None:
            _mark(self._connection, row.number, [asdict(each) for each in change.spans])
        turned = row.status != change.status.value
        action = _action(ReviewStatus(row.status), change)
        event = Event(self._now, self._actor, action, change.status, change.version + 1, change.note or "")
        step, kept = (self._id, before) if turned else ("", None)
        add_event(self._connection, row.number, event, step=step, before=kept)
        return replace(
            summary_of(row),
            version=change.version + 1,
            updated=self._now,
            **{**values, "status": change.status},
        )

    def _values(self, change: Change) -> dict[str, Any]:
        """Return what the entry's row holds once the change is made."""
        values: dict[str, Any] = {
            "status": change.status.value,
            "reviewer": self._actor if change.status is not ReviewStatus.PENDING else "",
            "settled": self._now if change.status.label is not None else None,
        }
        return values if change.note is None else {**values, "note": change.note}


def last_step(connection: Connection, actor: str, since: float) -> LastStep | None:
    """Return the step that ``actor`` did last, after ``since``, as far as nobody has changed its entries again."""
    standing = (
        sa.select(entries, events.c.step, events.c.status.label("became"))
        .join(events, events.c.number == entries.c.number)
        .where(events.c.version == entries.c.version)
    )
    own = standing.where(events.c.actor == actor, events.c.at >= since, events.c.step != "")
    newest = connection.execute(own.order_by(events.c.event.desc()).limit(1)).one_or_none()
    if newest is None:
        return None
    found = connection.execute(standing.where(events.c.step == newest.step).order_by(events.c.event)).all()
    statuses = {ReviewStatus(each.became) for each in found}
    return LastStep(
        newest.step, len(found), summary_of(found[0]), statuses.pop() if len(statuses) == 1 else None
    )


def undone(connection: Connection, step: str, actor: str, now: float) -> Sequence[Changed]:
    """Undo a step, as ``ReviewQueue.undo`` says; return what became of its entries."""
    if not step:
        raise ReviewError("nothing was chosen to undo")
    query = (
        sa.select(entries, events.c.version.label("made"), events.c.before)
        .join(events, events.c.number == entries.c.number)
        .where(events.c.step == step, events.c.actor == actor)
        .order_by(events.c.event)
    )
    rows = connection.execute(query).all()
    if not any(row.version == row.made for row in rows):
        raise ReviewError("there is nothing of it to undo: it is undone, or somebody has changed it again")
    return [_undone(connection, row, actor, now) for row in rows]


def _undone(connection: Connection, row: Row[Any], actor: str, now: float) -> Changed:
    values = {name: row.before[name] for name in ("status", "reviewer", "settled")}
    if not _written(connection, row.number, row.made, now, values):
        return Changed(row.id, None, _CHANGED_AGAIN)
    if "spans" in row.before:
        _mark(connection, row.number, row.before["spans"])
    version, status = row.made + 1, ReviewStatus(values["status"])
    add_event(connection, row.number, Event(now, actor, "undid", status, version))
    return Changed(
        row.id,
        replace(summary_of(row), version=version, updated=now, **{**values, "status": status}),
    )


def _written(connection: Connection, number: int, version: int, now: float, values: dict[str, Any]) -> bool:
    """Write values of an entry that is at ``version``; return whether it was."""
    done = connection.execute(
        sa.update(entries)
        .where(entries.c.number == number, entries.c.version == version)
        .values(version=version + 1, updated=now, **values)
    )
    return done.rowcount == 1


def add_event(
    connection: Connection,
    number: int,
    event: Event,
    *,
    step: str = "",
    before: Mapping[str, Any] | None = None,
) -> None:
    """Add a line to an entry's audit trail; of a ``step`` that can be undone with what was ``before``."""
    row = asdict(event) | {"status": event.status.value, "step": step, "before": before}
    connection.execute(sa.insert(events).values(number=number, **row))


def _mark(connection: Connection, number: int, spans: list[dict[str, int]] | None) -> None:
    connection.execute(sa.update(contents).where(contents.c.number == number).values(spans=spans))


def _action(before: ReviewStatus, change: Change) -> str:
    if change.status is not before:
        return {
            ReviewStatus.PENDING: "put back",
            ReviewStatus.REVIEWED: "took up",
            ReviewStatus.APPROVED: "approved",
            ReviewStatus.REJECTED: "rejected",
        }[change.status]
    if change.spans is not None or change.clear_spans:
        return "corrected spans"
    return "noted"

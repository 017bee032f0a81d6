"""Count settled entries and the backlog in the database, so that figures of 100,000 entries take no reading of them all."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from truthlens.review.figures.accuracy import DAY_S, Group, Tally
from truthlens.review.records import ReviewStatus
from truthlens.review.store.database import ReviewDatabase
from truthlens.review.store.tables import entries, facets

_SETTLED = (ReviewStatus.APPROVED.value, ReviewStatus.REJECTED.value)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What awaits reviewers.

    ``waiting`` entries are pending or taken up, the oldest since ``oldest`` (seconds since 1970, ``None`` without any). ``median_s`` is the
    median time from an answer to its being settled, seconds, ``None`` where none is settled.
    """

    waiting: int
    oldest: float | None
    median_s: float | None


def tallies(database: ReviewDatabase, group: Group = Group.ALL) -> list[Tally]:
    """Return what ``accuracy.tallies_of`` gives of all entries.

    Raises:
        QueueUnavailableError: the database does not answer.
    """
    c = entries.c
    days = c.created / DAY_S
    # PostgreSQL rounds where a number becomes an integer, SQLite cuts, and need not have floor().
    day = sa.cast(days if database.is_sqlite else sa.func.floor(days), sa.Integer)
    value: sa.ColumnElement[str] = sa.literal("")
    source: sa.FromClause = entries
    conditions: list[sa.ColumnElement[bool]] = [c.status.in_(_SETTLED)]
    if group is Group.DECISION:
        value = c.decision
    elif group is not Group.ALL:
        value = facets.c.value
        source = entries.join(facets, facets.c.number == c.number)
        conditions.append(facets.c.facet == group.value)
    # One subquery, so that what is grouped by is a column and not an expression with parameters, which PostgreSQL takes for another one.
    alike = sa.select(
        day.label("day"), value.label("value"), c.flagged, (c.status == _SETTLED[1]).label("wrong"), c.sample
    )
    rows = alike.select_from(source).where(*conditions).subquery()
    columns = (rows.c.day, rows.c.value, rows.c.flagged, rows.c.wrong, rows.c.sample)
    with database.reading() as connection:
        found = connection.execute(sa.select(*columns, sa.func.count()).group_by(*columns))
        return [Tally(row[0], row[1], bool(row[2]), bool(row[3]), row[4], row[5]) for row in found]


def backlog(database: ReviewDatabase) -> Backlog:
    """Return what awaits reviewers.

    Raises:
        QueueUnavailableError: the database does not answer.
    """
    c = entries.c
    waiting = sa.select(sa.func.count(), sa.func.min(c.created)).where(c.status.not_in(_SETTLED))
    taken = (c.settled - c.created).label("taken")
    ordered = sa.select(taken).where(c.settled.is_not(None)).order_by(taken)
    with database.reading() as connection:
        count, oldest = connection.execute(waiting).one()
        settled = connection.scalar(sa.select(sa.func.count(c.settled))) or 0
        middle = (
            connection.scalars(ordered.offset((settled - 1) // 2).limit(2 - settled % 2)).all()
            if settled
            else []
        )
    return Backlog(count, oldest, sum(middle) / len(middle) if middle else None)

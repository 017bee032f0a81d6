"""Build the conditions, the order and the cursors of queries for entries."""

from __future__ import annotations

import sqlalchemy as sa

from truthlens.review.records import EntrySummary, Filters, Order, ReviewError
from truthlens.review.store.tables import entries, facets

_MOST_VALUES = 500


def conditions(filters: Filters) -> list[sa.ColumnElement[bool]]:
    """Return what a row of the entries has to meet to fit ``filters``."""
    c = entries.c
    found: list[sa.ColumnElement[bool]] = []
    if filters.statuses:
        found.append(c.status.in_([status.value for status in filters.statuses]))
    named = ("decision", "level", "mode", "rule", "reviewer", "query_id")
    found.extend(c[name] == getattr(filters, name) for name in named if getattr(filters, name))
    for facet in ("detector", "kind"):
        if value := getattr(filters, facet):
            own = sa.select(facets.c.number).where(facets.c.facet == facet, facets.c.value == value)
            found.append(c.number.in_(own))
    if filters.flagged is not None:
        found.append(c.flagged.is_(filters.flagged))
    if filters.min_score is not None:
        found.append(c.score >= filters.min_score)
    if filters.max_score is not None:
        found.append(c.score < filters.max_score)
    if filters.since is not None:
        found.append(c.created >= filters.since)
    if filters.until is not None:
        found.append(c.created < filters.until)
    return found


def distinct(column: sa.Column[str], *conditions: sa.ColumnElement[bool]) -> sa.Select[tuple[str]]:
    """Return a select of the distinct values of an indexed column that jumps from value to value, and reads no row twice."""
    first = sa.select(sa.func.min(column).label("value")).where(*conditions).cte("values", recursive=True)
    following = sa.select(sa.func.min(column)).where(column > first.c.value, *conditions).scalar_subquery()
    # The alias of the recursion, for the scalar subquery must see the row before.
    both = first.union_all(sa.select(following).where(first.c.value.is_not(None)))
    return sa.select(both.c.value).where(both.c.value.is_not(None)).limit(_MOST_VALUES)


def cursor_of(last: EntrySummary, order: Order) -> str:
    """Return the cursor of the entries after ``last``."""
    return f"{last.score!r}_{last.number}" if order is Order.SCORE else str(last.number)


def after(cursor: str, order: Order) -> sa.ColumnElement[bool]:
    """Return what the rows after ``cursor`` meet.

    Raises:
        ReviewError: the cursor is none of this order's.
    """
    c = entries.c
    try:
        if order is not Order.SCORE:
            number = _place(cursor)
            return c.number < number if order is Order.NEWEST else c.number > number
        score_text, _, number_text = cursor.partition("_")
        score = float(score_text)
        # As a row value, which both databases look up in an index; an OR of the same is none to them.
        return sa.tuple_(c.score, c.number) < sa.tuple_(sa.literal(score), sa.literal(_place(number_text)))
    except ValueError:
        raise ReviewError("the cursor is none of this list") from None


def _place(text: str) -> int:
    number = int(text)
    if not 0 <= number < 1 << 63:
        raise ValueError("no number that a database has")
    return number

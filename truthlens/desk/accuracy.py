"""Compute from settled entries how often the detectors are right.

``tallies`` and ``backlog`` count in the database, so that figures of 100,000 entries take no reading of them
all; the rest is pure.

Shares of all answers are estimates: an entry weighs 1 / ``sample``, for one that was queued with probability
0.05 stands for twenty answers. The interval is Wilson's at 95 %, of the effective number of entries (Kish 1965).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from truthlens.core.intervals import wilson
from truthlens.review.records import EntrySummary, ReviewStatus
from truthlens.review.store.database import ReviewDatabase
from truthlens.review.store.tables import entries, facets

DAY_S = 86_400
_LEAST_SAMPLE = 1e-6
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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share, 0..1, of ``count`` entries, weighted, with its 95 % interval ``low`` to ``high``."""

    share: float
    low: float
    high: float
    count: int


@dataclass(slots=True)
class WeightedShare:
    """Adds entries up."""

    hits: float = 0.0
    weight: float = 0.0
    squares: float = 0.0
    count: int = 0

    def add(self, *, hit: bool, sample: float, count: int = 1) -> None:
        """Count ``count`` entries alike that were queued with probability ``sample``."""
        weight = 1.0 / max(sample, _LEAST_SAMPLE)
        self.hits += weight * count * hit
        self.weight += weight * count
        self.squares += weight * weight * count
        self.count += count

    def estimate(self) -> Estimate | None:
        """Return the share of hits; ``None`` of nothing."""
        if not self.count:
            return None
        share = min(1.0, self.hits / self.weight)
        return Estimate(share, *wilson(share, max(1.0, self.weight**2 / self.squares)), self.count)


class Grouping(StrEnum):
    """By what settled entries are told apart."""

    ALL = "all"
    DECISION = "decision"
    DETECTOR = "detector"
    KIND = "kind"


@dataclass(frozen=True, slots=True)
class SettledTally:
    """How many settled entries are alike.

    ``day`` is when their answers were given, days since 1970, UTC. ``value`` is what they share of a group, ``""`` for all of them.
    ``wrong`` is what the reviewers found: the answer is a hallucination. ``sample`` is the probability, 0..1, of being queued.
    """

    day: int
    value: str
    flagged: bool
    wrong: bool
    sample: float
    count: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How right the detectors were.

    ``settled`` entries, of which ``flagged`` were flagged. ``precision``: the share of flagged answers that are wrong. ``accuracy``: the share
    of all answers about which flag and reviewer agree. ``wrong``: the share of answers that are wrong. ``None`` where there are no entries for it.
    """

    settled: int
    flagged: int
    precision: Estimate | None
    accuracy: Estimate | None
    wrong: Estimate | None


def accuracy_of(tallies: Iterable[SettledTally]) -> Accuracy:
    """Return how right the detectors were on all of ``tallies``."""
    kept = list(tallies)
    flagged = [each for each in kept if each.flagged]
    return Accuracy(
        settled=sum(each.count for each in kept),
        flagged=sum(each.count for each in flagged),
        precision=_estimate(flagged, lambda each: each.wrong),
        accuracy=_estimate(kept, lambda each: each.wrong == each.flagged),
        wrong=_estimate(kept, lambda each: each.wrong),
    )


def by_value(tallies: Iterable[SettledTally]) -> Mapping[str, Accuracy]:
    """Return the figures of each value of a group, those with the most entries first."""
    parts: dict[str, list[SettledTally]] = {}
    for each in tallies:
        parts.setdefault(each.value, []).append(each)
    figures = {value: accuracy_of(part) for value, part in parts.items()}
    return dict(sorted(figures.items(), key=lambda item: (-item[1].settled, item[0])))


def by_period(tallies: Iterable[SettledTally], *, days: int, most: int) -> Sequence[tuple[int, Accuracy]]:
    """Return the figures of the last ``most`` periods of ``days`` days that have any, oldest first.

    A period is named by its first day, in days since 1970; weeks begin on Mondays.
    """
    parts: dict[int, list[SettledTally]] = {}
    for each in tallies:
        # Day 0 was a Thursday.
        start = each.day - (each.day + 3) % 7 if days == 7 else each.day - each.day % days
        parts.setdefault(start, []).append(each)
    return [(start, accuracy_of(parts[start])) for start in sorted(parts)[-most:]]


def _estimate(tallies: Iterable[SettledTally], hit: Callable[[SettledTally], bool]) -> Estimate | None:
    share = WeightedShare()
    for each in tallies:
        share.add(hit=hit(each), sample=each.sample, count=each.count)
    return share.estimate()


def values_of(entry: EntrySummary, group: Grouping) -> Iterable[str]:
    """Return what ``entry`` counts for in a group."""
    match group:
        case Grouping.ALL:
            return ("",)
        case Grouping.DECISION:
            return (entry.decision,)
        case Grouping.DETECTOR:
            return dict.fromkeys(entry.detectors)
        case Grouping.KIND:
            return dict.fromkeys(entry.kinds)


def tallies(database: ReviewDatabase, group: Grouping = Grouping.ALL) -> list[SettledTally]:
    """Return the tallies of all settled entries; one that has several values of a group counts for each.

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
    if group is Grouping.DECISION:
        value = c.decision
    elif group is not Grouping.ALL:
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
        return [SettledTally(row[0], row[1], bool(row[2]), bool(row[3]), row[4], row[5]) for row in found]


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

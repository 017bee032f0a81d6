"""The frozen record of a look-up in a database, for metrics and logs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class QueryOutcome(StrEnum):
    """What became of a query, or of a look-up that came to none.

    ``ok`` gave values, ``empty`` none. ``unreadable``: some cells hold no value of their column's type; the others count.
    ``ambiguous``: several rows where one is expected; ``too-many-rows``; ``mapping``: the database refuses the query, for a table or
    a column is not there or of another type; none of the rows counts. ``timeout``, ``unavailable``: the database is slow or
    down. No query was sent: ``cached``; ``no-scope``, ``bad-scope``: the exchange does not say which record it is about, or not in the
    key's type; ``circuit-open``: the database failed too often; ``overloaded``: too many queries wait.
    """

    OK = "ok"
    EMPTY = "empty"
    UNREADABLE = "unreadable"
    AMBIGUOUS = "ambiguous"
    TOO_MANY_ROWS = "too-many-rows"
    MAPPING = "mapping"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    CACHED = "cached"
    NO_SCOPE = "no-scope"
    BAD_SCOPE = "bad-scope"
    CIRCUIT_OPEN = "circuit-open"
    OVERLOADED = "overloaded"


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """One query, or a look-up without one.

    ``table`` is ``""`` where no table was asked. ``seconds`` is ``None`` where nothing was sent. ``error`` is the type of the
    driver's error, without its message, which may quote data.
    """

    database: str
    outcome: QueryOutcome
    table: str = ""
    seconds: float | None = None
    error: str = ""

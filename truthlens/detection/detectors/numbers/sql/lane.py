"""Ask one database for the values of a scope: its tables in parallel, within its time, on threads of its own.

A look-up never raises and never waits beyond the database's ``timeout_ms``. What comes later is still kept for the next exchange of
the same scope. Look-ups of one scope at the same time share their queries.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from truthlens.core.errors import CallError
from truthlens.core.records.queries import QueryOutcome, QueryRecord
from truthlens.detection.detectors.numbers.sql.cache import TtlCache
from truthlens.detection.detectors.numbers.sql.connection import hang_up, limit_time
from truthlens.detection.detectors.numbers.sql.mapping_check import ask_for_nothing, is_refusal
from truthlens.detection.detectors.numbers.sql.options import Database
from truthlens.detection.detectors.numbers.sql.query import (
    ScopeError,
    ScopeValue,
    TableQuery,
    scope_values,
    table_query,
)
from truthlens.detection.detectors.numbers.sql.values import Record, RowReader
from truthlens.llm.breaker import Breaker, Permit, Result

Observer = Callable[[QueryRecord], None]

_MOST_FAILURES = 3
_COOLDOWN_S = 5.0
_LONGEST_COOLDOWN_S = 60.0
_WAITING_PER_THREAD = 4
# How long after its deadline a query may hold its thread before its connection is cut. Servers end it by themselves at the deadline.
_STUCK_S = 2.0
# These cost the values of this exchange and say nothing about the record.
_PASSING = frozenset((QueryOutcome.TIMEOUT, QueryOutcome.UNAVAILABLE, QueryOutcome.OVERLOADED))
_FINE = frozenset((QueryOutcome.OK, QueryOutcome.EMPTY, QueryOutcome.CACHED))


@dataclass(frozen=True, slots=True)
class LookUp:
    """What a database gave: records, and what went wrong, each outcome once."""

    records: tuple[Record, ...] = ()
    problems: tuple[QueryOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class _TableResult:
    outcome: QueryOutcome
    records: tuple[Record, ...] = ()


class _Fetch:
    """The queries of one scope, under way."""

    def __init__(self, tables: int, until: float, permit: Permit) -> None:
        self.until = until
        self.permit = permit
        self.done = threading.Event()
        self.lock = threading.Lock()
        self.results: list[_TableResult | None] = [None] * tables


class Lane:
    """One database.

    Args:
        database: its options.
        engine: guarded (``connection.open_engine``); the lane disposes of it.
        observe: told of every query, and of every look-up that came to none, from any thread.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        database: Database,
        engine: sa.Engine,
        observe: Observer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.database = database
        self.engine = engine
        self.queries = tuple(table_query(database, table) for table in database.tables)
        self._connections = engine.pool
        self._readers = tuple(RowReader(database.name, table) for table in database.tables)
        self._observe = observe
        self._clock = clock
        self._cache: TtlCache[LookUp] = TtlCache(database.cache_entries, database.cache_ttl_s, clock)
        self._breaker = Breaker(
            clock,
            most_failures=_MOST_FAILURES,
            cooldown_s=_COOLDOWN_S,
            longest_cooldown_s=_LONGEST_COOLDOWN_S,
        )
        self._pool = ThreadPoolExecutor(
            database.pool_size, thread_name_prefix=f"truthlens-sql-{database.name}"
        )
        # Of all below. Reentrant: the lane may be closed by the garbage collector, in any thread.
        self._lock = threading.RLock()
        self._fetches: dict[tuple[object, ...], _Fetch] = {}
        self._pending = 0
        self._running: dict[int, tuple[Any, float]] = {}
        self._closed = False

    def begin(self, scope: Mapping[str, str]) -> Callable[[], LookUp]:
        """Send the queries for a scope, and return what waits for their results, as long as the database's time lasts."""
        self._cut_stuck()
        try:
            values = scope_values(self.database, scope)
        except ScopeError:
            return self._without(QueryOutcome.BAD_SCOPE)
        wanted = [
            place for place, query in enumerate(self.queries) if values.keys() >= set(query.keys.values())
        ]
        if not wanted:
            return self._without(QueryOutcome.NO_SCOPE)
        key = tuple(values.get(name) for name in self.database.scope)
        kept = self._cache.get(key)
        if kept is not None:
            self._note(QueryOutcome.CACHED)
            return lambda: kept
        with self._lock:
            fetch = self._fetches.get(key) or self._start(key, values, wanted)
        if isinstance(fetch, QueryOutcome):
            return self._without(fetch)
        until = self._clock() + self.database.timeout_s
        return lambda: self._collect(fetch, until)

    def warm_up(self) -> None:
        """Connect, and send each query once for nothing, so that no exchange waits for that.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database is slow or down, or refuses a query.
        """
        with ExitStack() as opened:
            wanted = min(self.database.pool_size, len(self.queries))
            connections = [opened.enter_context(self.engine.connect()) for _ in range(wanted)]
            for place, query in enumerate(self.queries):
                ask_for_nothing(connections[place % wanted], self.database, query)

    def close(self, *, wait: bool = True) -> None:
        """Send nothing more, and let go of threads and connections; what waits for an answer is cut."""
        with self._lock:
            self._closed = True
            for connection, _ in self._running.values():
                hang_up(connection)
        self._pool.shutdown(wait=wait, cancel_futures=True)
        self._connections.dispose()

    def _start(
        self, key: tuple[object, ...], values: Mapping[str, ScopeValue], wanted: Sequence[int]
    ) -> _Fetch | QueryOutcome:
        """Send the queries, or say why not; the lock is held."""
        if self._closed or self._pending + len(wanted) > _WAITING_PER_THREAD * max(
            self.database.pool_size, len(wanted)
        ):
            return QueryOutcome.OVERLOADED
        try:
            permit = self._breaker.admit()
        except CallError:
            return QueryOutcome.CIRCUIT_OPEN
        fetch = _Fetch(len(wanted), self._clock() + self.database.timeout_s, permit)
        self._fetches[key] = fetch
        self._pending += len(wanted)
        for slot, place in enumerate(wanted):
            self._pool.submit(self._run, key, fetch, slot, place, values)
        return fetch

    def _collect(self, fetch: _Fetch, until: float) -> LookUp:
        if not fetch.done.wait(max(0.0, until - self._clock())):
            with self._lock:
                # Counted once: what has been settled has another era, or is settled by nobody else.
                self._settle(fetch, Result.BAD)
        with fetch.lock:
            results = list(fetch.results)
        return _joined(results)

    def _run(
        self, key: tuple[object, ...], fetch: _Fetch, slot: int, place: int, values: Mapping[str, ScopeValue]
    ) -> None:
        """Ask one table, on a thread of the pool."""
        began = self._clock()
        result, error = _TableResult(QueryOutcome.TIMEOUT), ""
        sent = began < fetch.until and not self._closed
        try:
            if sent:
                result = self._query(place, values, fetch.until)
        except Exception as failure:  # noqa: BLE001 - whatever a driver raises costs the values of this table, nothing else
            result, error = _TableResult(_outcome_of(failure)), name_of(failure)
        finally:
            self._tell(QueryRecord(
                self.database.name, result.outcome, self.database.tables[place].table, self._clock() - began if sent else None, error
            ))  # fmt: skip
            with fetch.lock:
                fetch.results[slot] = result
                complete = all(each is not None for each in fetch.results)
            with self._lock:
                self._pending -= 1
                if complete:
                    self._finish(key, fetch)
            if complete:
                fetch.done.set()

    def _finish(self, key: tuple[object, ...], fetch: _Fetch) -> None:
        """Keep the results of a fetch whose last query has ended; the lock is held."""
        if self._fetches.get(key) is fetch:
            del self._fetches[key]
        found = _joined(fetch.results)
        outcomes = {each.outcome for each in fetch.results if each is not None}
        self._settle(fetch, Result.BAD if outcomes & _PASSING else Result.GOOD)
        if not outcomes & _PASSING:
            self._cache.put(key, found)

    def _settle(self, fetch: _Fetch, result: Result) -> None:
        """Tell the breaker how a fetch ended, once; the lock is held."""
        permit, fetch.permit = fetch.permit, _SETTLED
        if permit is not _SETTLED:
            self._breaker.settle(permit, result)

    def _query(self, place: int, values: Mapping[str, ScopeValue], until: float) -> _TableResult:
        query = self.queries[place]
        bound = {parameter: values[key] for parameter, key in query.keys.items()}
        try:
            rows = self._rows(query, bound, until)
        except DBAPIError as error:
            # A connection that the server closed while it lay in the pool; a new one is tried, once.
            if not error.connection_invalidated or self._clock() >= until:
                raise
            rows = self._rows(query, bound, until)
        if len(rows) > query.limit:
            return _TableResult(
                QueryOutcome.AMBIGUOUS if query.table.rows == "one" else QueryOutcome.TOO_MANY_ROWS
            )
        read = self._readers[place].read(rows)
        if read.unreadable:
            return _TableResult(QueryOutcome.UNREADABLE, read.records)
        return _TableResult(QueryOutcome.OK if read.records else QueryOutcome.EMPTY, read.records)

    def _rows(
        self, query: TableQuery, bound: Mapping[str, ScopeValue], until: float
    ) -> Sequence[Sequence[object]]:
        connection = self.engine.connect()
        driver: Any = connection.connection.dbapi_connection
        mark = threading.get_ident()
        with self._lock:
            self._running[mark] = (driver, until)
        try:
            limit_time(driver, time.monotonic() + max(0.0, until - self._clock()))
            return connection.execute(query.statement, dict(bound)).fetchmany(query.limit + 1)
        finally:
            # Closing speaks to the server as well.
            try:
                connection.close()
            finally:
                with self._lock:
                    del self._running[mark]
                if self._closed:
                    self._connections.dispose()

    def _cut_stuck(self) -> None:
        """Free the threads of a server that neither answers nor hangs up."""
        with self._lock:
            for connection, until in self._running.values():
                if self._clock() > until + _STUCK_S:
                    hang_up(connection)

    def _without(self, outcome: QueryOutcome) -> Callable[[], LookUp]:
        self._note(outcome)
        found = LookUp(problems=(outcome,))
        return lambda: found

    def _note(self, outcome: QueryOutcome) -> None:
        self._tell(QueryRecord(self.database.name, outcome))

    def _tell(self, record: QueryRecord) -> None:
        self._observe(record)


_SETTLED = Permit(-1)


def _joined(results: Sequence[_TableResult | None]) -> LookUp:
    """Return the results of tables as one; a table that has not answered is too late."""
    given = [_TableResult(QueryOutcome.TIMEOUT) if each is None else each for each in results]
    problems = dict.fromkeys(each.outcome for each in given if each.outcome not in _FINE)
    return LookUp(tuple(record for each in given for record in each.records), tuple(problems))


def _outcome_of(failure: Exception) -> QueryOutcome:
    if isinstance(failure, PoolTimeoutError):
        return QueryOutcome.OVERLOADED
    if not isinstance(failure, DBAPIError):
        return QueryOutcome.UNAVAILABLE
    # PostgreSQL: query_canceled, lock_not_available; SQLite: interrupted, or locked for all of the time.
    late = getattr(failure.orig, "sqlstate", None) in ("57014", "55P03")
    if late or (
        _is_sqlite(failure)
        and str(failure.orig).startswith(("interrupted", "database is locked", "database table is locked"))
    ):
        return QueryOutcome.TIMEOUT
    return QueryOutcome.MAPPING if is_refusal(failure) else QueryOutcome.UNAVAILABLE


def _is_sqlite(failure: DBAPIError) -> bool:
    return type(failure.orig).__module__ == "sqlite3"


def name_of(failure: Exception) -> str:
    """Return the name of a failure's class: the driver's, where it has one."""
    return type(getattr(failure, "orig", None) or failure).__name__

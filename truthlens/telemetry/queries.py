"""Count the look-ups in databases, and log those that cost values, not more often than somebody wants to read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

from truthlens.core.records.queries import QueryOutcome, QueryRecord
from truthlens.telemetry.detector_metrics import DetectorMetrics

log = structlog.get_logger("truthlens.queries")

_EVERY_S = 60.0
_MOST_KEPT = 1000
_QUIET = frozenset((QueryOutcome.OK, QueryOutcome.EMPTY, QueryOutcome.CACHED))


class QueryWatch:
    """Tells metrics and log of look-ups; safe in several threads.

    A line says which database and table, why, and how often that happened since the line before; it holds no value.

    Args:
        signals: what counts.
        clock: seconds, monotonic.
    """

    def __init__(self, signals: DetectorMetrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._signals = signals
        self._clock = clock
        self._lock = threading.Lock()
        self._told: dict[tuple[str, str, QueryOutcome], tuple[float, int]] = {}

    def __call__(self, record: QueryRecord) -> None:
        """Count a look-up; log it if it cost values, once a minute for each database, table and outcome."""
        self._signals.observe_query(record)
        if record.outcome in _QUIET:
            return
        times = self._due(record)
        if times:
            log.warning(
                "values of a database are missing",
                database=record.database,
                table=record.table,
                outcome=record.outcome.value,
                error=record.error,
                times=times,
            )

    def _due(self, record: QueryRecord) -> int:
        """Return how many of the kind a line has to tell of, 0 where none is due."""
        key, now = (record.database, record.table, record.outcome), self._clock()
        with self._lock:
            if len(self._told) >= _MOST_KEPT:
                self._told.clear()
            last, times = self._told.get(key, (-_EVERY_S, 0))
            if now - last < _EVERY_S and key in self._told:
                self._told[key] = (last, times + 1)
                return 0
            self._told[key] = (now, 0)
            return times + 1

"""Look-ups in databases are counted, and logged where they cost values."""

from __future__ import annotations

import structlog

from truthlens.core.records.queries import QueryOutcome, QueryRecord
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.queries import QueryWatch


def test_every_look_up_is_counted_and_timed() -> None:
    """By database and outcome; what sent nothing has no time."""
    signals = Metrics()
    watch = QueryWatch(signals.detectors)
    watch(QueryRecord("finance", QueryOutcome.OK, "t", 0.01))
    watch(QueryRecord("finance", QueryOutcome.CACHED))
    value = signals.registry.get_sample_value
    assert value("truthlens_sql_queries_total", {"database": "finance", "outcome": "ok"}) == 1
    assert value("truthlens_sql_queries_total", {"database": "finance", "outcome": "cached"}) == 1
    assert value("truthlens_sql_query_seconds_count", {"database": "finance"}) == 1


def test_missing_values_are_logged_once_a_minute() -> None:
    """The next line says how often it happened meanwhile; what gave values is not logged."""
    now = [0.0]
    watch = QueryWatch(Metrics().detectors, clock=lambda: now[0])
    late = QueryRecord("finance", QueryOutcome.TIMEOUT, "t", 0.1, "QueryCanceled")
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            watch(late)
        watch(QueryRecord("finance", QueryOutcome.EMPTY, "t", 0.1))
        watch(QueryRecord("finance", QueryOutcome.NO_SCOPE))
        now[0] = 61.0
        watch(late)
    assert [(line["outcome"], line["times"]) for line in lines] == [
        ("timeout", 1),
        ("no-scope", 1),
        ("timeout", 3),
    ]
    assert lines[0]["table"] == "t"
    assert lines[0]["error"] == "QueryCanceled"

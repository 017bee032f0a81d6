"""Counting of what single detectors found, and of look-ups in databases, which are logged where they cost values."""

from __future__ import annotations

from dataclasses import replace

import structlog
from structlog.testing import capture_logs

from truthlens.core.records.enums import Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.queries import QueryOutcome, QueryRecord
from truthlens.core.records.verdict import DetectorResult, Verdict
from truthlens.telemetry.detector_metrics import QueryWatch
from truthlens.telemetry.logs import log_exchange
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.tracing import ExchangeTrace

VERDICT = Verdict(Status.CHECKED, score=0.7, threshold=0.5)
OUTCOME = Outcome(Plan("support"), VERDICT, (VERDICT,), first=(VERDICT,))


def cited(**details: float | str) -> Verdict:
    """A verdict with a result of ``citations``."""
    result = DetectorResult("citations", 0.5, details=details)
    return replace(VERDICT, results=(DetectorResult("encoder", 0.1), result))


def test_checks_of_citations_are_counted() -> None:
    """Mean risk, share high, and the rates of invalid and missing citations follow from what is exposed."""
    high = cited(
        level="high", valid_citations=3, invalid_citations=1, total_claims=8, uncited_sentences=2, codes="x"
    )
    unread = cited(invalid_citations=1)
    silent = replace(VERDICT, results=(DetectorResult("citations", None, abstained=True),))
    signals = Metrics()
    signals.observe(replace(OUTCOME, verdicts=(high, unread, silent, VERDICT)), request_s=0.0, response_s=0.0)
    value = signals.registry.get_sample_value
    assert value("truthlens_citation_risk_sum", {"decision": "support"}) == 0.5
    assert value("truthlens_citation_risk_count", {"decision": "support"}) == 1
    levels = {
        level: value("truthlens_citation_checks_total", {"decision": "support", "level": level})
        for level in ("high", "unread", "low")
    }
    assert levels == {"high": 1, "unread": 1, "low": None}
    counts = [
        value("truthlens_citations_total", {"decision": "support", "kind": kind})
        for kind in ("valid", "invalid", "claims", "uncited")
    ]
    assert counts == [3, 2, 8, 2]


def test_a_check_of_citations_is_logged_without_text() -> None:
    """Risk, counts and codes; nothing where nothing was judged."""
    high = cited(
        level="high", valid_citations=3, invalid_citations=1, uncited_sentences=2, codes="risk uncited"
    )
    with capture_logs() as lines:
        for verdicts in ((high, VERDICT), (VERDICT,)):
            log_exchange(
                replace(OUTCOME, verdicts=verdicts),
                endpoint=None, request_id="r", passages=1, stream=False, request_bytes=9, request_s=0.0, response_s=0.0,
                    trace=ExchangeTrace(),
            )  # fmt: skip
    assert [line["citations"] for line in lines] == [
        [{"risk": 0.5, "invalid": 1, "uncited": 2, "codes": ["risk", "uncited"]}],
        None,
    ]


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

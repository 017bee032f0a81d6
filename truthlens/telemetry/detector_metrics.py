"""The metrics of what single detectors found: citations, values, look-ups in databases, the drift of the encoder's scores.

Look-ups that cost values are logged as well, not more often than somebody wants to read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry

from truthlens.core.records.enums import DetectorName
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.queries import QueryOutcome, QueryRecord
from truthlens.core.records.verdict import DetectorResult, ValueClaim, Verdict
from truthlens.core.thresholds import at_rate
from truthlens.telemetry.drift import ModelKey, ScoreDrift
from truthlens.telemetry.metric_table import (
    LATENCY_BUCKETS,
    SCORE_BUCKETS,
    MetricTable,
    counter,
    gauge,
    histogram,
)

log = structlog.get_logger("truthlens.queries")

_EVERY_S = 60.0
_MOST_KEPT = 1000
_QUIET = frozenset((QueryOutcome.OK, QueryOutcome.EMPTY, QueryOutcome.CACHED))


@dataclass(frozen=True, slots=True)
class CitationFigures:
    """One check of an answer's citations.

    ``risk`` is 0..1. ``level`` is low, moderate or high, ``""`` where claims were not counted. ``valid`` and ``invalid`` are
    labels, each once; ``uncited`` the long sentences without a citation among ``claims``. ``codes`` say what made the level.
    """

    risk: float
    level: str
    valid: int
    invalid: int
    claims: int
    uncited: int
    codes: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Return what is logged of the check."""
        return {
            "risk": round(self.risk, 4),
            "invalid": self.invalid,
            "uncited": self.uncited,
            "codes": list(self.codes),
        }


class DetectorMetrics(MetricTable):
    """The part of the metrics of one process that is some detector's own.

    Args:
        registry: where all metrics of the process are.
    """

    # fmt: off
    citation_risk = histogram("truthlens_citation_risk", SCORE_BUCKETS, "decision", text=
        "Risk by the citations of a delivered choice, 0 to 1, where the detector citations judged it.")
    citation_levels = counter("truthlens_citation_checks", "decision", "level", text=(
        "Choices whose citations were judged: level is low, moderate, high, or unread where claims could "
        "not be counted."))
    citation_counts = counter("truthlens_citations", "decision", "kind", text=(
        "What these checks counted: kind is valid or invalid (citations), claims, or uncited (long "
        "sentences without one)."))
    numeric_claims = counter("truthlens_numeric_claims", "type", "outcome", text=(
        "Values of answers that the detector numbers compared, as delivered: type is the kind of value; "
        "outcome is verified, derived, contradicted, misplaced or absent."))
    sql_queries = counter("truthlens_sql_queries", "database", "outcome", text=
        "Queries of detectors to databases, and look-ups that came to none, by outcome (docs/detectors.md).")
    sql_query_seconds = histogram("truthlens_sql_query_seconds", LATENCY_BUCKETS, "database", text=
        "Time of a query to a database, of one that nobody waited for any more to its end.")
    score_drift = gauge("truthlens_score_drift", "model", "revision", text=(
        "How far the last scores of a model are from those it was calibrated on, 0 to 1, whatever share is "
        "unsupported; nothing until there are enough."))
    cascade = counter("truthlens_cascade", "decision", "stage", text=(
        "Choices by what decided them, where the decision has detectors that ask models: stage is first "
        "(nobody was asked), band, unscored, always, sample, or confirm (a correction)."))
    agreement = counter("truthlens_detector_agreement", "decision", "detector", "first", "models", text=(
        "Choices that models were asked about, as the backend gave them: first and models say whether each "
        "stage flags the choice by itself (true, false)."))
    # fmt: on

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.drift = ScoreDrift()

    def observe_first(self, outcome: Outcome) -> None:
        """Take in what the stages said of the answers as the backend gave them.

        The encoder's scores are compared with what it was calibrated on, which saw such answers.
        """
        plan = outcome.plan
        asking = {spec.name for spec in plan.asking}
        for verdict in outcome.first if asking else ():
            self.cascade.labels(plan.decision, verdict.stage.value).inc()
            if verdict.first_score is None:
                continue
            for result in verdict.results:
                if result.detector in asking and result.score is not None:
                    said = at_rate(result.score, plan.expected_rate) >= plan.threshold
                    first = verdict.first_score >= plan.threshold
                    self.agreement.labels(
                        plan.decision, result.detector, str(first).lower(), str(said).lower()
                    ).inc()
        for result in (result for each in outcome.first for result in each.results):
            if result.detector == DetectorName.ENCODER and result.score is not None:
                model = ModelKey(outcome.model, result.revision)
                self.drift.observe(model, outcome.plan.aggregation, result.score)

    def observe_delivered(self, outcome: Outcome) -> None:
        """Count what detectors found of the answers as they were delivered."""
        for claim in value_claims(outcome):
            self.numeric_claims.labels(claim.claim_type, claim.outcome).inc()
        for figures in citation_figures(outcome.verdicts):
            self._observe_citations(outcome.plan.decision, figures)

    def observe_query(self, record: QueryRecord) -> None:
        """Count a look-up in a database; from any thread."""
        self.sql_queries.labels(record.database, record.outcome.value).inc()
        if record.seconds is not None:
            self.sql_query_seconds.labels(record.database).observe(record.seconds)

    def collect_drift(self) -> None:
        """Set the gauge of drift."""
        self.score_drift.clear()
        for drift in self.drift.figures():
            self.score_drift.labels(*drift.model).set(round(drift.distance, 4))

    def _observe_citations(self, decision: str, figures: CitationFigures) -> None:
        if figures.level:
            self.citation_risk.labels(decision).observe(figures.risk)
        self.citation_levels.labels(decision, figures.level or "unread").inc()
        for kind, count in (
            ("valid", figures.valid),
            ("invalid", figures.invalid),
            ("claims", figures.claims),
            ("uncited", figures.uncited),
        ):
            self.citation_counts.labels(decision, kind).inc(count)


def value_claims(outcome: Outcome) -> list[ValueClaim]:
    """Return the values that were compared, in all answers as they were delivered."""
    results = (result for verdict in outcome.verdicts for result in verdict.results)
    return [claim for result in results for claim in result.claims]


def citation_figures(verdicts: Sequence[Verdict]) -> Iterator[CitationFigures]:
    """Yield the figures of every choice whose citations were checked, in order."""
    for verdict in verdicts:
        for result in verdict.results:
            if result.detector == DetectorName.CITATIONS and result.score is not None:
                yield CitationFigures(
                    risk=result.score,
                    level=str(result.details.get("level", "")),
                    valid=_count(result, "valid_citations"),
                    invalid=_count(result, "invalid_citations"),
                    claims=_count(result, "total_claims"),
                    uncited=_count(result, "uncited_sentences"),
                    codes=tuple(str(result.details.get("codes", "")).split()),
                )


def _count(result: DetectorResult, name: str) -> int:
    value = result.details.get(name, 0)
    return int(value) if isinstance(value, int | float) else 0


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

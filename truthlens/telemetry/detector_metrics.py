"""The metrics of what single detectors found: citations, values, look-ups in databases, the drift of the encoder's scores."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from truthlens.core.records.enums import DetectorName
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.queries import QueryRecord
from truthlens.core.records.verdict import ValueClaim
from truthlens.core.thresholds import at_rate
from truthlens.telemetry.buckets import LATENCY_BUCKETS, SCORE_BUCKETS
from truthlens.telemetry.citation_figures import CitationFigures, citation_figures
from truthlens.telemetry.drift import ModelKey, ScoreDrift


class DetectorMetrics:
    """The part of the metrics of one process that is some detector's own.

    Args:
        registry: where all metrics of the process are.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.citation_risk = Histogram(
            "truthlens_citation_risk",
            "Risk by the citations of a delivered choice, 0 to 1, where the detector citations judged it.",
            ("decision",),
            buckets=SCORE_BUCKETS,
            registry=registry,
        )
        self.citation_levels = Counter(
            "truthlens_citation_checks",
            "Choices whose citations were judged: level is low, moderate, high, or unread where claims could not be counted.",
            ("decision", "level"),
            registry=registry,
        )
        self.citation_counts = Counter(
            "truthlens_citations",
            "What these checks counted: kind is valid or invalid (citations), claims, or uncited (long sentences without one).",
            ("decision", "kind"),
            registry=registry,
        )
        self.numeric_claims = Counter(
            "truthlens_numeric_claims",
            "Values of answers that the detector numbers compared, as delivered: type is the kind of value; outcome is verified,"
            " derived, contradicted, misplaced or absent.",
            ("type", "outcome"),
            registry=registry,
        )
        self.sql_queries = Counter(
            "truthlens_sql_queries",
            "Queries of detectors to databases, and look-ups that came to none, by outcome (docs/detectors.md).",
            ("database", "outcome"),
            registry=registry,
        )
        self.sql_query_seconds = Histogram(
            "truthlens_sql_query_seconds",
            "Time of a query to a database, of one that nobody waited for any more to its end.",
            ("database",),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.score_drift = Gauge(
            "truthlens_score_drift",
            "How far the last scores of a model are from those it was calibrated on, 0 to 1, whatever share is unsupported;"
            " nothing until there are enough.",
            ("model", "revision"),
            registry=registry,
        )
        self.drift = ScoreDrift()
        self.cascade = Counter(
            "truthlens_cascade",
            "Choices by what decided them, where the decision has detectors that ask models: stage is first (nobody was"
            " asked), band, unscored, always, sample, or confirm (a correction).",
            ("decision", "stage"),
            registry=registry,
        )
        self.agreement = Counter(
            "truthlens_detector_agreement",
            "Choices that models were asked about, as the backend gave them: first and models say whether each stage flags"
            " the choice by itself (true, false).",
            ("decision", "detector", "first", "models"),
            registry=registry,
        )

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

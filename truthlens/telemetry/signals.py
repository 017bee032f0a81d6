"""The ``truthlens_*`` metrics (product contract, section 13).

Label values come from the configuration (decision and model names) or from closed lists (mode, reason, action),
never from traffic, so the number of series is bounded by the policy.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from truthlens.core.records import Outcome, Status

disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no annotation there

_SCORE_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
_LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_RATIO_BUCKETS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


class Signals:
    """All metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.detections = Counter(
            "truthlens_detections",
            "Answers that were scored.",
            ("decision", "mode", "detected"),
            registry=registry,
        )
        self.score = Histogram(
            "truthlens_score",
            "Score of the text that the client received, 0 to 1, higher is worse.",
            ("decision", "mode"),
            buckets=_SCORE_BUCKETS,
            registry=registry,
        )
        self.latency = Histogram(
            "truthlens_latency_seconds",
            "Time that TruthLens added: operation is request, response or total.",
            ("mode", "operation"),
            buckets=_LATENCY_BUCKETS,
            registry=registry,
        )
        self.iterations = Histogram(
            "truthlens_iterations",
            "Extra generations made for an exchange.",
            ("decision", "mode"),
            buckets=(0, 1, 2, 3, 5, 10),
            registry=registry,
        )
        # The contract's name has no _total, which the client library would append to a Counter.
        self.models_used = Gauge(
            "truthlens_models_used",
            "Uses of a model in a role; only ever grows.",
            ("model", "role"),
            registry=registry,
        )
        self.unchecked = Counter(
            "truthlens_unchecked",
            "Exchanges of which nothing, or not all, was checked.",
            ("decision", "reason"),
            registry=registry,
        )
        self.coverage = Histogram(
            "truthlens_coverage_ratio",
            "Share of answer tokens scored and of evidence tokens seen.",
            ("part",),
            buckets=_RATIO_BUCKETS,
            registry=registry,
        )
        self.actions = Counter(
            "truthlens_actions", "What was done to answers.", ("decision", "action"), registry=registry
        )
        self.abandoned = Counter(
            "truthlens_abandoned", "Exchanges that ended before their answer was judged.", registry=registry
        )
        self.inflight = Gauge("truthlens_inflight", "Exchanges being read or judged.", registry=registry)
        self.held_bytes = Gauge(
            "truthlens_held_bytes", "Bytes of bodies being read or judged.", registry=registry
        )
        self.queue_seconds = Histogram(
            "truthlens_queue_seconds",
            "Time that a scoring waited for a worker.",
            buckets=_LATENCY_BUCKETS,
            registry=registry,
        )
        self.policy_reloads = Counter(
            "truthlens_policy_reloads",
            "Policy reloads: result is ok or failed.",
            ("result",),
            registry=registry,
        )
        self.model_info = Gauge(
            "truthlens_model_info",
            "1 for each loaded detector model; configured is the policy's model_id.",
            ("model", "configured"),
            registry=registry,
        )
        for result in ("ok", "failed"):
            self.policy_reloads.labels(result)

    def observe(self, outcome: Outcome, *, request_s: float, response_s: float) -> None:
        """Count one ended exchange; times in seconds."""
        decision, mode, verdict = outcome.plan.decision, outcome.mode.value, outcome.verdict
        for operation, seconds in (
            ("request", request_s),
            ("response", response_s),
            ("total", request_s + response_s),
        ):
            self.latency.labels(mode, operation).observe(seconds)
        self.actions.labels(decision, outcome.action.value).inc()
        if verdict.reason is not None and verdict.status is not Status.CHECKED:
            self.unchecked.labels(decision, verdict.reason.value).inc()
        if verdict.score is None:
            return
        self.detections.labels(decision, mode, str(verdict.flagged).lower()).inc()
        self.score.labels(decision, mode).observe(verdict.score)
        self.iterations.labels(decision, mode).observe(outcome.iterations)
        self.models_used.labels(outcome.model, "detector").inc()
        for each in outcome.verdicts:
            if each.coverage is not None:
                self.coverage.labels("answer").observe(each.coverage.answer_ratio)
                self.coverage.labels("evidence").observe(each.coverage.evidence_ratio)

    def exposition(self) -> bytes:
        """All metrics in Prometheus text format."""
        return generate_latest(self.registry)

"""The ``truthlens_*`` metrics (product contract, section 13).

Label values come from the configuration (decision and model names) or from closed lists (mode, reason,
action), never from traffic, so the number of series is bounded by the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import Metric

from truthlens.core.records.calls import CallRecord, Role
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.verdict import Verdict
from truthlens.telemetry.buckets import LATENCY_BUCKETS, SCORE_BUCKETS
from truthlens.telemetry.detector_metrics import DetectorMetrics
from truthlens.telemetry.last_hour import LastHour
from truthlens.telemetry.review_metrics import ReviewMetrics
from truthlens.telemetry.score_history import ScoreHistory

disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no annotation there

_RATIO_BUCKETS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)

# A source for each reason that ``Exchange.not_checkable`` gives.
_WITHOUT = {Reason.NO_CONTEXT: "none", Reason.UNSURE_CONTEXT: "unsure", Reason.NOT_AN_ANSWER: "not-an-answer"}

# The white paper's name has no _total, which the client library appends to the name of a Counter.
_MODELS_USED = "truthlens_models_used"


class _PlainCounter(Counter):
    """A counter whose series have its name unchanged."""

    def collect(self) -> Iterable[Metric]:
        """Return the metric with the library's suffix taken off its samples."""
        for metric in super().collect():
            metric.samples = [each._replace(name=each.name.removesuffix("_total")) for each in metric.samples]
            yield metric


class Metrics:
    """All metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.detections = Counter(
            "truthlens_detections",
            "Choices that were scored, as they were delivered: detected says whether a corrected one is still flagged.",
            ("decision", "mode", "detected"),
            registry=registry,
        )
        self.first_detections = Counter(
            "truthlens_first_detections",
            "Choices that were scored, as the backend gave them, before anything was done about them.",
            ("decision", "mode", "detected"),
            registry=registry,
        )
        self.score = Histogram(
            "truthlens_score",
            "Score of the text that the client received, 0 to 1, higher is worse.",
            ("decision", "mode"),
            buckets=SCORE_BUCKETS,
            registry=registry,
        )
        self.latency = Histogram(
            "truthlens_latency_seconds",
            "Time that TruthLens added: operation is request, response or total; detection (of the backend's answer; of a"
            " stream the last pass) and mitigation are parts of response.",
            ("mode", "operation"),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.iterations = Histogram(
            "truthlens_iterations",
            "Refinement rounds of an exchange's choice that took the most.",
            ("decision", "mode"),
            buckets=(0, 1, 2, 3, 5, 10),
            registry=registry,
        )
        self.models_used = _PlainCounter(
            _MODELS_USED,
            "Uses of a model in a role.",
            ("model", "role"),
            registry=registry,
        )
        self.tokens = Counter(
            "truthlens_tokens",
            "Tokens of extra calls to models: kind is prompt or completion.",
            ("model", "kind"),
            registry=registry,
        )
        self.cost = Counter(
            "truthlens_cost_usd",
            "Cost of extra calls to models that have a price.",
            ("model",),
            registry=registry,
        )
        self.calls = Counter(
            "truthlens_model_calls",
            "Extra calls to models: result is ok or why there was no text.",
            ("model", "role", "result"),
            registry=registry,
        )
        self.call_seconds = Histogram(
            "truthlens_model_call_seconds",
            "Time of an extra call to a model, with its retries.",
            ("model", "role"),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.mitigations = Counter(
            "truthlens_mitigations",
            "Answers that a mode worked on; stop is why it ended.",
            ("decision", "mode", "stop"),
            registry=registry,
        )
        self.marks = Counter(
            "truthlens_marks",
            "Requests with the mark of a call of our own: result is accepted or unknown.",
            ("result",),
            registry=registry,
        )
        self.auto_arm = Gauge(
            "truthlens_auto_arm",
            "Beta posterior of a mode: parameter is alpha (good outcomes) or beta (bad ones).",
            ("decision", "mode", "parameter"),
            registry=registry,
        )
        self.auto_choices = Counter(
            "truthlens_auto_choices", "Modes that auto chose.", ("decision", "mode"), registry=registry
        )
        self.auto_store_errors = Counter(
            "truthlens_auto_store_errors", "Failures of the store of auto's arms.", registry=registry
        )
        self.result_cache = Counter(
            "truthlens_result_cache",
            "Look-ups of results that models gave before: result is hit, miss, shared (with one that was under way), unkept (too"
            " large, or no JSON) or, of redis, error.",
            ("tier", "result"),
            registry=registry,
        )
        self.result_cache_entries = Gauge(
            "truthlens_result_cache_entries", "Results that this process keeps.", registry=registry
        )
        self.result_cache_bytes = Gauge(
            "truthlens_result_cache_bytes", "Memory that they take, about.", registry=registry
        )
        self.unchecked = Counter(
            "truthlens_unchecked",
            "Exchanges of which nothing, or not all, was checked.",
            ("decision", "reason"),
            registry=registry,
        )
        self.evidence = Counter(
            "truthlens_evidence",
            "Exchanges by what their evidence came from, each source of an exchange once: tool, system, documents, user, answer;"
            " none, unsure (no-context, unsure-context) and not-an-answer where there was none to check against.",
            ("source",),
            registry=registry,
        )
        self.unexplained = Counter(
            "truthlens_unexplained",
            "Times that spans were wanted explained, or shown with the phrase around them, and were not: no time, no room, or a"
            " failure, which the log names.",
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
            "truthlens_abandoned", "Exchanges that ended before their answer was scored.", registry=registry
        )
        self.inflight = Gauge("truthlens_inflight", "Exchanges being read or scored.", registry=registry)
        self.streams = Gauge(
            "truthlens_streams",
            "Answers being observed or gated while they stream.",
            ("streaming",),
            registry=registry,
        )
        self.stream_lag = Histogram(
            "truthlens_stream_verdict_lag_seconds",
            "Time from the end of a streamed answer to its verdict, for which the end of the stream was held.",
            ("streaming",),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.stream_hold = Histogram(
            "truthlens_stream_hold_seconds",
            "The longest time that text of a streamed answer was held.",
            ("streaming",),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.stream_sentences = Counter(
            "truthlens_stream_sentences",
            "Sentences of gated streams: result is passed, flagged or unchecked.",
            ("decision", "result"),
            registry=registry,
        )
        self.held_bytes = Gauge(
            "truthlens_held_bytes", "Bytes of bodies being read or scored.", registry=registry
        )
        self.queue_seconds = Histogram(
            "truthlens_queue_seconds",
            "Time that a scoring waited for a worker.",
            buckets=LATENCY_BUCKETS,
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
        self.detectors = DetectorMetrics(registry)
        self.reviews = ReviewMetrics(registry)
        # For the console, which shows them without a Prometheus.
        self.score_history, self.last_hour = ScoreHistory(), LastHour()
        for result in ("ok", "failed"):
            self.policy_reloads.labels(result)
        self._collectors: list[Callable[[], None]] = [self.detectors.collect_drift]

    def on_scrape(self, collect: Callable[[], None]) -> None:
        """Call ``collect`` before every exposition, to set gauges that are not kept current otherwise."""
        self._collectors.append(collect)

    def observe(self, outcome: Outcome, *, request_s: float, response_s: float) -> None:
        """Count one ended exchange; times in seconds."""
        decision, mode, verdict = outcome.plan.decision, outcome.mode.value, outcome.verdict
        self.score_history.observe(outcome)
        self.last_hour.observe(outcome)
        for operation, seconds in (
            ("request", request_s),
            ("response", response_s),
            ("total", request_s + response_s),
        ):
            self.latency.labels(mode, operation).observe(seconds)
        self.actions.labels(decision, outcome.action.value).inc()
        self._observe_mitigation(outcome)
        self._observe_stream(outcome)
        if verdict.reason is not None and verdict.status is not Status.CHECKED:
            self.unchecked.labels(decision, verdict.reason.value).inc()
        self.detectors.observe_first(outcome)
        if detectors := _detection_s(outcome.first):
            self.latency.labels(mode, "detection").observe(sum(detectors))
        for counter, verdicts in (
            (self.first_detections, outcome.first),
            (self.detections, outcome.verdicts),
        ):
            for each in verdicts:
                if each.score is not None:
                    counter.labels(decision, mode, str(each.flagged).lower()).inc()
        if verdict.score is None:
            return
        self.iterations.labels(decision, mode).observe(outcome.iterations)
        self.models_used.labels(outcome.model, Role.DETECTOR.value).inc()
        self._observe_verdicts(outcome)

    def _observe_verdicts(self, outcome: Outcome) -> None:
        decision = outcome.plan.decision
        for each in outcome.verdicts:
            if each.score is not None:
                self.score.labels(decision, outcome.mode.value).observe(each.score)
            if each.coverage is not None:
                self.coverage.labels("answer").observe(each.coverage.answer_ratio)
                self.coverage.labels("evidence").observe(each.coverage.evidence_ratio)
        self.detectors.observe_delivered(outcome)

    def observe_evidence(self, exchange: Exchange) -> None:
        """Count what the evidence of one ended exchange came from."""
        reason = exchange.not_checkable
        for source in {_WITHOUT[reason]} if reason is not None else {p.provenance for p in exchange.passages}:
            self.evidence.labels(str(source)).inc()

    def observe_call(self, call: CallRecord, *, label: str) -> None:
        """Count one call to a model, whatever the result of its exchange.

        Args:
            call: what was asked and what came back.
            label: the model's name where the configuration has it; a name from a request would be a label
                without bound.
        """
        role = call.role.value
        self.calls.labels(label, role, call.failure.value if call.failure else "ok").inc()
        if call.attempts == 0:
            return
        self.models_used.labels(label, role).inc()
        self.call_seconds.labels(label, role).observe(call.duration_s)
        self.tokens.labels(label, "prompt").inc(call.usage.prompt_tokens)
        self.tokens.labels(label, "completion").inc(call.usage.completion_tokens)
        if call.cost_usd is not None:
            self.cost.labels(label).inc(call.cost_usd)

    def _observe_mitigation(self, outcome: Outcome) -> None:
        decision = outcome.plan.decision
        if outcome.mitigation_s:
            self.latency.labels(outcome.mode.value, "mitigation").observe(outcome.mitigation_s)
        for correction in outcome.corrections:
            if correction is not None:
                self.mitigations.labels(decision, correction.mode.value, correction.stop.value).inc()

    def _observe_stream(self, outcome: Outcome) -> None:
        stream = outcome.stream
        if stream is None:
            return
        self.stream_lag.labels(stream.streaming.value).observe(stream.lag_s)
        self.stream_hold.labels(stream.streaming.value).observe(stream.held_s)
        for result, count in stream.sentences.items():
            self.stream_sentences.labels(outcome.plan.decision, result).inc(count)

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus text format."""
        for collect in self._collectors:
            collect()
        text = generate_latest(self.registry)
        # In this format the library writes the suffix into the description, whatever the samples are called.
        return text.replace(f" {_MODELS_USED}_total ".encode(), f" {_MODELS_USED} ".encode())


def _detection_s(verdicts: Sequence[Verdict]) -> list[float]:
    """Return the seconds of each detector that scored answers; it scores all of them together."""
    found: dict[str, float] = {}
    for result in (result for verdict in verdicts for result in verdict.results):
        if result.score is not None:
            found[result.detector] = max(found.get(result.detector, 0.0), result.duration_s)
    return list(found.values())

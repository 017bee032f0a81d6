"""The ``truthlens_*`` metrics (product contract, section 13).

Label values come from the configuration (decision and model names) or from closed lists (mode, reason,
action), never from traffic, so the number of series is bounded by the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_text

from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.records.calls import CallRecord, Role
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.retrieval import SearchRecord, SearchResult
from truthlens.core.records.verdict import Verdict
from truthlens.store.result_cache import CachedResults, CacheEvent
from truthlens.telemetry.detector_metrics import DetectorMetrics
from truthlens.telemetry.last_hour import LastHour
from truthlens.telemetry.logs import LOST_LINES
from truthlens.telemetry.metric_table import (
    LATENCY_BUCKETS,
    SCORE_BUCKETS,
    MetricTable,
    counter,
    gauge,
    histogram,
)
from truthlens.telemetry.score_history import ScoreHistory

if TYPE_CHECKING:
    from truthlens.core.records.agentic_run import AgenticStep

_RATIO_BUCKETS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)

# A source for each reason that ``Exchange.not_checkable`` gives.
_WITHOUT = {
    Reason.NO_CONTEXT: "none",
    Reason.RETRIEVAL_EMPTY: "none",
    Reason.RETRIEVAL_FAILED: "none",
    Reason.UNSURE_CONTEXT: "unsure",
    Reason.NOT_AN_ANSWER: "not-an-answer",
}

# The white paper's name has no _total, which the client library appends to the name of a Counter.
_MODELS_USED = "truthlens_models_used"


# Tools of servers have the names that servers give them.
_TOOLS, _SERVERS_TOOL = frozenset(ToolName), "mcp"
_SHOWN = (
    *(CacheEvent(result, "memory") for result in ("hit", "miss", "shared", "unkept")),
    *(CacheEvent(result, "redis") for result in ("hit", "miss", "error")),
)

LOSSES = ("full", "database", "content", "stopped")
"""Why an entry can be lost."""


class ReviewMetrics(MetricTable):
    """The metrics of the review queue; ``review.service`` keeps them up to date."""

    # fmt: off
    entries = gauge("truthlens_reviews", "status", text=(
        "Entries of the review queue: status is pending, reviewed (somebody is at it), approved (the answer "
        "is right) or rejected (it is not). All processes on one database give the same figures."))
    oldest = gauge("truthlens_reviews_oldest_pending_seconds", text=
        "Age of the oldest entry that awaits review; 0 where none does.")
    written = counter("truthlens_reviews_written", text="Entries that this process has written.")
    lost = counter("truthlens_reviews_lost", "cause", text=(
        "Answers that were to be queued and are not: cause is full (too many wait), database (it refused "
        "the entry), content (it could not be made) or stopped (the process ended first)."))
    waiting = gauge("truthlens_reviews_waiting", text=
        "Entries that wait in memory; lost if the process is killed now.")
    write_seconds = histogram("truthlens_review_write_seconds", LATENCY_BUCKETS, text=
        "Time from the end of an exchange until its entry is in the database, of the first of each batch.")
    up = gauge("truthlens_reviews_database_up", text=
        "1 where the database takes entries, 0 where they wait in memory.")
    # fmt: on

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        for cause in LOSSES:
            self.lost.labels(cause)


class Metrics(MetricTable):
    """All metrics of one process, in a registry of their own."""

    # fmt: off
    detections = counter("truthlens_detections", "decision", "mode", "detected", text=(
        "Choices that were scored, as they were delivered: detected says whether a corrected one is still "
        "flagged."))
    first_detections = counter("truthlens_first_detections", "decision", "mode", "detected", text=
        "Choices that were scored, as the backend gave them, before anything was done about them.")
    score = histogram("truthlens_score", SCORE_BUCKETS, "decision", "mode", text=
        "Score of the text that the client received, 0 to 1, higher is worse.")
    latency = histogram("truthlens_latency_seconds", LATENCY_BUCKETS, "mode", "operation", text=(
        "Time that TruthLens added: operation is request, response or total; detection (of the backend's "
        "answer; of a stream the last pass) and mitigation are parts of response."))
    iterations = histogram("truthlens_iterations", (0, 1, 2, 3, 5, 10), "decision", "mode", text=
        "Refinement rounds of an exchange's choice that took the most.")
    models_used = counter(_MODELS_USED, "model", "role", plain=True, text="Uses of a model in a role.")
    tokens = counter("truthlens_tokens", "model", "kind", text=
        "Tokens of extra calls to models: kind is prompt or completion.")
    cost = counter("truthlens_cost_usd", "model", text="Cost of extra calls to models that have a price.")
    calls = counter("truthlens_model_calls", "model", "role", "result", text=
        "Extra calls to models: result is ok or why there was no text.")
    call_seconds = histogram("truthlens_model_call_seconds", LATENCY_BUCKETS, "model", "role", text=
        "Time of an extra call to a model, with its retries.")
    mitigations = counter("truthlens_mitigations", "decision", "mode", "stop", text=
        "Answers that a mode worked on; stop is why it ended.")
    marks = counter("truthlens_marks", "result", text=
        "Requests with the mark of a call of our own: result is accepted or unknown.")
    auto_arm = gauge("truthlens_auto_arm", "decision", "mode", "parameter", text=
        "Beta posterior of a mode: parameter is alpha (good outcomes) or beta (bad ones).")
    auto_choices = counter("truthlens_auto_choices", "decision", "mode", text="Modes that auto chose.")
    auto_store_errors = counter("truthlens_auto_store_errors", text="Failures of the store of auto's arms.")
    result_cache = counter("truthlens_cache_requests", "tier", "result", text=(
        "Look-ups of results that models gave before: result is hit, miss, shared (with one that was under "
        "way), unkept (too large, or no JSON) or, of redis, error."))
    result_cache_entries = gauge("truthlens_cache_entries", text="Results that this process keeps.")
    result_cache_bytes = gauge("truthlens_cache_bytes", text="Memory that they take, about.")
    agent_stops = counter("truthlens_agent_stops", "cause", text=(
        "Runs of mode agentic by why they ended: accepted, rejected, a limit of the run (iterations, tokens, time, "
        "circular), of the exchange (budget, deadline), or a failure (call-failed, bad-decision, search-failed)."))
    tool_seconds = histogram("truthlens_tool_seconds", LATENCY_BUCKETS, "tool", text=(
        "Time of one use of a tool by mode agentic, in the gateway and for /v1/ask, with its retries: tool is "
        "text_search, vector_search, internet_search, calculation, get_current_timestamp, or mcp for all "
        "tools of MCP servers."))
    unchecked = counter("truthlens_unchecked", "decision", "reason", text=
        "Exchanges of which nothing, or not all, was checked.")
    retrievals = counter("truthlens_retrievals", "source", "result", text=(
        "Searches for evidence: result is ok, cached, empty (nothing was found), or how it failed."))
    retrieval_seconds = histogram("truthlens_retrieval_seconds", LATENCY_BUCKETS, "source", text=
        "Time of a search for evidence that was not answered from the cache.")
    evidence = counter("truthlens_evidence", "source", text=(
        "Exchanges by what their evidence came from, each source of an exchange once: tool, system, "
        "documents, user, answer, retrieved; none, unsure (no-context, unsure-context) and not-an-answer where there "
        "was none to check against."))
    unexplained = counter("truthlens_unexplained", text=(
        "Times that spans were wanted explained, or shown with the phrase around them, and were not: no "
        "time, no room, or a failure, which the log names."))
    coverage = histogram("truthlens_coverage_ratio", _RATIO_BUCKETS, "part", text=
        "Share of answer tokens scored and of evidence tokens seen.")
    actions = counter("truthlens_actions", "decision", "action", text="What was done to answers.")
    shadow_actions = counter("truthlens_shadow_actions", "decision", "action", text=
        "What decisions in shadow would have done to answers.")
    abandoned = counter("truthlens_abandoned", text="Exchanges that ended before their answer was scored.")
    inflight = gauge("truthlens_inflight", text="Exchanges being read or scored.")
    streams = gauge("truthlens_streams", "streaming", text=
        "Answers being observed or gated while they stream.")
    stream_lag = histogram("truthlens_stream_verdict_lag_seconds", LATENCY_BUCKETS, "streaming", text=
        "Time from the end of a streamed answer to its verdict, for which the end of the stream was held.")
    stream_hold = histogram("truthlens_stream_hold_seconds", LATENCY_BUCKETS, "streaming", text=
        "The longest time that text of a streamed answer was held.")
    stream_sentences = counter("truthlens_stream_sentences", "decision", "result", text=
        "Sentences of gated streams: result is passed, flagged or unchecked.")
    held_bytes = gauge("truthlens_held_bytes", text="Bytes of bodies being read or scored.")
    stream_waiting_bytes = gauge("truthlens_stream_waiting_bytes", text=
        "Bytes of all streams under observe and gate that are read and have not left.")
    stream_waiting_frames = gauge("truthlens_stream_waiting_frames", text="Frames of these, likewise.")
    streams_refused = counter("truthlens_streams_refused", "bound", text=(
        "Streams that were not checked, or no further, because a bound on all streams was reached: streams, "
        "bytes, frames; or because scorings or the event loop were late (lag)."))
    queue_seconds = histogram("truthlens_queue_seconds", LATENCY_BUCKETS, text=
        "Time that a scoring waited for a worker.")
    log_lines = counter("truthlens_exchange_log_lines", "result", text=
        "Lines of ended exchanges: result is written, or sampled-out (telemetry.log_sample).")
    otlp = counter("truthlens_otlp_items", "signal", "result", text=(
        "Spans (traces) and evaluations (logs): result is made, then sent or failed; what is neither waits, or "
        "was dropped because too much waited."))
    tls_expiry = gauge("truthlens_tls_expiry_timestamp_seconds", "file", text=(
        "When certificates of ext_proc end, as Unix time: file is certificate (the first of its chain) or client_ca "
        "(the last root). No series without TLS."))
    tls_reloads = counter("truthlens_tls_reloads", "result", text=
        "Changed TLS files: result is ok (in use) or failed (those before them are).")
    refused_clients = counter("truthlens_refused_clients", text=
        "Streams of clients whose certificate has none of the names of --tls-client-name.")
    policy_reloads = counter("truthlens_policy_reloads", "result", text=
        "Policy reloads: result is ok or failed.")
    captured = counter("truthlens_captured", "result", text=(
        "Exchanges chosen for the capture file: result is kept, abandoned (the client left), unread (the request never came), "
        "full (too much waits), large, content (no text, or not to be redacted), disk (the file cannot be written) or failed."))
    model_info = gauge("truthlens_model_info", "model", "configured", text=
        "1 for each loaded detector model; configured is the policy's model_id.")
    # fmt: on

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        super().__init__(self.registry)
        self.detectors = DetectorMetrics(self.registry)
        self.reviews = ReviewMetrics(self.registry)
        self.log_lines_lost = LOST_LINES
        self.registry.register(LOST_LINES)
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
        exemplar = {"trace_id": outcome.trace_id} if outcome.trace_id else None
        for operation, seconds in (
            ("request", [request_s]),
            ("response", [response_s]),
            ("total", [request_s, response_s]),
            ("detection", _detection_s(outcome.first)),
            ("mitigation", [outcome.mitigation_s] if outcome.mitigation_s else []),
        ):
            if seconds:
                self.latency.labels(mode, operation).observe(sum(seconds), exemplar)
        self.actions.labels(decision, outcome.action.value).inc()
        if outcome.shadow_action is not None:
            self.shadow_actions.labels(decision, outcome.shadow_action.value).inc()
        self._observe_mitigation(outcome)
        self._observe_stream(outcome)
        if verdict.reason is not None and verdict.status is not Status.CHECKED:
            self.unchecked.labels(decision, verdict.reason.value).inc()
        self.detectors.observe_first(outcome)
        for counted, verdicts in (
            (self.first_detections, outcome.first),
            (self.detections, outcome.verdicts),
        ):
            for each in verdicts:
                if each.score is not None:
                    # Both begin with the first choice: a share of none is 0, and not unknown.
                    for flagged in (False, True):
                        counted.labels(decision, mode, str(flagged).lower()).inc(flagged is each.flagged)
        if verdict.score is None:
            return
        self.iterations.labels(decision, mode).observe(outcome.iterations)
        # Rules use no model.
        if outcome.model:
            self.models_used.labels(outcome.model, Role.DETECTOR.value).inc()
        self._observe_verdicts(outcome)

    def _observe_verdicts(self, outcome: Outcome) -> None:
        decision = outcome.plan.decision
        for each in outcome.verdicts:
            if each.score is not None:
                self.score.labels(decision, outcome.mode.value).observe(each.score)
            if each.coverage is not None:
                self.coverage.labels("answer").observe(each.coverage.read_ratio)
                self.coverage.labels("evidence").observe(each.coverage.evidence_ratio)
        self.detectors.observe_delivered(outcome)

    def observe_evidence(self, exchange: Exchange) -> None:
        """Count what the evidence of one ended exchange came from."""
        reason = exchange.not_checkable
        for source in {_WITHOUT[reason]} if reason is not None else {p.provenance for p in exchange.passages}:
            self.evidence.labels(str(source)).inc()

    def count_otlp(self, signal: str, result: str, count: int) -> None:
        """Count spans or evaluations that were made, sent or lost."""
        self.otlp.labels(signal, result).inc(count)

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

    def observe_search(self, search: SearchRecord) -> None:
        """Count one search in a source of evidence."""
        self.retrievals.labels(search.source, search.result.value).inc()
        if search.result is not SearchResult.CACHED:
            self.retrieval_seconds.labels(search.source).observe(search.duration_s)

    def observe_step(self, step: AgenticStep) -> None:
        """Count the time of the tool that a step of mode agentic used, if it used one."""
        if step.ran_tool:
            tool = step.tool if step.tool in _TOOLS else _SERVERS_TOOL
            self.tool_seconds.labels(tool).observe(step.duration_s)

    def _observe_mitigation(self, outcome: Outcome) -> None:
        decision = outcome.plan.decision
        for correction in outcome.corrections:
            if correction is not None:
                self.mitigations.labels(decision, correction.mode.value, correction.stop.value).inc()
                if correction.cause:
                    self.agent_stops.labels(correction.cause).inc()

    def _observe_stream(self, outcome: Outcome) -> None:
        stream = outcome.stream
        if stream is None:
            return
        self.stream_lag.labels(stream.streaming.value).observe(stream.lag_s)
        self.stream_hold.labels(stream.streaming.value).observe(stream.held_s)
        for result, count in stream.sentences.items():
            self.stream_sentences.labels(outcome.plan.decision, result).inc(count)

    def exposition(self, *, openmetrics: bool = False) -> bytes:
        """Return all metrics in Prometheus text format, or as OpenMetrics, which has exemplars too."""
        for collect in self._collectors:
            collect()
        if openmetrics:
            # A counter's samples end in _total there.
            text: bytes = openmetrics_text(self.registry)  # type: ignore[no-untyped-call]  # untyped
            return text.replace(f"{_MODELS_USED} counter".encode(), f"{_MODELS_USED} unknown".encode())
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


def result_cache_metrics(cache: CachedResults, signals: Metrics) -> Callable[[], None]:
    """Return what ``Metrics.on_scrape`` calls to count what ``cache`` did since the last time."""
    told = dict.fromkeys(_SHOWN, 0)
    for event in _SHOWN:
        signals.result_cache.labels(event.tier, event.result)

    def collect() -> None:
        for event, count in cache.events().items():
            signals.result_cache.labels(event.tier, event.result).inc(count - told[event])
            told[event] = count
        signals.result_cache_entries.set(cache.entries)
        signals.result_cache_bytes.set(cache.size)

    return collect

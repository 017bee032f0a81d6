"""Names, labels and counting of the metrics."""

from __future__ import annotations

from dataclasses import replace

from truthlens.core.plan import Plan
from truthlens.core.records import Action, Coverage, Outcome, Reason, Status, Verdict, unchecked
from truthlens.telemetry.signals import Signals

CONTRACT = {
    "truthlens_detections_total": ("counter", {"decision", "mode", "detected"}),
    "truthlens_score": ("histogram", {"decision", "mode"}),
    "truthlens_latency_seconds": ("histogram", {"mode", "operation"}),
    "truthlens_iterations": ("histogram", {"decision", "mode"}),
    "truthlens_models_used": ("gauge", {"model", "role"}),
    "truthlens_unchecked_total": ("counter", {"decision", "reason"}),
    "truthlens_coverage_ratio": ("histogram", {"part"}),
    "truthlens_actions_total": ("counter", {"decision", "action"}),
    "truthlens_inflight": ("gauge", set()),
    "truthlens_queue_seconds": ("histogram", set()),
    "truthlens_policy_reloads_total": ("counter", {"result"}),
}
VERDICT = Verdict(Status.CHECKED, score=0.7, threshold=0.5, coverage=Coverage(4, 4, 9, 9))
OUTCOME = Outcome(Plan("support"), VERDICT, (VERDICT,), action=Action.WARN, model="m1")


def test_the_contracts_metrics_are_exposed_under_their_names() -> None:
    """Names, types and labels as the contract writes them, in the text that Prometheus reads."""
    signals = Signals()
    signals.observe(OUTCOME, request_s=0.001, response_s=0.02)
    signals.observe(replace(OUTCOME, verdict=unchecked(Reason.TIMEOUT)), request_s=0.0, response_s=0.0)
    signals.queue_seconds.observe(0.1)
    text = signals.exposition().decode()
    for name, (kind, labels) in CONTRACT.items():
        assert f"# TYPE {name} {kind}\n" in text
        samples = [
            line for line in text.splitlines() if line.startswith((name + "{", name + "_count", name + " "))
        ]
        assert samples, name
        found = {
            part.partition("=")[0]
            for part in samples[0].partition("{")[2].partition("}")[0].split(",")
            if part
        }
        assert found == labels, name


def test_an_unchecked_exchange_is_no_detection() -> None:
    """It counts as unchecked, and leaves score and detections alone."""
    signals = Signals()
    signals.observe(Outcome(Plan("support"), unchecked(Reason.NO_CONTEXT)), request_s=0.0, response_s=0.0)
    value = signals.registry.get_sample_value
    assert value("truthlens_unchecked_total", {"decision": "support", "reason": "no-context"}) == 1
    assert "truthlens_detections_total{" not in signals.exposition().decode()
    assert "truthlens_score_count" not in signals.exposition().decode()


def test_a_partial_exchange_counts_as_both() -> None:
    """It was scored, and something of it was not checked."""
    signals = Signals()
    partial = replace(VERDICT, status=Status.PARTIAL, reason=Reason.TOO_LARGE)
    signals.observe(replace(OUTCOME, verdict=partial, verdicts=(partial,)), request_s=0.0, response_s=0.0)
    value = signals.registry.get_sample_value
    assert value("truthlens_unchecked_total", {"decision": "support", "reason": "too-large"}) == 1
    assert (
        value(
            "truthlens_detections_total", {"decision": "support", "mode": "lightweight", "detected": "true"}
        )
        == 1
    )

"""Names, labels and counting of the metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from truthlens.core.records.agentic_run import AgenticNode, AgenticStep
from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.records.enums import Action, Reason, Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Coverage, DetectorResult, Verdict, unchecked
from truthlens.telemetry.metrics import Metrics

CONTRACT = {
    "truthlens_detections_total": ("counter", {"decision", "mode", "detected"}),
    "truthlens_score": ("histogram", {"decision", "mode"}),
    "truthlens_latency_seconds": ("histogram", {"mode", "operation"}),
    "truthlens_iterations": ("histogram", {"decision", "mode"}),
    "truthlens_first_detections_total": ("counter", {"decision", "mode", "detected"}),
    "truthlens_models_used": ("counter", {"model", "role"}),
    "truthlens_unchecked_total": ("counter", {"decision", "reason"}),
    "truthlens_coverage_ratio": ("histogram", {"part"}),
    "truthlens_actions_total": ("counter", {"decision", "action"}),
    "truthlens_inflight": ("gauge", set()),
    "truthlens_queue_seconds": ("histogram", set()),
    "truthlens_policy_reloads_total": ("counter", {"result"}),
}
VERDICT = Verdict(Status.CHECKED, score=0.7, threshold=0.5, coverage=Coverage(4, 4, 9, 9))
OUTCOME = Outcome(Plan("support"), VERDICT, (VERDICT,), action=Action.WARN, model="m1", first=(VERDICT,))


def test_the_contracts_metrics_are_exposed_under_their_names() -> None:
    """Names, types and labels as the contract writes them, in the text that Prometheus reads."""
    signals = Metrics()
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
    signals = Metrics()
    signals.observe(Outcome(Plan("support"), unchecked(Reason.NO_CONTEXT)), request_s=0.0, response_s=0.0)
    value = signals.registry.get_sample_value
    assert value("truthlens_unchecked_total", {"decision": "support", "reason": "no-context"}) == 1
    assert "truthlens_detections_total{" not in signals.exposition().decode()
    assert "truthlens_score_count" not in signals.exposition().decode()


def test_a_partial_exchange_counts_as_both() -> None:
    """It was scored, and something of it was not checked."""
    signals = Metrics()
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


def test_first_and_delivered_verdicts_are_told_apart_and_every_choice_counts() -> None:
    """A choice that was mended was flagged first and is not when it is delivered; one that was not scored counts nowhere."""
    signals = Metrics()
    corrected = replace(VERDICT, score=0.2)
    clean = replace(VERDICT, score=0.1)
    blind = unchecked(Reason.LANGUAGE)
    outcome = replace(
        OUTCOME,
        verdict=VERDICT,
        first=(VERDICT, clean, VERDICT, blind),
        verdicts=(VERDICT, clean, corrected, blind),
    )
    signals.observe(outcome, request_s=0.0, response_s=0.0)
    labels = {"decision": "support", "mode": "lightweight"}
    counts = {
        (name, detected): signals.registry.get_sample_value(name, {**labels, "detected": detected})
        for name in ("truthlens_first_detections_total", "truthlens_detections_total")
        for detected in ("true", "false")
    }
    assert list(counts.values()) == [2, 1, 1, 2]
    assert signals.registry.get_sample_value("truthlens_score_count", labels) == 3
    assert signals.registry.get_sample_value("truthlens_iterations_count", labels) == 1


def test_detection_has_a_latency_of_its_own() -> None:
    """Each detector's time counts once for all choices; without a detection there is none."""
    signals = Metrics()

    def seen(name: str) -> float | None:
        labels = {"mode": "lightweight", "operation": "detection"}
        return signals.registry.get_sample_value(f"truthlens_latency_seconds_{name}", labels)

    signals.observe(Outcome(Plan("support"), unchecked(Reason.NO_CONTEXT)), request_s=0.0, response_s=0.0)
    assert seen("count") is None
    results = tuple(
        DetectorResult(name, 0.7, duration_s=seconds)
        for name, seconds in (("encoder", 0.25), ("numbers", 0.5))
    )
    scored = replace(VERDICT, results=results)
    signals.observe(replace(OUTCOME, first=(scored, scored)), request_s=0.0, response_s=1.0)
    assert (seen("count"), seen("sum")) == (1, 0.75)


def test_the_uses_of_models_are_a_counter_under_the_white_papers_name() -> None:
    """The client library's suffix is in no line; the value only ever grows."""
    signals = Metrics()
    signals.observe(OUTCOME, request_s=0.0, response_s=0.0)
    lines = [line for line in signals.exposition().decode().splitlines() if "truthlens_models_used" in line]
    assert lines[1:] == [
        "# TYPE truthlens_models_used counter",
        'truthlens_models_used{model="m1",role="detector"} 1.0',
    ]


def test_a_model_that_was_used_has_a_name() -> None:
    """Where only rules scored, no model was used."""
    signals = Metrics()
    signals.observe(replace(OUTCOME, model=""), request_s=0.0, response_s=0.0)
    assert 'model=""' not in signals.exposition().decode()


@pytest.mark.parametrize(
    ("tool", "label"),
    [
        *((name.value, name.value) for name in ToolName),
        ("wiki.search", "mcp"),
        ("other.tool", "mcp"),
        ("", None),
        ("unknown", None),
    ],
)
def test_the_time_of_a_tool_has_a_label_of_a_closed_list(tool: str, label: str | None) -> None:
    """Names that servers give to their tools are one label; where no tool ran there is none."""
    signals = Metrics()
    signals.observe_step(AgenticStep(AgenticNode.EXECUTE_TOOL, tool, 0.5, "1 new"))
    samples = [
        sample
        for metric in signals.registry.collect()
        if metric.name == "truthlens_tool_seconds"
        for sample in metric.samples
    ]
    assert {sample.labels["tool"] for sample in samples} == ({label} if label else set())
    assert [each.value for each in samples if each.name.endswith("_sum")] == ([0.5] if label else [])


def test_openmetrics_have_the_trace_of_an_exchange() -> None:
    """A parser of the format takes all of it; latencies name the trace of an exchange that has one, and the other text does not."""
    signals = Metrics()
    signals.observe(replace(OUTCOME, mitigation_s=0.3, trace_id="a" * 32), request_s=0.001, response_s=0.02)
    signals.observe(OUTCOME, request_s=0.2, response_s=0.2)
    families = {
        each.name: each
        for each in text_string_to_metric_families(signals.exposition(openmetrics=True).decode())
    }
    named = {
        (sample.labels["operation"], sample.labels["le"], sample.exemplar.labels["trace_id"])
        for sample in families["truthlens_latency_seconds"].samples
        if sample.exemplar
    }
    assert named == {
        (operation, bucket, "a" * 32)
        for operation, bucket in (
            ("request", "0.001"),
            ("response", "0.025"),
            ("total", "0.025"),
            ("mitigation", "0.5"),
        )
    }
    assert [each.name for each in families["truthlens_models_used"].samples] == ["truthlens_models_used"]
    assert "trace_id" not in signals.exposition().decode()

"""Dashboard, recording rules and alerts speak of metrics, labels and reasons that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Counter, Gauge, Histogram

from truthlens.core.records.enums import Reason
from truthlens.core.records.retrieval import SearchResult
from truthlens.telemetry.drift import DRIFT_LIMIT
from truthlens.telemetry.metrics import Metrics

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))
DASHBOARD = json.loads((DEPLOY / "grafana" / "truthlens.json").read_text("utf-8"))
# Put there by Prometheus, by histograms, or by Envoy.
FOREIGN_LABELS = {"le", "instance", "job", "envoy_cluster_name"}
METRIC = re.compile(r"\btruthlens_[a-z0-9_]+")
SELECTOR = re.compile(r"\b(truthlens_[a-z0-9_]+)\{([^}]*)\}")
# Defined by a recording rule; in an expression, not in a label value.
RECORDED = re.compile(r"\btruthlens:[a-z0-9_:]+")


def _families() -> dict[str, tuple[set[str], set[str]]]:
    """Name as declared → (names of its series, its labels)."""
    found = {}
    signals = Metrics()
    for metric in (
        *vars(signals).values(),
        *vars(signals.detectors).values(),
        *vars(signals.reviews).values(),
    ):
        if isinstance(metric, Counter | Gauge | Histogram):
            (family,) = metric.describe()
            # The white paper names one counter without the suffix.
            counter = ("",) if family.name == "truthlens_models_used" else ("_total",)
            suffixes = {"counter": counter, "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
            names = {family.name + suffix for suffix in suffixes[family.type]}
            found[family.name] = (names, set(metric._labelnames))
    return found


FAMILIES = _families()
SERIES = {series: labels for names, labels in FAMILIES.values() for series in names}


def _rules() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


def _panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def _dashboard_expressions() -> list[str]:
    return [target["expr"] for panel in _panels() for target in panel["targets"]]


EXPRESSIONS = [*(rule["expr"] for rule in _rules()), *_dashboard_expressions()]


def test_there_are_metrics_to_compare_with() -> None:
    """The comparison below is made against the metrics that a process really exposes."""
    assert "truthlens_detections_total" in SERIES
    exposed = {
        line.split()[2] for line in Metrics().exposition().decode().splitlines() if line.startswith("# TYPE")
    }
    assert {name.removesuffix("_total") for name in exposed} == set(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_metric_has_a_panel(name: str) -> None:
    """Every metric of TruthLens is shown on the dashboard."""
    shown = {found for expression in _dashboard_expressions() for found in METRIC.findall(expression)}
    assert FAMILIES[name][0] & shown


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_uses_what_exists(expression: str) -> None:
    """Every metric, every label in a selector and every recorded series in an expression exists."""
    assert set(METRIC.findall(expression)) <= set(SERIES)
    for name, matchers in SELECTOR.findall(expression):
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)) <= SERIES[name] | FOREIGN_LABELS
    recorded = {rule["record"] for rule in _rules() if "record" in rule}
    assert set(RECORDED.findall(expression)) <= recorded
    known = set().union(*(labels for _, labels in FAMILIES.values())) | FOREIGN_LABELS
    for names in re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", expression):
        assert {name.strip() for name in names.split(",")} <= known


def test_reasons_exist() -> None:
    """Rules that select by reason name reasons that TruthLens gives."""
    named = [
        reason
        for rule in _rules()
        for value in re.findall(r'reason=~?"([^"]+)"', rule["expr"])
        for reason in value.split("|")
    ]
    assert named
    assert set(named) <= set(Reason)


def test_every_alert_says_what_to_do() -> None:
    """Every alert has a severity, a summary and a description, and stands in the table of the runbook."""
    runbook = (DEPLOY.parent / "docs" / "runbook.md").read_text("utf-8")
    alerts = [rule for rule in _rules() if "alert" in rule]
    for alert in alerts:
        assert alert["labels"]["severity"] in {"critical", "warning", "info"}
        assert alert["annotations"].keys() == {"summary", "description"}
        assert f"| `{alert['alert']}` |" in runbook
    assert len(re.findall(r"^\| `TruthLens\w+` \|", runbook, re.MULTILINE)) == len(alerts)


def test_panels_are_well_formed() -> None:
    """Panels have their own id and place, a description, and the data source of the variable."""
    everything = DASHBOARD["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    cells = [
        (x, y)
        for panel in everything
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert all(x < 24 for x, _ in cells)
    for panel in _panels():
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"


def test_grafana_and_prometheus_find_their_files() -> None:
    """Provisioning points at a data source and files that compose mounts."""
    (source,) = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    prometheus = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    assert all((DEPLOY / "prometheus" / name).is_file() for name in prometheus["rule_files"])
    # The alerts select by these.
    assert [job["job_name"] for job in prometheus["scrape_configs"]] == ["truthlens", "envoy"]


def test_the_alert_on_drift_has_the_consoles_limit() -> None:
    """The page and the alert call the same distance too far."""
    (rule,) = [rule for rule in _rules() if rule.get("alert") == "TruthLensScoreDrift"]
    assert rule["expr"].endswith(f">= {DRIFT_LIMIT:g}")


def test_every_failure_of_a_search_counts_in_the_alert_and_on_the_dashboard() -> None:
    """A result that a search may fail with is missing from neither, and none that is no failure is in them."""
    named = [
        set(value.split("|"))
        for expression in EXPRESSIONS
        for value in re.findall(r'truthlens_retrievals_total\{result=~"([^"]+)"', expression)
    ]
    assert named == [{result.value for result in SearchResult if result.is_failure}] * 2

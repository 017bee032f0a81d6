"""Dashboards, recording rules and alerts speak of metrics, labels and reasons that exist."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
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
DASHBOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
}
# Put there by Prometheus, by histograms, or by Envoy.
FOREIGN_LABELS = {"le", "instance", "job", "envoy_cluster_name", "alertname", "severity", "slo"}
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


def _panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def _dashboard_expressions() -> list[str]:
    return [
        target["expr"]
        for dashboard in DASHBOARDS.values()
        for panel in _panels(dashboard)
        for target in panel["targets"]
    ]


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
    """Every metric of TruthLens is shown on a dashboard."""
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
        assert set(re.findall(r"\w+", names)) <= known


def documented() -> dict[str, tuple[str, set[str], str]]:
    """Type, labels and the most series of each metric, by its name in docs/metrics.md."""
    text = (DEPLOY.parent / "docs" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"^\| `(truthlens_\w+)` \| (\w+) \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    return {name: (kind, set(re.findall(r"\w+", labels)), most) for name, kind, labels, most in rows}


def most_series(formula: str, **sizes: int) -> int:
    """The value of a formula of docs/metrics.md, such as ``D·5·2`` or ``K·11 + L``."""
    terms = (term.split("·") for term in formula.split("+"))
    return sum(math.prod(sizes.get(part.strip()) or int(part) for part in term) for term in terms)


def test_every_metric_has_its_row() -> None:
    """The page about metrics has their names, types and labels, and adds its figures up rightly."""
    counters = {series for series in SERIES if series.endswith("_total")}
    kinds = {name.removesuffix("_total"): kind for name, (kind, *_) in documented().items()}
    assert {name.removesuffix("_total"): labels for name, (_, labels, _) in documented().items()} == {
        name: labels for name, (_, labels) in FAMILIES.items()
    }
    assert counters == {name for name in documented() if name.endswith("_total")}
    exposed = re.findall(r"^# TYPE (\w+) (\w+)$", Metrics().exposition().decode(), re.MULTILINE)
    assert kinds == {name.removesuffix("_total"): kind for name, kind in exposed}
    total = sum(most_series(most, D=10, K=6, L=2, S=3, B=1) for _, _, most in documented().values())
    assert f"at most {total:,} series" in (DEPLOY.parent / "docs" / "metrics.md").read_text("utf-8")


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


def test_every_reason_is_a_miss_or_leaves_nothing_to_check() -> None:
    """The objective for verdicts counts each reason that TruthLens itself gives either as bad or not at all."""
    (rule,) = [rule for rule in _rules() if rule.get("record") == "truthlens:missed:rate5m"]
    (missed,) = re.findall(r'reason=~"([^"]+)"', rule["expr"])
    nothing = "disabled no-context unsure-context retrieval-empty not-an-answer tool-call empty-answer upstream-error"
    # Envoy gives it, where it passes answers without asking; its own metric counts those.
    assert sorted([*missed.split("|"), *nothing.split(), Reason.UNAVAILABLE]) == sorted(Reason)


def _promtool(*arguments: str | Path) -> None:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("needs promtool: apt-get install prometheus (what .ci/run does)")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_rules_and_configuration() -> None:
    """Prometheus itself finds no fault with rules and configuration."""
    _promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yml")


def test_every_alert_fires_on_what_it_is_for() -> None:
    """The unit tests beside the rules pass, and show every alert silent on a healthy series and firing later."""
    tests = yaml.safe_load((DEPLOY / "prometheus" / "rules.test.yaml").read_text("utf-8"))["tests"]
    assert [test["name"] for test in tests] == [rule["alert"] for rule in _rules() if "alert" in rule]
    for test in tests:
        silent, firing = test["promql_expr_test"]
        assert silent["expr"] == firing["expr"] == f'ALERTS{{alertname="{test["name"]}"}}'
        assert "exp_samples" not in silent
        (sample,) = firing["exp_samples"]
        assert 'alertstate="firing"' in sample["labels"]
    _promtool("test", "rules", DEPLOY / "prometheus" / "rules.test.yaml")


def test_every_alert_says_what_to_do() -> None:
    """Every alert has a severity, a summary and a description, and stands in the table of the runbook."""
    runbook = (DEPLOY.parent / "docs" / "runbook.md").read_text("utf-8")
    alerts = [rule for rule in _rules() if "alert" in rule]
    for alert in alerts:
        assert alert["labels"]["severity"] in {"critical", "warning", "info"}
        assert alert["annotations"].keys() == {"summary", "description"}
        assert f"| `{alert['alert']}` |" in runbook
    assert len(re.findall(r"^\| `TruthLens\w+` \|", runbook, re.MULTILINE)) == len(alerts)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_are_well_formed(name: str) -> None:
    """Panels have their own id and place, a description, a unit, and the data source of the variable."""
    everything = DASHBOARDS[name]["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    cells = [
        (x, y)
        for panel in everything
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert all(x < 24 for x, _ in cells)
    for panel in _panels(DASHBOARDS[name]):
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"


@pytest.mark.parametrize("name", DASHBOARDS)
def test_dashboards_are_of_one_kind(name: str) -> None:
    """Each has its file's name as its uid, links to the others by their tag, and offers the variables that it uses, no more."""
    dashboard = DASHBOARDS[name]
    assert dashboard["uid"] == f"truthlens-{name}"
    assert dashboard["title"].startswith("TruthLens: ")
    (link,) = dashboard["links"]
    assert link["tags"] == dashboard["tags"] == ["truthlens"]
    assert link["includeVars"]
    assert link["keepTime"]
    text = json.dumps(dashboard)
    used = {"datasource"} | ({"decision"} if '=~\\"$decision\\"' in text else set())
    assert {variable["name"] for variable in dashboard["templating"]["list"]} == used
    assert set(re.findall(r"/d/([\w-]+)\?", text)) <= {f"truthlens-{other}" for other in DASHBOARDS}


def test_no_query_is_shown_twice() -> None:
    """What one dashboard shows, no other panel shows again."""
    shown = _dashboard_expressions()
    assert sorted(set(shown)) == sorted(shown)


def test_grafana_and_prometheus_find_their_files() -> None:
    """Provisioning points at a data source and files that compose mounts."""
    (source,) = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    prometheus = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    assert all((DEPLOY / "prometheus" / name).is_file() for name in prometheus["rule_files"])
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["grafana"]
    (folder,) = [mount for mount in compose["volumes"] if mount.startswith("./grafana/dashboards:")]
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/truthlens.yaml").read_text())
    (place,) = [each["options"]["path"] for each in provider["providers"]]
    assert folder.split(":")[1] == place
    home = Path(compose["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (home.parent.as_posix(), home.stem in DASHBOARDS) == (place, True)
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

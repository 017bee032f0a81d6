"""A real Prometheus beside a real deployment: what dashboards and rules ask for is there once there was traffic."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import sqlalchemy as sa
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.deploy.test_monitoring import documented, most_series
from tests.fakes.agentic_parts import act, judged, search
from tests.fakes.finance_database import fill
from tests.fakes.ports import free_port
from tests.integration.support.backend import Raw, completion, json_reply
from tests.integration.support.models import BAD, GOOD, Models, request
from tests.integration.support.stack import Stack, wait_for
from tests.integration.support.streams.gateway import policy_of
from tests.integration.support.streams.streams import answer, sse

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))
DASHBOARDS: dict[str, Any] = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
}
ABSENT = {
    "latency: Captured exchanges A": "nothing is captured here",
    "latency: Certificates of ext_proc A": "ext_proc has no TLS here",
    "latency: Certificates of ext_proc B": "likewise",
    "TruthLensCertificateEnds": "likewise",
    "TruthLensCertificateNotTakenOver": "likewise",
    "quality: Score drift A": "a process says nothing before its 200th score",
    "TruthLensScoreDrift": "as its panel",
    "latency: Streams refused A": "no bound is reached: a series begins with the first stream that is refused",
    "TruthLensOverloaded": "one client fills no queue: a series begins with the first scoring that is refused",
}
"""What has no data here, and why that is right."""

_FINANCE = (
    "{name: numbers, databases: [{name: finance, url_env: FINANCE_DATABASE_URL, scope: {property_id: {header: x-property-id,"
    " type: integer}, period_id: {header: x-period-id, type: integer}}, tables: [{table: FinancialMetrics, scope: {property_id:"
    " property_id, period_id: period_id}, columns: [{column: dscr, type: ratio, label: [DSCR]}]}]}]}"
)
PLANS = {
    "standard": "mode: standard",
    "premium": "mode: premium, premium: {verification_models: [second, third], judge_model: judge, consensus: segment_vote}",
    "auto": "mode: auto, auto: {modes: [standard]}, premium: {verification_models: [second], judge_model: judge}",
    "impatient": "mode: standard, mitigation: {deadline_s: 1}",
    "agentic": "mode: agentic, retrieval: {sources: [handbook]}",
    "handbook": "retrieval: {sources: [handbook], when: [no-context]}",
    "down": "retrieval: {sources: [down], when: [no-context]}",
    "observe": "streaming: observe",
    "gate": "streaming: gate, on_flagged: mark",
    "buffer": "streaming: buffer",
    "judged": "detectors: [encoder, {name: judge, model: strong, formatting_model: small}], cascade: {when: always}",
    "cited": "detectors: [citations]",
    "values": f"detectors: [{_FINANCE}]",
    "shadow": "shadow: true, threshold: 0.0",
}
_PLAIN = policy_of(PLANS).replace("[x-domain,", "[x-domain, x-property-id, x-period-id,")
POLICY = f"""{_PLAIN.replace("detectors: [encoder]", "detectors: [encoder, numbers]")}
models:
  - {{name: main, price: {{input: 1, output: 2}}}}
{"".join(f"  - {{name: {name}}}" + chr(10) for name in ("second", "third", "judge", "strong", "small"))}
sources:
  - {{name: handbook, type: folder, path: ../pages}}
  - {{name: down, type: vector_store, base_url: "http://127.0.0.1:9/v1", store_id: vs_1, timeout_s: 1}}
review: {{rules: [{{name: flagged}}]}}
"""
PAGE = "# Pump\n\nThe pump runs at 600 rpm. It stands in the cellar.\n"
PUMP = {"model": "main", "messages": [{"role": "user", "content": "How fast does the pump run?"}]}
LIBRARY = {
    "model": "main",
    "messages": [
        {"role": "system", "content": "Answer from the sources and cite them by their id, as in [S0]."},
        {
            "role": "user",
            "content": "<documents>\n[S0] The library opens at nine.\n</documents>\nWhen does it open?",
        },
    ],
}
SAMPLED, UNSAMPLED = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"


class Script:
    """Gives its replies in order, then 404s."""

    def __init__(self, *replies: str) -> None:
        self.left = list(replies)

    def __call__(self, _request: object) -> Raw:
        if self.left:
            return json_reply(completion(self.left.pop(0)))
        return json_reply({}, status="404 Not Found")


class Collector:
    """Takes spans over OTLP and keeps the ids of their traces."""

    def __init__(self) -> None:
        seen = self.traces = set[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = ExportTraceServiceRequest.FromString(
                    self.rfile.read(int(self.headers["content-length"]))
                )
                scopes = (scope for resource in sent.resource_spans for scope in resource.scope_spans)
                seen.update(span.trace_id.hex() for scope in scopes for span in scope.spans)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


class Deployment:
    """Backend, sidecar, Envoy, a collector of traces, and Prometheus with the rules of ``deploy/``."""

    def __init__(self, folder: Path, prometheus: str) -> None:
        (folder / "pages").mkdir()
        (folder / "pages" / "pump.md").write_text(PAGE)
        database = f"sqlite:///{folder}/finance.db"
        engine = sa.create_engine(database)
        fill(engine)
        engine.dispose()
        self.collector = Collector()
        self.stack = Stack(
            folder,
            POLICY,
            patient=True,
            arguments=["--review-database", f"sqlite:///{folder}/reviews.db"],
            environ={
                "FINANCE_DATABASE_URL": database,
                "OTEL_EXPORTER_OTLP_ENDPOINT": self.collector.url,
                "OTEL_BSP_SCHEDULE_DELAY": "200",
            },
        )
        self.folder, self._program, self._process = folder, prometheus, None
        self._client = httpx.Client(timeout=60)
        self.address = f"127.0.0.1:{free_port()}"

    def start(self) -> None:
        self.stack.start()
        # As they are, but for their pace.
        rules = {"groups": [{**group, "interval": "1s"} for group in RULES["groups"]]}
        (self.folder / "rules.yaml").write_text(yaml.safe_dump(rules))
        jobs: list[dict[str, Any]] = yaml.safe_load(
            (DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8")
        )["scrape_configs"]
        for job, target in zip(jobs, (self.stack.console, self.stack.admin), strict=True):
            job["static_configs"] = [{"targets": [str(target)]}]
        pace = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config = {"global": pace, "rule_files": ["rules.yaml"], "scrape_configs": jobs}
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with (self.folder / "prometheus.log").open("wb") as log:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [self._program, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/tsdb",
                 f"--web.listen-address={self.address}", "--enable-feature=exemplar-storage"],
                stdout=log,
                stderr=log,
            )  # fmt: skip
        wait_for(self._answers, "Prometheus")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)
        self._client.close()
        self.stack.stop()
        self.collector.server.shutdown()
        self.collector.server.server_close()

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self.folder / "prometheus.log").read_text()[-2000:])
        try:
            return self._client.get(f"http://{self.address}/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def asked(self, path: str, **parameters: str) -> Any:
        """What Prometheus's API gives."""
        reply = self._client.post(f"http://{self.address}/api/v1/{path}", data=parameters).json()
        assert reply["status"] == "success", (reply, parameters)
        return reply["data"]

    def values(self, expression: str) -> list[float]:
        """The values of an expression now, without those that are no number."""
        found = self.asked("query", query=expression)["result"]
        return [value for each in found if math.isfinite(value := float(each["value"][1]))]

    def exposed(self) -> dict[str, float]:
        """What the sidecar says itself: series and value."""
        lines = self._client.get(f"{self.stack.console_url}/metrics").text.splitlines()
        pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {series: float(value) for series, _, value in pairs}

    def scraped(self) -> None:
        """Wait until Prometheus has all exchanges so far."""
        exchanges = sum(
            value for series, value in self.exposed().items() if series.startswith("truthlens_actions_total")
        )
        wait_for(lambda: sum(self.values("truthlens_actions_total")) >= exchanges, "a scrape")

    def ask(self, plan: str, body: Mapping[str, Any], reply: Any, **headers: str) -> httpx.Response:
        """Send one request, to which the backend and the models say what ``reply`` gives."""
        self.stack.backend.reply = reply
        return self.stack.post(body, headers={"x-domain": plan, **headers})

    def traffic(self, turn: int) -> None:
        """One exchange of every kind; each ``turn`` asks the database for another record, which no cache holds."""
        bad = Models({("main", "answer"): [BAD], ("main", "correct"): [GOOD], ("second", "answer"): [GOOD]})
        bad.says["third", "answer"] = [json_reply({}, status="500 Internal Server Error")]
        body, streamed = request(), request(stream=True)
        traced = {"traceparent": f"00-{SAMPLED}-b7ad6b7169203331-01"}
        for plan in ("", "standard", "premium", "auto", "shadow"):
            self.ask(plan, body, bad, **traced)
        late = Models({("main", "answer"): [BAD], ("main", "correct"): [_late()]})
        self.ask("impatient", body, late)
        for plan in ("observe", "gate", "buffer"):
            for text in (GOOD, BAD):
                self.ask(plan, streamed, lambda _, text=text: sse(answer(text)))
        self.ask("", body, Script(GOOD), traceparent=f"00-{UNSAMPLED}-b7ad6b7169203331-00")
        self.ask("", PUMP, Script("At 600 rpm."), **{"x-truthlens-mark": "of nobody"})
        self.ask("handbook", PUMP, Script("The pump runs at 600 rpm."))
        self.ask("down", PUMP, Script("The pump runs at 600 rpm."))
        found = Script(
            "At 900 rpm.", search(), act("synthesize"), "At 600 rpm [pump.md#1].", *judged(), *judged(0.9)
        )
        self.ask("agentic", PUMP, found)
        for text, risk in ((GOOD, 0.0), (BAD, 0.9)):
            self.ask("judged", body, Script(text, *judged(risk)))
        self.ask("cited", LIBRARY, Script("The library opens at nine in the morning [S7]."))
        scope = {"x-property-id": "1", "x-period-id": str(turn)}
        self.ask("values", PUMP, Script("The DSCR was 1.75."), **scope)
        self._review()

    def _review(self) -> None:
        entries = f"{self.stack.console_url}/api/reviews"
        found: list[dict[str, Any]] = []

        def arrived() -> bool:
            found[:] = self._client.get(entries, params={"status": "pending"}).json()["entries"]
            return len(found) >= 2

        wait_for(arrived, "entries of the review queue")
        for entry, status in zip(found, ("approved", "rejected"), strict=False):
            change = {"version": entry["version"], "status": status}
            self._client.patch(f"{entries}/{entry['id']}", json=change).raise_for_status()


def _late() -> Raw:
    whole = json_reply(completion(GOOD))
    return Raw([b"", *whole.writes], pause_s=5)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment that has seen traffic twice, so that rates of what the first began are not 0."""
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("needs Prometheus: apt-get install prometheus (what .ci/run does)")
    found = Deployment(tmp_path_factory.mktemp("prometheus"), prometheus)
    try:
        found.start()
        for turn in (1, 2):
            found.traffic(turn)
            found.scraped()
        yield found
    finally:
        found.stop()


def _of_dashboard(name: str) -> dict[str, str]:
    """The queries of a dashboard, by panel and letter, as Grafana would send them."""
    return {
        f"{name}: {panel['title']} {target['refId']}": target["expr"]
        .replace("$decision", ".*")
        .replace("$__rate_interval", "30m")
        for panel in DASHBOARDS[name]["panels"]
        for target in panel.get("targets", ())
    }


def _of_rules() -> dict[str, str]:
    """What rules record, and what alerts compare with their thresholds."""
    rules = [rule for group in RULES["groups"] for rule in group["rules"]]
    compared = {
        rule["alert"]: re.sub(r" (==|>=|<=|>|<) [0-9. *]+\s*$", "", rule["expr"])
        for rule in rules
        if "alert" in rule
    }
    recorded = {
        f"{rule['record']}{rule.get('labels', '')}": rule["record"]
        + "".join(f'{{slo="{slo}"}}' for slo in rule.get("labels", {}).values())
        for rule in rules
        if "record" in rule
    }
    return compared | recorded


@pytest.mark.parametrize("name", [*DASHBOARDS, "rules"])
def test_every_query_finds_data(deployment: Deployment, name: str) -> None:
    """Each panel and rule has a number to show after traffic of all kinds, or is listed as rightly without."""
    queries = _of_rules() if name == "rules" else _of_dashboard(name)
    empty = [*queries]

    def settled() -> bool:
        empty[:] = [each for each in empty if not deployment.values(queries[each])]
        return set(empty) <= ABSENT.keys()

    try:
        wait_for(settled, "data")
    except AssertionError:
        raise AssertionError(f"no data: {sorted(set(empty) - ABSENT.keys())}") from None


def test_what_is_rightly_absent_is_asked_for() -> None:
    """The list names queries that there are."""
    assert ABSENT.keys() <= set(_of_rules()).union(*map(_of_dashboard, DASHBOARDS))


@pytest.mark.parametrize(
    "accept", ["application/openmetrics-text;version=1.0.0,*/*;q=0.1", "text/plain", "", "a/b"]
)
def test_metrics_speak_the_format_that_is_asked_for(deployment: Deployment, accept: str) -> None:
    """OpenMetrics to who knows it, the older text to all others."""
    reply = httpx.get(f"{deployment.stack.console_url}/metrics", headers={"accept": accept})
    kind = reply.headers["content-type"].partition(";")[0]
    known = accept.startswith("application/openmetrics-text")
    assert kind == ("application/openmetrics-text" if known else "text/plain")
    assert reply.text.endswith("# EOF\n") == ("trace_id" in reply.text) == known


def test_a_slow_exchange_leads_to_its_trace(deployment: Deployment) -> None:
    """Exemplars name traces that were sent, the client's own among them, and none that is not sampled."""

    def named() -> set[str]:
        found = deployment.asked(
            "query_exemplars", query="truthlens_latency_seconds_bucket", start="0", end="9999999999"
        )
        return {each["labels"]["trace_id"] for series in found for each in series["exemplars"]}

    wait_for(lambda: SAMPLED in named() & deployment.collector.traces, "the trace in both")
    assert named() <= deployment.collector.traces
    assert UNSAMPLED not in named()


HOSTILE = ('x"} 1\ntruthlens_evil{a="', "ü" * 300, "../main")


def test_names_of_clients_make_no_series(deployment: Deployment) -> None:
    """Models, domains, decisions and answers with any name are counted where plain ones are."""

    def exchange(name: str) -> None:
        wire = name.encode("unicode_escape").decode()
        bad = Models({(name, "answer"): [BAD], (name, "correct"): [GOOD]})
        for plan in ("standard", "auto", "shadow"):
            deployment.ask(plan, request(name), bad)
        deployment.ask("gate", request(name, stream=True), lambda _: sse(answer(BAD)))
        strange = completion(BAD, model=name, object=name)
        strange["choices"][0]["finish_reason"] = strange["choices"][0]["message"]["role"] = name
        claimed = {
            f"x-{each}": wire for each in ("truthlens-decision", "truthlens-mode", "decision", "model")
        }
        deployment.ask(wire, {**request(name), "user": name}, lambda _: json_reply(strange), **claimed)
        deployment.stack.post(request(name), path=f"/v1/{quote(name, safe='')}/completions")

    exchange("plain")
    before = deployment.exposed().keys()
    for name in HOSTILE:
        exchange(name)
    assert deployment.exposed().keys() - before == set()


def test_no_metric_has_more_series_than_documented(deployment: Deployment) -> None:
    """The bounds of docs/metrics.md hold for this policy, whose decisions have nearly all modes."""
    policy = yaml.safe_load(POLICY)
    sizes = {"D": len(PLANS) + 1, "K": len(policy["models"]) + 1, "L": 2, "S": len(policy["sources"]), "B": 1}
    names = re.findall(r"^(truthlens_\w+)", "\n".join(deployment.exposed()), re.MULTILINE)
    found = Counter(
        name if name in documented() else re.sub(r"_(bucket|sum|count)$", "", name) for name in names
    )
    most = {name: most_series(formula, **sizes) for name, (*_, formula) in documented().items()}
    assert {name: count for name, count in found.items() if count > most[name]} == {}

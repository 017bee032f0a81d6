"""A detector with databases, from the policy to the verdict, the metrics and the messages of the operator."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import truthlens.detection.detectors
from tests.detection.detectors.numbers.sql.conftest import EXAMPLE, Finance
from tests.fakes.pipelines import pipeline_for
from truthlens.core.net import Address
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.detection.building import DetectorSet, OneModel
from truthlens.detection.engine import Engine
from truthlens.policy import InvalidPolicyError, PolicyHolder, compile_policy
from truthlens.process.model_store import ModelShelf, SimilarityShelf
from truthlens.process.settings import Settings
from truthlens.process.start_checks import make_ready
from truthlens.telemetry.detector_metrics import QueryWatch
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

TOY = """
import pydantic
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.numbers.sources import ValueKind
from truthlens.detection.detectors.numbers.sql.options import Databases, scope_headers
from truthlens.detection.detectors.numbers.sql.opening import open_databases
from truthlens.core.registry import DetectorType

class Options(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    databases: Databases = ()

    @property
    def scope_headers(self):
        return scope_headers(self.databases)

class Figures:
    model = ""
    def __init__(self, source):
        self.source = source
    def reads(self, exchange, answer):
        return True
    def detect_all(self, exchange, answers, *, aggregation, stop):
        known = self.source.values(exchange, frozenset(ValueKind), stop=stop)
        amounts = {str(int(amount)) for value in known for amount in value.amounts}
        score = lambda text: 0.0 if not known or set(text.split()) & amounts else 0.9
        return [DetectorResult("figures", score(answer.text), details=known.details) for answer in answers]

def build(context):
    return Figures(open_databases(context.options.databases, observe=context.observe_query))

DETECTOR = DetectorType("figures", build, options=Options)
"""
REQUEST = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "<context>We own houses.</context>\nWhat is the NOI of property 2?"}
    ],
}
OK = ResponseHead(200, {"content-type": "application/json"})


@pytest.fixture(autouse=True)
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A detector that flags answers without a figure of the database."""
    folder = tmp_path / "detectors"
    folder.mkdir()
    (folder / "figures.py").write_text(TOY)
    package = truthlens.detection.detectors
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    yield
    sys.modules.pop(f"{package.__name__}.figures", None)


def policy_text(*, trusted: bool = True) -> str:
    text = EXAMPLE.read_text("utf-8").replace("    - encoder\n", "").replace("name: numbers", "name: figures")
    text = text.replace("timeout_ms: 80 ", "timeout_ms: 1000 ")
    return text if trusted else text.replace("trusted_headers: [x-property-id]", "")


async def test_the_record_that_the_router_names_is_compared(
    finance: Finance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trusted header and the route choose the record; the question and other headers do not."""
    monkeypatch.setenv("FINANCE_DATABASE_URL", finance.url)
    policy, signals = compile_policy(policy_text(), file="p.yaml"), Metrics()
    detectors = DetectorSet(
        [policy.default],
        OneModel(None),  # type: ignore[arg-type]
        observe_query=QueryWatch(signals.detectors),
    )
    pipeline = pipeline_for(PolicyHolder(policy), Engine(detectors), signals, Recent())

    async def detected(text: str, headers: dict[str, str]) -> str:
        head = RequestHead("POST", "/v1/chat/completions", headers, {"truthlens-scope-period-id": "1"})
        ticket = await pipeline.prepare(
            await pipeline.open(pipeline.admit(head), json.dumps(REQUEST).encode())
        )
        body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
        conclusion = await pipeline.assess(ticket, OK, json.dumps(body).encode())
        return conclusion.headers["x-truthlens-detected"]

    assert await detected("It is 1200000 dollars.", {"x-property-id": "1"}) == "false"
    assert await detected("It is 640000 dollars.", {"x-property-id": "1", "x-period-id": "2"}) == "true"
    assert await detected("It is 640000 dollars.", {"x-property-id": "2"}) == "false"
    assert await detected("It is 5 dollars.", {"x-property-id": "2; DROP TABLE x"}) == "false"
    value = signals.registry.get_sample_value
    assert value("truthlens_sql_queries_total", {"database": "finance", "outcome": "ok"}) == 6
    assert value("truthlens_sql_queries_total", {"database": "finance", "outcome": "cached"}) == 1
    assert value("truthlens_sql_queries_total", {"database": "finance", "outcome": "bad-scope"}) == 1
    assert value("truthlens_sql_query_seconds_count", {"database": "finance"}) == 6


def test_a_scope_of_a_header_that_is_not_trusted_is_refused() -> None:
    """A client could choose the record by itself."""
    with pytest.raises(
        InvalidPolicyError, match="takes its scope from the header 'x-property-id', which a client could send"
    ):
        compile_policy(policy_text(trusted=False), file="p.yaml")
    assert compile_policy(policy_text(), file="p.yaml")


@pytest.mark.parametrize("wrong", ["url", "column"])
async def test_a_policy_whose_database_does_not_fit_is_refused(
    finance: Finance, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """Start and reload refuse it with the place of the decision, so that the policy before stays in force."""
    monkeypatch.setenv("FINANCE_DATABASE_URL", finance.url)
    text = policy_text()
    if wrong == "url":
        monkeypatch.delenv("FINANCE_DATABASE_URL")
    else:
        text = text.replace("column: dscr", "column: dsrc")
    policy = compile_policy(text, file="p.yaml")
    settings = Settings(extproc=Address("127.0.0.1", 0), console=Address("127.0.0.1", 0))
    with pytest.raises(InvalidPolicyError) as caught:
        await make_ready(policy, ModelShelf(settings, Metrics()), SimilarityShelf(settings), environ={})
    message = str(caught.value)
    assert "p.yaml:" in message
    assert ("no column 'dsrc'" if wrong == "column" else "'FINANCE_DATABASE_URL' is not set") in message

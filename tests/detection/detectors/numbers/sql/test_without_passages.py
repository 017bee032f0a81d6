"""Requests without passages: what a database knows of the record is enough for a verdict on the claims that it bears on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.detection.detectors.numbers.sql.conftest import EXAMPLE, Finance
from tests.fakes.detectors import FixedDetector, scored
from tests.fakes.pipelines import pipeline_for
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.detection.building import DetectorSet, OneModel
from truthlens.detection.engine import Engine
from truthlens.detection.incremental import Following
from truthlens.pipeline import Pipeline
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.telemetry.detector_metrics import QueryWatch
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

pytestmark = pytest.mark.parametrize("finance", ["sqlite"], indirect=True)

OK = ResponseHead(200, {"content-type": "application/json"})
QUESTION = {"model": "m", "messages": [{"role": "user", "content": "How is the property doing?"}]}
RIGHT, WRONG, OTHER = "The DSCR was 1.25.", "The DSCR was 1.75.", "The tenants like the new lobby."


class Deployment:
    """The example's policy in front of its database; the encoder counts what it is asked."""

    def __init__(self, **changes: str) -> None:
        text = EXAMPLE.read_text("utf-8").replace("timeout_ms: 80 ", "timeout_ms: 1000 ")
        for line in changes.values():
            text = text.replace("hallucination:\n", f"hallucination:\n  {line}\n", 1)
        self.policy, self.signals = compile_policy(text, file="p.yaml"), Metrics()
        self.encoder = FixedDetector(scored(0.9))
        detectors = DetectorSet(
            [self.policy.default],
            OneModel(self.encoder),
            observe_query=QueryWatch(self.signals.detectors),
        )
        self.engine = Engine(detectors)
        self.pipeline: Pipeline = pipeline_for(PolicyHolder(self.policy), self.engine, self.signals, Recent())

    async def ask(self, text: str, *, scope: bool = True) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the response headers and the ``truthlens`` object, or the error, for the answer ``text``."""
        head = RequestHead(
            "POST",
            "/v1/chat/completions",
            {"x-property-id": "1"} if scope else {},
            {"truthlens-scope-period-id": "1"} if scope else {},
        )
        ticket = await self.pipeline.prepare(
            await self.pipeline.open(self.pipeline.admit(head), json.dumps(QUESTION).encode())
        )
        body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}
        done = await self.pipeline.assess(ticket, OK, json.dumps(body).encode())
        return dict(done.headers), json.loads(done.outcome.body or b"{}")

    def queries(self) -> float:
        value = self.signals.registry.get_sample_value
        found = [
            value("truthlens_sql_queries_total", {"database": "finance", "outcome": each})
            for each in ("ok", "cached", "no-scope")
        ]
        return sum(each or 0.0 for each in found)


@pytest.fixture
async def deployment(finance: Finance, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Deployment]:
    """A deployment with details in the body."""
    monkeypatch.setenv("FINANCE_DATABASE_URL", finance.url)
    made = Deployment(details="details: true")
    yield made
    await made.engine.aclose()


@pytest.mark.parametrize(
    ("text", "status", "detected", "outcomes"),
    [
        (RIGHT, ("checked", None), "false", ["proved"]),
        (WRONG, ("checked", None), "true", ["contradicted"]),
        (f"{RIGHT} {OTHER}", ("partial", "no-context"), "false", ["proved", "unjudged"]),
        (f"{WRONG} {OTHER}", ("partial", "no-context"), "true", ["contradicted", "unjudged"]),
        (OTHER, ("unchecked", "no-context"), None, []),
        # A database is silent of what its labels do not name: that says nothing against a value.
        ("The lobby was painted in 1987.", ("unchecked", "no-context"), None, []),
        ("The total price was $9 million.", ("unchecked", "no-context"), None, []),
    ],
)
async def test_claims_that_the_database_decides_get_their_verdict(
    deployment: Deployment,
    text: str,
    status: tuple[str, str | None],
    detected: str | None,
    outcomes: list[str],
) -> None:
    """The rest is not called clean; no detector that reads passages is asked."""
    headers, body = await deployment.ask(text)
    assert (headers["x-truthlens-status"], headers.get("x-truthlens-reason")) == status
    assert headers.get("x-truthlens-detected") == detected
    (choice,) = body["truthlens"]["choices"]
    assert [
        each["outcome"] for each in choice["claims"] if each["outcome"] != "unjudged" or outcomes
    ] == outcomes
    assert deployment.encoder.calls == 0


async def test_the_object_says_which_database_gives_what(deployment: Deployment) -> None:
    """For what is proved and for what is contradicted, in the claim and in the explanation of the span."""
    _, body = await deployment.ask(f"{RIGHT} The NOI was $1.5M. {OTHER}")
    (choice,) = body["truthlens"]["choices"]
    proved, contradicted, _ = choice["claims"]
    assert (proved["provenance"], proved["reason"]) == ("sql:finance", "the database finance gives 1.25")
    assert (contradicted["provenance"], contradicted["reason"]) == (
        "sql:finance",
        "the database finance gives 1,200,000 dollar",
    )
    (span,) = choice["spans"]
    assert span["reason"] == "the database finance gives 1,200,000 dollar for the same thing"


async def test_without_a_scope_nothing_runs(deployment: Deployment) -> None:
    """The exchange says of no record what it is about: no query, no detector."""
    headers, _ = await deployment.ask(WRONG, scope=False)
    assert (headers["x-truthlens-status"], headers["x-truthlens-reason"]) == ("unchecked", "no-context")
    assert deployment.queries() == 0
    assert deployment.encoder.calls == 0


@pytest.mark.parametrize(("text", "blocked"), [(RIGHT, False), (f"{RIGHT} {OTHER}", True), (OTHER, True)])
async def test_what_was_not_all_checked_is_blocked(
    finance: Finance, monkeypatch: pytest.MonkeyPatch, text: str, blocked: bool
) -> None:
    """``on_unchecked: block`` takes a partial verdict for what it is."""
    monkeypatch.setenv("FINANCE_DATABASE_URL", finance.url)
    made = Deployment(block="on_unchecked: block")
    headers, _ = await made.ask(text)
    assert (headers["x-truthlens-action"] == "block") is blocked
    await made.engine.aclose()


async def test_a_growing_answer_gets_the_same_verdict(deployment: Deployment) -> None:
    """Sentence by sentence and as a whole."""
    from truthlens.core.records.enums import AnswerKind, Endpoint, Reason
    from truthlens.core.records.exchange import Answer, Exchange

    scope = {"x-property-id": "1", "truthlens-scope-period-id": "1"}
    exchange = Exchange(Endpoint.CHAT, "m", "", (), unchecked=Reason.UNSURE_CONTEXT, scope=scope)
    plan, answer = deployment.policy.default, Answer(0, AnswerKind.TEXT, f"{WRONG} {OTHER}")
    following: Following = deployment.engine.follow(plan, exchange)
    found = await following.detect([answer], [[(0, len(WRONG)), (len(WRONG), len(answer.text))]])
    (whole,) = await deployment.engine.detect(plan, exchange, [answer])
    assert (found.verdicts[0].status, found.verdicts[0].reason) == (whole.status, whole.reason)
    assert whole.reason is Reason.UNSURE_CONTEXT
    assert found.verdicts[0].score == whole.score
    first, second = found.ranges[0]
    assert (first.flagged, second.score, second.reason) == (True, None, Reason.UNSURE_CONTEXT)

"""The console over HTTP, with a pipeline around a fixed detector."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from tests.fakes.detectors import FixedDetector, scored
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from truthlens.core.errors import PolicyError
from truthlens.core.records.enums import Aggregation, Reason
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Span, unchecked
from truthlens.desk.app import desk_app
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.process.endpoints import Readiness, WebParts
from truthlens.telemetry.drift import LEAST_ANSWERS, ModelKey, Reference
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

from datetime import UTC, datetime  # isort: skip

POLICY = """\
hallucination: {threshold: 0.5}
decisions:
  - name: strict
    priority: 1
    rules: {type: domain, name: healthcare}
    plugins: [{type: hallucination, configuration: {threshold: 0.1}}]
"""


class Parts:
    """What the console looks at."""

    def __init__(self) -> None:
        self.policy = PolicyHolder(compile_policy(POLICY, file="p.yaml"))
        self.signals, self.recent, self.readiness = Metrics(), Recent(), Readiness(models=["m1"], warm=True)
        self.pipeline = pipeline_for(
            self.policy, engine_of({None: FixedDetector(scored(0.3))}), self.signals, self.recent
        )
        self.app = desk_app(
            WebParts(
                policy=self.policy,
                pipeline=self.pipeline,
                signals=self.signals,
                recent=self.recent,
                readiness=self.readiness,
                addresses=lambda: [("gateway", "http://g/v1")],
            )
        )


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
async def client(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(parts.app), base_url="http://console"
    ) as client:
        yield client


async def test_health_says_that_the_process_answers(client: httpx.AsyncClient) -> None:
    """/healthz is about the process alone."""
    assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_readiness_follows_warm_up_and_drain(client: httpx.AsyncClient, parts: Parts) -> None:
    """503 until everything is loaded and warm, and again while draining."""
    assert (await client.get("/readyz")).status_code == 200
    parts.readiness.draining = True
    assert (await client.get("/readyz")).status_code == 503
    parts.readiness.draining, parts.readiness.warm = False, False
    response = await client.get("/readyz")
    assert (response.status_code, response.json()["ready"]) == (503, False)


async def test_a_refused_edit_is_told_and_does_not_make_the_process_unready(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """The old policy works on, so traffic must keep coming; /readyz and the page say what is wrong."""
    parts.policy.last_error = PolicyError("p.yaml:3: hallucination.treshold: unknown key <b>")
    response = await client.get("/readyz")
    assert response.status_code == 200
    assert "treshold" in response.json()["policy"]["last_error"]
    page = (await client.get("/")).text
    assert "treshold" in page
    assert "&lt;b&gt;" in page


async def test_metrics_are_prometheus_text(client: httpx.AsyncClient) -> None:
    """The content type and a metric of ours."""
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert "# TYPE truthlens_detections_total counter" in response.text


async def test_detect_scores_one_answer(client: httpx.AsyncClient) -> None:
    """The plan's threshold decides; the decision may be named."""
    body = {"context": ["Tea is free."], "query": "Is tea free?", "response": "Tea is free."}
    relaxed = (await client.post("/v1/detect", json=body)).json()
    strict = (await client.post("/v1/detect", json={**body, "decision": "strict"})).json()
    assert (relaxed["score"], relaxed["detected"], relaxed["status"]) == (0.3, False, "checked")
    assert (strict["detected"], strict["decision"]) == (True, "strict")


async def test_detect_keeps_the_policy_that_it_began_with(client: httpx.AsyncClient, parts: Parts) -> None:
    """A reload while the body arrives takes no decision away from it."""
    body = b'{"context": ["Tea is free."], "response": "Tea is free.", "decision": "strict"}'

    async def pieces() -> AsyncIterator[bytes]:
        yield body[:20]
        parts.policy.swap(compile_policy("hallucination: {threshold: 0.5}\n", file="p.yaml"))
        yield body[20:]

    json_type = {"content-type": "application/json"}
    first = await client.post("/v1/detect", content=pieces(), headers=json_type)
    assert first.json().get("decision") == "strict"
    assert (await client.post("/v1/detect", content=body, headers=json_type)).status_code == 422


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"context": ["x"]}, "response: Field required"),
        ({"context": 3, "response": "x"}, "context"),
        ({"context": ["x"], "response": "x", "extra": 1}, "extra"),
        ({"context": ["x"], "response": "x", "decision": "nope"}, "known: strict, default"),
    ],
)
async def test_detect_says_what_is_wrong_with_a_request(
    client: httpx.AsyncClient, body: dict[str, object], message: str
) -> None:
    """422 names the field and what was expected."""
    response = await client.post("/v1/detect", json=body)
    assert response.status_code == 422
    assert message in response.json()["error"]["message"]


async def test_detect_explains_its_spans(parts: Parts) -> None:
    """Kind, nearest sentence and differences with their texts: who asks sent the evidence."""
    span = Span(10, 15, 0.9)
    detector = FixedDetector(replace(scored(0.9), spans=(span,)))
    pipeline = pipeline_for(parts.policy, engine_of({None: detector}), parts.signals, parts.recent)
    app = desk_app(
        WebParts(
            policy=parts.policy,
            pipeline=pipeline,
            signals=parts.signals,
            recent=parts.recent,
            readiness=parts.readiness,
        )
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://console") as client:
        body = {"context": ["Tea costs nine euros."], "response": "Tea costs three euros."}
        (shown,) = (await client.post("/v1/detect", json=body)).json()["spans"]
    assert (shown["text"], shown["kind"], shown["sentence"]["text"]) == (
        "Tea costs three euros.",
        "contradicted",
        "Tea costs nine euros.",
    )
    (difference,) = shown["differences"]
    shown = (difference["type"], difference["answer"], difference["evidence"])
    assert shown == ("number", "three euros", "nine euros")


async def test_detect_without_evidence_is_unchecked(client: httpx.AsyncClient) -> None:
    """No context is not a clean answer."""
    verdict = (await client.post("/v1/detect", json={"context": [], "response": "Tea."})).json()
    assert (verdict["status"], verdict["reason"]) == ("unchecked", "no-context")
    assert verdict.get("score") is None


async def test_the_page_shows_decisions_and_the_last_exchanges(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    """An unchecked exchange is shown as such, without a score."""
    empty = (await client.get("/")).text
    assert "http://g/v1" in empty
    parts.recent.add(
        Outcome(Plan("strict"), unchecked(Reason.NO_CONTEXT)), time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    )
    page = re.sub(r"<[^>]+>|\s+", " ", (await client.get("/")).text)
    assert "03:04:05" in page
    assert "(no-context)" in page
    assert "m1" in page


@pytest.mark.parametrize(
    ("limits", "body", "status"),
    [
        ("max_body_bytes: 2000", {"context": "x" * 3000, "response": "a"}, 413),
        ("max_json_values: 1000", {"context": ["a"] * 2000, "response": "a"}, 413),
        ("max_passages: 10", {"context": ["a"] * 11, "response": "a"}, 413),
        ("max_held_bytes: 2000", {"context": "x" * 3000, "response": "a"}, 503),
    ],
)
async def test_bodies_beyond_a_limit_are_refused(
    parts: Parts, client: httpx.AsyncClient, limits: str, body: dict[str, object], status: int
) -> None:
    """By the limits of the gateway; nothing stays counted as held."""
    parts.policy.swap(compile_policy(f"limits: {{{limits}}}\n", file="p.yaml"))
    response = await client.post("/v1/detect", json=body)
    assert response.status_code == status
    assert response.json()["error"]["message"]
    assert not parts.signals.registry.get_sample_value("truthlens_held_bytes")


async def test_a_list_of_what_is_no_text_is_one_problem(client: httpx.AsyncClient) -> None:
    """However many items are wrong, the answer stays short."""
    response = await client.post("/v1/detect", json={"context": [1] * 10_000, "response": "a"})
    assert response.status_code == 422
    assert len(response.content) < 1000


async def test_detect_runs_the_plans_whole_list() -> None:
    """Each detector that the plan lists is in the verdict, and what it found in the score."""
    parts = Parts()
    listed = "hallucination: {detectors: [encoder, citations]}"
    parts.policy.swap(compile_policy(listed, file="p.yaml"))
    engine = engine_of(
        {None: FixedDetector(scored(0.5))},
        detectors={"citations": FixedDetector(scored(0.5, detector="citations"))},
    )
    pipeline = pipeline_for(parts.policy, engine, parts.signals, parts.recent)
    app = desk_app(
        WebParts(
            policy=parts.policy,
            pipeline=pipeline,
            signals=parts.signals,
            recent=parts.recent,
            readiness=parts.readiness,
        )
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://console") as client:
        body = {"context": ["Tea is free."], "response": "Tea is free."}
        found = (await client.post("/v1/detect", json=body)).json()
    assert found["score"] == 0.75
    assert [one["name"] for one in found["detectors"]] == ["encoder", "citations"]


async def test_the_first_page_tells_of_drift(client: httpx.AsyncClient, parts: Parts) -> None:
    """Once there are enough scores that no share of errors explains; before, and otherwise, nothing."""
    heading = "Scores unlike those of the calibration"
    spread = tuple(step / 10 for step in range(1, 10))
    model = ModelKey("<m>", "<r>")
    parts.signals.detectors.drift.use({model: Reference(spread, Aggregation.NOISY_OR)})
    assert heading not in (await client.get("/")).text
    for number in range(LEAST_ANSWERS):
        parts.signals.detectors.drift.observe(model, None, number / LEAST_ANSWERS)
    assert heading not in (await client.get("/")).text
    for _ in range(LEAST_ANSWERS):
        parts.signals.detectors.drift.observe(model, None, 0.62)
    page = (await client.get("/")).text
    assert heading in page
    assert "&lt;m&gt;" in page
    assert "&lt;r&gt;" in page
    assert f"The last {2 * LEAST_ANSWERS} scores" in page

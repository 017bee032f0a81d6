"""Detection, calls and modes together, as the pipeline uses them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.fakes.detectors import WordDetector
from tests.fakes.engines import GivenDetectors, engine_of
from tests.fakes.pipelines import Answering, pipeline_for, says
from truthlens.core.records.enums import Action, Mode, Reason
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.core.records.mitigation_result import Correction
from truthlens.exchange.mode_runner import MITIGATION_ERROR
from truthlens.exchange.ticket import Conclusion
from truthlens.llm.loop_guard import MARK_HEADER, Marks
from truthlens.mitigation.interfaces import Task, Tools
from truthlens.mitigation.modes import correct
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent
from truthlens.telemetry.tracing import Tracer

REQUEST: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "<context>Tea costs two euros at the museum.</context>\nWhat is tea?"}
    ],
}
WRONG = "Tea costs nine euros at the museum."
RIGHT = "Tea costs two euros at the museum."
OK = ResponseHead(200, {"content-type": "application/json"})
STANDARD = "hallucination: {threshold: 0.5, default_mode: standard, details: true}\n"


class Rig:
    """A pipeline with a detector that dislikes the word nine, and scripted models."""

    def __init__(self, policy: str = STANDARD, *, answering: Answering | None = None, **more: Any) -> None:
        self.holder = PolicyHolder(compile_policy(policy, file="p.yaml"))
        self.signals = Metrics()
        self.marks = Marks()
        self.engine = engine_of({None: WordDetector({"nine": 0.9, "eight": 0.95})}, workers=1)
        self.pipeline = pipeline_for(
            self.holder, self.engine, self.signals, Recent(), answering=answering, marks=self.marks, **more
        )

    async def exchange(
        self, *answers: str, headers: dict[str, str] | None = None, **fields: Any
    ) -> Conclusion:
        head = RequestHead("POST", "/v1/chat/completions", headers or {}, {})
        body = json.dumps({**REQUEST, **fields}).encode()
        ticket = await self.pipeline.prepare(await self.pipeline.open(self.pipeline.admit(head), body))
        if ticket.reason is not None:
            return self.pipeline.skip(ticket, ticket.reason)
        choices = [
            {"index": place, "message": {"role": "assistant", "content": text}}
            for place, text in enumerate(answers or (WRONG,))
        ]
        return await self.pipeline.assess(ticket, OK, json.dumps({"id": "1", "choices": choices}).encode())

    def metric(self, name: str, **labels: str) -> float:
        return self.signals.registry.get_sample_value(name, labels) or 0.0


def contents(conclusion: Conclusion) -> list[str]:
    body = json.loads(conclusion.outcome.body or b"{}")
    return [choice["message"]["content"] for choice in body["choices"]]


async def test_a_refined_answer_is_accounted_for() -> None:
    """Headers, body, metrics: one generation, its tokens, and the first score."""

    async def answering(body: dict[str, Any]) -> httpx.Response:
        assert body["model"] == "m"
        return says(RIGHT)

    rig = Rig(answering=answering)
    conclusion = await rig.exchange()
    assert contents(conclusion) == [RIGHT]
    assert conclusion.outcome.action is Action.REFINE
    assert conclusion.headers["x-truthlens-iterations"] == "1"
    assert conclusion.headers["x-truthlens-initial-score"] == "0.90"
    assert conclusion.headers["x-truthlens-score"] == "0.02"
    detail = json.loads(conclusion.outcome.body or b"")["truthlens"]
    assert detail["usage"]["total_tokens"] == 15
    assert detail["choices"][0]["mitigation"]["attempts"][0]["fate"] == "better"
    # The name of a model that only a request says is no label.
    assert rig.metric("truthlens_models_used", model="upstream", role="refiner") == 1
    assert rig.metric("truthlens_tokens_total", model="upstream", kind="prompt") == 10
    assert rig.metric("truthlens_iterations_sum", decision="default", mode="standard") == 1
    assert (
        rig.metric("truthlens_mitigations_total", decision="default", mode="standard", stop="converged") == 1
    )


async def test_choices_are_corrected_side_by_side_and_each_on_its_own() -> None:
    """Two flagged choices are asked for at the same time; the clean one is not."""
    waiting: list[asyncio.Event] = []

    async def answering(_body: dict[str, Any]) -> httpx.Response:
        waiting.append(asyncio.Event())
        if len(waiting) == 2:
            for event in waiting:
                event.set()
        await asyncio.wait_for(waiting[-1].wait(), 20)
        return says(RIGHT)

    rig = Rig(answering=answering)
    conclusion = await rig.exchange(WRONG, RIGHT, WRONG.replace("nine", "eight"))
    assert contents(conclusion) == [RIGHT, RIGHT, RIGHT]
    assert len(waiting) == 2


async def test_a_mode_that_breaks_costs_neither_answer_nor_verdict() -> None:
    """An unexpected error leaves the first answer with its verdict, its disclaimer, and a note."""
    policy = (
        "hallucination: {threshold: 0.5, default_mode: premium, details: true,"
        " premium: {verification_models: [b], consensus: replacement}}\n"
    )

    async def answering(body: dict[str, Any]) -> httpx.Response:
        return says(RIGHT if body["model"] == "b" else WRONG)

    # The similarity model of this rig raises.
    conclusion = await Rig(policy, answering=answering).exchange()
    assert contents(conclusion)[0].endswith(WRONG)
    assert conclusion.outcome.verdict.flagged
    assert MITIGATION_ERROR in conclusion.outcome.notes
    assert conclusion.outcome.action is Action.WARN


async def test_our_own_calls_pass_untouched() -> None:
    """A call that comes back through the gateway is known by its mark, once; a made-up mark changes nothing."""
    rig = Rig()
    mark = rig.marks.issue(json.dumps(REQUEST).encode(), 60)
    first = await rig.exchange(headers={MARK_HEADER: mark})
    assert first.outcome.verdict.reason is Reason.DISABLED
    again = await rig.exchange(headers={MARK_HEADER: mark})
    assert again.outcome.verdict.flagged
    forged = await rig.exchange(headers={MARK_HEADER: "9999999999.abc.def"})
    assert forged.outcome.verdict.flagged
    assert rig.metric("truthlens_marks_total", result="accepted") == 1
    assert rig.metric("truthlens_marks_total", result="unknown") == 2


async def test_what_is_kept_of_a_request_is_counted_until_its_end() -> None:
    """Beyond the bound it is not kept: the answer is then detected and warned, and a note says why."""
    policy = "hallucination: {threshold: 0.5, default_mode: standard, details: true}\nlimits: {max_held_bytes: 3000}\n"

    async def answering(_body: dict[str, Any]) -> httpx.Response:
        return says(RIGHT)

    rig = Rig(policy, answering=answering)
    head = RequestHead("POST", "/v1/chat/completions", {}, {})
    large = json.dumps({**REQUEST, "metadata": {"pad": "x" * 2500}}).encode()
    waiting = await rig.pipeline.open(rig.pipeline.admit(head), large)
    assert rig.metric("truthlens_held_bytes") == len(large)
    conclusion = await rig.exchange(metadata={"pad": "x" * 500})
    assert contents(conclusion)[0].endswith(WRONG)
    assert "request-not-kept" in conclusion.outcome.notes
    assert conclusion.outcome.mode is Mode.LIGHTWEIGHT
    rig.pipeline.abandon(waiting)
    assert rig.metric("truthlens_held_bytes") == 0
    assert contents(await rig.exchange(metadata={"pad": "x" * 500})) == [RIGHT]
    assert rig.metric("truthlens_held_bytes") == 0


async def test_a_request_nested_to_the_limit_does_not_switch_detection_off() -> None:
    """However deep the JSON of an unread field, the answer keeps its verdict."""
    policy = (
        "hallucination: {threshold: 0.5, default_mode: premium,"
        " premium: {verification_models: [b], consensus: replacement}}\n"
    )

    async def answering(_body: dict[str, Any]) -> httpx.Response:
        return says(RIGHT)

    rig = Rig(policy, answering=answering)
    for depth in range(900, 1000, 7):
        body = json.dumps(REQUEST)[:-1].encode() + b', "x": ' + b"[" * depth + b"]" * depth + b"}"
        ticket = await rig.pipeline.open(
            rig.pipeline.admit(RequestHead("POST", "/v1/chat/completions", {}, {})), body
        )
        if ticket.reason is not None:
            assert ticket.reason is Reason.DIALECT
            continue
        ticket = await rig.pipeline.prepare(ticket)
        answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": WRONG}}]}
        conclusion = await rig.pipeline.assess(ticket, OK, json.dumps(answer).encode())
        assert conclusion.outcome.verdict.flagged, depth


async def test_one_choice_that_breaks_leaves_the_others_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure of one choice is that choice's own."""

    async def answering(_body: dict[str, Any]) -> httpx.Response:
        return says(RIGHT)

    async def fragile(task: Task, tools: Tools, **more: Any) -> Correction:
        if "eight" in task.answer.text:
            raise RuntimeError("broken")
        return await correct(task, tools, **more)

    # No mode is known to raise; this stands for the one that will.
    monkeypatch.setattr("truthlens.exchange.mode_runner.correct", fragile)
    conclusion = await Rig(answering=answering).exchange(WRONG, WRONG.replace("nine", "eight"))
    first, second = contents(conclusion)
    assert first == RIGHT
    assert second.endswith(WRONG.replace("nine", "eight"))
    assert MITIGATION_ERROR in conclusion.outcome.notes


async def test_calls_that_were_cancelled_are_accounted_for() -> None:
    """A second opinion that nobody needs any more stands in the outcome as well as in the metrics."""
    policy = (
        "hallucination: {threshold: 0.5, default_mode: premium, timeout_s: 5,"
        " premium: {verification_models: [b], consensus: replacement}}\n"
    )

    async def answering(_body: dict[str, Any]) -> httpx.Response:
        await asyncio.sleep(3600)
        raise AssertionError

    rig = Rig(policy, answering=answering)
    rig.engine._detectors = {}
    rig.engine.use(GivenDetectors({}))
    conclusion = await rig.exchange()
    assert conclusion.outcome.verdict.score is None
    assert len(conclusion.outcome.calls) == 1


async def test_other_models_are_asked_only_when_needed_where_the_plan_says_so() -> None:
    """side_by_side: false makes no call for an answer that is not flagged."""
    policy = (
        "hallucination: {threshold: 0.5, default_mode: premium,"
        " premium: {verification_models: [b], side_by_side: false}}\n"
    )
    asked: list[str] = []

    async def answering(body: dict[str, Any]) -> httpx.Response:
        asked.append(body["model"])
        return says(RIGHT)

    rig = Rig(policy, answering=answering)
    clean = await rig.exchange(RIGHT)
    assert (clean.outcome.action, asked) == (Action.PASS, [])
    await rig.exchange()
    assert "b" in asked


async def test_an_unflagged_answer_counts_no_mitigation() -> None:
    rig = Rig()
    await rig.exchange(RIGHT)
    assert rig.metric("truthlens_latency_seconds_count", mode="standard", operation="mitigation") == 0


async def test_auto_resolves_to_the_mode_that_it_chose() -> None:
    """Flagged answers get a mode of the plan's list; others need none."""

    async def answering(_body: dict[str, Any]) -> httpx.Response:
        return says(RIGHT)

    rig = Rig(
        "hallucination: {threshold: 0.5, default_mode: auto, auto: {modes: [standard]}}\n",
        answering=answering,
    )
    clean = await rig.exchange(RIGHT)
    assert (clean.outcome.mode, clean.outcome.action) == (Mode.LIGHTWEIGHT, Action.PASS)
    flagged = await rig.exchange()
    assert (flagged.outcome.mode, flagged.outcome.action) == (Mode.STANDARD, Action.REFINE)
    assert rig.metric("truthlens_auto_choices_total", decision="default", mode="standard") == 1


async def test_every_call_has_a_span_inside_of_the_exchanges() -> None:
    """The spans continue the client's trace and hold figures alone."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def answering(_body: dict[str, Any]) -> httpx.Response:
        return says(RIGHT)

    rig = Rig(answering=answering, tracer=Tracer(provider))
    await rig.exchange(headers={"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
    spans = {span.name: span for span in exporter.get_finished_spans()}
    root, call = spans["truthlens.api"], spans["chat refiner"]
    assert {"truthlens.detection", "truthlens.mitigation"} <= spans.keys()
    assert root.context is not None
    assert format(root.context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    assert call.context is not None
    assert call.context.trace_id == root.context.trace_id
    assert call.attributes is not None
    assert call.attributes["gen_ai.usage.input_tokens"] == 10
    assert root.attributes is not None
    assert root.attributes["truthlens.action"] == "refine"
    assert not any(
        "euros" in str(value) for span in spans.values() for value in (span.attributes or {}).values()
    )


async def test_the_clients_trace_goes_on_to_the_model() -> None:
    """The call to the model carries a traceparent of the same trace."""
    provider = TracerProvider()
    seen: list[str] = []
    states: list[str] = []

    async def answering(_body: dict[str, Any]) -> httpx.Response:
        return says(RIGHT)

    rig = Rig(answering=answering, tracer=Tracer(provider))
    transport = rig.pipeline._assessor._callers._client._http._transport
    assert isinstance(transport, httpx.MockTransport)
    handler = transport.handler

    async def spy(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("traceparent", ""))
        states.append(request.headers.get("tracestate", ""))
        return await handler(request)  # type: ignore[misc]

    transport.handler = spy
    trace = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "vendor=secret",
    }
    await rig.exchange(headers=trace)
    assert seen
    assert seen[0].startswith("00-0af7651916cd43dd8448eb211c80319c-")
    assert states == [""]

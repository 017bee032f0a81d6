"""Traces of a client, Envoy, TruthLens and the models it calls, as a receiver sees them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.fakes.otlp_receiver import OtlpReceiver, attributes, receiving
from tests.integration.support.backend import Raw, Received, completion, json_reply
from tests.integration.support.stack import Stack, wait_for
from truthlens.envoy.config import EnvoySettings

pytestmark = pytest.mark.envoy

POLICY = """\
hallucination: {detectors: [encoder, numbers], streaming: observe}
decisions:
  - name: corrected
    rules: {type: model, name: corrected}
    plugins: [{type: hallucination, configuration: {default_mode: standard, streaming: buffer}}]
"""
CONTEXT = "<context>\nThe ferry leaves at seven and carries forty cars.\n</context>\nWhen does it leave?"
WRONG = "The ferry carries ninety cars and was built by giants."
RIGHT = "The ferry leaves at seven."
CLIENT = "00f067aa0ba902b7"


def traced(number: int) -> dict[str, str]:
    return {"traceparent": f"00-{number:032x}-{CLIENT}-01"}


class TracedStack(Stack):
    """A deployment whose Envoy traces as docs/tracing.md has it."""

    receiver: OtlpReceiver

    def bootstrap(self, settings: EnvoySettings) -> str:
        page = (Path(__file__).parents[2] / "docs/tracing.md").read_text(encoding="utf-8")
        (block,) = re.findall(r"```yaml\n(tracing:.*?)```", page, re.DOTALL)
        block = block.replace("collector", "127.0.0.1").replace("4317", str(self.receiver.grpc_port))
        parts, config = yaml.safe_load(block), json.loads(super().bootstrap(settings))
        resources = config["static_resources"]
        resources["clusters"] += parts["clusters"]
        (chain,) = resources["listeners"][0]["filter_chains"]
        chain["filters"][0]["typed_config"]["tracing"] = parts["tracing"]
        return json.dumps(config)


def reply(request: Received) -> Raw:
    asks = b"truthlens:" in request.body
    return json_reply({**completion(RIGHT if asks else WRONG), "id": "chatcmpl-7"})


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TracedStack]:
    with receiving() as receiver:
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.http_port}",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_BLRP_SCHEDULE_DELAY": "100",
        }
        stack = TracedStack(tmp_path_factory.mktemp("traces"), POLICY, environ=environ, patient=True)
        stack.receiver, stack.backend.reply = receiver, reply
        try:
            stack.start()
            yield stack
        finally:
            stack.stop()


@dataclass(frozen=True)
class Trace:
    """The spans of one trace by name, and its evaluations."""

    spans: dict[str, list[Any]]
    evaluations: list[Any]

    def parent(self, name: str) -> str:
        """The name of the span over the first of that name; the id of one that is nobody's here."""
        above = self.spans[name][0].parent_span_id
        names = {span.span_id: name for name, spans in self.spans.items() for span in spans}
        return names.get(above, above.hex())


def trace_of(stack: TracedStack, number: int) -> Trace:
    """Wait for the whole trace: the exchange's span, its evaluation and Envoy's spans, of which the client's child is the last."""
    wanted = number.to_bytes(16, "big")

    def found() -> Trace:
        spans: dict[str, list[Any]] = {}
        for service, span in stack.receiver.spans:
            if span.trace_id == wanted:
                name = f"envoy {span.kind}" if service == "envoy" else span.name
                spans.setdefault(name, []).append(span)
        return Trace(spans, [each for each in stack.receiver.records if each.trace_id == wanted])

    wait_for(
        lambda: {"truthlens.api", "envoy 2"} <= found().spans.keys() and found().evaluations, "the trace"
    )
    return found()


def test_a_corrected_answer_is_one_tree_from_the_client_to_the_model(stack: TracedStack) -> None:
    """Client, Envoy, exchange, stages, call; the model is told of its span, and the evaluation is the client's."""
    response = stack.post(
        {"model": "corrected", "messages": [{"role": "user", "content": CONTEXT}]}, headers=traced(1)
    )
    assert response.headers["x-truthlens-action"] == "refine"
    trace = trace_of(stack, 1)
    tree = [
        trace.parent(name)
        for name in ("envoy 2", "envoy 3", "truthlens.api", "truthlens.evidence", "truthlens.mitigation",
                     "truthlens.correction", "chat refiner")
    ]  # fmt: skip
    assert tree == [CLIENT, "envoy 2", "envoy 3", "truthlens.api", "truthlens.api", "truthlens.mitigation",
                    "truthlens.correction"]  # fmt: skip
    assert trace.parent("truthlens.detection") == "truthlens.api"
    told = stack.backend.received[-1].headers["traceparent"].split("-")
    assert told[1:3] == [f"{1:032x}", trace.spans["chat refiner"][0].span_id.hex()]
    (record,) = trace.evaluations
    assert (record.span_id.hex(), record.event_name) == (CLIENT, "gen_ai.evaluation.result")
    told = attributes(record)
    assert told["gen_ai.evaluation.score.label"] == "supported"
    assert (told["gen_ai.response.id"], told["gen_ai.evaluation.name"]) == ("chatcmpl-7", "groundedness")
    assert not any(word in stack.receiver.raw for word in (b"ferry", b"giants", b"seven"))


def test_a_stream_is_traced_like_any_answer(stack: TracedStack) -> None:
    """Its scoring is below the exchange, whose span ends with the verdict."""
    request = {"model": "main", "stream": True, "messages": [{"role": "user", "content": CONTEXT}]}
    assert "giants" in stack.post(request, headers=traced(2)).text
    trace = trace_of(stack, 2)
    assert trace.parent("truthlens.detection") == trace.parent("truthlens.evidence") == "truthlens.api"
    assert attributes(trace.evaluations[0])["gen_ai.evaluation.score.label"] == "unsupported"


def test_an_answer_that_is_checked_by_itself_is_an_evaluation_too(stack: TracedStack) -> None:
    """Of the span that the caller names."""
    body = {"context": [CONTEXT], "query": "When?", "response": RIGHT}
    assert httpx.post(f"{stack.console_url}/v1/detect", json=body, headers=traced(3)).status_code == 200
    wait_for(lambda: any(each.trace_id[-1] == 3 for each in stack.receiver.records), "the evaluation")
    (record,) = (each for each in stack.receiver.records if each.trace_id[-1] == 3)
    assert record.span_id.hex() == CLIENT


def test_what_is_sent_is_counted_and_the_line_of_an_exchange_has_its_trace(stack: TracedStack) -> None:
    """From a trace to the log and back."""
    stack.post({"model": "main", "messages": [{"role": "user", "content": CONTEXT}]}, headers=traced(4))
    trace_of(stack, 4)
    lines = [line for line in stack.log_lines() if line.get("trace_id") == f"{4:032x}"]
    assert [line["response_id"] for line in lines] == ["chatcmpl-7"]
    assert lines[0]["detection_ms"] > 0
    metrics = httpx.get(f"{stack.console_url}/metrics").text
    assert 'truthlens_otlp_items_total{result="sent",signal="logs"}' in metrics
    assert 'truthlens_otlp_items_total{result="failed"' not in metrics

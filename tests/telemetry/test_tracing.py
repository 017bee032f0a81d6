"""Spans of exchanges: whose child they are, what is put on them, and what is sent."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from truthlens.core.records.calls import CallFailure, CallRecord, Role
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.telemetry.tracing import ExchangeTrace, Tracer, signals_sent

TRACE = "0af7651916cd43dd8448eb211c80319c"
CLIENT = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
ENVOY = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
CHECKED = Outcome(Plan("d"), Verdict(Status.CHECKED, score=0.9))


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter: InMemorySpanExporter) -> Tracer:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracer(provider)


def test_a_call_that_was_refused_before_it_began_is_no_call(
    tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    """The span counts calls as the log and the ``truthlens`` object do."""
    refused = CallRecord("m", Role.REFINER, attempts=0, failure=CallFailure.BUDGET)
    outcome = Outcome(
        Plan("d"), Verdict(Status.CHECKED, score=0.9), calls=(CallRecord("m", Role.REFINER), refused)
    )
    tracer.begin({}).end(outcome)
    (ended,) = exporter.get_finished_spans()
    assert ended.attributes is not None
    assert ended.attributes["truthlens.calls"] == 1


def test_the_span_is_a_child_of_envoys_and_the_caller_is_the_clients(
    tracer: Tracer, exporter: InMemorySpanExporter
) -> None:
    """Envoy's span is between them; without one the exchange's is the client's own child, and without both a root."""
    between, direct, alone = tracer.begin(CLIENT, ENVOY), tracer.begin(CLIENT), tracer.begin({})
    for each in (between, direct, alone):
        each.end(CHECKED)
    parents = [span.parent and format(span.parent.span_id, "016x") for span in exporter.get_finished_spans()]
    assert parents == ["00f067aa0ba902b7", "b7ad6b7169203331", None]
    assert [format(each.caller.span_id, "016x") for each in (between, direct)] == ["b7ad6b7169203331"] * 2
    assert alone.caller == alone.span.get_span_context()
    assert between.trace_id == direct.trace_id == TRACE != alone.trace_id


@pytest.mark.parametrize("header", ["", "00-0-0-01", f"00-{'0' * 32}-b7ad6b7169203331-01", "x" * 9000])
def test_a_trace_header_that_is_none_begins_a_trace(tracer: Tracer, header: str) -> None:
    """Anybody can send one."""
    trace = tracer.begin({"traceparent": header})
    assert trace.caller == trace.span.get_span_context()
    assert len(trace.trace_id) == 32


def test_without_an_exporter_the_trace_of_the_client_is_known_and_nothing_is_recorded() -> None:
    """Log lines are found by it; where the client has none there is none."""
    trace = Tracer().begin(CLIENT)
    assert (trace.trace_id, trace.span.is_recording(), Tracer().begin({}).trace_id) == (TRACE, False, "")


def test_stages_have_spans_and_their_times_add_up(exporter: InMemorySpanExporter) -> None:
    """Stages that begin within an exchange are its children; outside of one they are nobody's."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    ticks = iter([0.0, 1.0, 10.0, 12.0, 50.0, 60.0])
    tracer = Tracer(provider, clock=lambda: next(ticks))
    trace = tracer.begin({})
    with trace.within():
        for _ in range(2):
            with tracer.stage("detection"):
                pass
    with tracer.stage("detection"):
        pass
    trace.end(CHECKED)
    first, second, outside, root = exporter.get_finished_spans()
    assert trace.stages == {"detection": 3.0}
    assert first.parent == second.parent == root.context
    assert outside.parent is None


def test_only_a_failure_is_an_error(tracer: Tracer, exporter: InMemorySpanExporter) -> None:
    """An exchange without evidence went as it should; ending it once more changes nothing."""
    for reason in (Reason.NO_CONTEXT, Reason.TIMEOUT):
        trace = tracer.begin({})
        trace.end(Outcome(Plan("d"), unchecked(reason)))
        trace.end()
    assert [span.status.is_ok for span in exporter.get_finished_spans()] == [True, False]


def test_a_trace_of_nothing_can_be_ended() -> None:
    """What is no exchange has one."""
    trace = ExchangeTrace()
    with trace.within():
        trace.end(CHECKED)
    assert trace.trace_id == ""


AT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}


@pytest.mark.parametrize(
    ("environ", "sent"),
    [
        ({}, ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, ()),
        (AT, ("TRACES", "LOGS")),
        ({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://c/v1/logs"}, ("LOGS",)),
        (AT | {"OTEL_LOGS_EXPORTER": "none"}, ("TRACES",)),
        (AT | {"OTEL_TRACES_EXPORTER": "console"}, ("LOGS",)),
        (AT | {"OTEL_SDK_DISABLED": "true"}, ()),
    ],
)
def test_what_is_sent_is_what_the_environment_says(environ: dict[str, str], sent: tuple[str, ...]) -> None:
    """As the specification has it."""
    assert signals_sent(environ) == sent

"""What is put on a span."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from truthlens.core.records.calls import CallFailure, CallRecord, Role
from truthlens.core.records.enums import Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.telemetry.tracing import Tracer, describe


def test_a_call_that_was_refused_before_it_began_is_no_call() -> None:
    """The span counts calls as the log and the ``truthlens`` object do."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    refused = CallRecord("m", Role.REFINER, attempts=0, failure=CallFailure.BUDGET)
    outcome = Outcome(
        Plan("d"), Verdict(Status.CHECKED, score=0.9), calls=(CallRecord("m", Role.REFINER), refused)
    )
    with Tracer(provider).exchange({}) as span:
        describe(span, outcome)
    (ended,) = exporter.get_finished_spans()
    assert ended.attributes is not None
    assert ended.attributes["truthlens.calls"] == 1

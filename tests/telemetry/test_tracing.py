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
from truthlens.telemetry.tracing import Tracer, described


def test_a_call_that_was_refused_before_it_began_is_no_call() -> None:
    """The span counts calls as the log and the ``truthlens`` object do."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    refused = CallRecord("m", Role.REFINER, attempts=0, failure=CallFailure.BUDGET)
    outcome = Outcome(
        Plan("d"), Verdict(Status.CHECKED, score=0.9), calls=(CallRecord("m", Role.REFINER), refused)
    )
    with Tracer(provider).exchange({}) as span:
        described(span, outcome)
    (ended,) = exporter.get_finished_spans()
    assert ended.attributes is not None
    assert ended.attributes["truthlens.calls"] == 1


def test_an_outcome_has_the_id_of_a_trace_that_is_sent() -> None:
    """Not of one that is not sampled, nor of a client's that this process sends nothing of."""
    outcome = Outcome(Plan("d"), Verdict(Status.CHECKED, score=0.9))
    trace_id = "0af7651916cd43dd8448eb211c80319c"

    def seen(provider: TracerProvider | None, flags: str) -> str:
        headers = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-{flags}"}
        with Tracer(provider).exchange(headers) as span:
            return described(span, outcome).trace_id

    assert seen(TracerProvider(), "01") == trace_id
    assert seen(TracerProvider(), "00") == seen(None, "01") == ""

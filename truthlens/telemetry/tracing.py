"""Spans of exchanges and of the calls that they make, by OpenTelemetry.

Without a configured exporter the API's own no-op spans are used and nothing is sent. No text of users or
models is put into a span, only names from the configuration, closed lists and figures.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from truthlens.core.records.calls import ModelRequest
from truthlens.core.records.outcome import Outcome

log = structlog.get_logger("truthlens.tracing")

_PROPAGATOR = TraceContextTextMapPropagator()
_EXPORTER_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def configure(version: str) -> bool:
    """Send spans to the OTLP endpoint that the environment names (``OTEL_EXPORTER_OTLP_ENDPOINT``).

    Returns:
        Whether spans are sent.
    """
    if not any(os.environ.get(name) for name in _EXPORTER_VARIABLES):
        return False
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.error(
            "traces are not sent: the exporter is not installed", remedy="pip install 'truthlens[otel]'"
        )
        return False
    # A service name from the environment (OTEL_SERVICE_NAME) goes before this one.
    attributes = {"service.version": version}
    if "OTEL_SERVICE_NAME" not in os.environ:
        attributes["service.name"] = "truthlens"
    provider = TracerProvider(resource=Resource.create(attributes))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return True


@dataclass(frozen=True, slots=True)
class CallSpan:
    """The span of one call to a model."""

    span: trace.Span

    def set(self, name: str, value: str | float | bool) -> None:
        """Put a figure on the span."""
        self.span.set_attribute(name, value)

    def headers(self) -> Mapping[str, str]:
        """Return the headers by which the model's server continues this trace; none without a trace.

        Never ``tracestate``: what a client's own systems put there is not for other companies' models.
        """
        if not self.span.is_recording():
            return {}
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(self.span))
        return {"traceparent": carrier["traceparent"]}


class Tracer:
    """Makes the spans of one process."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("truthlens", tracer_provider=provider)

    @contextmanager
    def exchange(self, headers: Mapping[str, str]) -> Iterator[trace.Span]:
        """Open the span of scoring one exchange, a child of the span in the request's ``traceparent``."""
        parent: Context = _PROPAGATOR.extract(
            {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        )
        with self._tracer.start_as_current_span(
            "truthlens.api", context=parent, record_exception=False, set_status_on_exception=False
        ) as span:
            yield span

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Open the span of one stage, within the exchange's."""
        with self._tracer.start_as_current_span(
            f"truthlens.{name}", record_exception=False, set_status_on_exception=False
        ):
            yield

    @contextmanager
    def call(self, request: ModelRequest) -> Iterator[CallSpan]:
        """Open the span of one call to a model, within the exchange's; the caller describes the call."""
        with self._tracer.start_as_current_span(
            f"chat {request.role.value}",
            kind=SpanKind.CLIENT,
            attributes={
                "truthlens.role": request.role.value,
            },
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield CallSpan(span)


def described(span: trace.Span, outcome: Outcome) -> Outcome:
    """Put its figures on the span of an exchange, and return it with the trace's id where that is sent."""
    verdict = outcome.verdict
    span.set_attributes(
        {
            "truthlens.decision": outcome.plan.decision,
            "truthlens.mode": outcome.mode.value,
            "truthlens.status": verdict.status.value,
            "truthlens.action": outcome.action.value,
            "truthlens.iterations": outcome.iterations,
            "truthlens.calls": len(outcome.calls_made),
            "truthlens.tokens": sum(call.usage.total_tokens for call in outcome.calls),
        }
    )
    if verdict.reason is not None:
        span.set_attribute("truthlens.reason", verdict.reason.value)
        if verdict.reason.value.endswith("error"):
            span.set_status(Status(StatusCode.ERROR))
    if verdict.score is not None:
        span.set_attribute("truthlens.score", verdict.score)
        span.set_attribute("truthlens.detected", verdict.flagged)
    if outcome.initial_score is not None:
        span.set_attribute("truthlens.initial_score", outcome.initial_score)
    context = span.get_span_context()
    is_sent = span.is_recording() and context.trace_flags.sampled
    return replace(outcome, trace_id=trace.format_trace_id(context.trace_id)) if is_sent else outcome

"""Spans of exchanges, of their stages and of the calls that they make, by OpenTelemetry.

Without an exporter (``telemetry.otlp``) the API's own no-op spans are used and nothing is sent. No text of users or
models is put into a span, only names from the configuration, closed lists and figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.context import Context, attach, create_key, detach, get_value, set_value
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from truthlens.core.records.calls import ModelRequest
from truthlens.core.records.outcome import Outcome

_PROPAGATOR = TraceContextTextMapPropagator()
TRACE_HEADERS = ("traceparent", "tracestate")
"""The headers of W3C Trace Context."""
_EXCHANGE = create_key("truthlens-exchange")


class ExchangeTrace:
    """What is traced of one exchange, from its first message to its end.

    ``span`` is its own span. ``caller`` is the one that the client's request named as its parent, the own one where it named
    none. ``stages`` has the seconds of each stage, together where it ran more than once.
    """

    __slots__ = ("_context", "caller", "span", "stages")

    def __init__(self, span: trace.Span = trace.INVALID_SPAN, caller: SpanContext | None = None) -> None:
        self.span = span
        self.caller = caller if caller is not None and caller.is_valid else span.get_span_context()
        self.stages: dict[str, float] = {}
        self._context = set_value(_EXCHANGE, self, trace.set_span_in_context(span, Context()))

    @property
    def trace_id(self) -> str:
        """The id of the trace, as 32 hexadecimal digits; ``""`` where the exchange belongs to none."""
        own = self.span.get_span_context()
        return trace.format_trace_id(own.trace_id) if own.is_valid else ""

    @property
    def sent_id(self) -> str:
        """The id of the trace where the span of this exchange is to be sent; ``""`` otherwise."""
        is_sent = self.span.is_recording() and self.span.get_span_context().trace_flags.sampled
        return self.trace_id if is_sent else ""

    @contextmanager
    def within(self) -> Iterator[None]:
        """Let stages and calls that begin here, and in tasks that are made here, belong to this exchange."""
        token = attach(self._context)
        try:
            yield
        finally:
            detach(token)

    def note(self, stage: str, seconds: float) -> None:
        """Add to the time of a stage."""
        self.stages[stage] = self.stages.get(stage, 0.0) + seconds

    def end(self, outcome: Outcome | None = None) -> None:
        """End the span, with the figures of the outcome where there is one; only the first time counts."""
        if not self.span.is_recording():
            return
        if outcome is not None:
            describe(self.span, outcome)
        self.span.end()


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
    """Makes the spans of one process; ``provider`` sends them, ``None`` for no sending."""

    def __init__(
        self,
        provider: trace.TracerProvider | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._tracer = (provider or trace.NoOpTracerProvider()).get_tracer("truthlens")
        self._clock = clock

    def begin(self, headers: Mapping[str, str], proxy: Mapping[str, str] | None = None) -> ExchangeTrace:
        """Open the span of one exchange; whoever ends the exchange ends it.

        Args:
            headers: of the client's request, whose ``traceparent`` names the caller.
            proxy: trace headers that Envoy sent for itself: its span, between the caller's and this one.
        """
        sent = _context_of(headers)
        above = _context_of(proxy or {})
        span = self._tracer.start_span(
            "truthlens.api", context=above if proxy and _is_valid(above) else sent, kind=SpanKind.SERVER
        )
        return ExchangeTrace(span, trace.get_current_span(sent).get_span_context())

    @contextmanager
    def stage(self, name: str) -> Iterator[trace.Span]:
        """Open the span of one stage, within the exchange's, and count its time there."""
        exchange, began = get_value(_EXCHANGE), self._clock()
        try:
            with self._tracer.start_as_current_span(
                f"truthlens.{name}", record_exception=False, set_status_on_exception=False
            ) as span:
                yield span
        finally:
            if isinstance(exchange, ExchangeTrace):
                exchange.note(name, self._clock() - began)

    @contextmanager
    def call(self, request: ModelRequest) -> Iterator[CallSpan]:
        """Open the span of one call to a model, within the exchange's; the caller describes the call."""
        with self._tracer.start_as_current_span(
            f"chat {request.role.value}",
            kind=SpanKind.CLIENT,
            attributes={"truthlens.role": request.role.value},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield CallSpan(span)


def signals_sent(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return which of ``TRACES`` and ``LOGS`` the environment has sent: those with an endpoint, and with no other exporter named.

    Source: OpenTelemetry specification, "Environment Variable Specification".
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ()
    return tuple(
        signal
        for signal in ("TRACES", "LOGS")
        if any(environ.get(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT") for part in (f"{signal}_", ""))
        and "otlp" in (environ.get(f"OTEL_{signal}_EXPORTER") or "otlp").split(",")
    )


def _context_of(headers: Mapping[str, str]) -> Context:
    """Return the context that the trace headers among ``headers`` name; an empty one where they name none."""
    if "traceparent" not in headers:
        return Context()
    return _PROPAGATOR.extract({name: headers[name] for name in TRACE_HEADERS if name in headers}, Context())


def _is_valid(context: Context) -> bool:
    return trace.get_current_span(context).get_span_context().is_valid


def describe(span: trace.Span, outcome: Outcome) -> None:
    """Put the figures of an outcome on the span of its exchange."""
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
        if verdict.reason.is_failure:
            span.set_status(Status(StatusCode.ERROR))
    if verdict.score is not None:
        span.set_attribute("truthlens.score", verdict.score)
        span.set_attribute("truthlens.detected", verdict.flagged)
    if outcome.initial_score is not None:
        span.set_attribute("truthlens.initial_score", outcome.initial_score)

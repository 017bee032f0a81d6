"""Send spans and evaluations by OTLP, over HTTP or gRPC, as the ``OTEL_*`` variables of the environment say.

Source: OpenTelemetry specification, "Environment Variable Specification" and "OTLP Exporter Configuration". The SDK reads
endpoints, headers, certificates, time-outs, compression, resources, batches and samplers; here it is said which protocol
and which signals, and refused what the SDK would pass over with a warning. Only a process that sends imports this module.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import structlog
from opentelemetry._logs import Logger
from opentelemetry.sdk._logs import LoggerProvider, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from truthlens.core.errors import StartError
from truthlens.telemetry.evaluations import Evaluations

log = structlog.get_logger("truthlens.otlp")

Count = Callable[[str, str, int], None]
"""Takes a signal, ``made``, ``sent`` or ``failed``, and how many."""
_PROTOCOLS = ("http/protobuf", "grpc")
_RATIO_SAMPLERS = ("traceidratio", "parentbased_traceidratio")
_SAMPLERS = ("always_on", "always_off", "parentbased_always_on", "parentbased_always_off", *_RATIO_SAMPLERS)
_FILES = ("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE")
_LONGEST_CAUSE = 300
_FAILURES = {"traces": SpanExportResult.FAILURE, "logs": LogRecordExportResult.FAILURE}
# A receiver that does not answer must not keep the process from ending.
_LAST_S = 5.0


class Exports:
    """What sends the spans and evaluations of one process.

    Args:
        environ: the environment, whose variables the SDK reads as well.
        signals: which of ``TRACES`` and ``LOGS`` are sent.
        version: of this service.
        count: told of everything that was made, was sent and was lost, from any thread.

    Raises:
        StartError: a variable has a value that cannot work; the message names it.
        ImportError: the packages of the extra ``otel`` are not installed.
    """

    def __init__(
        self, environ: Mapping[str, str], *, signals: Sequence[str], version: str, count: Count
    ) -> None:
        _check_sampler(environ)
        protocols = {signal: _protocol(environ, signal) for signal in signals}
        # A service name from the environment (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) goes before this one.
        resource = Resource({"service.name": "truthlens", "service.version": version}).merge(
            Resource.create({}) if _names_service(environ) else _unnamed(Resource.create({}))
        )
        self.tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._providers: list[TracerProvider | LoggerProvider] = [self.tracer_provider]
        if "TRACES" in signals:
            spans = _Counted(_span_exporter(protocols["TRACES"]), "traces", count)
            self.tracer_provider.add_span_processor(_Spans(spans, count))
        logger: Logger | None = None
        if "LOGS" in signals:
            logs = _Counted(_log_exporter(protocols["LOGS"]), "logs", count)
            provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
            provider.add_log_record_processor(_Logs(logs, count))
            self._providers.append(provider)
            logger = provider.get_logger("truthlens", version)
        self.evaluations = Evaluations(logger)
        _quiet()

    async def aclose(self) -> None:
        """Send what is left, as far as that takes no longer than a moment."""
        ending = [threading.Thread(target=each.shutdown, daemon=True) for each in self._providers]
        for each in ending:
            each.start()
        for each in ending:
            await asyncio.to_thread(each.join, _LAST_S)


class _Counted:
    """An exporter that counts what it sends and loses, and logs one line each time that one turns into the other."""

    def __init__(self, exporter: SpanExporter | LogRecordExporter, signal: str, count: Count) -> None:
        self._exporter: Any = exporter
        self._signal, self._count = signal, count
        self._failing, self._lost = False, 0

    def export(self, batch: Sequence[Any]) -> Any:
        try:
            result = self._exporter.export(batch)
        except Exception as error:  # noqa: BLE001 - the SDK's thread would pass over it, and nothing would be counted
            _SAID.last, result = type(error).__name__, _FAILURES[self._signal]
        sent = result is not _FAILURES[self._signal]
        self._count(self._signal, "sent" if sent else "failed", len(batch))
        if sent and self._failing:
            log.info("OTLP is sent again", signal=self._signal, lost=self._lost)
            self._failing, self._lost = False, 0
        elif not sent:
            self._lost += len(batch)
            if not self._failing:
                self._failing = True
                log.error(
                    "OTLP is not sent: what is lost is counted in truthlens_otlp_items_total",
                    signal=self._signal,
                    cause=_SAID.last,
                    remedy="look at OTEL_EXPORTER_OTLP_ENDPOINT and _PROTOCOL, and at the receiver; where it takes none of"
                    f" these, set OTEL_{self._signal.upper()}_EXPORTER=none",
                )
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        flushed: bool = self._exporter.force_flush(timeout_millis)
        return flushed


class _Spans(BatchSpanProcessor):
    """Counts what is to be sent: what is neither sent nor failed was dropped, because too much waited."""

    def __init__(self, exporter: _Counted, count: Count) -> None:
        super().__init__(cast("SpanExporter", exporter))
        self._count = count

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._count("traces", "made", 1)
        super().on_end(span)


class _Logs(BatchLogRecordProcessor):
    def __init__(self, exporter: _Counted, count: Count) -> None:
        super().__init__(cast("LogRecordExporter", exporter))
        self._count = count

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        self._count("logs", "made", 1)
        super().on_emit(log_record)


class _Said(logging.Handler):
    """Keeps the last word of the SDK, which says it for each batch, for the one line that is logged."""

    last = "unknown"

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()[:_LONGEST_CAUSE]


_SAID = _Said(logging.WARNING)


def _quiet() -> None:
    logger = logging.getLogger("opentelemetry")
    logger.propagate = False
    if _SAID not in logger.handlers:
        logger.addHandler(_SAID)


def _names_service(environ: Mapping[str, str]) -> bool:
    return "OTEL_SERVICE_NAME" in environ or "service.name" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")


def _unnamed(resource: Resource) -> Resource:
    """Return the resource without the name that the SDK gives where nobody gave one."""
    return Resource({key: value for key, value in resource.attributes.items() if key != "service.name"})


def _protocol(environ: Mapping[str, str], signal: str) -> str:
    """Return the protocol of a signal, its endpoint and files looked at.

    Raises:
        StartError: one of them cannot work.
    """

    def given(part: str) -> tuple[str, str]:
        own, shared = f"OTEL_EXPORTER_OTLP_{signal}_{part}", f"OTEL_EXPORTER_OTLP_{part}"
        return (own, environ[own]) if environ.get(own) else (shared, environ.get(shared, ""))

    name, protocol = given("PROTOCOL")
    if (protocol := protocol or _PROTOCOLS[0]) not in _PROTOCOLS:
        raise StartError(f"{name} is {protocol!r}, expected {' or '.join(_PROTOCOLS)}")
    name, endpoint = given("ENDPOINT")
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise StartError(f"{name} is {endpoint!r}, expected http://HOST:PORT or https://HOST:PORT")
    for part in _FILES:
        name, path = given(part)
        if path and not Path(path).is_file():
            raise StartError(f"{name} is {path!r}, expected a PEM file, and there is none")
    return protocol


def _check_sampler(environ: Mapping[str, str]) -> None:
    sampler = environ.get("OTEL_TRACES_SAMPLER") or _SAMPLERS[2]
    if sampler not in _SAMPLERS:
        raise StartError(f"OTEL_TRACES_SAMPLER is {sampler!r}, expected one of {', '.join(_SAMPLERS)}")
    given = environ.get("OTEL_TRACES_SAMPLER_ARG", "1")
    if sampler in _RATIO_SAMPLERS and not _is_share(given):
        raise StartError(f"OTEL_TRACES_SAMPLER_ARG is {given!r}, expected a share of 0 to 1, such as 0.1")


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def _span_exporter(protocol: str) -> SpanExporter:
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return Http()


def _log_exporter(protocol: str) -> LogRecordExporter:
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as Grpc

        return Grpc()
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as Http

    return Http()

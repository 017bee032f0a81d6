"""Sending spans and evaluations by OTLP, and what happens where that fails or cannot work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.fakes.otlp_receiver import OtlpReceiver, attributes, receiving
from truthlens.core.errors import StartError
from truthlens.core.records.enums import Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.telemetry.otlp import Exports
from truthlens.telemetry.tracing import Tracer, signals_sent

OUTCOME = Outcome(Plan("support"), Verdict(Status.CHECKED, score=0.2, threshold=0.5))


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    with receiving() as found:
        yield found


class Sender:
    """Exports as the environment has them, and what they counted."""

    def __init__(self, patch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
        for name, value in environ.items():
            patch.setenv(name, value)
        self.counted: Counter[tuple[str, str]] = Counter()
        self.exports = Exports(environ, signals=signals_sent(environ), version="9", count=self.count)
        self.tracer = Tracer(self.exports.tracer_provider)

    def count(self, signal: str, result: str, count: int) -> None:
        self.counted[signal, result] += count

    def exchange(self) -> None:
        trace = self.tracer.begin({})
        self.exports.evaluations.tell(OUTCOME, trace, explain=False)
        trace.end(OUTCOME)

    def flush(self) -> None:
        self.exports.tracer_provider.force_flush()


def at(receiver: OtlpReceiver, protocol: str) -> dict[str, str]:
    port = receiver.grpc_port if protocol == "grpc" else receiver.http_port
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{protocol.partition('/')[0]}",
    }


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
async def test_spans_and_evaluations_arrive(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """Over either protocol, with the headers of the environment, in one trace; nothing is left behind."""
    spans, records = len(receiver.spans), len(receiver.records)
    sender = Sender(monkeypatch, at(receiver, protocol) | {"OTEL_SERVICE_NAME": "sidecar"})
    sender.exchange()
    await sender.exports.aclose()
    ((service, span),) = receiver.spans[spans:]
    (record,) = receiver.records[records:]
    assert (service, span.name, record.event_name) == ("sidecar", "truthlens.api", "gen_ai.evaluation.result")
    assert (record.trace_id, record.span_id) == (span.trace_id, span.span_id)
    assert attributes(record)["gen_ai.evaluation.score.value"] == 0.8
    assert attributes(span.events[0]) == attributes(record)
    assert receiver.headers[-1]["authorization"] == f"Bearer {protocol.partition('/')[0]}"
    assert dict(sender.counted) == {
        (signal, result): 1 for signal in ("traces", "logs") for result in ("made", "sent")
    }


async def test_a_receiver_that_refuses_is_said_once_and_counted(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line names the cause; another one says when it works again, and how much was lost."""
    environ = at(receiver, "http/protobuf") | {"OTEL_LOGS_EXPORTER": "none"}
    sender = Sender(monkeypatch, environ)
    with structlog.testing.capture_logs() as lines:
        receiver.status = 401
        for _ in range(3):
            sender.exchange()
            sender.flush()
        receiver.status = 200
        sender.exchange()
        sender.flush()
    await sender.exports.aclose()
    assert [line["event"].partition(":")[0] for line in lines] == ["OTLP is not sent", "OTLP is sent again"]
    assert "401" in lines[0]["cause"]
    assert (lines[1]["signal"], lines[1]["lost"]) == ("traces", 3)
    assert dict(sender.counted) == {("traces", "made"): 4, ("traces", "failed"): 3, ("traces", "sent"): 1}


async def test_a_ratio_samples_what_has_no_parent(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller's decision goes before it; of what is not sampled there is neither span nor evaluation."""
    environ = at(receiver, "grpc") | {
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0",
    }
    sender = Sender(monkeypatch, environ)
    sender.exchange()
    for flag in ("00", "01"):
        trace = sender.tracer.begin({"traceparent": f"00-{'1' * 32}-{'2' * 16}-{flag}"})
        sender.exports.evaluations.tell(OUTCOME, trace, explain=False)
        trace.end(OUTCOME)
    await sender.exports.aclose()
    assert sender.counted["traces", "sent"] == sender.counted["logs", "sent"] == 1


BASE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'http/json', expected",
        ),
        ({"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "udp"}, "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL is 'udp', expected"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4317"},
            "OTEL_EXPORTER_OTLP_ENDPOINT is 'c:4317', expected http://",
        ),
        (
            {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere.pem"},
            "OTEL_EXPORTER_OTLP_CERTIFICATE is '/nowhere.pem'",
        ),
        ({"OTEL_TRACES_SAMPLER": "some"}, "OTEL_TRACES_SAMPLER is 'some', expected one of always_on"),
        (
            {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "ten"},
            "expected a share of 0 to 1",
        ),
    ],
)
def test_a_variable_that_cannot_work_is_refused(environ: dict[str, str], message: str) -> None:
    """The message names the variable, its value and what was expected; the SDK alone would go on without."""
    environ = BASE | environ
    with pytest.raises(StartError) as refused:
        Exports(environ, signals=signals_sent(environ), version="9", count=lambda *_: None)
    assert message in str(refused.value)


def test_a_folder_is_no_certificate(tmp_path: Path) -> None:
    """It would be passed over as well."""
    environ = BASE | {"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": str(tmp_path)}
    with pytest.raises(StartError, match="TRACES_CERTIFICATE"):
        Exports(environ, signals=("TRACES",), version="9", count=lambda *_: None)

"""What an evaluation says, of whose span it speaks, and that it holds no text unless asked to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider

from truthlens.core.records.enums import AnswerKind, Reason, Status
from truthlens.core.records.exchange import Answer
from truthlens.core.records.explanation import Explanation, SpanKind
from truthlens.core.records.outcome import Outcome, ResponseRecord
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Span, Verdict, unchecked
from truthlens.telemetry.evaluations import Evaluations, evaluation
from truthlens.telemetry.tracing import Tracer

TEXT = "The ferry carries ninety cars."
SPAN = Span(
    18, 24, 0.9, explanation=Explanation(SpanKind.CONTRADICTED, 0.9, "The evidence gives another number.")
)
FLAGGED = Verdict(Status.CHECKED, score=0.75, threshold=0.5, spans=(SPAN,))
OUTCOME = Outcome(
    Plan("travel"),
    FLAGGED,
    (FLAGGED,),
    answers=(Answer(0, AnswerKind.TEXT, TEXT),),
    response=ResponseRecord(10, "chatcmpl-1"),
)


@pytest.mark.parametrize(
    ("verdict", "label", "value", "error"),
    [
        (FLAGGED, "unsupported", 0.25, None),
        (replace(FLAGGED, status=Status.PARTIAL, reason=Reason.LANGUAGE), "unsupported", 0.25, None),
        (replace(FLAGGED, score=0.1), "supported", 0.9, None),
        (replace(FLAGGED, score=0.1, status=Status.PARTIAL, reason=Reason.LANGUAGE), "unchecked", None, None),
        (unchecked(Reason.NO_CONTEXT), "unchecked", None, None),
        (unchecked(Reason.TIMEOUT), "unchecked", None, "timeout"),
    ],
)
def test_the_evaluation_of_a_verdict(
    verdict: Verdict, label: str, value: float | None, error: str | None
) -> None:
    """Higher is better, unlike our score; what was not checked has no value and is never supported."""
    found = evaluation(replace(OUTCOME, verdict=verdict), explain=False)
    names = ("evaluation.name", "evaluation.score.label", "evaluation.score.value", "response.id")
    told = [found.get(f"gen_ai.{name}") for name in names]
    assert told == ["groundedness", label, value, "chatcmpl-1"]
    assert found.get("error.type") == error


def test_texts_are_quoted_only_where_that_is_wanted() -> None:
    """The words that are wrong, and why."""
    assert "gen_ai.evaluation.explanation" not in evaluation(OUTCOME, explain=False)
    assert not any(word in str(evaluation(OUTCOME, explain=False)) for word in TEXT.split())
    said = evaluation(OUTCOME, explain=True)["gen_ai.evaluation.explanation"]
    assert said == '"ninety": The evidence gives another number.'


def emitted(headers: dict[str, str], outcome: Outcome = OUTCOME) -> tuple[list[Any], Any]:
    """The log records of one exchange, and its trace."""
    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    trace = Tracer(TracerProvider(shutdown_on_exit=False)).begin(headers)
    Evaluations(provider.get_logger("t")).tell(outcome, trace, explain=False)
    return [each.log_record for each in exporter.get_finished_logs()], trace


def test_it_is_of_the_span_by_which_the_client_asked() -> None:
    """Without one it is of our own, which has it as an event in any case."""
    ((record,), trace) = emitted({"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
    assert (f"{record.trace_id:032x}", f"{record.span_id:016x}") == ("a" * 32, "b" * 16)
    ((alone,), own) = emitted({})
    assert alone.span_id == own.span.get_span_context().span_id
    assert [event.name for event in (*own.span.events, *trace.span.events)] == [record.event_name] * 2


def test_none_is_sent_of_what_is_not_sampled_or_not_to_be_checked() -> None:
    """A receiver that has no such span could not place it; a decision that checks nothing evaluates nothing."""
    assert emitted({"traceparent": f"00-{'a' * 32}-{'b' * 16}-00"})[0] == []
    assert emitted({}, Outcome(Plan("off"), unchecked(Reason.DISABLED)))[0] == []

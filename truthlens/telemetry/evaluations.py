"""Tell what answers are worth as evaluations: ``gen_ai.evaluation.result`` of the span by which the caller asked for them.

Source: OpenTelemetry semantic conventions for generative AI, events. A process that sends nothing never imports this.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from opentelemetry import trace
from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.context import Context

from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.verdict import marks_of
from truthlens.telemetry.tracing import ExchangeTrace

EVENT = "gen_ai.evaluation.result"
NAME = "groundedness"
_LONGEST = 2000


class Evaluations:
    """Sends one evaluation an exchange, as an event of its own span and, with a ``logger``, as a log record of the caller's."""

    def __init__(self, logger: Logger | None) -> None:
        self._logger = logger

    def tell(self, outcome: Outcome, traced: ExchangeTrace, *, explain: bool) -> None:
        """Send the evaluation of ``outcome``; with ``explain`` it quotes the answer.

        None is sent where the decision checks nothing, nor of an exchange whose trace is not sampled.
        """
        if outcome.verdict.reason is Reason.DISABLED:
            return
        attributes = evaluation(outcome, explain=explain)
        traced.span.add_event(EVENT, attributes)
        caller = traced.caller
        if self._logger is None or (caller.is_valid and not caller.trace_flags.sampled):
            return
        self._logger.emit(
            timestamp=time.time_ns(),
            context=trace.set_span_in_context(trace.NonRecordingSpan(caller), Context()),
            severity_number=SeverityNumber.INFO,
            event_name=EVENT,
            attributes=attributes,
        )


def evaluation(outcome: Outcome, *, explain: bool) -> dict[str, str | float]:
    """Return the attributes of the evaluation of an exchange, that of its worst choice."""
    verdict, label = outcome.verdict, label_of(outcome)
    found: dict[str, str | float] = {
        "gen_ai.evaluation.name": NAME,
        "gen_ai.evaluation.score.label": label,
        "truthlens.status": verdict.status.value,
        "truthlens.decision": outcome.plan.decision,
    }
    if label != "unchecked" and verdict.score is not None:
        found["gen_ai.evaluation.score.value"] = round(1.0 - verdict.score, 4)
    if verdict.reason is not None:
        found["truthlens.reason"] = verdict.reason.value
        if verdict.reason.is_failure:
            found["error.type"] = verdict.reason.value
    if outcome.response.id:
        found["gen_ai.response.id"] = outcome.response.id
    if explain and (said := "; ".join(_said(outcome))):
        found["gen_ai.evaluation.explanation"] = said[:_LONGEST]
    return found


def label_of(outcome: Outcome) -> str:
    """Return ``supported``, ``unsupported`` or ``unchecked``; an answer of which a part was not checked is never ``supported``."""
    verdict = outcome.verdict
    if verdict.score is None or verdict.status is Status.UNCHECKED:
        return "unchecked"
    if verdict.flagged:
        return "unsupported"
    return "supported" if verdict.status is Status.CHECKED else "unchecked"


def _said(outcome: Outcome) -> Iterator[str]:
    for answer, verdict in zip(outcome.answers, outcome.verdicts, strict=False):
        for mark in marks_of(verdict.spans, length=len(answer.text)) if verdict.flagged else ():
            why = mark.telling.explanation
            yield f'"{answer.text[mark.start : mark.end]}"' + (f": {why.reason}" if why is not None else "")

"""Structured logs: JSON lines on standard error, one canonical line an exchange.

No text of a user, a document or a model is logged: the canonical line holds names from the configuration,
closed lists, counts and times. Only where the operator asks for it (``telemetry: {log_text: true}``) does a
second line hold the texts.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from typing import Any, TextIO, cast

import structlog
from prometheus_client import Counter

from truthlens.core.records.enums import Endpoint, Reason
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.verdict import Verdict
from truthlens.telemetry.detector_metrics import citation_figures, value_claims

LOST_LINES = Counter("truthlens_log_lines_lost", "Lines of the log that could not be written.", registry=None)
"""Of this process; every registry of metrics has it."""
_exchange_log = structlog.get_logger("truthlens.api")
# One for all lines: ``json.dumps`` makes an encoder for each.
_JSON = json.JSONEncoder(ensure_ascii=False, default=repr)
_NONE_IF_EMPTY = (
    "stops", "failures", "notes", "errors", "citations", "numeric_claims", "reasoning_chars", "model",
)  # fmt: skip


class _Lenient:
    """A file that loses what it cannot write, as on a full disk: a line is not worth a verdict."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> None:
        try:
            self._file.write(line)
            self._file.flush()
        except OSError:
            LOST_LINES.inc()

    def flush(self) -> None:
        """``write`` has done it."""


def configure(*, level: str = "info", console: bool = False) -> None:
    """Set up logging for the process.

    Args:
        level: debug, info, warning or error.
        console: human-readable lines in place of JSON.
    """
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if console
        else structlog.processors.JSONRenderer(serializer=lambda line, **_: _JSON.encode(line))
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _Lenient(sys.stderr))),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")


def log_exchange(
    outcome: Outcome,
    *,
    endpoint: Endpoint | None,
    request_id: str,
    passages: int,
    stream: bool,
    request_s: float,
    response_s: float,
) -> None:
    """Write the canonical line of one exchange; times in seconds, logged in milliseconds."""
    verdict, stream_record = outcome.verdict, outcome.stream
    claims = value_claims(outcome)
    streaming, lag_s, held_s = (
        (stream_record.streaming, stream_record.lag_s, stream_record.held_s)
        if stream_record
        else (None, None, None)
    )
    line: dict[str, Any] = dict(
        request_id=request_id,
        endpoint=endpoint,
        decision=outcome.plan.decision,
        policy=outcome.plan.policy_version,
        mode=outcome.mode,
        status=verdict.status,
        reason=verdict.reason,
        score=_rounded(verdict.score),
        threshold=verdict.threshold,
        detected=verdict.flagged if verdict.score is not None else None,
        action=outcome.action,
        shadow_action=outcome.shadow_action,
        iterations=outcome.iterations,
        initial_score=_rounded(outcome.initial_score),
        stops=[correction.stop for correction in outcome.corrections if correction is not None],
        calls=len(outcome.calls_made),
        failures=sorted({call.code or call.failure for call in outcome.calls if call.failure}),
        notes=list(outcome.notes),
        tokens=sum(call.usage.total_tokens for call in outcome.calls),
        cost_usd=round(sum(call.cost_usd or 0.0 for call in outcome.calls), 6),
        mending_ms=_ms(outcome.mitigation_s),
        choices=len(outcome.verdicts),
        errors=_errors(outcome),
        citations=[figures.as_dict() for figures in citation_figures(outcome.verdicts)],
        spans=sum(len(v.spans) for v in outcome.verdicts),
        numeric_claims=len(claims),
        unverified_claims=sum(not claim.verified for claim in claims) if claims else None,
        passages=passages,
        **_coverage(outcome.verdicts),
        reasoning_chars=sum(each.characters for each in outcome.reasoned if each is not None),
        model=outcome.model,
        stream=stream,
        streaming=streaming,
        lag_ms=_ms(lag_s),
        held_ms=_ms(held_s),
        request_ms=_ms(request_s),
        response_ms=_ms(response_s),
    )
    _exchange_log.info("exchange", **line | {name: None for name in _NONE_IF_EMPTY if not line[name]})


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)


def _coverage(verdicts: Sequence[Verdict]) -> dict[str, float | None]:
    """Return what was read: tokens of all answers, shares of the one that was read least."""
    found = [each.coverage for each in verdicts if each.coverage is not None]
    return {
        "answer_tokens": sum(each.answer_tokens for each in found),
        "evidence_tokens": max((each.evidence_tokens for each in found), default=0),
        "windows": sum(each.windows for each in found),
        "coverage_answer": min((each.read_ratio for each in found), default=None),
        "coverage_evidence": min((each.evidence_ratio for each in found), default=None),
    }


def _errors(outcome: Outcome) -> list[str]:
    """Return which detectors failed and why: the type of the error, whose message may quote the text, or a figure."""
    results = (result for verdict in outcome.verdicts for result in verdict.results)
    return sorted(
        {f"{each.detector}: {each.explanation}" for each in results if each.reason is Reason.DETECTOR_ERROR}
    )


def log_abandoned(*, decision: str, request_id: str) -> None:
    """Write the line of an exchange whose stream ended before its answer was scored."""
    _exchange_log.info("exchange abandoned", decision=decision, request_id=request_id)


def log_texts(exchange: Exchange, answers: Sequence[Answer], *, request_id: str) -> None:
    """Write the texts of an exchange, for operators who asked for them."""
    _exchange_log.info(
        "exchange text",
        request_id=request_id,
        query=exchange.query,
        passages=[passage.text for passage in exchange.passages],
        answers=[answer.text for answer in answers],
    )

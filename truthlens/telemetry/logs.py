"""Structured logs: lines of JSON or logfmt on standard error, one canonical line an exchange (``docs/logs.md``).

No text of a user, a document or a model is logged: the canonical line holds names from the configuration,
closed lists, identifiers, counts and times. Only where the operator asks for it (``telemetry: {log_text: true}``) does a
second line hold the texts.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from enum import StrEnum
from typing import Any, TextIO, cast

import structlog
from prometheus_client import Counter

from truthlens.core.records.enums import Action, Endpoint, Reason
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.verdict import Verdict
from truthlens.telemetry.detector_metrics import citation_figures, value_claims
from truthlens.telemetry.tracing import ExchangeTrace

LOST_LINES = Counter("truthlens_log_lines_lost", "Lines of the log that could not be written.", registry=None)
"""Of this process; every registry of metrics has it."""
_exchange_log = structlog.get_logger("truthlens.api")
# One for all lines: ``json.dumps`` makes an encoder for each.
_JSON = json.JSONEncoder(ensure_ascii=False, default=repr)
_NONE_IF_EMPTY = (
    "stops",
    "failures",
    "notes",
    "errors",
    "citations",
    "numeric_claims",
    "reasoning_chars",
    "model",
    "trace_id",
    "response_id",
)
# Each is one field, ``NAME_ms``, where the stage ran.
_STAGES = ("evidence", "retrieval", "detection", "cascade", "mitigation")
# What ends a line for some readers of logs, or is not seen: JSON lets it stand inside of a string.
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_WORD = re.compile(r"[\w.:/@%+*-]+")
_BARE = re.compile(r"[\w.:/@%+*,\[\]-]+")


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


class LogFormat(StrEnum):
    """How lines are written; ``CONSOLE`` is for a person at a terminal."""

    JSON = "json"
    LOGFMT = "logfmt"
    CONSOLE = "console"


def configure(*, level: str = "info", form: LogFormat = LogFormat.JSON) -> None:
    """Set up logging for the process; ``level`` is debug, info, warning or error."""
    renderer: structlog.typing.Processor
    match form:
        case LogFormat.JSON:
            renderer = structlog.processors.JSONRenderer(serializer=lambda line, **_: _json(line))
        case LogFormat.LOGFMT:
            renderer = logfmt
        case LogFormat.CONSOLE:
            renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
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


def _json(value: object) -> str:
    """Return ``value`` as JSON of one line, whatever a reader takes for the end of one."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", _JSON.encode(value))


def logfmt(_logger: object, _method: str, line: MutableMapping[str, Any]) -> str:
    """Return a line as ``key=value`` pairs; fields without a value are left out.

    What is not one plain word is quoted and escaped as a string of JSON is, lists are joined by commas.
    """
    leading = {name: line.pop(name) for name in ("timestamp", "level", "event") if name in line}
    return " ".join(
        f"{name}={_logfmt_value(each)}" for name, each in {**leading, **line}.items() if each is not None
    )


def _logfmt_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple) and value and all(_WORD.fullmatch(str(each)) for each in value):
        value = ",".join(map(str, value))
    elif isinstance(value, Mapping | list | tuple):
        value = _json(value)
    text = str(value)
    return text if _BARE.fullmatch(text) and not _UNSEEN.search(text) else _json(text)


def is_remarkable(outcome: Outcome, *, seconds: float, slow_s: float) -> bool:
    """Return whether an exchange is logged whatever the sample: flagged, changed, held for review, failed or slow."""
    verdict, pass_ = outcome.verdict, Action.PASS
    return (
        seconds >= slow_s
        or any(each.flagged for each in (*outcome.verdicts, *outcome.first))
        or outcome.action is not pass_
        or (outcome.shadow_action or pass_) is not pass_
        or outcome.review_id is not None
        or (verdict.reason is not None and verdict.reason.is_failure)
        or any(call.failure for call in outcome.calls)
    )


def log_exchange(
    outcome: Outcome,
    *,
    endpoint: Endpoint | None,
    request_id: str,
    passages: int,
    stream: bool,
    request_bytes: int,
    request_s: float,
    response_s: float,
    trace: ExchangeTrace,
    sample: float | None = None,
) -> None:
    """Write the canonical line of one exchange; times in seconds, logged in milliseconds.

    ``sample``: of exchanges like this one, the share that is logged; ``None`` where all are.
    """
    verdict, stream_record = outcome.verdict, outcome.stream
    claims = value_claims(outcome)
    streaming, lag_s, held_s = (
        (stream_record.streaming, stream_record.lag_s, stream_record.held_s)
        if stream_record
        else (None, None, None)
    )
    usage = outcome.response.usage
    line: dict[str, Any] = dict(
        request_id=request_id,
        trace_id=trace.trace_id,
        response_id=outcome.response.id,
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
        request_bytes=request_bytes,
        response_bytes=outcome.response.size,
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=usage.get("completion_tokens"),
        request_ms=_ms(request_s),
        response_ms=_ms(response_s),
        **_stages(trace),
        sample=sample,
    )
    _exchange_log.info("exchange", **line | {name: None for name in _NONE_IF_EMPTY if not line[name]})


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)


def _stages(trace: ExchangeTrace) -> dict[str, float | None]:
    return {f"{name}_ms": _ms(trace.stages.get(name)) for name in _STAGES}


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


def log_abandoned(*, decision: str, request_id: str, trace_id: str) -> None:
    """Write the line of an exchange whose stream ended before its answer was scored."""
    _exchange_log.info(
        "exchange abandoned", decision=decision, request_id=request_id, trace_id=trace_id or None
    )


def log_texts(exchange: Exchange, answers: Sequence[Answer], *, request_id: str) -> None:
    """Write the texts of an exchange, for operators who asked for them."""
    _exchange_log.info(
        "exchange text",
        request_id=request_id,
        query=exchange.query,
        passages=[passage.text for passage in exchange.passages],
        answers=[answer.text for answer in answers],
    )

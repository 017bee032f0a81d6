"""Structured logs: JSON lines on standard error, one canonical line an exchange.

No text of a user, a document or a model is logged: the canonical line holds names from the configuration,
closed lists, counts and times. Only where the operator asks for it (``telemetry: {log_text: true}``) does a
second line hold the texts.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

import structlog

from truthlens.core.records.enums import Endpoint, Reason
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.telemetry.citation_figures import citation_figures
from truthlens.telemetry.detector_metrics import value_claims

_exchange_log = structlog.get_logger("truthlens.api")


def configure(*, level: str = "info", console: bool = False) -> None:
    """Set up logging for the process.

    Args:
        level: debug, info, warning or error.
        console: human-readable lines in place of JSON.
    """
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if console
        else structlog.processors.JSONRenderer(ensure_ascii=False)
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
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
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
    verdict = outcome.verdict
    claims = value_claims(outcome)
    coverages = [v.coverage for v in outcome.verdicts if v.coverage is not None]
    _exchange_log.info(
        "exchange",
        request_id=request_id,
        endpoint=endpoint.value if endpoint else None,
        decision=outcome.plan.decision,
        policy=outcome.plan.policy_version,
        mode=outcome.mode.value,
        status=verdict.status.value,
        reason=verdict.reason.value if verdict.reason else None,
        score=round(verdict.score, 4) if verdict.score is not None else None,
        threshold=verdict.threshold,
        detected=verdict.flagged if verdict.score is not None else None,
        action=outcome.action.value,
        iterations=outcome.iterations,
        initial_score=round(outcome.initial_score, 4) if outcome.initial_score is not None else None,
        stops=[correction.stop.value for correction in outcome.corrections if correction is not None] or None,
        calls=len(outcome.calls_made),
        failures=sorted({call.code or call.failure.value for call in outcome.calls if call.failure}) or None,
        notes=list(outcome.notes) or None,
        tokens=sum(call.usage.total_tokens for call in outcome.calls),
        cost_usd=round(sum(call.cost_usd or 0.0 for call in outcome.calls), 6),
        mending_ms=round(outcome.mitigation_s * 1000, 2),
        choices=len(outcome.verdicts),
        errors=_errors(outcome) or None,
        citations=[figures.as_dict() for figures in citation_figures(outcome.verdicts)] or None,
        spans=sum(len(v.spans) for v in outcome.verdicts),
        numeric_claims=len(claims) or None,
        unverified_claims=sum(not claim.verified for claim in claims) if claims else None,
        passages=passages,
        answer_tokens=sum(c.answer_tokens for c in coverages),
        evidence_tokens=max((c.evidence_tokens for c in coverages), default=0),
        windows=sum(c.windows for c in coverages),
        coverage_answer=min((c.answer_ratio for c in coverages), default=None),
        coverage_evidence=min((c.evidence_ratio for c in coverages), default=None),
        reasoning_chars=sum(each.characters for each in outcome.reasoned if each is not None) or None,
        model=outcome.model or None,
        stream=stream,
        streaming=outcome.stream.streaming.value if outcome.stream else None,
        lag_ms=round(outcome.stream.lag_s * 1000, 2) if outcome.stream else None,
        held_ms=round(outcome.stream.held_s * 1000, 2) if outcome.stream else None,
        request_ms=round(request_s * 1000, 2),
        response_ms=round(response_s * 1000, 2),
    )


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

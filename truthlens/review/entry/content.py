"""Build the entry of an exchange's outcome.

``content`` of an entry, as JSON (positions in characters, scores 0..1)::

    {"format": 1,
     "query": {"chars", "sha256"},
     "passages": [{"id", "provenance", "rule", "chars", "sha256"}],
     "choices": [{"index", "chars", "sha256", "status", "score", "threshold", "first_score"?,
                  "spans": [{"start", "end", "shown": [start, end], "score", "detector", "kind"?, "reason"?, "confidence"?, "passage"?,
                             "sentence"?: [start, end], "differences": [{"type", "start", "end", "evidence"?: [start, end]}], "note"?}],
                  "detectors": [{"name", "score", "reason"?, "weight", "ms", "explanation", "details"}],
                  "claims": [{"claim_type", "outcome", "verified", "start", "end", "value"?}]}],
     "texts"?: {"query", "passages": [{"title", "text"}], "answers": [text]},
     "texts_dropped"?: why texts that the policy allows are not kept}

``texts``, notes of models and values of claims are there only where the policy says ``review: {keep_text: true}``. Hashes are plain
SHA-256 of the UTF-8 text before redaction, so that whoever has the texts elsewhere can find them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from truthlens.core.records.enums import DetectorName, Mode
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.verdict import DetectorResult, Span, Verdict, marks_of
from truthlens.core.review_settings import ReviewSettings
from truthlens.core.thresholds import EVEN_ODDS, at_rate
from truthlens.delivery import risk_of
from truthlens.review.entry.redaction import redactor
from truthlens.review.records import NewEntry

FORMAT = 1
MOST_TEXT = 1 << 20
"""Characters of one entry's texts at most; larger ones are not kept."""
# A detector that gave this much has found something (white paper 3.1.3: the scale's middle).
_FOUND = 0.5
_MOST_SPANS = 500
_MOST_CLAIMS = 200
_MOST_CHOICES = 16
_MOST_PASSAGES = 500
_MOST_SCOPE = 20
_LONGEST_VALUE = 200
_LONGEST_NOTE = 1_000
_EXCERPT = 160
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
# What a database refuses (PostgreSQL NUL), or no encoding has (lone surrogates).
_UNFIT = re.compile("[\x00\ud800-\udfff]")


def entry_of(
    outcome: Outcome,
    exchange: Exchange,
    settings: ReviewSettings,
    *,
    created: float,
    query_id: str = "",
    headers: Mapping[str, str] | None = None,
) -> NewEntry:
    """Return the entry of an outcome that was chosen for review. CPU-bound for long texts; keep it off the event loop.

    Args:
        outcome: with ``review_id`` and ``review_rule``.
        exchange: its request half.
        settings: of the policy in force.
        created: when the exchange ended, seconds since 1970.
        query_id: the request's id, ``""`` where it has none.
        headers: the request's headers, by lower-case name.
    """
    headers = headers or {}
    assert outcome.review_id is not None
    assert outcome.review_rule is not None
    assert outcome.verdict.score is not None
    verdict = outcome.verdict
    even = at_rate(outcome.verdict.score, EVEN_ODDS, given=verdict.expected_rate)
    texts, dropped = _texts(outcome, exchange, settings)
    results = [result for each in outcome.verdicts for result in each.results]
    claims = _claim_counts(results)
    trace = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    confidence = 1.0 - outcome.verdict.score
    penalty = max((_figure(result, "confidence_adjustment") for result in results), default=0.0)
    content: dict[str, Any] = {
        "format": FORMAT,
        "query": _hashed(exchange.query),
        "passages": [
            {
                "id": each.id[:_LONGEST_VALUE],
                "provenance": each.provenance.value,
                "rule": each.rule,
                **_hashed(each.text),
            }
            for each in exchange.passages[:_MOST_PASSAGES]
        ],
        "choices": [
            _choice(outcome, place, each, text=texts is not None)
            for place, each in enumerate(outcome.verdicts[:_MOST_CHOICES])
        ],
    }
    if texts is not None:
        content["texts"] = texts
    if dropped:
        content["texts_dropped"] = dropped
    return NewEntry(
        id=outcome.review_id,
        created=created,
        decision=outcome.plan.decision,
        mode=outcome.mode.value,
        action=outcome.action.value,
        policy_version=outcome.plan.policy_version,
        model=outcome.model,
        score=outcome.verdict.score,
        even_score=even,
        threshold=verdict.threshold,
        flagged=verdict.flagged,
        level=risk_of(outcome.verdict.score).value,
        rule=outcome.review_rule[0],
        sample=outcome.review_rule[1],
        query_id=query_id,
        trace_id=trace[1] if trace else "",
        user_id=_fit(headers.get(settings.user_header, "")[:_LONGEST_VALUE]) if settings.user_header else "",
        scope={
            _fit(name)[:_LONGEST_VALUE]: _fit(value)[:_LONGEST_VALUE]
            for name, value in list(exchange.scope.items())[:_MOST_SCOPE]
        },
        original_confidence=confidence,
        adjusted_confidence=max(0.0, confidence - penalty),
        total_claims=claims["total_claims"],
        verified_claims=claims["verified_claims"],
        unverified_claims=claims["unverified_claims"],
        detectors={
            result.detector: round(result.score or 0.0, 4)
            for result in sorted(results, key=lambda each: each.score or 0.0)
            if found(result)
        },
        kinds=tuple(
            dict.fromkeys(
                span.explanation.kind.value
                for each in outcome.verdicts
                for span in each.spans
                if span.explanation is not None
            )
        ),
        auto=outcome.plan.mode is Mode.AUTO,
        latency_s=outcome.mitigation_s,
        tokens=sum(call.usage.total_tokens for call in outcome.calls_made),
        has_text=texts is not None,
        excerpt=_excerpt(outcome, texts) if texts is not None else "",
        content=content,
    )


def found(result: DetectorResult) -> bool:
    """Return whether the detector found something in the answer."""
    return result.for_review or (result.score is not None and result.score >= _FOUND)


def _choice(outcome: Outcome, place: int, verdict: Verdict, *, text: bool) -> dict[str, Any]:
    answer = outcome.answers[place] if place < len(outcome.answers) else None
    strongest = sorted(verdict.spans, key=lambda span: -span.score)[:_MOST_SPANS]
    shown = {
        "index": answer.index if answer else place,
        **_hashed(answer.text if answer else ""),
        "status": verdict.status.value,
        "score": verdict.score,
        "threshold": verdict.threshold,
        "first_score": verdict.first_score,
        "spans": [span_content(each, text=text) for each in sorted(strongest, key=lambda span: span.start)],
        "detectors": [_result(each) for each in verdict.results],
        "claims": [
            {
                "claim_type": claim.claim_type,
                "outcome": claim.outcome,
                "verified": claim.verified,
                "start": claim.start,
                "end": claim.end,
                **(
                    {"value": _fit(claim.value) if isinstance(claim.value, str) else claim.value}
                    if text
                    else {}
                ),
            }
            for result in verdict.results
            for claim in result.claims[:_MOST_CLAIMS]
        ],
    }
    return {name: value for name, value in shown.items() if value is not None}


def span_content(span: Span, *, text: bool) -> dict[str, Any]:
    """Return a span as it stands in an entry; ``text``: whether what a model noted of it may be kept."""
    start, end = span.shown or (span.start, span.end)
    shown: dict[str, Any] = {
        "start": span.start,
        "end": span.end,
        "shown": [start, end],
        "score": round(span.score, 4),
        "detector": span.detector,
        "differences": [],
    }
    if span.passage is not None and span.passage < _MOST_PASSAGES:
        shown["passage"] = span.passage
    if text and span.note:
        shown["note"] = _fit(span.note[:_LONGEST_NOTE])
    why = span.explanation
    if why is not None:
        shown |= {"kind": why.kind.value, "reason": why.reason, "confidence": round(why.confidence, 4)}
        if why.sentence is not None:
            shown["sentence"] = list(why.sentence)
        shown["differences"] = [
            {"type": each.kind.value, "start": each.start, "end": each.end}
            | ({"evidence": list(each.evidence)} if each.evidence else {})
            for each in why.differences[:20]
        ]
    return shown


def _result(result: DetectorResult) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": result.detector,
        "score": None if result.score is None else round(result.score, 4),
        "weight": result.weight,
        "ms": round(result.duration_s * 1000, 1),
        "explanation": result.explanation,
        "details": dict(result.details),
    }
    if result.reason is not None:
        shown["reason"] = result.reason.value
    return shown


def _texts(
    outcome: Outcome, exchange: Exchange, settings: ReviewSettings
) -> tuple[dict[str, Any] | None, str]:
    """The texts as they are kept, ``None`` where they are not, and why not where the policy allows them."""
    if not settings.keep_text:
        return None, ""
    answers = [each.text for each in outcome.answers[:_MOST_CHOICES]]
    passages = exchange.passages[:_MOST_PASSAGES]
    if sum(map(len, (exchange.query, *answers, *(each.text for each in passages)))) > MOST_TEXT:
        return None, "too large"
    redact = redactor(settings.redact, settings.redact_patterns)
    clean: Callable[[str], str] = lambda text: _fit(redact(text))  # noqa: E731
    try:
        return {
            "query": clean(exchange.query),
            "passages": [{"title": clean(each.title), "text": clean(each.text)} for each in passages],
            "answers": [clean(text) for text in answers],
        }, ""
    except TimeoutError:
        return None, "redaction took too long"


def _excerpt(outcome: Outcome, texts: Mapping[str, Any]) -> str:
    """The strongest mark of the answer with what comes before it, or the answer's beginning."""
    for place, verdict in enumerate(outcome.verdicts[: len(texts["answers"])]):
        text = texts["answers"][place]
        marks = sorted(marks_of(verdict.spans, length=len(text)), key=lambda mark: -mark.score)
        if marks:
            start = max(0, min(marks[0].start - _EXCERPT // 4, len(text) - _EXCERPT))
            if start:
                start = text.find(" ", start, marks[0].start) + 1 or start
            return ("… " if start else "") + str(text[start : start + _EXCERPT])
    return str(texts["answers"][0][:_EXCERPT]) if texts["answers"] else ""


def _claim_counts(results: list[DetectorResult]) -> dict[str, int]:
    names = ("total_claims", "verified_claims", "unverified_claims")
    numbers = [result for result in results if result.detector == DetectorName.NUMBERS]
    return {name: int(sum(_figure(result, name) for result in numbers)) for name in names}


def _figure(result: DetectorResult, name: str) -> float:
    value = result.details.get(name, 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def _hashed(text: str) -> dict[str, Any]:
    return {"chars": len(text), "sha256": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()}


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)

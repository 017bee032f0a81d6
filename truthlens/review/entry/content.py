"""Build the entry of an exchange's outcome.

``content`` of an entry, as JSON (positions in characters, scores 0..1)::

    {"format": 1,
     "query": {"chars", "sha256"},
     "passages": [{"id", "provenance", "rule", "chars", "sha256"}],
     "choices": [{"index", "chars", "sha256", "status", "score", "threshold", "first_score"?,
                  "spans": [{"start", "end", "shown": [start, end], "score", "detector", "kind"?, "reason"?, "confidence"?, "passage"?,
                             "sentence"?: [start, end], "similarity"?,
                             "differences": [{"type", "start", "end", "evidence"?: [start, end]}], "note"?}],
                  "detectors": [{"name", "score", "reason"?, "weight", "ms", "explanation", "details", "for_review"?: true}],
                  "claims": [{"claim_type", "outcome", "verified", "start", "end", "value"?, "original_text"?}],
                  "judged"?: [{"start", "end", "outcome", "risk"?, "detector"?, "passage"?,
                               "sentence"?: [start, end], "source"?,
                               "nearest"?: [passage, start, end, similarity]}]}],
     "texts"?: {"query", "passages": [{"title", "text"}], "answers": [text]},
     "texts_dropped"?: why texts that the policy allows are not kept}

``texts``, notes of models and what claims say are there only where the policy says ``review: {keep_text: true}``; of a claim that
redaction touches neither is. ``claims`` are values that were compared, ``judged`` what is known of each claim of the answer,
by positions alone; entries of versions without claims have none. ``for_review`` says that the detector asked for a person, whatever the score. Hashes are plain
SHA-256 of the UTF-8 text before redaction, so that whoever has the texts elsewhere can find them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from truthlens.core.records.claims import ClaimOutcome, JudgedClaim, NearestSentence
from truthlens.core.records.enums import DetectorName, Mode
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.verdict import Confidence, DetectorResult, Span, ValueClaim, Verdict, marks_of
from truthlens.core.review_settings import ReviewSettings
from truthlens.core.risk import risk_of
from truthlens.core.thresholds import EVEN_ODDS, at_rate
from truthlens.review.entry.redaction import redactor
from truthlens.review.records import NewEntry

FORMAT = 1
MOST_TEXT = 1 << 20
"""Characters of one entry's texts at most; larger ones are not kept."""
# A detector that gave this much has found something (white paper 3.1.3: the scale's middle).
_FOUND = 0.5
_MOST_SPANS = 500
_MOST_CLAIMS = 200
_MOST_JUDGED = 500
_MOST_CHOICES = 16
_MOST_PASSAGES = 500
_MOST_SCOPE = 20
_LONGEST_VALUE = 200
_LONGEST_NOTE = 1_000
_EXCERPT = 160
_TRACEPARENT = re.compile(r"\A[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}\Z")
# What a database refuses (PostgreSQL NUL), or no encoding has (lone surrogates).
_UNFIT = re.compile("[\x00\ud800-\udfff]")


def entry_of(
    outcome: Outcome,
    exchange: Exchange,
    settings: ReviewSettings,
    *,
    created: float,
    query_id: str = "",
    headers: Mapping[str, str] = MappingProxyType({}),
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
    assert outcome.review_id is not None
    assert outcome.review_rule is not None
    assert outcome.verdict.score is not None
    verdict, plan, score = outcome.verdict, outcome.plan, outcome.verdict.score
    texts, dropped = _texts(outcome, exchange, settings)
    # Of what a detector gave to several answers, the highest score comes last and stays.
    results = sorted(
        (result for each in outcome.verdicts for result in each.results), key=lambda each: each.score or 0.0
    )
    confidence = verdict.confidence or Confidence(1.0 - score, 1.0 - score)
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
            _choice(outcome, place, each, text=_kept(texts, place))
            for place, each in enumerate(outcome.verdicts[:_MOST_CHOICES])
        ],
        "texts": texts,
        "texts_dropped": dropped,
    }
    scores = {result.detector: round(result.score or 0.0, 4) for result in results if found(result)}
    explanations = (span.explanation for each in outcome.verdicts for span in each.spans)
    return NewEntry(
        id=outcome.review_id,
        created=created,
        decision=plan.decision,
        mode=outcome.mode.value,
        action=outcome.action.value,
        policy_version=plan.policy_version,
        model=outcome.model,
        score=score,
        even_score=at_rate(score, EVEN_ODDS, given=verdict.expected_rate),
        threshold=verdict.threshold,
        flagged=verdict.flagged,
        level=risk_of(score).value,
        rule=outcome.review_rule[0],
        sample=outcome.review_rule[1],
        query_id=query_id,
        trace_id="".join(_TRACEPARENT.findall(headers.get("traceparent", ""))),
        user_id=fit(headers.get(settings.user_header, "")[:_LONGEST_VALUE]),
        scope={
            fit(name)[:_LONGEST_VALUE]: fit(value)[:_LONGEST_VALUE]
            for name, value in list(exchange.scope.items())[:_MOST_SCOPE]
        },
        original_confidence=confidence.original,
        adjusted_confidence=confidence.adjusted,
        **_claim_counts(results),
        detectors=scores,
        kinds=tuple(dict.fromkeys(each.kind.value for each in explanations if each is not None)),
        auto=_was_chosen(outcome),
        latency_s=outcome.mitigation_s,
        tokens=sum(call.usage.total_tokens for call in outcome.calls_made),
        has_text=texts is not None,
        excerpt=_excerpt(outcome, texts),
        content={name: value for name, value in content.items() if value is not None},
    )


def found(result: DetectorResult) -> bool:
    """Return whether the detector found something in the answer."""
    return result.for_review or (result.score is not None and result.score >= _FOUND)


def _was_chosen(outcome: Outcome) -> bool:
    """Return whether ``auto`` chose the mode; without evidence it runs agentic, the only one that can work."""
    return outcome.plan.mode is Mode.AUTO and any(each.flagged for each in outcome.first)


def _kept(texts: Mapping[str, Any] | None, place: int) -> str | None:
    """The text of answer number ``place`` as it is kept, ``None`` where no texts are."""
    return None if texts is None else "".join(texts["answers"][place : place + 1])


def _choice(outcome: Outcome, place: int, verdict: Verdict, *, text: str | None) -> dict[str, Any]:
    answer = outcome.answers[place] if place < len(outcome.answers) else None
    strongest = sorted(verdict.spans, key=lambda span: -span.score)[:_MOST_SPANS]
    shown = {
        "index": answer.index if answer else place,
        **_hashed(answer.text if answer else ""),
        "status": verdict.status.value,
        "score": verdict.score,
        "threshold": verdict.threshold,
        "first_score": verdict.first_score,
        "spans": [
            span_content(each, text=text is not None)
            for each in sorted(strongest, key=lambda span: span.start)
        ],
        "detectors": [_result(each) for each in verdict.results],
        "claims": [
            _claim(claim, answer.text if answer else "", text)
            for result in verdict.results
            for claim in result.claims[:_MOST_CLAIMS]
        ],
        "judged": [claim_content(each) for each in verdict.claims[:_MOST_JUDGED]] or None,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _claim(claim: ValueClaim, answer: str, kept: str | None) -> dict[str, Any]:
    """Return a claim of ``answer``, with its value and its words where the text that is ``kept`` has them."""
    shown: dict[str, Any] = {
        "claim_type": claim.claim_type,
        "outcome": claim.outcome,
        "verified": claim.verified,
        "start": claim.start,
        "end": claim.end,
    }
    if kept is not None:
        words = kept[claim.start : claim.end]
        # Redaction keeps positions: where the words are others, they are what was to be taken out.
        if words == fit(answer[claim.start : claim.end]):
            value = fit(claim.value) if isinstance(claim.value, str) else claim.value
            shown |= {"value": value, "original_text": words[:_LONGEST_VALUE]}
    return shown


def claim_content(claim: JudgedClaim) -> dict[str, Any]:
    """Return a claim as it stands in an entry."""
    near = claim.nearest
    place = claim.passage if claim.passage is not None and claim.passage < _MOST_PASSAGES else None
    shown = {
        "start": claim.start,
        "end": claim.end,
        "outcome": claim.outcome.value,
        "risk": None if claim.risk is None else round(claim.risk, 4),
        "detector": claim.detector or None,
        "passage": place,
        "sentence": list(claim.sentence) if claim.sentence is not None and place is not None else None,
        "source": claim.source or None,
        "nearest": [near.passage, near.start, near.end, round(near.similarity, 4)]
        if near is not None and near.passage < _MOST_PASSAGES
        else None,
    }
    return {name: value for name, value in shown.items() if value is not None}


def judged_claims(choice: Mapping[str, Any]) -> tuple[JudgedClaim, ...]:
    """Return the claims of a choice of an entry, none where it is of a version that had none."""
    known = {each.value for each in ClaimOutcome}
    return tuple(
        JudgedClaim(
            kept["start"],
            kept["end"],
            ClaimOutcome(kept["outcome"]),
            kept.get("risk"),
            kept.get("detector", ""),
            kept.get("passage"),
            _pair(kept.get("sentence")),
            kept.get("source", ""),
            nearest=NearestSentence(*kept["nearest"]) if kept.get("nearest") else None,
        )
        for kept in choice.get("judged", ())
        if kept["outcome"] in known
    )


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
        shown["note"] = fit(span.note[:_LONGEST_NOTE])
    why = span.explanation
    if why is not None:
        shown |= {"kind": why.kind.value, "reason": why.reason, "confidence": round(why.confidence, 4)}
        if why.sentence is not None:
            shown |= {"sentence": list(why.sentence), "similarity": round(why.similarity, 4)}
        shown["differences"] = [
            {"type": each.kind.value, "start": each.start, "end": each.end}
            | ({"evidence": list(each.evidence)} if each.evidence else {})
            for each in why.differences[:20]
        ]
    return shown


def span_of(kept: Mapping[str, Any]) -> Span:
    """Return the span that stands in an entry as ``span_content`` wrote it."""
    shown = kept.get("shown")
    return Span(
        kept["start"],
        kept["end"],
        kept["score"],
        kept.get("detector", ""),
        kept.get("passage"),
        _explanation(kept),
        (shown[0], shown[1]) if shown else None,
        kept.get("note", ""),
    )


def _explanation(kept: Mapping[str, Any]) -> Explanation | None:
    try:
        kind = SpanKind(kept.get("kind", ""))
        differences = tuple(
            Difference(DifferenceKind(each["type"]), each["start"], each["end"], _pair(each.get("evidence")))
            for each in kept.get("differences", ())
        )
    except ValueError:
        return None  # another version's kind, or nobody explained it
    sentence = _pair(kept.get("sentence"))
    return Explanation(
        kind,
        kept.get("confidence", 0.0),
        kept.get("reason", ""),
        sentence,
        kept.get("similarity", 0.0),
        differences,
    )


def _pair(kept: Sequence[int] | None) -> tuple[int, int] | None:
    return (kept[0], kept[1]) if kept else None


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
    if result.for_review:
        shown["for_review"] = True
    return shown


def _texts(
    outcome: Outcome, exchange: Exchange, settings: ReviewSettings
) -> tuple[dict[str, Any] | None, str | None]:
    """The texts as they are kept, ``None`` where they are not, and why not where the policy allows them."""
    if not settings.keep_text:
        return None, None
    answers = [each.text for each in outcome.answers[:_MOST_CHOICES]]
    passages = exchange.passages[:_MOST_PASSAGES]
    if sum(map(len, (exchange.query, *answers, *(each.text for each in passages)))) > MOST_TEXT:
        return None, "too large"
    redact = redactor(settings.redact, settings.redact_patterns)
    clean: Callable[[str], str] = lambda text: fit(redact(text))  # noqa: E731
    try:
        return {
            "query": clean(exchange.query),
            "passages": [{"title": clean(each.title), "text": clean(each.text)} for each in passages],
            "answers": [clean(text) for text in answers],
        }, None
    except TimeoutError:
        return None, "redaction took too long"


def _excerpt(outcome: Outcome, texts: Mapping[str, Any] | None) -> str:
    """The claim of the highest risk, or the strongest mark, with what comes before it, or the answer's beginning."""
    if texts is None:
        return ""
    for place, verdict in enumerate(outcome.verdicts[: len(texts["answers"])]):
        text = texts["answers"][place]
        found = [(claim.risk, -claim.start) for claim in verdict.claims if claim.risk is not None]
        found = found or [(mark.score, -mark.start) for mark in marks_of(verdict.spans, length=len(text))]
        if found:
            telling = -max(found)[1]
            start = max(0, min(telling - _EXCERPT // 4, len(text) - _EXCERPT))
            if start:
                start = text.find(" ", start, telling) + 1 or start
            return ("… " if start else "") + _cut(text[start:])
    return _cut(texts["answers"][0]) if texts["answers"] else ""


def _cut(text: str) -> str:
    """The beginning of a text, up to a space where it goes on and has one."""
    if len(text) <= _EXCERPT:
        return text
    return text[: text.rfind(" ", _EXCERPT // 2, _EXCERPT - 1) + 1 or _EXCERPT - 2].rstrip() + " …"


def _claim_counts(results: list[DetectorResult]) -> dict[str, int]:
    names = ("total_claims", "verified_claims", "unverified_claims")
    numbers = [result for result in results if result.detector == DetectorName.NUMBERS]
    return {name: int(sum(_figure(result, name) for result in numbers)) for name in names}


def _figure(result: DetectorResult, name: str) -> float:
    value = result.details.get(name, 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def _hashed(text: str) -> dict[str, Any]:
    return {"chars": len(text), "sha256": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()}


def fit(text: str) -> str:
    """Return ``text`` with what a database refuses replaced, one for one."""
    return _UNFIT.sub("\ufffd", text)

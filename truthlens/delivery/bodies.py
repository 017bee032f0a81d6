"""Build bodies of our own: the ``truthlens`` object, and the error in place of a withheld answer.

The ``truthlens`` object (all scores 0..1, offsets in characters of the text that the client receives)::

    {"status", "reason"?, "score"?, "threshold", "detected"?, "risk"?, "coverage"?, "decision", "mode", "action",
     "iterations", "calls", "initial_score"?, "review_id"?,
     "choices": [{"index", "warned", "status", "reason"?, "score"?, "threshold", "detected"?, "risk"?, "coverage"?,
                  "reasoning"?: {"characters", "scored", "status"?, "reason"?, "score"?, "spans"?: [...]},
                  "claims": [{"start", "end", "text", "path"?, "context"?: {"start", "end", "text"},
                              "outcome", "risk"?, "detector"?, "passage"?, "provenance"?,
                              "reason"?, "sentence"?: {"start", "end", "text"},
                              "nearest"?: {"passage", "start", "end", "text", "similarity"},
                              "differences"?: [as of spans]}],
                  "spans": [{"start", "end", "text", "score", "detector", "marked": [{"start", "end", "text"}],
                             "note"?, "kind"?, "confidence"?, "reason"?, "passage"?, "sentence"?: {"start", "end", "text"}, "similarity"?,
                             "differences"?: [{"type", "start", "end", "answer", "evidence"?,
                                               "evidence_start"?, "evidence_end"?}]}],
                  "stage"?, "first_score"?, "original_confidence"?, "adjusted_confidence"?,
                  "detectors": [{"name", "score"?, "reason"?, "weight", "duration_ms", "explanation"?, "details"?, "report"?,
                                 "flagged_claims"?: [{"claim_type", "value", "original_text"?, "verified", "outcome",
                                                      "start", "end"}]}],
                  "mitigation"?: {"mode", "stop", "cause"?, "iterations", "consensus"?, "replaced"?,
                                  "attempts": [{"model", "role", "fate", "score"?, "reason"?}]}}],
     "passages": [{"index", "id"?, "title"?, "provenance", "source"?, "rule"?, "excerpt"}],
     "sources"?: [{"id", "title"?, "source", "cited"}], "models": [...], "notes": [...],
     "usage"?: {"calls", "prompt_tokens", "completion_tokens", "total_tokens", "cost_usd"?, "estimated"?,
                "by_model": [{"model", "role", "calls", "prompt_tokens", ...}]}}

``coverage`` is ``{"answer", "evidence", "answer_tokens", "answer_tokens_scored", "left_out", "evidence_tokens",
"evidence_tokens_seen", "evidence_tokens_read", "windows"}``, the first two as shares 0..1. ``reasoning`` is
there if reasoning came with the answer; its spans count the characters of the reasoning alone. A key with
``?`` is absent where there is nothing to say; ``passage`` is an index into the request's passages, and
``passages`` lists all of them. ``claims`` (the first 100) cover the answer but for phrases that claim nothing (``docs/verdict.md``); ``path`` is the
JSON Pointer of one in JSON, ``context`` what it stands under: a list's lead-in, a table's head, a key.
``nearest`` is the sentence that shares most of a claim's words, where no finding names one; no proof.
``differences`` of a claim are against the passage of its ``sentence``, or of its ``nearest``. A span is the
phrase or clause around what its detector ``marked``, which may be one word or several pieces; ``note`` is what a model said of it; ``rule`` is the code of what made one evidence. ``kind`` is
a ``SpanKind`` and ``confidence`` its probability. ``sentence`` is the
one of that passage that comes nearest, ``similarity`` (0..1) how near, both with characters of the passage.
``iterations`` are refinement rounds, those of the choice that took the most; ``calls`` the calls to models
that were made for all choices. ``stage`` says which stage of the cascade decided, where models were asked, ``first_score``
what the first one gave. ``original_confidence`` and ``adjusted_confidence`` are how sure the answer was before and after its values
were compared. ``report`` is a detector's own object.
``sources`` are what a run of mode agentic had to cite, by the ``id`` that stands in its answer; ``cause`` is why the run ended.
A difference without ``evidence`` is a value that occurs nowhere in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from truthlens.core.records.calls import CallRecord, Usage
from truthlens.core.records.claims import JudgedClaim
from truthlens.core.records.enums import Reason, Stage
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.core.records.explanation import Difference, Explanation
from truthlens.core.records.mitigation_result import Attempt, Correction
from truthlens.core.records.outcome import Outcome, Reasoned
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import (
    Coverage,
    DetectorResult,
    Mark,
    Span,
    ValueClaim,
    Verdict,
    differences_of,
    marks_by_detector,
)
from truthlens.core.risk import risk_of
from truthlens.delivery.warning import Delivery, Warned

_EXCERPT_CHARS = 300
_MOST_CLAIMS = 100


def truthlens_object(warned: Warned, exchange: Exchange) -> dict[str, object]:
    """Return the ``truthlens`` object of a response body; its keys are in the module's docstring.

    Args:
        warned: The outcome and the texts that the client receives.
        exchange: The request half.
    """
    outcome = warned.outcome
    verdicts = outcome.verdicts
    corrections = outcome.corrections or (None,) * len(verdicts)
    reasoned = outcome.reasoned or (None,) * len(verdicts)
    return _present(
        {
            **_verdict(outcome.verdict),
            "decision": outcome.plan.decision,
            "mode": outcome.mode.value,
            "action": outcome.action.value,
            "shadow_action": outcome.shadow_action and outcome.shadow_action.value,
            "iterations": outcome.iterations,
            "calls": len(outcome.calls_made),
            "initial_score": outcome.initial_score,
            "review_id": outcome.review_id,
            "choices": [
                _choice(delivery, verdict, correction, thought, exchange.passages)
                for delivery, verdict, correction, thought in zip(
                    warned.deliveries, verdicts, corrections, reasoned, strict=True
                )
            ],
            "passages": [_passage(index, passage) for index, passage in enumerate(exchange.passages)],
            "sources": _sources(outcome),
            "models": _models(outcome),
            "usage": usage_object(outcome),
            "notes": list(dict.fromkeys((*outcome.notes, *exchange.notes))),
        }
    )


def usage_object(outcome: Outcome) -> dict[str, object] | None:
    """Return calls and tokens of extra generations, in total and by model and role; ``None`` for none."""
    made = outcome.calls_made
    if not made:
        return None
    by_model: dict[tuple[str, str], list[CallRecord]] = {}
    for call in made:
        by_model.setdefault((call.model, call.role.value), []).append(call)
    parts = [{"model": model, "role": role, **_tokens(own)} for (model, role), own in by_model.items()]
    return {**_tokens(made), "by_model": parts}


def _tokens(calls: Sequence[CallRecord]) -> dict[str, object]:
    usage = sum((call.usage for call in calls), Usage())
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    return _present(
        {
            "calls": len(calls),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
            "cost_usd": round(sum(costs), 6) if costs else None,
            "estimated": True if usage.estimated else None,
        }
    )


def verdict_object(
    verdict: Verdict, *, text: str | None = None, passages: Sequence[Passage] = ()
) -> dict[str, object]:
    """Return one verdict as JSON: the keys of a choice without ``index`` and ``warned``.

    Args:
        verdict: What was found.
        text: The answer that the spans point into; without it no text of spans and differences is shown.
        passages: The exchange's passages; without them no text of sentences is shown.
    """
    return {
        **_verdict(verdict),
        "claims": [_judged(each, verdict.spans, text, passages) for each in verdict.claims[:_MOST_CLAIMS]],
        "spans": _spans(verdict, text, passages),
        "detectors": [_result(result, text) for result in verdict.results],
    }


def scored_object(
    plan: Plan, verdict: Verdict, *, text: str, passages: Sequence[Passage]
) -> dict[str, object]:
    """Return the verdict of ``plan`` on one answer as JSON, as ``/v1/detect`` and ``truthlens detect --json`` give it."""
    own = {"decision": plan.decision, "policy_version": plan.policy_version}
    return {**own, **verdict_object(verdict, text=text, passages=passages)}


def blocked_body(reason: Reason | None) -> bytes:
    """Return the error body, in the API's own shape, for an answer that the plan withholds.

    Args:
        reason: Why the answer was not fully checked, or ``None`` where it was checked and is held back.
    """
    why = (
        f"it was not fully checked ({reason.value})" if reason is not None else "its claims are not supported"
    )
    error = {
        "message": f"The answer is held back by policy: {why}.",
        "type": "truthlens_blocked",
        "param": None,
        "code": reason.value if reason is not None else "unsupported",
    }
    return json.dumps({"error": error}).encode()


def _choice(
    delivery: Delivery,
    verdict: Verdict,
    correction: Correction | None,
    reasoned: Reasoned | None,
    passages: Sequence[Passage],
) -> dict[str, object]:
    offset = len(delivery.lead) + delivery.offset
    shown = replace(
        verdict,
        spans=tuple(span.shifted(offset) for span in verdict.spans),
        results=tuple(_with_moved_claims(result, offset) for result in verdict.results),
        claims=tuple(each.shifted(offset) for each in verdict.claims),
    )
    return {
        "index": delivery.index,
        "warned": delivery.warned,
        **verdict_object(shown, text=delivery.lead + delivery.text, passages=passages),
        **({"reasoning": _reasoning(reasoned)} if reasoned is not None else {}),
        **({"mitigation": _mitigation(correction)} if correction is not None else {}),
    }


def _reasoning(reasoned: Reasoned) -> dict[str, object]:
    """Return how much reasoning there was and what was found in it, without its text."""
    verdict = reasoned.verdict
    if verdict is None:
        return {"characters": reasoned.characters, "scored": False}
    return _present(
        {
            "characters": reasoned.characters,
            "scored": verdict.score is not None,
            "status": verdict.status.value,
            "reason": verdict.reason.value if verdict.reason is not None else None,
            "score": verdict.score,
            "spans": _spans(verdict, None, ()),
        }
    )


def _mitigation(correction: Correction) -> dict[str, object]:
    return _present(
        {
            "mode": correction.mode.value,
            "stop": correction.stop.value,
            "cause": correction.cause or None,
            "iterations": correction.rounds,
            "consensus": correction.consensus,
            "replaced": True if correction.replaced else None,
            "attempts": [_attempt(attempt) for attempt in correction.attempts],
        }
    )


def _attempt(attempt: Attempt) -> dict[str, object]:
    return _present(
        {
            "model": attempt.model,
            "role": attempt.role.value,
            "fate": attempt.fate.value,
            "score": round(attempt.score, 4) if attempt.score is not None else None,
            "reason": attempt.reason or None,
        }
    )


def _sources(outcome: Outcome) -> list[dict[str, object]] | None:
    """Return what the answers could cite, each once; cited is what any of them cites."""
    found: dict[str, dict[str, object]] = {}
    for each in (each for made in outcome.corrections if made is not None for each in made.sources):
        known = found.setdefault(
            each.id, _present({"id": each.id, "title": each.title or None, "source": each.source})
        )
        known["cited"] = bool(known.get("cited")) or each.cited
    return list(found.values()) or None


def _models(outcome: Outcome) -> list[str]:
    """Return every model that took part in the outcome, in the order of their first use."""
    asked = [call.model for call in outcome.calls_made]
    return list(dict.fromkeys([outcome.model] * bool(outcome.model) + asked))


def _with_moved_claims(result: DetectorResult, offset: int) -> DetectorResult:
    if not offset or not result.claims:
        return result
    claims = (replace(each, start=each.start + offset, end=each.end + offset) for each in result.claims)
    return replace(result, claims=tuple(claims))


def _verdict(verdict: Verdict) -> dict[str, object]:
    confidence = verdict.confidence
    return _present(
        {
            "status": verdict.status.value,
            "reason": verdict.reason.value if verdict.reason is not None else None,
            "score": verdict.score,
            "threshold": verdict.threshold,
            "detected": verdict.flagged if verdict.score is not None else None,
            "risk": risk_of(verdict.score).value if verdict.score is not None else None,
            "stage": verdict.stage.value if verdict.stage is not Stage.FIRST else None,
            "first_score": verdict.first_score,
            "original_confidence": confidence.original if confidence else None,
            "adjusted_confidence": confidence.adjusted if confidence else None,
            "coverage": _coverage(verdict.coverage) if verdict.coverage is not None else None,
        }
    )


def _coverage(coverage: Coverage) -> dict[str, object]:
    return {
        "answer": coverage.answer_ratio,
        "evidence": coverage.evidence_ratio,
        "answer_tokens": coverage.answer_tokens,
        "answer_tokens_scored": coverage.answer_tokens_scored,
        "left_out": {why.value: count for why, count in coverage.left_out},
        "evidence_tokens": coverage.evidence_tokens,
        "evidence_tokens_seen": coverage.evidence_tokens_seen,
        "evidence_tokens_read": coverage.evidence_tokens_read,
        "windows": coverage.windows,
    }


def _judged(
    claim: JudgedClaim, spans: Sequence[Span], text: str | None, passages: Sequence[Passage]
) -> dict[str, object]:
    passage = _text_of(claim.passage, passages)
    near = claim.nearest
    there = passage if near is None else _text_of(near.passage, passages)
    return _present(
        {
            **_piece((claim.start, claim.end), text),
            "path": claim.path or None,
            "context": _piece(claim.context, text) if claim.context is not None else None,
            "outcome": claim.outcome.value,
            "risk": round(claim.risk, 4) if claim.risk is not None else None,
            "detector": claim.detector or None,
            "passage": claim.passage,
            "provenance": f"sql:{claim.source}" if claim.source else None,
            "reason": claim.reason or None,
            "sentence": _piece(claim.sentence, passage) if claim.sentence is not None else None,
            "nearest": {
                "passage": near.passage,
                **_piece((near.start, near.end), there),
                "similarity": round(near.similarity, 3),
            }
            if near is not None
            else None,
            "differences": [_difference(each, text, there) for each in differences_of(claim, spans)] or None,
        }
    )


def _text_of(passage: int | None, passages: Sequence[Passage]) -> str | None:
    """Return the text of passage number ``passage``, ``None`` where there is none."""
    return passages[passage].text if passage is not None and passage < len(passages) else None


def _spans(verdict: Verdict, text: str | None, passages: Sequence[Passage]) -> list[dict[str, object]]:
    length = None if text is None else len(text)
    return [_mark(mark, text, passages) for mark in marks_by_detector(verdict.spans, length=length)]


def _mark(mark: Mark, text: str | None, passages: Sequence[Passage]) -> dict[str, object]:
    span = mark.telling
    passage = _text_of(span.passage, passages)
    return _present(
        {
            **_piece((mark.start, mark.end), text),
            "score": mark.score,
            "detector": str(span.detector),
            "marked": [_piece((each.start, each.end), text) for each in mark.spans],
            "passage": span.passage,
            "note": "; ".join(dict.fromkeys(each.note for each in mark.spans if each.note)) or None,
            **(_explanation(span.explanation, mark, text, passage) if span.explanation is not None else {}),
        }
    )


def _explanation(
    explanation: Explanation, mark: Mark, text: str | None, passage: str | None
) -> dict[str, object]:
    sentence = explanation.sentence
    return {
        "kind": explanation.kind.value,
        "confidence": round(explanation.confidence, 3),
        "reason": explanation.reason,
        "sentence": _piece(sentence, passage) if sentence is not None else None,
        "similarity": round(explanation.similarity, 3) if sentence is not None else None,
        "differences": [_difference(each, text, passage) for each in mark.differences] or None,
    }


def _piece(place: tuple[int, int], text: str | None) -> dict[str, object]:
    start, end = place
    return _present({"start": start, "end": end, "text": text[start:end] if text is not None else None})


def _difference(difference: Difference, text: str | None, passage: str | None) -> dict[str, object]:
    first, last = difference.evidence or (None, None)
    return _present(
        {
            "type": difference.kind.value,
            "start": difference.start,
            "end": difference.end,
            "answer": text[difference.start : difference.end] if text is not None else None,
            "evidence": passage[first:last] if passage is not None and first is not None else None,
            "evidence_start": first,
            "evidence_end": last,
        }
    )


def _result(result: DetectorResult, text: str | None) -> dict[str, object]:
    return _present(
        {
            "name": result.detector,
            "score": result.score,
            "reason": result.reason.value if result.reason is not None else None,
            "weight": result.weight,
            "duration_ms": round(result.duration_s * 1000, 1),
            "explanation": result.explanation or None,
            "details": dict(result.details) or None,
            "report": dict(result.report) if result.report and text is not None else None,
            "flagged_claims": [_claim(each, text) for each in result.claims if not each.verified][
                :_MOST_CLAIMS
            ]
            if result.claims
            else None,
        }
    )


def _claim(claim: ValueClaim, text: str | None) -> dict[str, object]:
    return _present(
        {
            "claim_type": claim.claim_type,
            "value": claim.value,
            "original_text": text[claim.start : claim.end] if text is not None else None,
            "verified": claim.verified,
            "outcome": claim.outcome,
            "start": claim.start,
            "end": claim.end,
        }
    )


def _passage(index: int, passage: Passage) -> dict[str, object]:
    return _present(
        {
            "index": index,
            "id": passage.id or None,
            "title": passage.title or None,
            "provenance": passage.provenance.value,
            "source": passage.source or None,
            "rule": passage.rule or None,
            "excerpt": passage.text[:_EXCERPT_CHARS],
        }
    )


def _present(fields: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in fields.items() if value is not None}

"""The ``truthlens`` object points into the text that the client has, and is JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

from truthlens.core.records.claims import ClaimOutcome, JudgedClaim, NearestSentence
from truthlens.core.records.enums import Action, AnswerKind, Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Coverage, DetectorResult, Span, Verdict, unchecked
from truthlens.delivery import blocked_body, truthlens_object, verdict_object, warn, worst

PLAN = Plan(decision="careful", threshold=0.6)
PASSAGES = (
    Passage("The ferry leaves at eight.", Provenance.TOOL),
    Passage("x" * 1000, Provenance.USER, id="S1", title="Prices", rule="label"),
)
EXCHANGE = Exchange(Endpoint.CHAT, "m", "q", PASSAGES, notes=("evidence-pattern-timeout",))
ANSWER = "The ferry leaves at noon."
RESULT = DetectorResult(
    "encoder", 0.9, duration_s=0.0123, details=MappingProxyType({"windows": 1.0}), explanation="one span"
)
FLAGGED = Verdict(
    Status.CHECKED,
    score=0.9,
    threshold=0.6,
    spans=(Span(20, 24, 0.9, passage=1), Span(0, 3, 0.7)),
    coverage=Coverage(6, 6, 200, 200, 200, 1),
    results=(RESULT, DetectorResult("numbers", None, reason=Reason.NO_CONTEXT)),
)


def test_offsets_point_into_the_delivered_text() -> None:
    """With the warning in front the spans move with the answer."""
    outcome = Outcome(PLAN, FLAGGED, (FLAGGED,), action=Action.WARN, model="base", notes=("n",))
    warned = warn(outcome, EXCHANGE, [Answer(0, AnswerKind.TEXT, ANSWER)])
    detail = truthlens_object(warned, EXCHANGE)
    loaded = json.loads(json.dumps(detail))
    (choice,) = loaded["choices"]
    delivered = warned.texts[0]
    assert [span["text"] for span in choice["spans"]] == ["The", "noon"]
    assert all(delivered[span["start"] : span["end"]] == span["text"] for span in choice["spans"])
    assert choice["warned"] is True
    assert choice["spans"][1]["passage"] == 1
    assert "passage" not in choice["spans"][0]


def test_a_span_is_the_phrase_around_what_was_marked() -> None:
    """Text and offsets are of what is shown, which moves with the answer; spans in one phrase are one, of each detector."""
    explained = replace(EXPLAINED, start=20, end=24, score=0.6, shown=(4, 24))
    other = Span(4, 9, 0.9, shown=(4, 24))
    number = Span(20, 24, 0.7, "numbers", shown=(10, 24))
    verdict = replace(FLAGGED, spans=(other, explained, number))
    warned = warn(Outcome(PLAN, verdict, (verdict,)), EXCHANGE, [Answer(0, AnswerKind.TEXT, ANSWER)])
    (choice,) = json.loads(json.dumps(truthlens_object(warned, EXCHANGE)))["choices"]
    delivered = warned.texts[0]
    assert [(span["detector"], span["text"]) for span in choice["spans"]] == [
        ("encoder", ANSWER[4:24]),
        ("numbers", ANSWER[10:24]),
    ]
    (span, _) = choice["spans"]
    assert (span["score"], span["kind"]) == (0.9, "contradicted")
    assert [mark["text"] for mark in span["marked"]] == [ANSWER[4:9], ANSWER[20:24]]
    assert all(delivered[each["start"] : each["end"]] == each["text"] for each in (span, *span["marked"]))
    assert [each["answer"] for each in span["differences"]] == ["ferry", "noon"]


def test_a_claim_lists_what_differs_in_it() -> None:
    """In characters of the answer as it is delivered, against the passage of its sentence alone; the surest of two over one value."""
    there = Difference(DifferenceKind.DATE, 20, 24, (20, 25))
    span = replace(EXPLAINED, passage=0)
    assert span.explanation is not None
    sure = replace(span, score=0.9, explanation=replace(span.explanation, differences=(there,)))
    vague = replace(
        sure, score=0.7, explanation=replace(span.explanation, differences=(replace(there, start=10),))
    )
    elsewhere = replace(
        sure, passage=1, explanation=replace(span.explanation, differences=(replace(there, start=4, end=9),))
    )
    claim = JudgedClaim(0, 25, ClaimOutcome.CONTRADICTED, 0.9, "numbers", 0, (0, 26))
    unnamed = replace(
        claim,
        passage=None,
        sentence=None,
        outcome=ClaimOutcome.NOT_STATED,
        nearest=NearestSentence(1, 0, 9, 0.25),
    )
    doubtful = replace(claim, outcome=ClaimOutcome.SUPPORTED, risk=0.4)
    verdict = replace(FLAGGED, spans=(vague, sure, elsewhere), claims=(claim, unnamed, doubtful))
    outcome = Outcome(PLAN, verdict, (verdict,), action=Action.WARN)
    warned = warn(outcome, EXCHANGE, [Answer(0, AnswerKind.TEXT, ANSWER)])
    (choice,) = json.loads(json.dumps(truthlens_object(warned, EXCHANGE)))["choices"]
    first, second, third = choice["claims"]
    (difference,) = first["differences"]
    delivered = warned.texts[0]
    assert delivered[difference["start"] : difference["end"]] == difference["answer"] == "noon"
    assert (difference["type"], difference["evidence"], difference["evidence_start"]) == ("date", "eight", 20)
    assert "nearest" not in first
    (other,) = second["differences"]
    assert (other["answer"], other["evidence"]) == ("ferry", "x" * 5)
    assert second["nearest"] == {"passage": 1, "start": 0, "end": 9, "text": "x" * 9, "similarity": 0.25}
    assert third.keys().isdisjoint(("differences", "nearest"))


def test_the_object_has_the_documented_keys() -> None:
    """Verdict, decision, models, notes, coverage, detectors and all passages."""
    outcome = Outcome(PLAN, FLAGGED, (FLAGGED,), action=Action.WARN, model="base", notes=("n",))
    detail = truthlens_object(warn(outcome, EXCHANGE, [Answer(0, AnswerKind.TEXT, ANSWER)]), EXCHANGE)
    assert {
        key: detail[key]
        for key in ("status", "score", "threshold", "detected", "risk", "decision", "mode", "action")
    } == {
        "status": "checked",
        "score": 0.9,
        "threshold": 0.6,
        "detected": True,
        "risk": "high",
        "decision": "careful",
        "mode": "lightweight",
        "action": "warn",
    }
    assert detail["models"] == ["base"]
    assert "usage" not in detail
    assert detail["notes"] == ["n", "evidence-pattern-timeout"]
    assert detail["coverage"] == {
        "answer": 1.0,
        "evidence": 1.0,
        "answer_tokens": 6,
        "answer_tokens_scored": 6,
        "left_out": {},
        "evidence_tokens": 200,
        "evidence_tokens_seen": 200,
        "evidence_tokens_read": 200,
        "windows": 1,
    }
    assert detail["passages"] == [
        {"index": 0, "provenance": "tool", "excerpt": "The ferry leaves at eight."},
        {
            "index": 1,
            "id": "S1",
            "title": "Prices",
            "provenance": "user",
            "rule": "label",
            "excerpt": "x" * 300,
        },
    ]
    assert verdict_object(FLAGGED)["detectors"] == [
        {
            "name": "encoder",
            "score": 0.9,
            "weight": 1.0,
            "duration_ms": 12.3,
            "explanation": "one span",
            "details": {"windows": 1.0},
        },
        {"name": "numbers", "reason": "no-context", "weight": 1.0, "duration_ms": 0.0},
    ]


def test_an_unchecked_choice_has_a_reason_and_no_score() -> None:
    """Absent means unknown: no key holds null."""
    verdicts = (FLAGGED, unchecked(Reason.TOOL_CALL, threshold=0.6))
    outcome = Outcome(PLAN, worst(verdicts), verdicts)
    answers = [Answer(0, AnswerKind.TEXT, ANSWER), Answer(1, AnswerKind.TOOL_CALL)]
    detail = json.loads(json.dumps(truthlens_object(warn(outcome, EXCHANGE, answers), EXCHANGE)))
    assert detail["choices"][1] == {
        "index": 1,
        "warned": False,
        "status": "unchecked",
        "reason": "tool-call",
        "threshold": 0.6,
        "claims": [],
        "spans": [],
        "detectors": [],
    }
    assert (detail["status"], detail["reason"]) == ("partial", "tool-call")
    assert "null" not in json.dumps(detail)


def test_a_passage_that_does_not_exist_breaks_nothing() -> None:
    """Of a span that names a passage beyond the request's, nothing is shown."""
    verdict = replace(FLAGGED, spans=(Span(0, 3, 0.9, passage=9),))
    warned = warn(Outcome(PLAN, verdict, (verdict,)), EXCHANGE, [Answer(0, AnswerKind.TEXT, ANSWER)])
    assert len(truthlens_object(warned, EXCHANGE)["passages"]) == 2  # type: ignore[arg-type]


def test_a_supported_answer_tells_its_passages_too() -> None:
    """All of them, though no span names one."""
    verdict = replace(FLAGGED, spans=(), score=0.1)
    warned = warn(Outcome(PLAN, verdict, (verdict,)), EXCHANGE, [Answer(0, AnswerKind.TEXT, ANSWER)])
    shown = json.loads(json.dumps(truthlens_object(warned, EXCHANGE)))["passages"]
    assert [each["provenance"] for each in shown] == ["tool", "user"]


def test_a_held_back_answer_is_an_error_of_the_api() -> None:
    """Clients read message, type and code."""
    error = json.loads(blocked_body(Reason.TIMEOUT))["error"]
    assert error["code"] == "timeout"
    assert error["type"] == "truthlens_blocked"
    assert "timeout" in error["message"]
    assert json.loads(blocked_body(None))["error"]["code"] == "unsupported"


EXPLAINED = Span(
    17,
    24,
    0.9,
    passage=0,
    explanation=Explanation(
        SpanKind.CONTRADICTED,
        confidence=0.71234,
        reason="the nearest sentence gives another date",
        sentence=(0, 26),
        similarity=0.66666,
        differences=(
            Difference(DifferenceKind.DATE, 20, 24, (20, 25)),
            Difference(DifferenceKind.NAME, 4, 9),
        ),
    ),
)


def explained_verdict() -> Verdict:
    return replace(FLAGGED, spans=(EXPLAINED,))


def test_an_explained_span_shows_kind_sentence_and_differences() -> None:
    """Texts are read out of the answer and the passage, and offsets move with the answer."""
    verdict = explained_verdict()
    warned = warn(Outcome(PLAN, verdict, (verdict,)), EXCHANGE, [Answer(0, AnswerKind.TEXT, ANSWER)])
    loaded = json.loads(json.dumps(truthlens_object(warned, EXCHANGE)))
    (choice,) = loaded["choices"]
    (span,) = choice["spans"]
    assert (span["kind"], span["confidence"], span["similarity"]) == ("contradicted", 0.712, 0.667)
    assert span["reason"] == "the nearest sentence gives another date"
    assert span["sentence"] == {"start": 0, "end": 26, "text": "The ferry leaves at eight."}
    name, date = span["differences"]
    delivered = warned.texts[0]
    assert delivered != ANSWER
    assert delivered[date["start"] : date["end"]] == date["answer"] == "noon"
    assert (date["type"], date["evidence"]) == ("date", "eight")
    assert PASSAGES[0].text[date["evidence_start"] : date["evidence_end"]] == "eight"
    assert (name["type"], name["answer"]) == ("name", "ferry")
    assert not {"evidence", "evidence_start", "evidence_end"} & set(name)


def test_without_the_texts_a_verdict_shows_positions_alone() -> None:
    """Who does not hand over answer and passages gets no text of either."""
    bare = json.dumps(verdict_object(explained_verdict())["spans"])
    assert "noon" not in bare
    assert "eight" not in bare
    assert json.loads(bare)[0]["sentence"] == {"start": 0, "end": 26}
    whole = json.dumps(verdict_object(explained_verdict(), text=ANSWER, passages=PASSAGES)["spans"])
    assert "noon" in whole
    assert "eight" in whole


def test_an_explanation_of_a_passage_that_does_not_exist_shows_no_text() -> None:
    """A span beyond the request's passages breaks nothing."""
    verdict = replace(FLAGGED, spans=(replace(EXPLAINED, passage=9),))
    (span,) = json.loads(json.dumps(verdict_object(verdict, text=ANSWER, passages=PASSAGES)["spans"]))
    assert span["sentence"] == {"start": 0, "end": 26}
    assert "evidence" not in span["differences"][0]


def test_a_fabrication_without_passage_has_no_sentence() -> None:
    """Nothing near: neither sentence nor similarity nor differences are there, rather than empty."""
    alone = Explanation(SpanKind.FABRICATED, confidence=0.8, reason="nothing in the evidence comes near")
    verdict = replace(FLAGGED, spans=(Span(0, 3, 0.9, explanation=alone),))
    (span,) = json.loads(json.dumps(verdict_object(verdict, text=ANSWER, passages=PASSAGES)["spans"]))
    assert set(span) == {
        "start",
        "end",
        "text",
        "score",
        "detector",
        "marked",
        "kind",
        "confidence",
        "reason",
    }

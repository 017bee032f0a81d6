"""The ``truthlens`` object points into the text that the client has, and is JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

from truthlens.core.records import (
    Action,
    Answer,
    AnswerKind,
    Coverage,
    DetectorResult,
    Endpoint,
    Exchange,
    Outcome,
    Passage,
    Plan,
    Provenance,
    Reason,
    Span,
    Status,
    Verdict,
    unchecked,
)
from truthlens.finalize import blocked_body, truthlens_object, verdict_object, warn, worst

PLAN = Plan(decision="careful", threshold=0.6)
PASSAGES = (
    Passage("The ferry leaves at eight.", Provenance.TOOL),
    Passage("x" * 1000, Provenance.USER, id="S1", title="Prices"),
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
    assert [span["text"] for span in choice["spans"]] == ["noon", "The"]
    assert all(delivered[span["start"] : span["end"]] == span["text"] for span in choice["spans"])
    assert choice["warned"] is True
    assert choice["spans"][0]["passage"] == 1
    assert "passage" not in choice["spans"][1]


def test_the_object_has_the_documented_keys() -> None:
    """Verdict, decision, models, notes, coverage, detectors and the passages that spans name."""
    outcome = Outcome(PLAN, FLAGGED, (FLAGGED,), action=Action.WARN, model="base", notes=("n",))
    detail = truthlens_object(
        warn(outcome, EXCHANGE, [Answer(0, AnswerKind.TEXT, ANSWER)]), EXCHANGE, usage={"total_tokens": 5}
    )
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
    assert detail["usage"] == {"total_tokens": 5}
    assert detail["notes"] == ["n", "evidence-pattern-timeout"]
    assert detail["coverage"] == {
        "answer": 1.0,
        "evidence": 1.0,
        "answer_tokens": 6,
        "answer_tokens_scored": 6,
        "evidence_tokens": 200,
        "evidence_tokens_seen": 200,
        "evidence_tokens_read": 200,
        "windows": 1,
    }
    assert detail["passages"] == [
        {"index": 1, "id": "S1", "title": "Prices", "provenance": "user", "excerpt": "x" * 300}
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
        "spans": [],
        "detectors": [],
    }
    assert (detail["status"], detail["reason"]) == ("partial", "tool-call")
    assert "null" not in json.dumps(detail)


def test_a_passage_that_does_not_exist_is_not_shown() -> None:
    """A span that names a passage beyond the request's breaks nothing."""
    verdict = replace(FLAGGED, spans=(Span(0, 3, 0.9, passage=9),))
    warned = warn(Outcome(PLAN, verdict, (verdict,)), EXCHANGE, [Answer(0, AnswerKind.TEXT, ANSWER)])
    assert truthlens_object(warned, EXCHANGE)["passages"] == []


def test_a_held_back_answer_is_an_error_of_the_api() -> None:
    """Clients read message, type and code."""
    error = json.loads(blocked_body(Reason.TIMEOUT))["error"]
    assert error["code"] == "timeout"
    assert error["type"] == "truthlens_blocked"
    assert "timeout" in error["message"]
    assert json.loads(blocked_body(None))["error"]["code"] == "unsupported"

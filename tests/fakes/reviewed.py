"""Outcomes of exchanges as the review queue gets them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from truthlens.core.records.enums import Action, AnswerKind, DetectorName, Endpoint, Provenance, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Confidence, DetectorResult, Span, ValueClaim, Verdict

ANSWER = "The ferry carries ninety cars. Write to ann@example.org."
EXCHANGE = Exchange(
    Endpoint.CHAT,
    "main",
    "How many cars? Ask +49 30 1234567.",
    (
        Passage(
            "The ferry leaves at seven and carries forty cars.",
            Provenance.USER,
            id="S1",
            title="Ferry",
            rule="tag",
        ),
    ),
    scope={"x-property": "7"},
)


def outcome(score: float | None = 0.9, *, threshold: float = 0.6, **more: Any) -> Outcome:
    """An outcome of one answer whose encoder gave that score, ``None`` for one that was not checked."""
    result = DetectorResult(DetectorName.ENCODER, score)
    verdict = Verdict(
        Status.CHECKED if score is not None else Status.UNCHECKED,
        score=score,
        threshold=threshold,
        spans=(Span(10, 29, score or 0.0, note="a model's note"),)
        if score is not None and score >= threshold
        else (),
        results=(result,),
    )
    given = Outcome(
        Plan("careful", threshold=threshold, policy_version="abc"),
        verdict,
        verdicts=(verdict,),
        action=Action.WARN if verdict.flagged else Action.PASS,
        answers=(Answer(0, AnswerKind.TEXT, ANSWER),),
        model="tiny",
    )
    return replace(given, **more)


def queued(score: float = 0.9, *, review_id: str = "rv_1", **more: Any) -> Outcome:
    """The same, chosen for review."""
    return outcome(score, review_id=review_id, review_rule=("flagged", 1.0), **more)


def with_claims(given: Outcome) -> Outcome:
    """The outcome with two values that ``numbers`` compared, one of them wrong."""
    numbers = DetectorResult(
        DetectorName.NUMBERS,
        0.8,
        details={"total_claims": 2, "verified_claims": 1, "unverified_claims": 1, "confidence_adjustment": 0.2},
        claims=(ValueClaim(18, 29, "count", 90.0, "contradicted", verified=False), ValueClaim(0, 3, "count", 1.0, "verified", verified=True)),
        for_review=True,
    )  # fmt: skip
    results = (*given.verdict.results, numbers)
    verdict = replace(given.verdict, results=results, confidence=Confidence(0.9, 0.7))
    return replace(given, verdict=verdict, verdicts=(verdict,))

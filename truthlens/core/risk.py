"""Risk levels of scores, and what follows from a judge's word on an answer; pure rules.

Source: hallucination-guidelines, "risk levels" and "near the iteration limit"; agentic-rag, "evaluation".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from truthlens.core.records.enums import Risk

LOW_RISK, HIGH_RISK = 0.3, 0.6
"""Up to the first a risk is low, above the second it is high."""

RULE_WEIGHT, JUDGE_WEIGHT, DIMENSIONS_WEIGHT = 0.30, 0.40, 0.30

_NEAR = 3
_GOOD_QUALITY = 0.6
_ENOUGH_PASSAGES = 3


class ClaimLevel(StrEnum):
    """How a claim is shown: green, amber, red, and grey for what no detector could judge."""

    SUPPORTED = "supported"
    DOUBTFUL = "doubtful"
    FLAGGED = "flagged"
    UNJUDGED = "unjudged"


class Decision(StrEnum):
    """What is to be done with an answer: gather more, look again, give it, or reject it."""

    CONTINUE = "continue"
    REFINE_SEARCH = "refine_search"
    SYNTHESIZE = "synthesize"
    REJECT = "reject"


def risk_of(score: float) -> Risk:
    """Return the risk level of a score: low up to 0.3, moderate up to 0.6, high above."""
    if score > HIGH_RISK:
        return Risk.HIGH
    return Risk.MODERATE if score > LOW_RISK else Risk.LOW


def claim_level(risk: float | None, even_threshold: float) -> ClaimLevel:
    """Return how a claim of ``risk`` (``None`` where nobody judged it) is shown: flagged from the threshold on, doubtful from 0.3.

    Both are at even odds (``Plan.even_threshold``).
    """
    if risk is None:
        return ClaimLevel.UNJUDGED
    if risk >= even_threshold:
        return ClaimLevel.FLAGGED
    return ClaimLevel.DOUBTFUL if risk >= LOW_RISK else ClaimLevel.SUPPORTED


def is_near_limit(iteration: int, max_iterations: int) -> bool:
    """Return whether at most three iterations are left after ``iteration`` of them."""
    return iteration >= max_iterations - _NEAR


def decide(
    quality: float, risk: float, *, low_risk: float = LOW_RISK, high_risk: float = HIGH_RISK
) -> Decision:
    """Return what to do with an answer: a high risk rejects it.

    Args:
        quality: 0..1, higher is better.
        risk: 0..1, higher is worse.
        low_risk: up to here a risk is low.
        high_risk: above this it is high.
    """
    if risk > high_risk:
        return Decision.REJECT
    if risk > low_risk:
        return Decision.REFINE_SEARCH
    return Decision.SYNTHESIZE if quality >= _GOOD_QUALITY else Decision.CONTINUE


def rule_part(*, passages: int, valid_citations: int, claims: int, addressed_share: float) -> float:
    """Return the mean of: enough passages, citations per claim, the question's words that are addressed."""
    parts = (
        min(passages / _ENOUGH_PASSAGES, 1.0),
        min(valid_citations / max(claims, 1), 1.0),
        addressed_share,
    )
    return sum(parts) / len(parts)


def composite(*, rule: float, judge: float, dimensions: Sequence[float]) -> float:
    """Return the quality, 0..1, higher is better; without dimensions the judge's own score stands for them."""
    mean = sum(dimensions) / len(dimensions) if dimensions else judge
    return RULE_WEIGHT * rule + JUDGE_WEIGHT * judge + DIMENSIONS_WEIGHT * mean

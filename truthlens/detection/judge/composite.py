"""Compute the composite quality, the merged risk and the decision that follows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from truthlens.text.content_words import content_words

RULE_WEIGHT, JUDGE_WEIGHT, DIMENSIONS_WEIGHT = 0.30, 0.40, 0.30
_ENOUGH_PASSAGES = 3
_HIGH, _MODERATE = 0.6, 0.3
_NEAR = 3


def addressed(question: str, answer: str) -> float:
    """Return the share of the question's content words that the answer has, 1.0 for a question without any."""
    wanted = set(content_words(question))
    return len(wanted.intersection(content_words(answer))) / len(wanted) if wanted else 1.0


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


def merged_risk(judge: float, citations: float | None) -> float:
    """Return the higher of the two risks; ``None`` where the rules said nothing."""
    return judge if citations is None else max(judge, citations)


def merged(*lists: Iterable[str]) -> list[str]:
    """Return the union of lists, in order, each entry once."""
    return list(dict.fromkeys(entry for each in lists for entry in each))


def is_near_limit(iteration: int, max_iterations: int) -> bool:
    """Return whether at most three iterations are left."""
    return iteration >= max_iterations - _NEAR


def decide(quality: float, risk: float, *, near_limit: bool = False) -> str:
    """Return what to do with an answer: a high risk rejects it, except near the limit, where it is released as it is."""
    if risk > _HIGH:
        return "synthesize" if near_limit else "reject"
    if near_limit:
        return "synthesize"
    if risk > _MODERATE:
        return "refine_search"
    return "synthesize" if quality >= _HIGH else "continue"

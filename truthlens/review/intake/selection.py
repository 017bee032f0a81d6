"""Decide which answers are queued for review: the first rule of the policy that applies decides."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from truthlens.core.records.enums import Action
from truthlens.core.records.outcome import Outcome
from truthlens.core.review_settings import ReviewRule, ReviewSettings
from truthlens.delivery import risk_of
from truthlens.review.entry.content import found


@dataclass(frozen=True, slots=True)
class Selection:
    """Why an answer is queued: the rule's name, and its share of such answers, 0..1."""

    rule: str
    sample: float


def selected(outcome: Outcome, settings: ReviewSettings, *, draw: Callable[[], float]) -> Selection | None:
    """Return by which rule the answer of ``outcome`` is queued, ``None`` where it is not.

    Answers that were not scored, or were withheld, are never queued. ``draw`` gives a number in 0..1, 1 excluded, for rules that sample.
    """
    verdict = outcome.verdict
    if not settings.enabled or verdict.score is None or outcome.action is Action.BLOCK:
        return None
    for rule in settings.rules:
        if _applies(rule, outcome):
            return Selection(rule.name, rule.sample) if draw() < rule.sample else None
    return None


def new_id() -> str:
    """Return an unguessable id of an entry, as it stands in ``X-TruthLens-Review-Id``."""
    return f"rv_{secrets.token_hex(10)}"


def _applies(rule: ReviewRule, outcome: Outcome) -> bool:
    verdict = outcome.verdict
    results = [result for each in outcome.verdicts for result in each.results]
    # A detector that found a fact wrong wants a person to look, whatever the others make of the whole.
    flagged = verdict.flagged or any(result.for_review for result in results)
    assert verdict.score is not None
    return (
        (rule.flagged is None or rule.flagged == flagged)
        and (not rule.decisions or outcome.plan.decision in rule.decisions)
        and (not rule.levels or risk_of(verdict.score) in rule.levels)
        and (
            not rule.detectors
            or any(result.detector in rule.detectors and found(result) for result in results)
        )
    )

"""Decide the outcome of scored answers: which action it is, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truthlens.core.records.enums import Action, OnUnchecked, Reason, Status
from truthlens.core.records.exchange import Answer
from truthlens.core.records.mitigation_result import Assessment, Correction
from truthlens.core.records.outcome import Outcome, Reasoned
from truthlens.core.records.plan import Plan
from truthlens.delivery.bodies import blocked_body
from truthlens.delivery.headers import NOTHING_TO_CHECK, worst
from truthlens.delivery.unscored import counted, notes_of, reasoned

NO_CONSENSUS = "no-consensus"
EVIDENCE_SELECTED = "evidence-selected"
USAGE_DOUBTED = "usage-not-believed"


def outcome_of(plan: Plan, assessment: Assessment, answers: Sequence[Answer], *, model: str) -> Outcome:
    """Return the outcome, without body and latency.

    ``refine`` and ``replace`` go before ``warn``: an answer that was changed and is still flagged was
    refined, and its headers and its disclaimer say the rest. An answer that the plan does not let pass
    unchecked is blocked.

    Args:
        plan: the exchange's plan.
        assessment: what detection and the mode made of the answers; one verdict at least.
        answers: the choices as the backend gave them.
        model: name of the detector's model.
    """
    verdicts = counted(assessment.verdicts, assessment, answers)
    verdict = worst(verdicts)
    thoughts = reasoned(assessment, answers)
    corrections = [(place, each) for place, each in enumerate(assessment.corrections) if each is not None]
    changed = [each for place, each in corrections if each.text != answers[place].text]
    disputed = frozenset(
        place for place, each in corrections if plan.premium.require_consensus and each.consensus is False
    )
    outcome = Outcome(
        plan=plan,
        verdict=verdict,
        verdicts=verdicts,
        mode=assessment.mode,
        action=_action(changed, warned=verdict.flagged or bool(disputed)),
        iterations=max((each.rounds for _, each in corrections), default=0),
        initial_score=worst(counted(assessment.first, assessment, answers)).score if changed else None,
        model=model,
        notes=_notes(assessment, [each for _, each in corrections], thoughts, disputed=bool(disputed)),
        first=assessment.first,
        corrections=assessment.corrections,
        calls=assessment.calls,
        mitigation_s=assessment.mitigation_s,
        disputed=disputed,
        reasoned=thoughts,
        answers=assessment.delivered(answers) if answers else (),
    )
    blocks = plan.on_unchecked is OnUnchecked.BLOCK and not _may_pass(plan, verdict.reason)
    if blocks and verdict.status in (Status.UNCHECKED, Status.PARTIAL):
        assert verdict.reason is not None
        return replace(outcome, action=Action.BLOCK, body=blocked_body(verdict.reason))
    return outcome


def _may_pass(plan: Plan, reason: Reason | None) -> bool:
    """Return whether an answer may pass unchecked for this reason where the plan blocks what is unchecked.

    That an exchange is a step of an application only counts where the operator says so of all of the decision: a
    client could make any request look like one.
    """
    if reason is Reason.NOT_AN_ANSWER:
        return plan.exempts_calls
    return reason in NOTHING_TO_CHECK


def _action(changed: Sequence[Correction], *, warned: bool) -> Action:
    if changed:
        return Action.REPLACE if any(each.replaced for each in changed) else Action.REFINE
    return Action.WARN if warned else Action.PASS


def _notes(
    assessment: Assessment,
    corrections: Sequence[Correction],
    thoughts: Sequence[Reasoned | None],
    *,
    disputed: bool,
) -> tuple[str, ...]:
    notes = [*assessment.notes, *(note for each in corrections for note in each.notes), *notes_of(thoughts)]
    if any(call.selected for call in assessment.calls):
        notes.append(EVIDENCE_SELECTED)
    if any(call.usage.doubted for call in assessment.calls):
        notes.append(USAGE_DOUBTED)
    return tuple(dict.fromkeys([*notes, NO_CONSENSUS] if disputed else notes))

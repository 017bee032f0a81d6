"""Decide the outcome of scored answers: which action it is, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truthlens.core.records.enums import Action, AnswerKind, Mode, OnUnchecked, Reason, Status
from truthlens.core.records.exchange import Answer
from truthlens.core.records.mitigation_result import OWN_VERIFIER, Assessment, Correction
from truthlens.core.records.outcome import Outcome, Reasoned
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import (
    OWN_VERIFIER_DETAIL,
    Coverage,
    Verdict,
    left_out_together,
    unchecked,
)
from truthlens.delivery.bodies import blocked_body
from truthlens.delivery.headers import nothing_to_check, worst
from truthlens.delivery.warning import lacks_check
from truthlens.llm.token_estimate import text_tokens

REASONING_UNSCORED = "reasoning-unscored"
"""The note that says that there was reasoning, and that the plan lets it pass."""

_NO_TEXT = (Reason.EMPTY_ANSWER, Reason.TOOL_CALL)

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
    unconfirmed = _is_unconfirmed(plan, verdicts, answers)
    outcome = Outcome(
        plan=plan,
        verdict=verdict,
        verdicts=verdicts,
        mode=assessment.mode,
        action=_action(changed, warned=verdict.flagged or bool(disputed) or unconfirmed),
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
    if plan.intended is not None:
        would = _intended_action(plan.intended, verdicts, answers)
        return replace(outcome, action=Action.PASS, shadow_action=would)
    if not all(_may_pass(plan, each) for each in verdicts):
        assert verdict.reason is not None
        return replace(outcome, action=Action.BLOCK, body=blocked_body(verdict.reason))
    return outcome


def unscored_outcome(plan: Plan, reason: Reason, *, model: str, latency_s: float) -> Outcome:
    """Return what ``outcome_of`` gives for an answer that was not even read, at the cost of one record."""
    verdict = unchecked(reason, threshold=plan.threshold)
    blocks = not _may_pass(plan, verdict)
    would = None if plan.intended is None else _intended_action(plan.intended, (verdict,), ())
    return Outcome(
        plan=plan,
        verdict=verdict,
        mode=Mode.LIGHTWEIGHT if plan.mode_to_run is Mode.AUTO else plan.mode_to_run,
        action=Action.BLOCK if blocks else Action.PASS,
        shadow_action=would,
        body=blocked_body(reason) if blocks else None,
        latency_s=latency_s,
        model=model,
        first=(verdict,),
    )


def _intended_action(plan: Plan, verdicts: Sequence[Verdict], answers: Sequence[Answer]) -> Action:
    """Return what ``plan`` would have done: ``refine`` where it would have asked for another answer, whatever came of that."""
    if not all(_may_pass(plan, each) for each in verdicts):
        return Action.BLOCK
    flagged = any(each.flagged for each in verdicts)
    if plan.corrects and (flagged or any(plan.lacks_evidence(each.reason) for each in verdicts)):
        return Action.REFINE
    return Action.WARN if flagged or _is_unconfirmed(plan, verdicts, answers) else Action.PASS


def _is_unconfirmed(plan: Plan, verdicts: Sequence[Verdict], answers: Sequence[Answer]) -> bool:
    """Return whether an answer that a person reads owes a disclaimer to what was not checked of it."""
    return any(
        answer.kind is AnswerKind.TEXT and lacks_check(plan, each)
        for answer, each in zip(answers, verdicts, strict=False)
    )


def _may_pass(plan: Plan, verdict: Verdict) -> bool:
    """Return whether a choice with this verdict may pass: any, but where the plan blocks what was not fully checked.

    That an exchange is a step of an application only counts where the operator says so of all of the decision: a
    client could make any request look like one.
    """
    if plan.on_unchecked_for(verdict.reason) is not OnUnchecked.BLOCK or verdict.status not in (
        Status.UNCHECKED,
        Status.PARTIAL,
    ):
        return True
    if verdict.reason is Reason.NOT_AN_ANSWER:
        return plan.exempts_calls
    return nothing_to_check(verdict)


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
    judged = (result for verdict in (*assessment.first, *assessment.verdicts) for result in verdict.results)
    if any(OWN_VERIFIER_DETAIL in result.details for result in judged):
        notes.append(OWN_VERIFIER)
    return tuple(dict.fromkeys([*notes, NO_CONSENSUS] if disputed else notes))


def counted(
    verdicts: Sequence[Verdict], assessment: Assessment, answers: Sequence[Answer]
) -> tuple[Verdict, ...]:
    """Return the verdicts with all text of each choice counted: unread text, and scored reasoning.

    Where some choice was scored, one that was not has a coverage as well: its text, none of which was.

    Args:
        verdicts: One per answer.
        assessment: What they come from, for the verdicts on reasoning.
        answers: The choices as the backend gave them; none for an exchange without any.
    """
    if not answers:
        return tuple(verdicts)
    reasoning = assessment.reasoning or (None,) * len(answers)
    found = [
        _with_unread(_with_reasoning(verdict, thought), answer.unread_tokens)
        for verdict, thought, answer in zip(verdicts, reasoning, answers, strict=True)
    ]
    known = [
        verdict.coverage for verdict in found if verdict.score is not None and verdict.coverage is not None
    ]
    if not known:
        return tuple(found)
    evidence = max(coverage.evidence_tokens for coverage in known)
    return tuple(
        verdict if verdict.score is not None else _with_nothing(verdict, answer, evidence)
        for verdict, answer in zip(found, answers, strict=True)
    )


def reasoned(assessment: Assessment, answers: Sequence[Answer]) -> tuple[Reasoned | None, ...]:
    """Return what reasoning came with each answer."""
    verdicts = assessment.reasoning or (None,) * len(answers)
    return tuple(
        Reasoned(len(answer.reasoning), verdict) if answer.reasoning.strip() else None
        for answer, verdict in zip(answers, verdicts, strict=True)
    )


def notes_of(found: Sequence[Reasoned | None]) -> tuple[str, ...]:
    """Return the notes that reasoning gives rise to."""
    return (REASONING_UNSCORED,) if any(each is not None and each.verdict is None for each in found) else ()


def _with_unread(verdict: Verdict, tokens: int) -> Verdict:
    if not tokens:
        return verdict
    if verdict.score is None:
        # What seemed to hold no text holds some, and nobody knows what it says.
        return replace(verdict, reason=Reason.DIALECT) if verdict.reason in _NO_TEXT else verdict
    coverage = verdict.coverage
    return replace(
        verdict,
        status=Status.PARTIAL,
        reason=verdict.reason or Reason.DIALECT,
        coverage=replace(coverage, answer_tokens=coverage.answer_tokens + tokens) if coverage else None,
    )


def _with_reasoning(verdict: Verdict, thought: Verdict | None) -> Verdict:
    """Return the verdict on an answer and its reasoning: higher score, poorer status, tokens of both."""
    if thought is None:
        return verdict
    scores = [each.score for each in (verdict, thought) if each.score is not None]
    lacking = [each for each in (verdict, thought) if each.status is not Status.CHECKED]
    status = Status.CHECKED if not lacking else Status.PARTIAL if scores else Status.UNCHECKED
    return replace(
        verdict,
        status=status,
        reason=lacking[0].reason if lacking else None,
        score=max(scores, default=None),
        coverage=_sum(verdict.coverage, thought.coverage),
    )


def _sum(one: Coverage | None, other: Coverage | None) -> Coverage | None:
    if one is None or other is None:
        return one or other
    poorer = min(one, other, key=lambda coverage: coverage.evidence_ratio)
    return replace(
        poorer,
        answer_tokens=one.answer_tokens + other.answer_tokens,
        answer_tokens_scored=one.answer_tokens_scored + other.answer_tokens_scored,
        left_out=left_out_together((one, other)),
        windows=one.windows + other.windows,
    )


def _with_nothing(verdict: Verdict, answer: Answer, evidence_tokens: int) -> Verdict:
    if verdict.coverage is not None:
        return verdict
    tokens = text_tokens(answer.text) + answer.unread_tokens + answer.call_tokens
    return replace(verdict, coverage=Coverage(tokens, 0, evidence_tokens, 0)) if tokens else verdict

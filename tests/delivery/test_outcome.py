"""What is blocked; and an answer that was not read ends like an assessment which scored nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from truthlens.core.records.enums import Action, AnswerKind, LeftOut, Mode, OnUnchecked, Reason, Status
from truthlens.core.records.exchange import Answer
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Coverage, Verdict, unchecked
from truthlens.delivery import headers, outcome_of, unscored_outcome


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("on_unchecked", list(OnUnchecked))
def test_an_answer_that_was_not_read_ends_like_one_that_was_not_scored(
    reason: Reason, mode: Mode, on_unchecked: OnUnchecked
) -> None:
    """Action, body, mode and all; there is no choice to report, and the time is the request's."""
    plan = Plan(decision="careful", threshold=0.6, mode=mode, on_unchecked=on_unchecked)
    verdict = unchecked(reason, threshold=0.6)
    ran = Mode.LIGHTWEIGHT if plan.mode_to_run is Mode.AUTO else plan.mode_to_run
    whole = outcome_of(plan, Assessment((verdict,), (verdict,), ran), (), model="m")
    assert unscored_outcome(plan, reason, model="m", latency_s=0.5) == replace(
        whole, verdicts=(), latency_s=0.5
    )


CLEAN = Verdict(Status.CHECKED, score=0.1, threshold=0.6)
SILENT = unchecked(Reason.EMPTY_ANSWER)
SIGNS = replace(SILENT, coverage=Coverage(3, 0, 9, 9, left_out=((LeftOut.SIGNS, 3),)))
CALL = unchecked(Reason.TOOL_CALL)
MOSTLY_PHRASES = replace(CLEAN, status=Status.PARTIAL, reason=Reason.EMPTY_ANSWER)


@pytest.mark.parametrize(
    ("verdicts", "action"),
    [
        ((SILENT,), Action.PASS),
        ((CLEAN, SILENT), Action.PASS),
        ((CLEAN, CALL), Action.PASS),
        ((SIGNS,), Action.BLOCK),
        ((CALL, SIGNS), Action.BLOCK),
        ((CLEAN, SIGNS), Action.BLOCK),
        ((MOSTLY_PHRASES,), Action.BLOCK),
        ((CALL, MOSTLY_PHRASES), Action.BLOCK),
        ((CLEAN, unchecked(Reason.TIMEOUT)), Action.BLOCK),
    ],
)
def test_one_choice_that_may_not_pass_blocks_all(verdicts: tuple[Verdict, ...], action: Action) -> None:
    """A choice that claims nothing blocks none, whatever stands beside it; signs and left out phrases are an answer."""
    plan = Plan(decision="careful", threshold=0.6, on_unchecked=OnUnchecked.BLOCK)
    answers = [Answer(place, AnswerKind.TEXT, "") for place in range(len(verdicts))]
    found = outcome_of(plan, Assessment(verdicts, verdicts, Mode.LIGHTWEIGHT), answers, model="m")
    assert found.action is action
    if action is Action.BLOCK:
        assert found.verdict.reason is not Reason.TOOL_CALL


FLAGGED = Verdict(Status.CHECKED, score=0.9, threshold=0.6)
WITHOUT = unchecked(Reason.NO_CONTEXT, threshold=0.6)


@pytest.mark.parametrize(
    ("plan", "verdict", "would"),
    [
        (Plan("p"), CLEAN, Action.PASS),
        (Plan("p"), FLAGGED, Action.WARN),
        (Plan("p", mode=Mode.STANDARD), FLAGGED, Action.REFINE),
        (Plan("p", mode=Mode.STANDARD), CLEAN, Action.PASS),
        (Plan("p", mode=Mode.AGENTIC), WITHOUT, Action.REFINE),
        (Plan("p", on_unchecked=OnUnchecked.BLOCK), WITHOUT, Action.BLOCK),
        (Plan("p", require_disclaimer=True), WITHOUT, Action.WARN),
        (Plan("p"), WITHOUT, Action.PASS),
    ],
)
def test_a_plan_in_shadow_says_what_it_would_do_and_does_nothing(
    plan: Plan, verdict: Verdict, would: Action
) -> None:
    """Whatever the plan says, the answer leaves as it came."""
    shadow = replace(plan, shadow=True).in_shadow()
    answers = (Answer(0, AnswerKind.TEXT, "Tea is free."),)
    assessment = Assessment((verdict,), (verdict,), Mode.LIGHTWEIGHT)
    found = outcome_of(shadow, assessment, answers, model="m")
    assert (found.action, found.shadow_action, found.body) == (Action.PASS, would, None)
    assert headers(found)["x-truthlens-shadow-action"] == would.value
    unread = unscored_outcome(shadow, Reason.TOO_LARGE, model="m", latency_s=0.1)
    blocks = plan.on_unchecked is OnUnchecked.BLOCK
    assert (unread.action, unread.body) == (Action.PASS, None)
    assert (unread.shadow_action is Action.BLOCK) is blocks
    assert outcome_of(plan.in_shadow(), assessment, answers, model="m").shadow_action is None

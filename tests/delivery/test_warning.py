"""The warning stands beside flagged answers that people read, once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import (
    Action,
    AnswerKind,
    Endpoint,
    LeftOut,
    Mode,
    Reason,
    Status,
    WarningPosition,
)
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Coverage, Verdict, unchecked
from truthlens.delivery import apply_warning, warn, warning_for, worst
from truthlens.delivery.outcome import outcome_of

PLAN = Plan(decision="d", threshold=0.6)
EXCHANGE = Exchange(Endpoint.CHAT, "m", "q", ())
FLAGGED = Verdict(Status.CHECKED, score=0.9, threshold=0.6)
CLEAN = Verdict(Status.CHECKED, score=0.1, threshold=0.6)


def text(content: str, index: int = 0) -> Answer:
    return Answer(index, AnswerKind.TEXT, content)


def outcome(*verdicts: Verdict, plan: Plan = PLAN) -> Outcome:
    return Outcome(plan, worst(verdicts), verdicts, action=Action.WARN)


def test_the_warning_follows_the_script_of_the_answer() -> None:
    """Chinese answers get the white paper's template, others its English rendering."""
    assert warning_for(PLAN, "渡轮八点出发。").startswith("⚠️ **注意**: 此响应可能包含")
    assert warning_for(PLAN, "The ferry leaves.").startswith("⚠️ **Note**: This response may contain")


def test_the_operators_template_is_used_as_written() -> None:
    """Its surrounding white space goes, for every script."""
    plan = replace(PLAN, warning_template="  Check this.\n")
    assert warning_for(plan, "渡轮") == warning_for(plan, "ferry") == "Check this."


def test_only_flagged_choices_are_warned() -> None:
    """Of three choices the flagged one changes, with the shift of its positions."""
    answers = [text("Good.", 0), text("Bad.", 1), text("Fine.", 2)]
    warned = warn(outcome(CLEAN, FLAGGED, CLEAN), EXCHANGE, answers)
    warning = warning_for(PLAN, "Bad.")
    assert warned.texts == {1: f"{warning}\n\nBad."}
    bad = warned.deliveries[1]
    assert bad.warned
    assert bad.text[bad.offset :] == "Bad."
    assert warned.outcome.notes == ()


def test_a_warning_after_the_answer_shifts_nothing() -> None:
    """The position is the plan's."""
    plan = replace(PLAN, warning_template="Check this.", warning_position=WarningPosition.AFTER)
    delivery = warn(outcome(FLAGGED, plan=plan), EXCHANGE, [text("Bad.")]).deliveries[0]
    assert (delivery.text, delivery.offset) == ("Bad.\n\nCheck this.", 0)


@pytest.mark.parametrize(
    ("exchange", "answer"),
    [
        (replace(EXCHANGE, structured=True), text("Bad.")),
        (EXCHANGE, text(' {"answer": "bad"}\n')),
        (EXCHANGE, text('["bad"]')),
        (EXCHANGE, Answer(0, AnswerKind.TOOL_CALL, "Bad.")),
        (EXCHANGE, Answer(0, AnswerKind.REFUSAL, "No.")),
    ],
)
def test_answers_for_programs_stay_as_they_are(exchange: Exchange, answer: Answer) -> None:
    """JSON mode, JSON text and tool calls are never pasted into; a note says that the headers carry the warning."""
    warned = warn(outcome(FLAGGED), exchange, [answer])
    assert warned.texts == {}
    assert warned.deliveries[0].text == answer.text
    assert warned.outcome.notes == ("warning-not-pasted",)


@pytest.mark.parametrize("content", ["[1] is the source.", "{braces} in prose", "[" * 100_000])
def test_text_that_only_begins_like_json_is_warned(content: str) -> None:
    """A citation is no JSON."""
    assert warn(outcome(FLAGGED), EXCHANGE, [text(content)]).texts[0].endswith(content)


def test_unchecked_answers_are_not_warned() -> None:
    """Without a score there is nothing to warn of; the headers say that it was not checked."""
    assert warn(outcome(unchecked(Reason.TIMEOUT, threshold=0.0)), EXCHANGE, [text("x")]).texts == {}


@given(content=st.text(), position=st.sampled_from(WarningPosition))
def test_a_warning_is_given_once(content: str, position: WarningPosition) -> None:
    """Warning a warned text changes nothing, and the answer stands in it whole."""
    once = apply_warning(content, "Check this.", position)
    assert content in once
    assert apply_warning(once, "Check this.", position) == once
    assert once.count("Check this.") == content.count("Check this.") + (once != content)


PARTIAL = Verdict(Status.PARTIAL, Reason.DETECTOR_ERROR, 0.1, 0.6)
SIGNS = replace(unchecked(Reason.EMPTY_ANSWER), coverage=Coverage(3, 0, 9, 9, left_out=((LeftOut.SIGNS, 3),)))


@pytest.mark.parametrize("mode", [Mode.LIGHTWEIGHT, Mode.STANDARD])
@pytest.mark.parametrize(
    ("verdict", "left_out", "required", "refused"),
    [
        (FLAGGED, True, True, False),
        (PARTIAL, False, True, False),
        (unchecked(Reason.NO_CONTEXT), False, True, False),
        (replace(PARTIAL, reason=Reason.EMPTY_ANSWER), False, True, False),
        (SIGNS, False, True, False),
        (unchecked(Reason.EMPTY_ANSWER), False, False, False),
        (unchecked(Reason.DISABLED), False, False, False),
        (unchecked(Reason.NOT_AN_ANSWER), False, False, False),
        (CLEAN, False, False, False),
    ],
)
def test_a_required_disclaimer_stands_on_what_was_not_found_clean(
    mode: Mode, verdict: Verdict, left_out: bool, required: bool, refused: bool
) -> None:
    """``require_disclaimer``: left out, flagged answers carry one; true, those not fully checked as well; false, none."""
    for setting, expected in ((None, left_out), (True, required), (False, refused)):
        plan = replace(PLAN, require_disclaimer=setting)
        assessment = Assessment((verdict,), (verdict,), mode)
        found = outcome_of(plan, assessment, [text("It leaves at nine.")], model="m")
        warned = warn(found, EXCHANGE, [text("It leaves at nine.")])
        # The warning of mode lightweight is no disclaimer: it has no switch.
        told = expected or (mode is Mode.LIGHTWEIGHT and verdict.flagged)
        assert warned.deliveries[0].warned is told
        assert (found.action is Action.WARN) is (told or verdict.flagged)


def test_the_disclaimer_says_whether_the_answer_was_checked() -> None:
    plan = replace(PLAN, require_disclaimer=True)
    checked, lacking, chinese = (
        warn(replace(outcome(verdict, plan=plan), mode=Mode.STANDARD), EXCHANGE, [text(answer)]).texts[0]
        for verdict, answer in ((FLAGGED, "At nine."), (PARTIAL, "At nine."), (PARTIAL, "九点。"))
    )
    assert "could still not be confirmed" in checked
    assert "could not be fully checked" in lacking
    assert "未能对照来源进行完整检查" in chinese

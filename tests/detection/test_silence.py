"""Silence needs proof: whatever an answer is dressed as, it is never clean because a rule left it out of scoring."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.detection.hostile_forms import ANSWERS, FORMS, SIGNS
from tests.fakes.context_model import ContextModel, State, context_encoder
from tests.fakes.engines import engine_of
from truthlens.core.records.enums import (
    AnswerKind,
    Endpoint,
    LeftOut,
    OnUnchecked,
    Provenance,
    Reason,
    Status,
)
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.delivery.outcome import outcome_of
from truthlens.detection.models.inputs.windows import Window

PLAN = Plan("default", timeout_s=60.0)
EVIDENCE = (Passage("The basic plan costs ten dollars. Do not drink alcohol with it.", Provenance.DOCUMENTS),)


class _Suspicious(ContextModel):
    """Takes every token for unsupported: what is not flagged was not asked about."""

    def odds_of(self, window: Window, state: State) -> NDArray[np.float32]:
        return np.full(len(range(*window.answer.indices(len(window.input_ids)))), 4.0, dtype=np.float32)


def _verdicts(text: str, query: str, plan: Plan = PLAN) -> tuple[Verdict, Verdict]:
    """The verdict on a whole body, and on the same text as a stream."""

    async def run() -> tuple[Verdict, Verdict]:
        engine = engine_of({None: context_encoder(_Suspicious(), languages=("*",))})
        exchange = Exchange(Endpoint.CHAT, "m", query, EVIDENCE)
        answers = (Answer(0, AnswerKind.TEXT, text),)
        (whole,) = await engine.detect(plan, exchange, answers)
        streamed = (await engine.follow(plan, exchange).detect(answers)).verdicts[0]
        await engine.aclose()
        return whole, streamed

    return asyncio.run(run())


def _dressed(text: str, forms: list[str]) -> str:
    for name in forms:
        text = FORMS[name](text)
    return text


@given(st.sampled_from(ANSWERS), st.lists(st.sampled_from(sorted(FORMS)), max_size=3))
def test_no_form_of_a_hostile_answer_is_left_out_of_scoring(said: tuple[str, str], forms: list[str]) -> None:
    """To a model that suspects every word each of them is flagged, in a body and in a stream."""
    text = _dressed(said[0], forms)
    whole, streamed = _verdicts(text, said[1])
    assert whole.flagged, text
    assert (streamed.score, streamed.status, streamed.coverage) == (whole.score, whole.status, whole.coverage)


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize(("text", "query"), ANSWERS[:13])
def test_no_short_answer_is_left_out_in_any_form(form: str, text: str, query: str) -> None:
    """One word of the question may be the whole answer."""
    assert _verdicts(FORMS[form](text), query)[0].flagged


@pytest.mark.parametrize("text", SIGNS)
def test_signs_alone_are_not_checked_and_are_blocked_where_the_plan_says_so(text: str) -> None:
    """A tick or a row of stars may be an answer, and no model reads it."""
    for verdict in _verdicts(text, "Is it safe?"):
        assert (verdict.status, verdict.reason, verdict.score) == (
            Status.UNCHECKED,
            Reason.EMPTY_ANSWER,
            None,
        )
        assert verdict.coverage is not None
        assert dict(verdict.coverage.left_out)[LeftOut.SIGNS]
        assert verdict.coverage.answer_tokens_scored == 0
        assert _action(text, verdict) == "block"


@pytest.mark.parametrize(
    "text", ["I don't know.", "Thank you for your question! I hope this helps.", "I cannot help with that."]
)
def test_phrases_alone_are_not_checked_and_pass(text: str) -> None:
    """Nothing in them can be false, and nothing in them was scored."""
    for verdict in _verdicts(text, "Is it safe?"):
        assert (verdict.status, verdict.reason, verdict.score) == (
            Status.UNCHECKED,
            Reason.EMPTY_ANSWER,
            None,
        )
        assert verdict.coverage is not None
        assert dict(verdict.coverage.left_out) == {LeftOut.PHRASES: verdict.coverage.answer_tokens}
        assert _action(text, verdict) == "pass"


@pytest.mark.parametrize(
    ("most", "status", "reason"),
    [(1.0, Status.CHECKED, None), (0.9, Status.CHECKED, None), (0.3, Status.PARTIAL, Reason.EMPTY_ANSWER)],
)
def test_the_policy_says_how_much_of_an_answer_may_stay_unscored(
    most: float, status: Status, reason: Reason | None
) -> None:
    """Beyond it the answer counts as checked in part, and a plan that blocks blocks it."""
    text = "It costs ten dollars. I hope this helps! Let me know if you have any other questions."
    plan = Plan("default", timeout_s=60.0, max_unscored=most)
    for verdict in _verdicts(text, "", plan):
        assert (verdict.status, verdict.reason) == (status, reason)
        assert verdict.score is not None
        assert verdict.coverage is not None
        assert 0.3 < verdict.coverage.left_out_ratio < 0.9
        assert (_action(text, verdict) == "block") == (reason is not None)


def _action(text: str, verdict: Verdict) -> str:
    plan = Plan("default", on_unchecked=OnUnchecked.BLOCK)
    answers = (Answer(0, AnswerKind.TEXT, text),)
    return outcome_of(plan, Assessment((verdict,), (verdict,)), answers, model="m").action.value

"""The answer that the weighed others come nearest to."""

from __future__ import annotations

import pytest

from tests.fakes.consensus_voices import compared, voice
from truthlens.mitigation.premium.consensus.result import Agreement
from truthlens.mitigation.premium.consensus.weighted_fusion import confidence, similarity, weighted_fusion

RED, BLUE, OLD = "The hall is red.", "The hall is blue.", "The roof is old."
APART = [(RED, BLUE)]


def test_the_answer_most_like_the_others_is_taken_whole() -> None:
    voices = [voice(RED), voice(f"{BLUE} {OLD}"), voice(f"{BLUE} {OLD}")]
    agreement = weighted_fusion(compared(voices, pairs=APART))
    assert agreement == Agreement(f"{BLUE} {OLD}", reached=True, replaced=True)


def test_of_two_answers_that_differ_the_more_trusted_one_wins() -> None:
    scores = [voice(RED, score=0.8), voice(BLUE, score=0.1)]
    assert weighted_fusion(compared(scores, pairs=APART)).text == BLUE
    weights = [voice(RED, weight=0.2), voice(BLUE, weight=0.9)]
    agreement = weighted_fusion(compared(weights, pairs=APART))
    assert (agreement.text, agreement.reached) == (BLUE, True)


def test_level_answers_leave_the_first_and_its_contested_claims_undecided() -> None:
    agreement = weighted_fusion(compared([voice(RED), voice(BLUE)], pairs=APART))
    assert agreement == Agreement(RED, reached=False, undecided=(0,))


def test_answers_that_say_the_same_are_as_similar_as_can_be_and_disputes_count_nothing() -> None:
    same = compared([voice(f"{RED} {OLD}"), voice(f"{OLD} {RED}")])
    assert similarity(same, 0, 1) == pytest.approx(1.0)
    apart = compared([voice(RED), voice(BLUE)], pairs=APART)
    assert similarity(apart, 0, 1) == 0.0
    half = compared([voice(f"{RED} {OLD}"), voice(RED)], near=0.0)
    assert similarity(half, 0, 1) == pytest.approx(2 / 3)
    assert similarity(half, 1, 0) == similarity(half, 0, 1)


def test_answers_without_claims_are_alike_and_unlike_one_with_claims() -> None:
    mute = compared([voice("Hello!"), voice("Thank you!"), voice(RED)])
    assert similarity(mute, 0, 1) == 1.0
    assert similarity(mute, 0, 2) == 0.0


def test_an_unscored_answer_counts_half() -> None:
    assert confidence(voice(RED, weight=0.8, score=None)) == pytest.approx(0.4)
    assert confidence(voice(RED, weight=0.8, score=0.25)) == pytest.approx(0.6)


def test_claims_whose_support_is_unknown_are_left_out() -> None:
    voices = [voice(f"{RED} {OLD}"), voice(OLD)]
    assert similarity(compared(voices, unknown=[(RED, 1)]), 0, 1) == pytest.approx(1.0)
    nothing = compared([voice(RED), voice(BLUE)], unknown=[(RED, 1), (BLUE, 0)])
    assert similarity(nothing, 0, 1) == 0.0
    assert not weighted_fusion(nothing).reached

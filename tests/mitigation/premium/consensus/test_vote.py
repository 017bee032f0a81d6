"""The vote over claims, weighed by the evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.consensus_voices import THRESHOLD, compared, voice
from truthlens.mitigation.premium.consensus.comparison import Comparison
from truthlens.mitigation.premium.consensus.result import Agreement
from truthlens.mitigation.premium.consensus.vote import belief, segment_vote

RED, BLUE, OLD = "The hall is red.", "The hall is blue.", "The roof is old."
DOOR = "The door is open."
APART = [(RED, BLUE)]


def voted(comparison: Comparison) -> Agreement:
    return segment_vote(comparison, threshold=THRESHOLD)


def test_what_all_hold_stays_byte_for_byte() -> None:
    text = f"{RED}\n\n- {OLD}"
    agreement = voted(compared([voice(text), voice(text), voice(text)]))
    assert agreement == Agreement(text, reached=True)


def test_a_claim_against_the_majority_is_replaced_where_the_evidence_is_level() -> None:
    voices = [voice(f"{RED} {OLD}"), voice(f"{BLUE} {OLD}"), voice(f"{BLUE} {OLD}")]
    groundings = {RED: 0.7, BLUE: 0.85}
    agreement = voted(compared(voices, pairs=APART, groundings=groundings))
    assert agreement == Agreement(f"{BLUE} {OLD}", reached=True, replaced=True)


def test_the_lone_dissenter_is_kept_where_the_evidence_is_with_it() -> None:
    voices = [voice(RED), voice(BLUE), voice(BLUE)]
    agreement = voted(compared(voices, pairs=APART, groundings={RED: 0.97, BLUE: 0.2}))
    assert agreement.text == RED
    assert not agreement.reached


def test_a_majority_without_evidence_gives_way_to_the_lone_grounded_variant() -> None:
    voices = [voice(RED), voice(RED), voice(BLUE)]
    agreement = voted(compared(voices, pairs=APART, groundings={RED: 0.2, BLUE: 0.95}))
    assert agreement == Agreement(BLUE, reached=False, replaced=True)


def test_what_all_hold_without_evidence_goes_where_something_else_is_left() -> None:
    text = f"{RED} {OLD}"
    agreement = voted(compared([voice(text)] * 3, groundings={RED: 0.03}))
    assert agreement.text == OLD


def test_no_answer_is_made_empty() -> None:
    agreement = voted(compared([voice(RED)] * 3, groundings={RED: 0.03}))
    assert agreement == Agreement(RED, reached=False, undecided=(0,))


def test_two_voices_leave_the_decision_to_the_evidence() -> None:
    voices = [voice(RED), voice(BLUE)]
    assert voted(compared(voices, pairs=APART, groundings={RED: 0.6, BLUE: 0.9})).text == BLUE
    assert voted(compared(voices, pairs=APART, groundings={RED: 0.9, BLUE: 0.6})).text == RED


def test_two_voices_that_are_level_leave_the_claim_undecided() -> None:
    agreement = voted(compared([voice(RED), voice(BLUE)], pairs=APART))
    assert agreement == Agreement(RED, reached=False, undecided=(0,))


def test_a_grounded_claim_of_the_majority_is_added_behind_its_neighbour() -> None:
    voices = [voice(f"{RED} {OLD}"), voice(f"{RED} {DOOR} {OLD}"), voice(f"{RED} {DOOR}")]
    agreement = voted(compared(voices, near=0.5))
    assert agreement == Agreement(f"{RED} {DOOR} {OLD}", reached=True, replaced=True)


@pytest.mark.parametrize(
    ("near", "grounding", "third"),
    [(0.1, 0.9, DOOR), (0.5, 0.55, DOOR), (0.5, 0.9, OLD)],
    ids=["off the topic", "hardly grounded", "held by one of three"],
)
def test_nothing_is_added_that_is_off_the_topic_ungrounded_or_a_minoritys(
    near: float, grounding: float, third: str
) -> None:
    voices = [voice(f"{RED} {OLD}"), voice(f"{RED} {DOOR} {OLD}"), voice(f"{RED} {third}")]
    agreement = voted(compared(voices, near=near, groundings={DOOR: grounding}))
    assert agreement.text == f"{RED} {OLD}"


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 2), st.floats(0.05, 0.95))
def test_belief_grows_with_grounding_and_with_votes(
    low: float, high: float, holders: int, threshold: float
) -> None:
    low, high = sorted((low, high))

    def of(grounding: float, count: int) -> float:
        voices = [voice(RED), *[voice(RED)] * count, *[voice(OLD)] * (3 - count)]
        comparison = compared(voices, groundings={RED: grounding})
        return belief(comparison, comparison.views[0][0], threshold=threshold)

    assert of(low, holders) <= of(high, holders)
    assert of(low, holders) < of(low, holders + 1)


def test_belief_is_even_where_vote_and_evidence_both_are() -> None:
    comparison = compared([voice(RED), voice(OLD)], groundings={RED: 1.0 - THRESHOLD})
    assert belief(comparison, comparison.views[0][0], threshold=THRESHOLD) == pytest.approx(0.0)


def test_what_is_unknown_speaks_neither_for_a_claim_nor_against_it() -> None:
    voices = [voice(f"{RED} {OLD}"), voice(OLD)]
    # At this threshold a grounding of one half would count against a claim.
    unscored = compared(voices, unscored=[RED], unknown=[(RED, 1)])
    assert segment_vote(unscored, threshold=0.1) == Agreement(f"{RED} {OLD}", reached=False)
    known, unknown = compared(voices), compared(voices, unknown=[(RED, 1)])
    against, neither = (belief(each, each.views[0][0], threshold=THRESHOLD) for each in (known, unknown))
    assert against < neither

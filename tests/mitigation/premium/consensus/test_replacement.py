"""Disputed claims give way to more trusted ones."""

from __future__ import annotations

from tests.fakes.consensus_voices import compared, voice
from truthlens.mitigation.premium.consensus.replacement import replacement
from truthlens.mitigation.premium.consensus.result import Agreement

RED, BLUE, GREEN, OLD = "The hall is red.", "The hall is blue.", "The hall is green.", "The roof is old."
APART = [(RED, BLUE), (RED, GREEN), (BLUE, GREEN)]


def test_a_disputed_claim_takes_the_words_of_the_most_trusted_voice() -> None:
    voices = [
        voice(f"{RED} {OLD}", weight=0.5),
        voice(f"{BLUE} {OLD}", weight=0.6),
        voice(f"{GREEN} {OLD}", weight=0.9),
    ]
    agreement = replacement(compared(voices, pairs=APART))
    assert agreement == Agreement(f"{GREEN} {OLD}", reached=False, replaced=True)


def test_reliability_does_not_outweigh_the_evidence() -> None:
    voices = [voice(RED, weight=0.5), voice(BLUE, weight=0.9)]
    assert replacement(compared(voices, pairs=APART, groundings={RED: 0.9, BLUE: 0.45})).text == RED


def test_an_ungrounded_claim_is_no_replacement() -> None:
    voices = [voice(f"{RED} {OLD}", weight=0.3), voice(f"{BLUE} {OLD}", weight=0.9)]
    agreement = replacement(compared(voices, pairs=APART, groundings={RED: 0.3, BLUE: 0.4}))
    assert BLUE not in agreement.text


def test_an_ungrounded_claim_that_nobody_holds_goes_and_one_that_somebody_holds_stays() -> None:
    voices = [voice(f"{RED} {OLD}"), voice(OLD)]
    groundings = {RED: 0.2, OLD: 0.2}
    assert replacement(compared(voices, groundings=groundings)) == Agreement(OLD, reached=True)


def test_what_nobody_disputes_stays_byte_for_byte() -> None:
    text = f"# Hall\n\n* {RED}\n* {OLD}\n"
    assert replacement(compared([voice(text), voice(OLD)])) == Agreement(text, reached=False)


def test_level_claims_are_undecided_unless_a_majority_holds_the_first() -> None:
    two = compared([voice(RED), voice(BLUE)], pairs=APART)
    assert replacement(two) == Agreement(RED, reached=False, undecided=(0,))
    three = compared([voice(RED), voice(RED), voice(BLUE)], pairs=APART)
    assert replacement(three) == Agreement(RED, reached=True)


def test_one_answer_alone_is_left_as_it_is() -> None:
    assert replacement(compared([voice(RED)], groundings={RED: 0.1})).text == RED


def test_a_claim_of_which_too_little_is_known_stays_and_no_agreement_is_reached() -> None:
    voices = [voice(f"{RED} {OLD}"), voice(OLD)]
    for unknown in (
        compared(voices, unscored=[RED]),
        compared(voices, unknown=[(RED, 1)], groundings={RED: 0.1}),
    ):
        assert replacement(unknown) == Agreement(f"{RED} {OLD}", reached=False)


def test_a_claim_without_a_grounding_is_no_replacement() -> None:
    voices = [voice(f"{RED} {OLD}", weight=0.1), voice(f"{BLUE} {OLD}", weight=1.0)]
    assert replacement(compared(voices, pairs=APART, unscored=[RED, BLUE])).text == f"{RED} {OLD}"

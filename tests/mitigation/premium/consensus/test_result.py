"""How choices about claims become one text."""

from __future__ import annotations

from tests.fakes.consensus_voices import compared, voice
from truthlens.mitigation.premium.consensus.result import Agreement, Pick, mixed, variants, worded

RED, BLUE, OLD = "The hall is red.", "The hall is blue.", "The roof is old."


def test_without_choices_the_first_answer_stays() -> None:
    comparison = compared([voice(RED), voice(RED)])
    assert mixed(comparison, {}) == Agreement(RED, reached=True)


def test_a_variant_that_the_text_states_already_is_not_said_twice() -> None:
    comparison = compared([voice(f"{RED} {BLUE}"), voice(BLUE)], pairs=[(RED, BLUE)])
    assert mixed(comparison, {0: Pick(1, 0)}).text == BLUE


def test_two_picks_of_one_sentence_come_in_once() -> None:
    comparison = compared([voice(f"{RED} {OLD}"), voice(BLUE), voice(BLUE)])
    assert mixed(comparison, {0: Pick(1, 0), 1: Pick(2, 0)}).text == BLUE


def test_reached_needs_more_than_half_of_the_weight_for_every_claim_of_the_result() -> None:
    voices = [voice(f"{RED} {OLD}", weight=0.5), voice(f"{BLUE} {OLD}", weight=0.7)]
    comparison = compared(voices, pairs=[(RED, BLUE)])
    assert not mixed(comparison, {}).reached
    assert mixed(comparison, {0: Pick(1, 0)}).reached
    assert mixed(comparison, {0: None}) == Agreement(OLD, reached=True)
    assert not mixed(comparison, {0: None}, undecided=[1]).reached


def test_an_answer_that_claimed_nothing_stays_and_holds_nothing_against_it() -> None:
    assert mixed(compared([voice("Hello!"), voice(RED)]), {}) == Agreement("Hello!", reached=True)


def test_a_later_clause_brings_its_sentence_unless_the_rest_of_it_is_ungrounded() -> None:
    text = "The hall is very old, and it is red."
    comparison = compared([voice(RED), voice(text)])
    assert worded(comparison, Pick(1, 0)) == "The hall is very old"
    assert worded(comparison, Pick(1, 1)) == text
    doubtful = compared([voice(RED), voice(text)], groundings={"The hall is very old": 0.1})
    assert worded(doubtful, Pick(1, 1)) == "it is red."


def test_only_a_row_of_as_many_cells_stands_in_for_a_row() -> None:
    row, other, short = "| hall | red |", "| hall | blue |", "| blue |"
    for text, expected in ((other, [Pick(1, 0)]), (short, []), (BLUE, [])):
        comparison = compared([voice(row), voice(text)], pairs=[(row, text)])
        assert variants(comparison, comparison.views[0][0]) == expected

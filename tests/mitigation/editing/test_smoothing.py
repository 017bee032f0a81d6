"""What is mended where an edit meets the text around it."""

from __future__ import annotations

import pytest

from truthlens.mitigation.editing.smoothing import capitalised, smoothed, without_connective


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the hall", "The hall"),
        ("**the hall**", "**The hall**"),
        ("iPhone prices", "iPhone prices"),
        ("example.com is", "example.com is"),
        ("x264 is", "x264 is"),
        ("甲是", "甲是"),
        ("", ""),
    ],
)
def test_a_capital_is_given_to_plain_words_alone(text: str, expected: str) -> None:
    assert capitalised(text) == expected


def test_a_connective_needs_its_comma_and_something_behind_it() -> None:
    assert without_connective("However hard it is, it works.", first=True) == "However hard it is, it works."
    assert without_connective("However,", first=True) == "However,"
    assert without_connective("Also, it works.", first=False) == "Also, it works."
    assert without_connective("Also, it works.", first=True) == "It works."


def test_a_middle_clause_that_goes_leaves_the_joint_behind_it() -> None:
    left, right = smoothed("It is red, and ", "it is old", "", ", but it is big.", ends_line=False)
    assert left + right == "It is red, but it is big."


def test_words_cut_out_of_a_sentence_leave_one_space() -> None:
    left, right = smoothed("The big ", "old", "", " hall is red.", ends_line=False)
    assert left + right == "The big hall is red."

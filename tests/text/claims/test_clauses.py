"""Where a sentence may be cut into clauses."""

from __future__ import annotations

import pytest

from truthlens.text.claims.clauses import clauses


def parts(sentence: str) -> list[str]:
    return [sentence[start:end] for start, end in clauses(sentence)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The fee is 3 euros, but it rises in May.", ["The fee is 3 euros", "it rises in May."]),
        ("The tower is tall; however, the hall is low.", ["The tower is tall", "the hall is low."]),
        (
            "A tick has eight legs, whereas an insect has six.",
            ["A tick has eight legs", "an insect has six."],
        ),
        (
            "The fee is low, and it is fixed, and it can rise.",
            ["The fee is low", "it is fixed", "it can rise."],
        ),
    ],
)
def test_each_half_with_a_subject_and_a_verb_is_a_clause(sentence: str, expected: list[str]) -> None:
    assert parts(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "It sells bread, milk, and cheese from the valley.",
        "If it rains, you stay, and he goes home.",
        "He said that the fee is low, and it is fixed.",
        "The hall (the old one is closed, and the new one is open) is large.",
        'The sign reads "the hall is closed, and it is locked" in red.',
        "The sauce is thick, so that it can be sliced.",
        "It was sold to Anna, Bob, and painted red.",
        "虽然它成立于1990年，但是它的总部不在上海。",
    ],
)
def test_lists_conditions_reports_brackets_and_quotes_are_not_cut(sentence: str) -> None:
    assert parts(sentence) == [sentence]


def test_what_is_too_long_for_a_sentence_is_left_whole() -> None:
    sentence = "The fee is low, and it is fixed" + ", and it is fixed" * 100 + "."
    assert parts(sentence) == [sentence]

"""Tests of ``truthlens.text.words``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.words import stem, words


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("studies", "study"),
        ("running", "run"),
        ("created", "creation"),
        ("used", "using"),
        ("hoped", "hoping"),
        ("boxes", "box"),
        ("nation", "national"),
        ("happily", "happy"),
        ("organizations", "organize"),
        ("garden's", "garden"),
        ("café", "cafe"),
    ],
)
def test_stem_brings_inflected_forms_together(first: str, second: str) -> None:
    """Forms of one word have one stem."""
    assert stem(first) == stem(second)


@pytest.mark.parametrize(
    ("first", "second"), [("east", "west"), ("use", "us"), ("rain", "ruin"), ("class", "clap")]
)
def test_stem_keeps_words_apart(first: str, second: str) -> None:
    """Different words keep different stems."""
    assert stem(first) != stem(second)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,200 seats", ("1200",)),
        ("1.2M users", ("1200000",)),
        ("1.2 million users", ("1200000",)),
        ("12% of them", ("12", "0.12")),
        ("12 percent of them", ("12", "0.12")),
        ("0.12 of them", ("0.12",)),
        ("twelve people", ("12",)),
        ("three million people", ("3000000",)),
        ("in 2021", ("2021",)),
        ("version 1.2.3", ("1.2.3",)),
        ("the 3rd floor", ("3",)),
        ("2千万", ("20000000",)),
    ],
)
def test_numbers_are_read_by_value(text: str, numbers: tuple[str, ...]) -> None:
    """A number counts as its value, however it is written."""
    found = [word.numbers for word in words(text) if word.numbers]
    assert found == [numbers]


def test_unit_letter_counts_both_ways() -> None:
    """A lower-case m after a number may mean metres or millions, so both values count."""
    (word,) = words("5m")
    assert set(word.numbers) == {"5", "5000000"}


def test_list_marks_are_no_numbers() -> None:
    """The number that leads a list line claims nothing."""
    marks = [word for word in words("Steps:\n1. Boil water.\n2) Add 3 eggs.") if word.stem in {"1", "2", "3"}]
    assert [(word.stem, word.stop, word.numbers) for word in marks] == [
        ("1", True, ()),
        ("2", True, ()),
        ("3", False, ("3",)),
    ]


def test_han_text_counts_in_character_bigrams() -> None:
    """Every Han character is a word of its own place, compared as a bigram."""
    assert [(word.start, word.stem) for word in words("图书馆开")] == [
        (0, "图书"),
        (1, "书馆"),
        (2, "馆开"),
        (3, "馆开"),
    ]
    assert [word.stem for word in words("a 图 b")] == ["a", "图", "b"]


def test_entities_are_capitals_inside_sentences_and_acronyms() -> None:
    """A capital at a sentence's start names nothing; inside one, or all capitals, it does."""
    text = "Rain fell on Lisbon. Nobody told NASA. The end."
    assert [text[word.start : word.end] for word in words(text) if word.entity] == ["Lisbon", "NASA"]


def test_negations_are_marked() -> None:
    """Negating words are marked, contracted ones too."""
    assert [word.negation for word in words("It isn’t open and never was")] == [
        False,
        True,
        False,
        False,
        True,
        False,
    ]


@given(st.text(max_size=200))
def test_words_point_into_the_text_in_order(text: str) -> None:
    """Ranges are inside the text, not empty, ascending and not overlapping."""
    last = 0
    for word in words(text):
        assert last <= word.start < word.end <= len(text)
        assert word.stem
        last = word.end

"""Tests of ``truthlens.text.words``."""

from __future__ import annotations

import hashlib

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


_TEXTS = (
    "The U.S. economy grew 2.5% in 2019, not 3 per cent; NASA's budget isn't 22,629 million (or 22.6bn).",
    "1. Take two tablets, twice daily.\n2) Never take more than 1,200 mg/day.\n- Dr. O\u2019Neil\u2019s advice: don\u2019t.",
    "She'd been running; the studies, boxes, classes, buses, men, many, children and feet were organised hopefully.",
    "Caf\u00e9 na\u00efve \u00dcbung co\u00f6perate r\u00e9sum\u00e9s \u041c\u043e\u0441\u043a\u0432\u0430 \u03b1\u03b2\u03b3 \ufb01ne 5k 7M 3rd 21st 1e5 x2 v1.2.3",
    "\u5e03\u6d1b\u82ac\u7247\uff1a\u6210\u4eba\u6bcf\u6b21200\u6beb\u514b\uff0c3\u4e07\u5143\uff0c\u7ea65\u4ebf\u3002A\u578b B12 \u597d",
    "Nobody hardly went; cannot, can't, cant, won't, without. ABC Inc. said 'maybe' about hundred nine forty.",
    "nation national nationally creation created creating happiness happily modernize modernisation payment payer",
    "",
)


def test_the_words_of_a_fixed_table_are_pinned() -> None:
    """A change here changes the features of the bundled model: it needs another model, not another digest."""
    listed = repr([[tuple(word) for word in words(text)] for text in _TEXTS])
    assert (
        hashlib.sha256(listed.encode()).hexdigest()
        == "f9c53137651f93038d048e2e863bd9d89b787633f6529ad54e3b5e13444e8a95"
    )

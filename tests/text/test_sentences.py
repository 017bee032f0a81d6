"""Sentences with their offsets, and ranges that touch."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.sentences import sentences
from truthlens.text.spans import merge_ranges, touching

_END = re.compile(r"[。！？；]+[”’」』）)\"']*|[.!?…]+[\"'”’)\]]*(?=\s)|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|cf|No|Fig|Inc|Ltd|Co|Corp|approx|Jan|Feb|Mar"
    r"|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)|(?:^|[\s(])(?:[A-Z]|\d{1,2}))\.$"
)
_PIECES = st.sampled_from(
    [
        *"Ax1é中.!?… \n\t()\"'”]。！；）_",
        "...",
        "Mr",
        "e.g",
        "approx",
        "aapprox",
        "No",
        "12",
        "123",
        "word ",
        ". ",
    ]
)
_RANGES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 9)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    max_size=6,
)


def _plainly(text: str) -> list[tuple[int, int]]:
    """The rule as it reads: all that stands before a full stop decides whether that ends a sentence."""
    found = []
    start = 0
    for match in [*_END.finditer(text), None]:
        if match and match[0][0] == "." and _ABBREVIATION.search(text[start : match.start() + 1]):
            continue
        end = match.end() if match else len(text)
        bare = text[start:end].strip()
        if bare:
            first = start + len(text[start:end]) - len(text[start:end].lstrip())
            found.append((first, first + len(bare)))
        start = end
    return found


@given(st.lists(_PIECES, max_size=40).map("".join))
def test_few_characters_decide_whether_a_full_stop_ends_a_sentence(text: str) -> None:
    """Reading only the end of what stands before a full stop finds the sentences that reading all of it finds."""
    assert sentences(text) == _plainly(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Mr. Smith came. He left.", ["Mr. Smith came.", "He left."]),
        ("It is 3.5 m long... Is it? Yes!", ["It is 3.5 m long...", "Is it?", "Yes!"]),
        ("它很长。是吗？", ["它很长。", "是吗？"]),
        ("a...b", ["a...b"]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_sentences_end_at_punctuation_and_lines(text: str, found: list[str]) -> None:
    """Abbreviations and decimal points end none."""
    assert [text[start:end] for start, end in sentences(text)] == found


@given(st.lists(st.integers(0, 50), unique=True, max_size=12), _RANGES)
def test_ranges_touch_where_they_share_a_character(cuts: list[int], others: list[tuple[int, int]]) -> None:
    """The answer for each range is that of comparing it with every other one."""
    places = sorted(cuts)
    ranges = list(zip(places[::2], places[1::2], strict=False))
    expected = [any(a < end and start < b for a, b in others) for start, end in ranges]
    assert touching(ranges, others) == expected


@given(_RANGES)
def test_merged_ranges_cover_the_same_and_are_apart(ranges: list[tuple[int, int]]) -> None:
    """The union stays, in order, with a gap between any two."""
    merged = merge_ranges(ranges)
    covered = {place for start, end in merged for place in range(start, end)}
    assert covered == {place for start, end in ranges for place in range(start, end)}
    assert all(one[1] < other[0] for one, other in pairwise(merged))

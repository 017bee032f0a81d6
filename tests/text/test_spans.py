"""Ranges that are trimmed, touch and are merged."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.spans import merge_ranges, touching, trimmed

_RANGES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 9)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    max_size=6,
)


@pytest.mark.parametrize(
    ("text", "found"), [(" a b\n", (1, 4)), ("a", (0, 1)), ("", (0, 0)), ("\u3000好\u00a0", (1, 2))]
)
def test_a_range_is_trimmed_of_white_space(text: str, found: tuple[int, int]) -> None:
    """Of every kind; an empty one stays empty."""
    assert trimmed(text, 0, len(text)) == found
    first, last = trimmed(" \t ", 0, 3)
    assert first == last


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

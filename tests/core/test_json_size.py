"""Counting the values of JSON texts: what can be parsed is counted exactly, wherever its pieces are cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.cancellation import stopping
from truthlens.core.errors import BodyTooLargeError, StoppedError
from truthlens.core.json_size import check_values, count_values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=40,
)
# Longer than a piece, with what may stand at its border: quotes, escapes, and characters of several bytes.
_FILLERS = ("x", '"', "\\", '\\"', "[,{", "é", "\U0001f600", "\ud800")


def held(value: object) -> int:
    """What the parts and openings of a JSON text sum to, from the value itself."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    opened = isinstance(value, dict | list)
    return opened + max(len(inner) - 1, 0) + sum(held(each) for each in inner)


@given(JSON, st.booleans())
def test_values_are_counted_as_a_parser_sees_them(value: object, escaped: bool) -> None:
    """Commas and brackets inside of strings count for nothing, whatever is escaped."""
    assert count_values(json.dumps(value, ensure_ascii=escaped)) == 1 + held(value)


@pytest.mark.parametrize("filler", _FILLERS)
@pytest.mark.parametrize("shift", range(8))
def test_a_string_across_pieces_hides_what_it_holds(filler: str, shift: int) -> None:
    """Where the text is cut changes no count, in the middle of an escape either."""
    text = json.dumps(["a" * shift, filler * 140_000, [], {}], ensure_ascii=False)
    assert count_values(text) == 1 + held(json.loads(text))


def test_prose_full_of_commas_is_one_value() -> None:
    """A text that could hold too many values by its commas is counted before it is refused."""
    check_values(json.dumps("a, b, [c], {d}" * 1000), 10)


def test_more_values_than_allowed_are_refused() -> None:
    """The error names the key to raise and quotes no text."""
    with pytest.raises(BodyTooLargeError, match=r"limits\.max_json_values") as caught:
        check_values('["secret",' * 100, 99)
    assert "secret" not in str(caught.value)


def test_counting_ends_when_nobody_waits() -> None:
    """A count is given up between two pieces."""
    with stopping(lambda: True), pytest.raises(StoppedError):
        count_values("[]" * 10)

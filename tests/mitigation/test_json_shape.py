"""Whether one JSON text can be read where another was."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.mitigation.json_shape import parsed, shape_of

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(_JSON)
def test_every_value_is_like_itself(value: object) -> None:
    """A text, its equal, and its shorter lists can be read in its place."""
    shape = shape_of(value)
    assert shape.admits(value)
    assert shape.admits(None)
    if isinstance(value, list):
        assert all(shape.admits(value[:end]) for end in range(len(value)))


@pytest.mark.parametrize(
    ("wanted", "found", "fits"),
    [
        ([], [1, "a"], True),
        ([1], ["a"], False),
        ([1, "a"], ["b", 2, 3], True),
        ([1], {"a": 1}, False),
        ({"a": 1}, [1], False),
        ({"a": [{"b": 1}, {"c": "x"}]}, {"a": [{"c": "y"}]}, True),
        ({"a": [{"b": 1}, {"c": "x"}]}, {"a": [{"c": 1}]}, False),
        ({"a": [{"b": 1}, {"c": "x"}]}, {"a": [{"d": 1}]}, False),
        ({"a": None}, {"a": {"b": [1]}}, True),
        (True, 1, False),
        (1, True, False),
        (1.5, 2, True),
    ],
)
def test_keys_and_kinds_count(wanted: object, found: object, fits: bool) -> None:
    """An object has the keys of one that was there, a value its kind, and each item is like one of the list."""
    assert shape_of(wanted).admits(found) is fits


def test_what_is_nested_deeply_is_not_compared() -> None:
    """Down to 40 levels shapes count, below they do not; what cannot be read at all is no JSON."""

    def nested(depth: int, leaf: str) -> object:
        return json.loads("[" * depth + leaf + "]" * depth)

    assert not shape_of(nested(40, "1")).admits(nested(40, '"a"'))
    assert shape_of(nested(60, "1")).admits(nested(60, '"a"'))
    assert shape_of(nested(400, "1")).admits(nested(400, "1"))
    with pytest.raises(ValueError, match="too deeply"):
        parsed("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ValueError, match="Expecting"):
        parsed("{")

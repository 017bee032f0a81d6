"""Tests of ``truthlens.detection.models.inputs.json_values``: JSON as text, and where each character of it comes from."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.detection.models.inputs.json_values import Rendering, render
from truthlens.detection.models.inputs.value_wordings import ValueWordings

EVIDENCE = (
    "The pump costs 48,000 euros, a hose nine dollars. On 5 March 2024 the price rose by 5%. Sales were 1.2 million. "
    "It is not waterproof. Support is by phone."
)


def shown(text: str) -> Rendering:
    rendering = render(text, ValueWordings([EVIDENCE]))
    assert rendering is not None
    return rendering


def scored(text: str) -> list[str]:
    """What of the answer is scored, as it is written for the model."""
    rendering = shown(text)
    left = list(rendering.text)
    for start, end in rendering.silent:
        left[start:end] = "\0" * (end - start)
    return [piece.strip() for piece in "".join(left).split("\0") if piece.strip()]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"price": 48000}, ["price", "48,000"]),
        ({"price": 48000.0}, ["price", "48,000"]),
        ({"price": 48001}, ["price", "48001"]),
        ({"price": 9}, ["price", "nine"]),
        ({"rise": 0.05}, ["rise", "5%"]),
        ({"rise": -0.05}, ["rise", "-5%"]),
        ({"sales": 1200000}, ["sales", "1.2 million"]),
        ({"since": "2024-03-05"}, ["since", "5 March 2024"]),
        ({"since": "2024-03-05T14:30:00Z"}, ["since", "5 March 2024 14:30"]),
        ({"since": "2024-05-03"}, ["since", "3 May 2024"]),
        ({"currency": "EUR"}, ["currency", "euros"]),
        ({"currency": "GBP"}, ["currency", "GBP"]),
        ({"name": 'the "old" pump\n№ \u00e9'}, ["name", 'the "old" pump\n№ é']),
        ({"waterproof": False}, ["not waterproof"]),
        ({"phoneSupport": True}, ["phone support"]),
        ({"refundable": True}, ["refundable"]),
        ({"alcohol is fine": None}, ["alcohol is fine: none"]),
    ],
)
def test_a_value_is_written_as_the_evidence_writes_it(value: object, written: list[str]) -> None:
    """Numbers, shares, dates and currencies by value; a flag as its key, claimed, denied or left open."""
    assert scored(json.dumps(value)) == written
    assert scored(json.dumps(value, ensure_ascii=False)) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"id": "a-17", "index": 3}, ["id", "a-17", "index", "3"]),
        ({"confidence": 0.93, "status": "ok"}, ["confidence", "0.93", "status", "ok"]),
        ({"metadata": {"max_tablets": 99}}, ["metadata", "max tablets", "99"]),
        ({"meta": {"nested": {"safe": {}}}}, ["meta", "nested", "safe"]),
        ({"items": [], "more": {}, "note": ""}, ["items", "more", "note"]),
        ({"category": "billing"}, ["category", "billing"]),
        ({"a": ["x", {"b": ["y", None]}]}, ["a", "x", "b", "y", "b: none"]),
        ([True, None, [False]], ["true", "null", "false"]),
        ({"\u00e9t\u00e9": "chaud", "": "x", "_": 7}, ["été", "chaud", "x", "_", "7"]),
    ],
)
def test_every_member_is_scored_at_every_depth(value: object, written: list[str]) -> None:
    """Keys, ids, flags, nulls, metadata and empty lists: each can say something."""
    assert scored(json.dumps(value, indent=2)) == written
    assert scored(json.dumps(value)) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('{"a": 1,\n alcohol is fine: true, more: 7}', ["a", "1", "alcohol is fine", "more", "7"]),
        ('{"dogs are allowed"}', ["dogs are allowed"]),
        ('{"dogs are allowed":', ["dogs are allowed"]),
        ('{"a": 1, "dogs are allowed"', ["a", "1", "dogs are allowed"]),
        ('```premium\n{"a": 1}\n```', ["```premium", "a", "1"]),
    ],
)
def test_broken_json_hides_nothing(text: str, written: list[str]) -> None:
    """Keys without quotes or without a value, and whatever stands behind a fence but "json"."""
    assert scored(text) == written


def test_a_key_is_written_once_and_stands_before_each_value() -> None:
    """Each value stands behind the words of its key, on a line of its own."""
    text = '{"unitPrice": 48000, "parts": [{"part_name": "hose"}], "colours": ["red", "blue"]}'
    assert shown(text).text.split("\n")[:-1] == [
        "unit price: 48,000",
        "parts: ",
        "part name: hose",
        "colours: red",
        "colours: blue",
    ]
    assert scored(text) == ["unit price", "48,000", "parts", "part name", "hose", "colours", "red", "blue"]


@pytest.mark.parametrize(
    "text",
    [
        '{"price": 48000, "name": "pump"}',
        'Here it is:\n\n```json\n{"price": 48000,\n "name": "pump"}\n```',
        '```\n[{"price": 48000}, {"name": "pump"}]\n```\n',
        '{"price": 48000, "name": "pump',
        '{"price": 48000, "name": "pump"',
        '{"price": 48000 "name": "pump",}',
        '{"price": 48000, // so\n "name": "pump"}]]',
        '{"price": 48000}\n{"name": "pump"}\n',
    ],
)
def test_broken_cut_and_fenced_json_is_read_as_far_as_it_goes(text: str) -> None:
    """Values are found wherever the JSON stands, and whatever it lacks."""
    found = scored(text)
    assert "48,000" in found
    assert any("pump" in piece for piece in found)
    assert not any("{" in piece or "`" in piece for piece in found)


def test_text_around_json_stays_as_it_is() -> None:
    """Only the JSON is written anew."""
    text = 'The pump is cheap.\n```json\n{"price": 9}\n```\nIt runs.'
    assert scored(text) == ["The pump is cheap.", "price", "nine", "It runs."]


@pytest.mark.parametrize(
    "text",
    [
        "The pump [1] costs 48,000.",
        "[1] The pump is cheap.",
        "{x | x > 2} is a set.",
        "def f():\n    return {}",
        "",
        "[ ]",
    ],
)
def test_other_text_is_not_json(text: str) -> None:
    """Citations, sets and code are prose."""
    assert render(text, ValueWordings([EVIDENCE])) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(
    value=_JSON,
    cut=st.integers(0, 400),
    indent=st.sampled_from([None, 1]),
    before=st.sampled_from(["", "So:\n"]),
)
def test_every_character_knows_where_it_comes_from(
    value: object, cut: int, indent: int | None, before: str
) -> None:
    """Places are in order and within the answer, wherever it was cut off."""
    text = (before + json.dumps(value, indent=indent))[:cut]
    rendering = render(text, ValueWordings([EVIDENCE]))
    if rendering is None:
        return
    assert len(rendering.text) == len(rendering.starts) == len(rendering.ends)
    assert rendering.text
    assert (rendering.starts[:-1] <= rendering.starts[1:]).all()
    assert (rendering.ends[:-1] <= rendering.ends[1:]).all()
    assert (rendering.starts >= 0).all()
    assert (rendering.ends <= len(text)).all()
    first, last = rendering.place(0, len(text))
    assert not (rendering.text[:first] + rendering.text[last:]).strip()


@given(st.text(alphabet='{}[]",:\\ntruefalse0123456789-. `\n', max_size=300))
def test_no_text_breaks_the_reading(text: str) -> None:
    """Whatever looks like JSON is read to its end."""
    rendering = render(text, ValueWordings([EVIDENCE]))
    assert rendering is None or rendering.ends.max(initial=0) <= len(text)


@pytest.mark.parametrize(
    "text",
    ["{" * 200_000, '[{"a":' * 60_000, '{"' + "\\" * 200_000, '{"a": "' + "x" * 400_000, '{"a": 1}\n' * 30_000,
     "```json\n" * 40_000, "[1,\n" * 80_000, '{"a": ' + "9" * 200_000, '{"a": "2024-01-01' * 20_000],
)  # fmt: skip
def test_hostile_json_comes_to_an_end(text: str) -> None:
    """No nesting and no repetition takes more than time in proportion to the length."""
    rendering = render(text, ValueWordings([EVIDENCE]))
    assert rendering is None or len(rendering.text) < 3 * len(text) + 100

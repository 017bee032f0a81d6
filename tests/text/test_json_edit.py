"""JSON text is edited in place and otherwise keeps every character."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.errors import DialectError
from truthlens.text import json_edit

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=6)


@given(value=OBJECTS, indent=st.none() | st.integers(0, 3), ascii_only=st.booleans())
def test_an_edit_that_changes_nothing_gives_the_same_text(
    value: dict[str, object], indent: int | None, ascii_only: bool
) -> None:
    """Spacing and escapes survive."""
    raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert json_edit.edit_object(raw, lambda _key, text: text) == raw


@given(value=OBJECTS, indent=st.none() | st.integers(0, 3), data=st.data())
def test_removing_and_replacing_members_means_what_it_says(
    value: dict[str, object], indent: int | None, data: st.DataObject
) -> None:
    """Any subset can be removed and any other replaced; the rest and the order stay."""
    fates = {key: data.draw(st.sampled_from(["keep", "drop", "set"])) for key in value}
    raw = json.dumps(value, indent=indent)
    edited = json_edit.edit_object(
        raw, lambda key, text: {"keep": text, "drop": None, "set": '"new"'}[fates[key]]
    )
    expected = {
        key: "new" if fates[key] == "set" else item for key, item in value.items() if fates[key] != "drop"
    }
    assert list(json.loads(edited).items()) == list(expected.items())


@given(items=st.lists(JSON, max_size=6), data=st.data())
def test_items_of_an_array_can_be_removed(items: list[object], data: st.DataObject) -> None:
    """Arrays are edited by position."""
    kept = data.draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items)))
    edited = json_edit.edit_array(json.dumps(items), lambda place, text: text if kept[place] else None)
    assert json.loads(edited) == [item for item, keep in zip(items, kept, strict=True) if keep]


@given(value=OBJECTS, added=JSON)
def test_a_member_is_added_at_the_end(value: dict[str, object], added: object) -> None:
    """The new member is the last one."""
    text = json_edit.append_member(json.dumps(value), "~new~", json.dumps(added))
    assert list(json.loads(text).items()) == [*value.items(), ("~new~", added)]


def test_repeated_keys_are_each_edited() -> None:
    """A reader that takes the first of two keys sees the change as well."""
    raw = '{"a": 1, "b": 2, "a": 3}'
    assert (
        json_edit.edit_object(raw, lambda key, text: "9" if key == "a" else text)
        == '{"a": 9, "b": 2, "a": 9}'
    )
    assert json.loads(json_edit.edit_object(raw, lambda key, text: None if key == "a" else text)) == {"b": 2}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"a": secretword}', "not JSON"),
        (b"[]", "a list"),
        (b'"x"', "a string"),
        (b"12", "a number"),
        (b"null", "null"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"a": ' + b"[" * 100_000, "cannot be held"),
        (b'{"a": ' + b"9" * 5000 + b"}", "cannot be held"),
    ],
)
def test_what_is_no_object_is_a_dialect_error(body: bytes, problem: str) -> None:
    """The message says what was found, and nothing of the text travels with the error."""
    with pytest.raises(DialectError, match=problem) as caught:
        json_edit.load_object(json_edit.decode(body))
    assert "secretword" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    """UTF-8 with a mark is read."""
    assert json_edit.load_object(json_edit.decode(b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}


def test_lone_surrogates_are_shown_as_replacement_characters() -> None:
    """What no UTF-8 can hold takes one character's place, so that offsets stay."""
    assert json_edit.show("a\ud800b") == "a\ufffdb"
    assert json_edit.dump({"a": "\udfff"}).encode() == '{"a": "\ufffd"}'.encode()

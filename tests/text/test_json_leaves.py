"""Leaves of JSON: each from its key to its value, with its path, also where JSON is broken or cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.json_leaves import JsonLeaf, json_block

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('aé"\\/~\n {[,:]}`', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('ab/~"', max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
).filter(lambda tree: isinstance(tree, dict | list))


def leaves(text: str) -> list[JsonLeaf]:
    return list(json_block(text, 0).leaves)


def told(text: str) -> list[tuple[str, str]]:
    return [(text[leaf.start : leaf.end], leaf.path) for leaf in leaves(text)]


def test_objects_and_lists_at_every_depth() -> None:
    text = '{"a": 1, "b": {"c": "x, y", "d": [1, "two", {"e": null}], "f": {}, "g": []}, "h": [[], ["u"]]}'
    assert told(text) == [
        ('"a": 1', "/a"),
        ('"b"', "/b"),
        ('"c": "x, y"', "/b/c"),
        ('"d": [1', "/b/d/0"),
        ('"two"', "/b/d/1"),
        ('"e": null', "/b/d/2/e"),
        ('"f": {}', "/b/f"),
        ('"g": []', "/b/g"),
        ('"h": [[]', "/h/0"),
        ('"u"', "/h/1/0"),
    ]
    contexts = [leaf.context and text[slice(*leaf.context)] for leaf in leaves(text)]
    assert contexts == [None, None, '"b"', '"b"', '"d"', '"d"', '"b"', '"b"', None, '"h"']
    assert [leaf.is_key for leaf in leaves(text)] == [False, True] + [False] * 8


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"fee": 3, "open": "until ni', ['"fee": 3', '"open": "until ni']),
        ('{"fee": {"adults":', ['"fee"', '"adults"']),
        ('{"fee": 3\n"days": 5}', ['"fee": 3', '"days": 5']),
        ("{'fee': 3 euros, days: 5}", ["'fee': 3 euros", "days: 5"]),
        ('{"fee": 3\n\nThat is all, really.', ['"fee": 3']),
        ('{"fee": 3 ```', ['"fee": 3']),
        ("{]} x", []),
    ],
)
def test_json_that_is_broken_or_cut_off(text: str, found: list[str]) -> None:
    assert [part for part, _ in told(text)] == found


@given(TREES, st.sampled_from([None, 1]))
def test_the_paths_are_json_pointers_to_all_leaves(tree: Any, indent: int | None) -> None:
    text = json.dumps(tree, indent=indent, ensure_ascii=False)
    block = json_block(text, 0)
    assert block.is_closed
    assert block.end == len(text)
    scalars = dict(_scalars(tree, ""))
    found = {leaf.path: leaf for leaf in block.leaves}
    assert scalars.keys() <= found.keys()
    for path, value in scalars.items():
        part = text[found[path].start : found[path].end]
        assert part.endswith(json.dumps(value, ensure_ascii=False))


@given(TREES, st.data())
def test_what_is_cut_off_keeps_the_leaves_before(tree: Any, data: st.DataObject) -> None:
    text = json.dumps(tree)
    end = data.draw(st.integers(1, len(text)))
    whole, cut = leaves(text), leaves(text[:end])
    complete = [leaf for leaf in whole if leaf.end < end and not leaf.is_key]
    assert [leaf for leaf in cut if leaf.end < end and not leaf.is_key][: len(complete)] == complete
    places = [place for leaf in cut for place in (leaf.start, leaf.end)]
    assert places == sorted(places)


def _scalars(tree: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(tree, dict):
        steps = [(key.replace("~", "~0").replace("/", "~1"), value) for key, value in tree.items()]
    elif isinstance(tree, list):
        steps = [(str(place), value) for place, value in enumerate(tree)]
    else:
        return [(path, tree)]
    return [found for step, value in steps for found in _scalars(value, f"{path}/{step}")]

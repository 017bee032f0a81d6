"""Turns of a debate are read out of whatever the models write around them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.mitigation.premium.debate.parsing import (
    Attack,
    AttackKind,
    Defence,
    attacks,
    defences,
    read_list,
)

ONE = '[{"claim": 2, "kind": "contradicted", "quote": "built in 1889", "argument": "The date."}]'
READ = [Attack(2, AttackKind.CONTRADICTED, "built in 1889", "The date.")]


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"```json\n{ONE}\n```",
        f"Claims [1] and [3] are right, {{sic}}. Here it is:\n{ONE}\nI hope that this helps [really].",
        f'{{"attacks": {ONE}}}',
        ONE[1:-1],
        ONE.replace("2", '"2"'),
        f"[] would be wrong: {ONE}",
        ONE.replace("contradicted", " Contradicted "),
    ],
)
def test_the_dress_does_not_matter(text: str) -> None:
    """Code fences, prose, an object around the list, a lone object and numbers as strings are read alike."""
    assert attacks(text, claims={1, 2}) == READ


@pytest.mark.parametrize(
    "text", ["", "I agree with all of it.", "[1, 2]", "[{", '{"claim"', '[{"claim": 9}]', '["x"]']
)
def test_garbage_is_no_turn(text: str) -> None:
    """What holds no list of entries about the claims cannot be read."""
    assert attacks(text, claims={1, 2}) is None
    assert defences(text, attacks={1, 2}) is None


@pytest.mark.parametrize("text", ["[]", "```json\n[]\n```", '{"attacks": []}', "No claim is wrong: []"])
def test_nothing_to_say_is_a_turn(text: str) -> None:
    """An empty list is a turn without attacks, and not garbage."""
    assert attacks(text, claims={1}) == []


def test_entries_that_make_no_sense_are_dropped() -> None:
    """Of a list only the entries that name a claim and a known kind are taken."""
    entries = [
        {"claim": 1, "kind": "ugly"},
        {"claim": True, "kind": "unsupported"},
        {"claim": 7, "kind": "unsupported"},
        {"kind": "unsupported"},
        {"claim": 1, "kind": "unsupported", "quote": None},
    ]
    assert attacks(json.dumps(entries), claims={1, 2}) == [Attack(1, AttackKind.UNSUPPORTED)]


def test_defences_name_their_attacks() -> None:
    """A defence is read with its number, its quote and whether it concedes; the last word on an attack counts."""
    entries = [
        {"attack": 4, "concede": "Yes", "quote": ""},
        {"attack": 5, "concede": False, "quote": " it is tall "},
        {"attack": 5, "concede": False, "quote": "it is 330 metres tall"},
        {"attack": 6, "concede": "perhaps"},
        {"attack": 99, "concede": True},
    ]
    assert defences(json.dumps(entries), attacks={4, 5, 6}) == [
        Defence(4, concede=True),
        Defence(5, concede=False, quote="it is 330 metres tall"),
        Defence(6, concede=False),
    ]


def test_turns_are_bounded() -> None:
    """Twenty entries of a turn are taken, and 600 characters of each text."""
    entries = [{"claim": 1, "kind": "unsupported", "argument": "x" * 5000} for _ in range(50)]
    found = attacks(json.dumps(entries), claims={1})
    assert found is not None
    assert len(found) == 20
    assert all(len(attack.argument) == 600 for attack in found)


@pytest.mark.parametrize("text", ["[" * 100_000, "{" * 100_000, '{"a":' * 50_000, "[9" + "9" * 10_000 + "]"])
def test_deep_or_huge_json_is_garbage(text: str) -> None:
    """Nesting without end and numbers of thousands of digits are refused, not followed."""
    assert read_list(text) is None


@given(
    st.text(max_size=300),
    st.lists(st.fixed_dictionaries({"claim": st.integers(), "kind": st.text()}), min_size=1, max_size=5),
)
def test_a_list_is_found_behind_prose_without_brackets(prose: str, entries: list[dict[str, object]]) -> None:
    """Whatever prose without brackets stands around a list, the list is read as it is."""
    prose = prose.translate(str.maketrans("", "", "[]{}"))
    assert read_list(prose + json.dumps(entries) + prose) == entries


@given(st.text(alphabet='[]{}"claim:attack,0123456789 truefalsn', max_size=200))
def test_never_raises(text: str) -> None:
    """No text makes the reading fail."""
    attacks(text, claims={1})
    defences(text, attacks={1})

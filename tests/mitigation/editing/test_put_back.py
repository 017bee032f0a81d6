"""Claims that were not to be changed come back in their own words, wherever it is certain what stands for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.judged_answers import judged
from truthlens.core.records.enums import Status
from truthlens.core.records.verdict import Span, Verdict
from truthlens.mitigation.editing.put_back import put_back
from truthlens.text.claims.claims import scored_claims

_ANSWER = "The library opens at nine. A card costs 75 euros. Loans can be renewed twice."


@pytest.mark.parametrize(
    ("before", "wrong", "after", "expected"),
    [
        pytest.param(
            _ANSWER,
            "75",
            "The library opens at 9 each day. A card costs 12 euros. You may renew loans twice.",
            "The library opens at nine. A card costs 12 euros. Loans can be renewed twice.",
            id="both others were worded anew",
        ),
        pytest.param(
            "Loans are free [1]. A card costs 75 euros [2]. The desk closes at six. [3]",
            "75",
            "Loans are free. A card costs 12 euros [2]. The desk is closed at six.",
            "Loans are free [1]. A card costs 12 euros [2]. The desk closes at six. [3]",
            id="citation marks belong to their claims",
        ),
        pytest.param(
            "The fee is 12 euros; the deposit is 75 euros.",
            "75",
            "The usual fee is 12 euros; the deposit is 50 euros.",
            "The fee is 12 euros; the deposit is 50 euros.",
            id="a clause beside the wrong one",
        ),
        pytest.param(
            "Fees:\n\n- Free loans\n- Cards: 75 euros\n- Open daily from nine",
            "75",
            "Fees:\n\n* Loans, free\n* Cards: 12 euros\n* From nine, open daily.",
            "Fees:\n\n* Free loans\n* Cards: 12 euros\n* Open daily from nine",
            id="items of a list",
        ),
        pytest.param(
            "| Branch | Desks |\n|---|---|\n| North | 40 desks |\n| South | 75 desks |",
            "75",
            "| Branch | Desks |\n|---|---|\n| North | forty desks |\n| South | 50 desks |",
            "| Branch | Desks |\n|---|---|\n| North | 40 desks |\n| South | 50 desks |",
            id="rows of a table",
        ),
        pytest.param(
            "Run it:\n\n```\npump --rate 600\npump --start\n```\n\nIt weighs 75 kg.",
            "75",
            "Run it:\n\n```\npump --rate=600\npump --start\n```\n\nIt weighs 60 kg.",
            "Run it:\n\n```\npump --rate 600\npump --start\n```\n\nIt weighs 60 kg.",
            id="a block of code",
        ),
        pytest.param(
            "图书馆九点开门。办卡需要七十五元。借书可以续借两次。",
            "七十五",
            "图书馆早上九点开门。办卡需要十二元。借书可以续借两次。",
            "图书馆九点开门。办卡需要十二元。借书可以续借两次。",
            id="Chinese",
        ),
        pytest.param(
            '{"name": "North", "desks": 75, "open": true, "note": "It opens at nine. It closes at ten."}',
            "75",
            '{"name":"north","desks":50,"open":false,"note":"It opens at nine. It is closed at ten."}',
            '{"name": "North","desks":50,"open": true,"note": "It opens at nine. It closes at ten."}',
            id="leaves of JSON, by their keys",
        ),
        pytest.param(
            'Here it is: {"name": "North", "desks": 75}',
            "75",
            'Here it is: {"name": "north", "desks": 50}',
            'Here it is: {"name": "North", "desks": 50}',
            id="JSON behind prose",
        ),
    ],
)
def test_a_supported_claim_comes_back_in_its_own_words(
    before: str, wrong: str, after: str, expected: str
) -> None:
    done = put_back(before, judged(before, wrong), after)
    if expected.startswith("{"):
        assert json.loads(done.text) == json.loads(expected)
    else:
        assert done.text == expected
    assert done.complete


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(
            "A card costs 12 euros. The library opens at nine in the morning. Loans can be renewed twice.",
            id="moved",
        ),
        pytest.param(
            "The library opens at nine and a card costs 12 euros. Loans can be renewed twice.", id="merged"
        ),
        pytest.param(
            "The library opens. Its doors open at nine. A card costs 12 euros. Loans can be renewed twice.",
            id="split",
        ),
        pytest.param(
            "The library opens at nine. You may renew loans twice.", id="what stood before it is gone"
        ),
        pytest.param(
            "The library at nine opens. At nine the library opens. A card costs 12 euros. Loans can be renewed twice.",
            id="said twice",
        ),
        pytest.param("The library opens at nine. A card costs 12 euros.", id="left out"),
        pytest.param(
            "Ask at the desk. It will tell you all about cards. Nobody knows more.", id="another text"
        ),
    ],
)
def test_where_it_is_not_certain_the_correction_stays_as_it_is(after: str) -> None:
    """And the caller is told, for the note."""
    done = put_back(_ANSWER, judged(_ANSWER, "75"), after)
    assert (done.text, done.complete) == (after, False)


def test_an_item_without_a_full_stop_is_not_put_into_prose() -> None:
    """It would run into the next sentence."""
    before = "- Free loans at all branches\n- Cards: 75 euros"
    after = "Loans at all branches are free. Cards cost 12 euros."
    assert put_back(before, judged(before, "75"), after).text == after


@pytest.mark.parametrize(
    "after",
    [
        pytest.param('[{"n": "South branch", "d": 75}, {"n": "The North branch", "d": 40}]', id="reordered"),
        pytest.param('[{"n": "The South branch", "d": 50}]', id="one element less"),
        pytest.param(
            '[{"n": "The North branch", "d": 40}, {"n": "x", "d": 1}, {"n": "y", "d": 2}]', id="more"
        ),
        pytest.param('{"items": 3}', id="another shape"),
    ],
)
def test_elements_of_a_list_that_changed_are_left_alone(after: str) -> None:
    """Nothing says which of them stands for which."""
    before = '[{"n": "North branch", "d": 40}, {"n": "South branch", "d": 75}]'
    done = put_back(before, judged(before, "75"), after)
    assert (done.text, done.complete) == (after, False)


def test_broken_json_never_comes_of_it() -> None:
    """A value that became an object keeps its form."""
    before = '{"desks": 75, "note": "It opens at nine. It closes at ten."}'
    after = '{"desks": 50, "note": "It opens at nine o\'clock"}'
    json.loads(put_back(before, judged(before, "75"), after).text)
    before, after = '{"desks": 75, "name": "North"}', '{"desks": 50, "name": {"en": "North"}}'
    assert put_back(before, judged(before, "75"), after).text == after


def test_what_is_said_twice_now_is_not_said_a_third_time() -> None:
    """Nothing says which of the two stands for the claim."""
    before = "A card costs 75 euros. The library opens at nine. Loans are free."
    after = "The library at nine opens. At nine the library opens. Loans are free."
    done = put_back(before, judged(before, "75"), after)
    assert (done.text, done.complete) == (after, False)


def test_a_clause_is_not_put_in_the_place_of_a_sentence() -> None:
    """It would be half of one."""
    before = "The fee is 12 euros; the deposit is 75 euros."
    after = "The usual fee is 12 euros. The deposit is 50 euros."
    assert put_back(before, judged(before, "75"), after).text == after


def test_what_was_asked_for_stays_changed() -> None:
    """What is in doubt, what nobody judged, and what the caller names."""
    after = "The library opens at ten. A card costs 12 euros. Loans can be renewed once."
    for verdict, asked in (
        (judged(_ANSWER, "nine", "75", "twice"), []),
        (judged(_ANSWER, "75", unjudged=["nine", "twice"]), []),
        (judged(_ANSWER, "75"), [(0, 26), (50, 77)]),
        # Nothing says what is meant: all of it is.
        (replace(judged(_ANSWER), score=0.9), []),
        (Verdict(Status.CHECKED, score=0.9, threshold=0.6, spans=(Span(43, 45, 0.9),)), []),
    ):
        assert put_back(_ANSWER, verdict, after, asked=asked).text == after
    assert put_back(_ANSWER, judged(_ANSWER, "75", proved=["nine", "twice"]), after).text == (
        "The library opens at nine. A card costs 12 euros. Loans can be renewed twice."
    )


# --- generated answers and scripted corrections -----------------------------------------------------------

_PLACES = ("North", "South", "Harbour", "Market", "Castle", "Bridge")


@dataclass(frozen=True)
class _Form:
    """How the claims of an answer are written, plainly and in other words, and what joins them."""

    plain: str
    reworded: str
    joined: Callable[[Sequence[str]], str]
    is_json: bool = False


def _table(rows: Sequence[str]) -> str:
    return "\n".join(["| Branch | Desks |", "|---|---|", *rows])


_FORMS = {
    "sentences": _Form("The {} branch has {} desks.", "There are {1} desks in the {0} branch.", " ".join),
    "paragraphs": _Form("The {} branch has {} desks.", "The {} branch offers {} desks.", "\n\n".join),
    "items": _Form("- {} branch: {} desks", "- {1} desks at the {0} branch", "\n".join),
    "numbered": _Form("1. The {} branch has {} desks [S0].", "1. The {} branch: {} desks [S0].", "\n".join),
    "rows": _Form("| {} | {} desks |", "| {} branch | {} desks |", _table),
    "members": _Form('"{}": "{} desks"', '"{}":  "{} of the desks"', lambda all_: f"{{{', '.join(all_)}}}", True),
    "elements": _Form(
        '{{"branch": "{} branch", "desks": {}}}', '{{"branch": "{}  branch", "desks":{}}}', lambda all_: f"[{', '.join(all_)}]", True
    ),
}  # fmt: skip


@st.composite
def _scripts(
    draw: st.DrawFn,
) -> tuple[_Form, list[tuple[str, int]], set[str], str, bool, list[tuple[str, int]]]:
    """An answer's places and figures, those that are wrong, what the model does, and what it comes to."""
    form = _FORMS[draw(st.sampled_from(sorted(_FORMS)))]
    places = draw(st.lists(st.sampled_from(_PLACES), min_size=2, max_size=6, unique=True))
    facts = [(place, 11 + number) for number, place in enumerate(places)]
    wrong = draw(st.sets(st.sampled_from(places), min_size=1, max_size=len(places)))
    what = draw(st.sampled_from(["nothing", "change", "drop", "add", "reorder"]))
    given_ = [
        (place, desks + 50 if place in wrong and what != "nothing" else desks) for place, desks in facts
    ]
    if what == "drop":
        given_.pop(draw(st.integers(0, len(given_) - 1)))
    elif what == "add":
        given_.insert(draw(st.integers(0, len(given_))), ("Island", 99))
    elif what == "reorder":
        given_ = draw(st.permutations(given_))
    return form, facts, wrong, what, draw(st.booleans()), given_


@given(_scripts())
def test_supported_claims_are_the_same_to_the_byte_after_a_correction(
    script: tuple[_Form, list[tuple[str, int]], set[str], str, bool, list[tuple[str, int]]],
) -> None:
    """Whatever the form and whatever a model does: nothing is doubled, halved or broken, and each claim stays about its subject."""
    form, facts, wrong, what, rewords, corrected = script
    plain = {place: form.plain.format(place, desks) for place, desks in facts}
    before = form.joined(list(plain.values()))
    wording = form.reworded if rewords else form.plain
    after = form.joined([wording.format(place, desks) for place, desks in corrected])
    marks = [f"{desks}" for place, desks in facts if place in wrong]
    done = put_back(before, judged(before, *marks), after)
    if form.is_json:
        result, expected = json.loads(done.text), json.loads(after)
        assert len(result) == len(expected)
        if isinstance(result, dict):
            assert list(result) == list(expected)
    else:
        lines = [claim.text for claim in scored_claims(done.text)]
        assert len(lines) == len(scored_claims(after))
        # Each is one of the two wordings of the same claim, whole.
        told = [text for text in lines if "desks" in text.casefold() and "Branch" not in text]
        for text, (place, desks) in zip(told, corrected, strict=True):
            options = (form.plain.format(place, desks), wording.format(place, desks))
            assert any(option.endswith(text) for option in options)
    if not rewords:
        # What is there word for word is left where it is.
        assert done.text == after
    elif what in {"nothing", "change"}:
        assert done.complete
        for place, text in plain.items():
            if place not in wrong:
                assert (
                    done.text.count(text if form.is_json is False else text.strip("{}").split(", ")[0]) == 1
                )


_TEXTS = st.lists(
    st.sampled_from(
        ["It opens at nine.", 'He said: "No."', "Tab\there.", "Tür 3 😀 \\ geht auf.", "Yes", "75", ""]
    ),
    max_size=3,
).map(" ".join)
_LEAVES = _TEXTS | st.integers(0, 99) | st.booleans() | st.none()
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.sampled_from(["name", "note", "list", "2024"]), _VALUES, max_size=4)


@given(_OBJECTS, _OBJECTS, st.booleans(), st.booleans())
def test_json_stays_json_whatever_comes_back(
    one: dict[str, object], other: dict[str, object], indented: bool, escaped: bool
) -> None:
    """With the keys of the correction, in their order."""
    before = json.dumps({"wrong": 75, **one}, indent=2 if indented else None)
    after = json.dumps({"wrong": 50, **other}, ensure_ascii=escaped)
    result = json.loads(put_back(before, judged(before, '"wrong"'), after).text)
    assert list(result) == ["wrong", *other]
    assert result["wrong"] == 50

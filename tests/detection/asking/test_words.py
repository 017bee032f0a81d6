"""Tests of ``truthlens.detection.asking.words``: spellings, and replies that are not to be believed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detection.asking.replies import place, reply, said
from truthlens.core.records.calls import Completion, TokenLogprob
from truthlens.detection.asking.words import read, reading_from

YES = (0.9, 0.0, 0.0)
NO = (0.0, 0.9, 0.0)
UNSURE = (0.0, 0.0, 0.9)


@pytest.mark.parametrize(
    ("text", "token", "expected"),
    [
        ("YES", "YES", YES),
        ("yes", "yes", YES),
        ("Yes", "Yes", YES),
        (" YES", " YES", YES),
        ("YES", "▁YES", YES),
        ("YES", "ĠYES", YES),
        ("\nYES", "ĊYES", YES),
        ("\nYES", "\nYES", YES),
        ("YES.", "YES.", YES),
        ("YES\n", "YES\n", YES),
        ("YES!", "YES!", YES),
        ('"YES"', '"YES', YES),
        ("“YES”", "“YES”", YES),
        ("**YES**", "**YES", YES),
        ("`YES`", "`YES`", YES),
        ("(YES)", "(YES)", YES),
        ("ＹＥＳ", "ＹＥＳ", YES),
        ("YES", "Y", YES),
        ("YES", "YE", YES),
        ("yes", "ye", YES),
        ("NO", "NO", NO),
        ("No.", " No", NO),
        ("no", "▁no", NO),
        ("NO", "N", NO),
        ("no,", "no,", NO),
        ("'NO'", "'NO'", NO),
        ("UNSURE", "UNSURE", UNSURE),
        ("Unsure", "Unsure", UNSURE),
        ("UNSURE", "UNS", UNSURE),
        ("UNSURE", "U", UNSURE),
        ("unsure", "Ġun", UNSURE),
        ("UNSU", "UN", UNSURE),
        ("是", "是", YES),
        ("是。", "是。", YES),
        ("是的", "是的", YES),
        ("“是”", "“是", YES),
        ("否", "否", NO),
        (" 否。", "▁否", NO),
        ("不是", "不是", NO),
        ("不确定", "不确定", UNSURE),
        ("不确定", "不确", UNSURE),
        ("不确定", "不", UNSURE),
    ],
)
def test_spellings(text: str, token: str, expected: tuple[float, float, float]) -> None:
    """Case, width, marks of tokenizers, punctuation, beginnings of words, and Chinese."""
    found = read(reply(text, place(token, {token: 0.9, "maybe": 0.05})))
    assert found is not None
    assert (found.yes, found.no, found.unsure) == pytest.approx(expected)


def test_spellings_of_one_answer_are_summed() -> None:
    """In both ways to count."""
    top = {"YES": 0.4, "Yes": 0.2, " yes": 0.1, "NO": 0.1, "Unsure": 0.1, "Maybe": 0.05}
    found = read(reply("YES", place("YES", top)))
    assert found is not None
    assert found.plain() == pytest.approx(0.7)
    assert found.share() == pytest.approx(0.7 / 0.9)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("Answer: YES", ["Answer", ":"]),
        ("**Answer:** YES", ["**", "Answer", ":**"]),
        ("\n\nYES", ["\n\n"]),
        ("**YES**", ["**"]),
        ("Final answer: YES", ["Final", " answer", ":"]),
        ("The answer is YES", ["The", " answer", " is"]),
        ("<answer>YES</answer>", ["<answer>"]),
        ("答案：YES", ["答案", "："]),
        (" YES", ["▁"]),
    ],
)
def test_what_leads_to_an_answer_is_passed_over(text: str, before: list[str]) -> None:
    """The first token that bears an answer counts."""
    tokens = [place(token, {token: 1.0}) for token in before]
    found = read(reply(text, *tokens, place("YES", {"YES": 0.8, "NO": 0.2})))
    assert found is not None
    assert found.share() == pytest.approx(0.8)


def test_a_yes_that_is_not_listed_is_bounded() -> None:
    """By the least likely of the listed, and by what is left."""
    found = read(reply("NO", place("NO", {"NO": 0.9, "UNSURE": 0.04})))
    assert found is not None
    assert not found.listed
    assert found.share() == 0.0
    assert found.share(highest=True) == pytest.approx(0.04 / 0.98)
    assert found.plain(highest=True) == pytest.approx(0.04)


def test_one_token_alone_is_not_made_certain() -> None:
    """What is left may all be another answer."""
    found = read(reply("YES", TokenLogprob("YES", math.log(0.7))))
    assert found is not None
    assert found.share() == pytest.approx(0.7)


def test_a_reading_survives_a_cache() -> None:
    """As JSON."""
    found = read(said(0.8, 0.1, 0.1))
    assert found is not None
    assert reading_from(found.as_json()) == found


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        [],
        {},
        "yes",
        {"yes": 1.0},
        {"yes": 9.0, "no": 0.0, "unsure": 0.0, "listed": True, "most_yes": 1.0, "several": True},
        {"yes": math.nan, "no": 0.9, "unsure": 0.0, "listed": True, "most_yes": 1.0, "several": True},
        {"yes": True, "no": 0.0, "unsure": 0.0, "listed": True, "most_yes": 1.0, "several": True},
        {"yes": 1.0, "no": 0.0, "unsure": 0.0, "listed": 1, "most_yes": 1.0, "several": True},
        {"yes": 0.0, "no": 0.0, "unsure": 0.0, "listed": True, "most_yes": 0.0, "several": True},
    ],
)
def test_what_no_cache_can_have_kept_is_no_reading(value: object) -> None:
    """It is asked for again."""
    assert reading_from(value) is None


LOG_9 = math.log(0.9)
HOSTILE = {
    "no figures": Completion("YES", "m"),
    "buried in prose": reply("I would say YES", place("I", {"I": 0.9, "YES": 0.1})),
    "prose with a listed yes": reply("Not entailed", place("Not", {"Not": 0.8, "YES": 0.2})),
    "both": reply("YES or NO", place("YES", {"YES": 0.99})),
    "the options repeated": reply("YES/NO/UNSURE", place("YES", {"YES": 0.99})),
    "no, then yes": reply("NO. YES", place("NO", {"NO": 0.5, "YES": 0.4})),
    "another word": reply("Yesterday", place("Yes", {"Yes": 0.99})),
    "question": reply("是否", place("是", {"是": 0.99})),
    "empty tokens": reply("YES", *[place("", {"": 1.0})] * 5),
    "tokens without top, nan": reply("YES", TokenLogprob("YES", math.nan)),
    "nan among the top": reply("YES", TokenLogprob("YES", math.nan, (("YES", math.nan),))),
    "impossible": reply("YES", TokenLogprob("YES", -math.inf, (("YES", -math.inf),))),
    "above certainty, twice": reply("YES", place("YES", {"YES": 0.9, "yes": 0.9})),
    "above certainty, same token": reply("YES", TokenLogprob("YES", LOG_9, (("YES", LOG_9), ("YES", LOG_9)))),
    "plus infinity": reply("YES", TokenLogprob("YES", math.inf, (("YES", math.inf), ("NO", math.inf)))),
    "says no, figures say yes": reply("NO", place("NO", {"NO": 0.01, "YES": 0.98})),
    "text no, token yes": reply("NO", place("YES", {"YES": 0.98})),
    "text yes, token no": reply("YES", place("NO", {"NO": 0.98})),
    "text of nothing": reply("...", place("...", {"YES": 0.9, "...": 0.1})),
    "little on the answers": reply("YES", place("YES", {"YES": 0.3, "Maybe": 0.6})),
    "little on the answers, alone": reply("YES", TokenLogprob("YES", math.log(0.3))),
    "look-alike letters": reply("YЕS", place("YЕS", {"YЕS": 0.99})),
    "surrogates": reply("\ufffdYES\ufffdx", place("\ufffdYES\ufffdx", {"x": 0.9})),
    "late answer": reply("YES", *[place(".", {".": 1.0})] * 50, place("YES", {"YES": 1.0})),
    "a refusal": reply("I cannot", place("I", {"I": 0.9})),
    "json": reply('{"a": "YES"}', place("{", {"{": 0.9}), place("YES", {"YES": 0.9})),
    "a number": reply("1", place("1", {"1": 0.9, "YES": 0.1})),
    "another language": reply("Oui", place("Oui", {"Oui": 0.9, "YES": 0.1})),
    "a negation": reply("not YES", place("not", {"not": 0.6, "YES": 0.4})),
    "affirmation of the opposite": reply("YES, UNSURE", place("YES", {"YES": 0.6})),
    "long": reply("x" * 100_000 + " YES", place("x" * 100_000, {"YES": 0.9, "x": 0.1})),
    "many": reply("Hm", *[place("Hm", {"YES": 0.9})] * 100_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_reply_that_does_not_say_it_is_not_read(name: str) -> None:
    """Nothing of it is taken for a yes."""
    assert read(HOSTILE[name]) is None


@given(
    st.text(max_size=20) | st.sampled_from(["YES", "NO", "UNSURE", "是", "Answer: YES"]),
    st.lists(
        st.builds(
            TokenLogprob,
            st.text(max_size=5) | st.sampled_from(["YES", " yes", "NO", "不", ""]),
            st.floats(),
            st.lists(
                st.tuples(st.text(max_size=5) | st.sampled_from(["YES", "NO"]), st.floats()), max_size=4
            ).map(tuple),
        ),
        max_size=4,
    ),
)
def test_any_reply_is_read_as_probabilities_or_not_at_all(text: str, tokens: list[TokenLogprob]) -> None:
    """And a text that says no is never a yes."""
    found = read(reply(text, *tokens))
    if found is not None:
        for highest in (False, True):
            assert 0.0 <= found.plain(highest=highest) <= 1.0
            assert 0.0 <= found.share(highest=highest) <= 1.0
        assert text.strip() != "NO" or found.share() <= 0.6

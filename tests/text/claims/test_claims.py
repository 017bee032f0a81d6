"""What counts as a claim, and where one ends."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.claims.claims import claims


def factual(text: str, *, query: str = "") -> list[str]:
    return [claim.text for claim in claims(text, query=query) if claim.factual]


def test_every_sentence_is_a_claim() -> None:
    assert factual("The fee is 3 euros. It rises in May!") == ["The fee is 3 euros.", "It rises in May!"]


def test_markers_of_lists_headings_and_quotes_stand_outside_of_claims() -> None:
    text = "## Costs\n\n- Paper is dear.\n  * Glue is cheap.\n12) Ink is free.\n> Pens are lent.\n- [x] Tape is sold."
    assert [claim.text for claim in claims(text)] == [
        "Costs",
        "Paper is dear.",
        "Glue is cheap.",
        "Ink is free.",
        "Pens are lent.",
        "Tape is sold.",
    ]


def test_two_main_clauses_are_two_claims_of_one_sentence() -> None:
    text = "The museum opened in 1990, and the tower was closed in 2001."
    first, second = claims(text)
    assert (first.text, second.text) == ("The museum opened in 1990", "the tower was closed in 2001.")
    assert first.sentence == second.sentence == (0, len(text))


def test_a_sentence_wrapped_over_two_lines_is_one_claim() -> None:
    assert factual("The museum was opened by the mayor\nof the town in 1990. It is free.") == [
        "The museum was opened by the mayor\nof the town in 1990.",
        "It is free.",
    ]


def test_abbreviations_addresses_and_decimals_do_not_end_a_claim() -> None:
    text = "Dr. Smith of the U.S. Army paid $5.5 million, see https://a.example/b?c=d.e for more."
    assert factual(text) == [text]


def test_a_reference_behind_the_full_stop_belongs_to_its_sentence() -> None:
    assert factual("Ice eases the pain. (Passage 2)") == ["Ice eases the pain. (Passage 2)"]


def test_code_is_one_claim_that_is_not_factual() -> None:
    text = "It prints three.\n```py\nprint(1 + 2); x = 1\n# a comment.\n```\nIt ends."
    code = claims(text)[1]
    assert (code.text, code.factual) == (text[text.index("```") : text.rindex("```") + 3], False)
    assert factual(text) == ["It prints three.", "It ends."]


def test_code_that_is_never_closed_reaches_to_the_end() -> None:
    assert [claim.factual for claim in claims("Look here now.\n```\na. b. c.")] == [True, False]


def test_a_table_row_is_one_claim_and_its_head_claims_nothing() -> None:
    found = claims("| Town | Fee |\n|---|---|\n| Arvik | 3. It rises. |\nBellmoor | 4\n\nDone is done.")
    assert [(claim.text, claim.factual, claim.row) for claim in found] == [
        ("| Town | Fee |", False, True),
        ("| Arvik | 3. It rises. |", True, True),
        ("Bellmoor | 4", True, True),
        ("Done is done.", True, False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Hello!",
        "Sure!",
        "Here is the corrected answer:",
        "Based on the provided passages, here's how to clean a screen:",
        "What else would you like to know?",
        "I hope this helps!",
        "**Opening hours:**",
        "# The museum of Arvik",
        "Unable to answer based on given passages.",
        "The passages do not provide sufficient information on that.",
        "Please let me know if you need more.",
        "您好！",
        "以下是答案：",
        "希望对您有帮助！",
        "根据提供的资料，我无法回答这个问题。",
    ],
)
def test_what_claims_nothing_is_not_factual(text: str) -> None:
    assert claims(text)
    assert factual(text, query="How do I clean a screen?") == []


@pytest.mark.parametrize(
    "text",
    [
        "Sure, the fee is 3 euros.",
        "**The fee is 3 euros.**",
        "The warranty lasts 10 years, in detail:",
        "Take eight tablets a day, as follows:",
        "Here is how you may take thirty tablets in a day:",
        "Would you like a reminder to take eight tablets?",
        "The documents do not mention the fee for men.",
        "According to passage 1, the fee is 3 euros.",
        "该公司成立于1990年。",
    ],
)
def test_what_states_something_is_factual(text: str) -> None:
    assert factual(text) == [text]


def test_chinese_is_cut_at_its_own_punctuation() -> None:
    text = "该公司成立于1990年，但是它的总部后来搬到了上海；员工有300人。"
    assert factual(text) == ["该公司成立于1990年", "它的总部后来搬到了上海；", "员工有300人。"]


@given(st.text(alphabet="aB1 .,;:!?\n-*#>|`()\"'。，；一", max_size=80))
def test_claims_are_ranges_in_order_and_miss_nothing_but_glue(text: str) -> None:
    """Whatever the layout, no word of an answer stands outside of all claims but markers and what joins clauses."""
    place = 0
    for claim in claims(text):
        assert place <= claim.start < claim.end <= len(text)
        assert text[claim.start : claim.end] == claim.text
        assert claim.sentence is None or claim.sentence[0] <= claim.start < claim.end <= claim.sentence[1]
        between = text[place : claim.start]
        assert not re.search(r"[^\W\da一]{2,}", between)
        place = claim.end
    assert not re.search(r"[^\W\d_a一]", text[place:])

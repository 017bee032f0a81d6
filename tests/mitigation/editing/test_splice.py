"""A spliced text reads as one text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.mitigation.editing.splice import Edit, splice
from truthlens.text.claims.claims import claims


def edited(text: str, *pairs: tuple[str, str]) -> str:
    """``text`` with each first string (where it stands first) exchanged for the second."""
    return splice(text, [Edit(text.index(old), text.index(old) + len(old), new) for old, new in pairs])


@pytest.mark.parametrize("text", ["", "  A is b.\n\n", "1. a\n1. b\n\n\n", '{"a": 1}', "However, x:\n"])
def test_without_an_edit_not_a_byte_changes(text: str) -> None:
    assert splice(text, []) == text
    assert splice(text, [Edit(0, len(text), text)]) == text


def test_a_removed_sentence_leaves_one_space() -> None:
    assert edited("One is a. Two is b. Three is c.", ("Two is b.", "")) == "One is a. Three is c."


def test_a_removed_last_sentence_leaves_no_space_before_the_break() -> None:
    assert edited("One is a. Two is b.\n\nThree is c.", ("Two is b.", "")) == "One is a.\n\nThree is c."


def test_chinese_sentences_are_joined_without_a_space() -> None:
    assert edited("甲是一。乙是二。丙是三。", ("乙是二。", "")) == "甲是一。丙是三。"
    assert edited("甲是一。乙是二。丙是三。", ("乙是二。", "乙是四")) == "甲是一。乙是四。丙是三。"


@pytest.mark.parametrize(
    ("text", "removed", "expected"),
    [
        ("One is a. Two is b. However, three is c.", "Two is b.", "One is a. Three is c."),
        ("One is a. Two is b. For example, x is c.", "Two is b.", "One is a. X is c."),
        ("One is a. In addition, two is b.", "One is a.", "Two is b."),
        ("One is a. Two is b. In addition, x is c.", "Two is b.", "One is a. In addition, x is c."),
        ("甲是一。此外，乙是二。", "甲是一。", "乙是二。"),
        ("甲是一。乙是二。然而，丙是三。", "乙是二。", "甲是一。丙是三。"),
        ("One is a.\n\nTwo is b.\n\nHowever, x is c.", "Two is b.", "One is a.\n\nX is c."),
    ],
)
def test_a_connective_goes_with_what_it_leaned_on(text: str, removed: str, expected: str) -> None:
    assert edited(text, (removed, "")) == expected


def test_a_first_clause_that_goes_leaves_a_sentence_with_a_capital() -> None:
    text = "The hall opened in 1990, and the tower closed in 2001."
    assert edited(text, ("The hall opened in 1990", "")) == "The tower closed in 2001."


def test_a_last_clause_that_goes_leaves_the_full_stop() -> None:
    text = "The hall opened in 1990, and the tower closed in 2001. It is red."
    assert edited(text, ("the tower closed in 2001.", "")) == "The hall opened in 1990. It is red."


def test_a_replaced_clause_becomes_a_sentence_of_its_own() -> None:
    text = "The hall opened in 1990, and the tower closed in 2001."
    assert (
        edited(text, ("the tower closed in 2001.", "it closed in 2005"))
        == "The hall opened in 1990. It closed in 2005."
    )
    assert (
        edited(text, ("The hall opened in 1990", "The hall opened in 1995."))
        == "The hall opened in 1995. The tower closed in 2001."
    )


def test_all_clauses_of_a_sentence_go_with_what_joined_them() -> None:
    text = "It is red. The hall is old, and the tower is new. It is big."
    assert edited(text, ("The hall is old", ""), ("the tower is new.", "")) == "It is red. It is big."


def test_an_inserted_sentence_gets_its_full_stop_its_capital_and_no_connective() -> None:
    text = "One is a. Two is b."
    assert splice(text, [Edit(9, 9, "however, new is c")]) == "One is a. New is c. Two is b."
    assert splice(text, [Edit(9, 9, "Moreover, new is c.")]) == "One is a. New is c. Two is b."
    assert splice(text, [Edit(len(text), len(text), "New is c")]) == "One is a. Two is b. New is c."


def test_words_within_a_sentence_are_exchanged_as_they_are() -> None:
    assert edited("It costs 5 euros, today.", ("5", "40")) == "It costs 40 euros, today."


def test_ends_of_sentences_are_not_doubled() -> None:
    assert splice("One is a. Two is b.", [Edit(10, 18, "Two is c.")]) == "One is a. Two is c."


def test_a_list_closes_up_and_counts_on() -> None:
    text = "Three rules:\n\n1. Alpha is x.\n2. Beta is y.\n   - Small is z.\n3. Gamma is w.\n\nThat is all."
    assert edited(text, ("Alpha is x.", "")) == (
        "Three rules:\n\n1. Beta is y.\n   - Small is z.\n2. Gamma is w.\n\nThat is all."
    )


def test_a_list_that_does_not_count_keeps_its_numbers() -> None:
    assert edited("1. Alpha is x.\n1. Beta is y.\n1. Gamma is z.", ("Beta is y.", "")) == (
        "1. Alpha is x.\n1. Gamma is z."
    )


def test_what_is_inserted_in_a_list_becomes_an_item() -> None:
    text = "1. Alpha is x.\n   - Small is y.\n2. Beta is z."
    end = text.index("\n")
    assert splice(text, [Edit(end, end, "New is w.")]) == (
        "1. Alpha is x.\n   - Small is y.\n2. New is w.\n3. Beta is z."
    )
    bullets = "- Alpha is x.\n- Beta is y."
    assert splice(bullets, [Edit(len(bullets), len(bullets), "New is z.")]) == f"{bullets}\n- New is z."


def test_an_item_keeps_its_style_without_a_full_stop() -> None:
    assert (
        edited("- Use a cloth\n- Use vinegar\n- Rinse", ("Use vinegar", "Use water."))
        == "- Use a cloth\n- Use water\n- Rinse"
    )


def test_a_lead_in_goes_with_the_last_item_below_it() -> None:
    text = "It is so. There are two reasons:\n\n- Alpha is x.\n- Beta is y.\n\nThat is all."
    assert edited(text, ("Alpha is x.", ""), ("Beta is y.", "")) == "It is so.\n\nThat is all."
    assert "reasons" in edited(text, ("Alpha is x.", ""))


def test_a_heading_goes_with_the_last_line_below_it_and_one_that_was_bare_stays() -> None:
    text = "# All\n\n## Costs\n\nIt costs 5.\n\n## Bare\n\n## Other\n\nIt is red."
    assert edited(text, ("It costs 5.", "")) == "# All\n\n## Bare\n\n## Other\n\nIt is red."


def test_an_item_that_leads_in_goes_with_what_is_nested_in_it() -> None:
    text = "1. Uses:\n   - Alpha is x.\n2. Costs are low.\n3. It is red."
    assert edited(text, ("Alpha is x.", "")) == "1. Costs are low.\n2. It is red."


def test_a_paragraph_that_goes_leaves_one_blank_line() -> None:
    assert (
        edited("One is a.\n\nTwo is b.\n\nThree is c.\n", ("Two is b.", "")) == "One is a.\n\nThree is c.\n"
    )
    assert edited("One is a.\n\nTwo is b.\n", ("Two is b.", "")) == "One is a.\n"
    assert edited("One is a.\n\nTwo is b.\n", ("One is a.", "")) == "Two is b.\n"


def test_a_table_row_goes_as_a_line() -> None:
    text = "| a | b |\n|---|---|\n| x | 3 |\n| y | 4 |"
    assert edited(text, ("| x | 3 |", "")) == "| a | b |\n|---|---|\n| y | 4 |"


def test_marks_that_open_or_close_elsewhere_stay() -> None:
    assert edited("**One is a. Two is b.**", ("Two is b.**", "")) == "**One is a.**"
    assert edited("**One is a. Two is b.**", ("**One is a.", "")) == "**Two is b.**"
    assert edited("One is a. (Two is b. Three is c.)", ("Three is c.)", "")) == "One is a. (Two is b.)"


def test_code_is_never_taken_for_a_heading_or_a_list() -> None:
    text = "It is red. Run this:\n\n```\n# note\n1. x\n3. y\n```\n\nIt is old. It is big."
    assert edited(text, ("It is old.", "")) == text.replace("It is old. ", "")


def test_everything_removed_leaves_nothing() -> None:
    assert edited("- Alpha is x.\n- Beta is y.\n", ("Alpha is x.", ""), ("Beta is y.", "")) == ""


def test_json_is_refused_and_so_are_edits_that_overlap() -> None:
    with pytest.raises(AssertionError):
        splice('{"a": "One is a."}', [Edit(7, 16, "")])
    with pytest.raises(AssertionError):
        splice("One is a.", [Edit(0, 5, ""), Edit(4, 9, "")])


_WORDS = st.lists(st.sampled_from(["Arvik", "bread", "tower", "ferry", "stone"]), min_size=2, max_size=4)
_SENTENCE = _WORDS.map(lambda words: " ".join(words).capitalize() + " is red.")
_LINE = st.builds(
    lambda marker, sentences: marker + " ".join(sentences),
    st.sampled_from(["", "", "- ", "1. ", "   - ", "> "]),
    st.lists(_SENTENCE, min_size=1, max_size=3),
)
_TEXT = st.lists(st.tuples(_LINE, st.sampled_from(["\n", "\n\n"])), min_size=1, max_size=6).map(
    lambda lines: "".join(line + end for line, end in lines).rstrip("\n")
)


@given(_TEXT, st.data())
def test_what_is_not_edited_survives_in_order_and_nothing_is_doubled(text: str, data: st.DataObject) -> None:
    """Over texts of plain sentences: the words of the result are those that no edit covers, plus what came in."""
    edits, expected = [], []
    for claim in claims(text):
        fate = data.draw(st.sampled_from(["keep", "keep", "remove", "replace"]))
        if fate == "remove":
            edits.append(Edit(claim.start, claim.end))
        elif fate == "replace":
            edits.append(Edit(claim.start, claim.end, "Something new is said."))
            expected += ["something", "new", "is", "said"]
        else:
            expected += words(claim.text)
    result = splice(text, edits)
    assert words(result) == expected
    assert "  " not in result.replace("   - ", "")
    assert "\n\n\n" not in result
    assert ".." not in result
    assert not any(re.fullmatch(r"\s*(?:-|\d+\.|>)\s*", line) for line in result.split("\n"))


@given(
    st.text(alphabet='Ab1 .,;:\n-*#|()`"。，一且', max_size=60),
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 12), st.sampled_from(["", "New x.", "新一。"])),
        max_size=4,
    ),
)
def test_whatever_the_text_nothing_is_invented_doubled_or_reordered(
    text: str, drafts: list[tuple[int, int, str]]
) -> None:
    """The letters of the result, less those that came in, are a subsequence of those outside of the edits."""
    edits: list[Edit] = []
    place = 0
    for skip, length, new in drafts:
        start = min(place + skip, len(text))
        end = min(start + length, len(text))
        edits.append(Edit(start, end, new))
        place = end + 1
        if place > len(text):
            break
    marked = [Edit(edit.start, edit.end, edit.replacement and "Qqq.") for edit in edits]
    try:
        result = splice(text, marked)
    except AssertionError:
        assert text.strip()[:1] in {"{", "["}
        return
    outside = list(text)
    for edit in edits:
        outside[edit.start : edit.end] = " " * (edit.end - edit.start)
    left = iter(letters("".join(outside)))
    assert all(letter in left for letter in letters(re.sub("q", "", result, flags=re.IGNORECASE)))


def letters(text: str) -> str:
    return re.sub(r"[\W\d_]", "", text).casefold()


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.casefold())

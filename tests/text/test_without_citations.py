"""What of an answer is left out before it is read, and where the rest stands."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.citations import Labels, label_key, shape_of, without_place
from truthlens.text.without_citations import Marks, Unmarked, find_marks

KNOWN = {"s0", "s1", "doc-7", "kb-12", "1", "2", "3", "handbook.pdf", "library handbook"}
IDS = {"S0", "S1", "doc-7", "kb-12"}
LABELS = Labels(
    lambda label: without_place(label_key(label)) in KNOWN,
    lambda label: shape_of(label_key(label)) == "kb0",
    IDS.__contains__,
)


def read(text: str) -> str:
    return Unmarked(text, find_marks(text, LABELS, most=3).cuts).text


MARKS = (
    "[S0]", "[S0][S1]", "[S0, S1]", "[S0]; [S1]", "[S9]", "[doc-7]", "[doc_3]", "[kb-99]", "[1]", "[1-3]", "[1, 2]", "[^1]",
    "【1】", "【4:0†handbook.pdf】", "【2†source】", "［１］", "(1)", "(1, 2)", "¹", "([S0])", "(Source: S0)", "(source: handbook.pdf)",
    "<sup>[1]</sup>", "**[1]**", "[[1]]", "[Source 2]", "[ID: 3]", "[handbook.pdf, p. 3]", "(Source: Library handbook)", "Source: [S0]",
    "[1](https://library.example/1)", "[S0:12]", "[S0:12-14, doc-7:3]", "(S0)", "(s0)", "(S0, kb-12)", "(S0:12)", "(S0, p. 3)",
    "(Document 2)", "(Sources 1 and 3)", "{{1}}", "{{S0}}{{1}}", "{{[1]}}", "†1", "<sup>1</sup>", "(p. 3)", "(pp. 3–5)", "(Seite 12)",
    "（第3页）", "[p. 3]", "<cite>1</cite>", "<cite>[S0, S1]</cite>", '<cite id="1"/>', "<cite id='S0'></cite>", "<ref>1</ref>",
    '<ref name="S0" />', "<source>S0</source>", "<SOURCE>handbook.pdf</SOURCE>", "(Source: [S0])", "**(S0)**", "<doc id=1>1</doc>",
)  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_is_left_out_wherever_it_stands(mark: str) -> None:
    """It is as if the mark had never been written: before and behind the full stop, in the middle, in a list and in JSON."""
    known = Labels(
        lambda label: LABELS.known(label) or label.startswith("https://library"),
        LABELS.resembles,
        LABELS.is_id,
    )

    def plain(text: str) -> str:
        return Unmarked(text, find_marks(text, known, most=3).cuts).text

    assert plain(f"The card is free {mark}. It is lent.") == "The card is free. It is lent."
    assert plain(f"The card is free. {mark} It is lent.") == "The card is free. It is lent."
    assert plain(f"The card is free.{mark}") == "The card is free."
    assert plain(f"The card is free. {mark}\n\nIt is lent.") == "The card is free.\n\nIt is lent."
    assert plain(f"- The card is free {mark}\n- It is lent {mark}") == "- The card is free\n- It is lent"
    assert (
        plain(json.dumps({"answer": f"The card is free {mark}."}, ensure_ascii=False))
        == '{"answer": "The card is free."}'
    )
    if not mark.startswith("Source"):
        assert plain(f"The card {mark} is free.") == "The card is free."


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Nine.[1]Then ten.", "Nine. Then ten."),
        ("[1] The card is free.", "The card is free."),
        ("- [S0] The card is free.", "- The card is free."),
        ("The card is free.\n\nSources:\n- [S0] Library handbook\n- [1]", "The card is free.\n\n\n\n"),
        ("The card is free [^1].\n\n[^1]: Library handbook", "The card is free.\n\n"),
        ("Sources:\n- Library handbook", "\n"),
        ("[S0] <sup>[1]</sup> Nine.", " Nine."),
        ("It is so.\n\nSources:\n[1] handbook", "It is so.\n\nSources:\nhandbook"),
    ],
)
def test_what_surrounds_marks_goes_with_them(text: str, bare: str) -> None:
    assert read(text) == bare


@pytest.mark.parametrize(
    "text",
    [
        "Refunds are paid within [90] days.",
        "Refunds are paid within ninety (90) days.",
        "Refunds are paid within two (2) days of 3 m ².",
        "[Refunds are paid within 90 days]",
        "The right one is [Library handbook].",
        "The right one is [Library handbook, p. 3] or [Library handbook:3].",
        "**[Library handbook]**",
        "[Refunds are paid within 90 days.pdf]",
        "[other.pdf]",
        "(Source: refunds are paid within 90 days)",
        "【1†refunds are paid within 90 days】",
        "The room has 12 m² and 10³ books, Ca² and 5¹.",
        "Options: (1) pay, (2) wait.",
        "(1) Pay.\n(2) Wait.",
        "Sources:",
        "Sources:\n- Refunds are paid within 90 days",
        "Sources of income are taxed.",
        "[^1]: Refunds are paid within 90 days",
        '{"pages": [1, 2], "sources": ["S0"], "[S0]": "free"}',
        "`user[1]` and user_ids[0]",
        "[Refunds are free](https://library.example)",
        "Refunds are paid **Library handbook** (Library handbook) [not 40 but 12].",
        "[S0, within 90 days] [S0 and the fee is 90]",
        "(Source: S0, within 90 days)",
        "[S0#within-90-days] [handbook.pdf#refunds are paid within 90 days]",
        "[S0:12 days] [S0:1234567] [90:12] (S0 costs 90) (kb-99) (S0 kb-12)",
        "(Document 90) (Document two) (Article 2) (the document 2)",
        "{{90}} {{within 90 days}} {{S0 within 90 days}} x^{{2}} \\frac{{1}}{{2}} ${{1}}",
        "<cite>within 90 days</cite> <cite>90</cite> <cite>Library handbook</cite> <b>1</b> <td>2</td> <result>2</result>",
        "<cite id='within 90 days'/> <cite ninety='1'/> <cite id='1'>within 90 days</cite> <cite id='1' title='ninety'/>",
        "<cite>S0 within 90 days</cite> <cite>1</ref> <cite></cite> <source id='1'><b>90</b></source>",
        "(p. 3 days) (p. ninety) (p3) (line 4) (p. 40 not 90) (page 12345)",
        "He died †1944, she †98 (†98) and †2nd.",
        "10<sup>2</sup> m<sup>2</sup> 12 metres<sup>2</sup> free <sup>90</sup>",
    ],
)
def test_what_can_say_something_is_read(text: str) -> None:
    """A bracket with words or figures that are no source's, a heading that nothing follows, units, enumerations, code, JSON."""
    left = read(text)
    assert "".join(left.split()) == "".join(text.replace("[^1]:", "").split())


PIECES = st.sampled_from(
    [
        *MARKS,
        "The card is free",
        "Nine",
        " ",
        ".",
        "\n",
        "Sources:",
        "- ",
        "```\n",
        "`a[1]`",
        "[90]",
        "(",
        "]",
        "§",
    ]
)


CLAIMS = st.sampled_from(
    ["within 90 days", "ninety", "not 40 but 12", "Library handbook", "free; the fee is 90"]
)


@pytest.mark.parametrize("mark", [each for each in MARKS if "https" not in each])
@given(
    CLAIMS,
    st.sampled_from(["S0", "S1", "doc-7", "1", "2", "3", "12", "kb-12"]),
    st.sampled_from(["", " ", ", ", ":", " - ", "#", "; ", " and "]),
)
def test_no_mark_has_room_for_a_claim(mark: str, claim: str, label: str, parted: str) -> None:
    """Words are read wherever in a mark they stand: for its label, before it or behind it."""
    for put in (claim, f"{label}{parted}{claim}", f"{claim}{parted}{label}"):
        if label in mark and not mark.startswith("(Source: S"):
            assert claim in read(f"Free {mark.replace(label, put, 1)}.")


@given(st.lists(PIECES, max_size=14))
def test_places_lead_there_and_back(parts: list[str]) -> None:
    """Every character that is read stands where it is said to stand, and ranges keep their order."""
    text = "".join(parts)
    cuts = find_marks(text, LABELS, most=3).cuts
    assert all(one.end <= other.start for one, other in pairwise(cuts))
    unmarked = Unmarked(text, cuts)
    fillers = sum(len(cut.filler) for cut in cuts)
    same = sum(text[unmarked.start(at)] == each for at, each in enumerate(unmarked.text))
    assert len(unmarked.text) - same <= fillers
    assert all(unmarked.place(unmarked.start(at)) in (at, at + 1) for at in range(len(unmarked.text)))
    places = [unmarked.place(at) for at in range(len(text) + 1)]
    assert places == sorted(places)
    assert places[-1] == len(unmarked.text)


@given(st.lists(PIECES, max_size=14), st.data())
def test_a_text_that_grows_is_read_as_the_whole_one(parts: list[str], data: st.DataObject) -> None:
    """What is settled stays, and reading on from there gives the same marks as reading all of it."""
    text = "".join(parts)
    cut = data.draw(st.integers(0, len(text)))
    first = find_marks(text[:cut], LABELS, most=3)
    rest = find_marks(text, LABELS, most=3, start=first.settled, fence=first.fence)
    kept = [each for each in first.cuts if each.end <= first.settled]
    assert (*kept, *rest.cuts) == find_marks(text, LABELS, most=3).cuts


def test_a_fence_within_a_longer_one_ends_no_block_of_code() -> None:
    """Neither in the whole text nor while it grows: what shows how code is written is code."""
    text = "````markdown\n```\nNine [S0].\n```\nTen [S0].\n````\nEleven [S0]."
    marks = Marks()
    for end in range(1, len(text) + 1):
        marks = find_marks(text[:end], LABELS, most=3, start=marks.settled, fence=marks.fence)
    assert [text[cut.start : cut.end] for cut in marks.cuts] == [" [S0]"]
    assert find_marks(text, LABELS, most=3).cuts == marks.cuts

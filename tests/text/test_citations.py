"""What of an answer is a citation, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.citations import Labels, fence_after, find_citations, label_key, shape_of

KNOWN = {"s0", "s1", "doc_7", "kb-12", "handbook.pdf", "https://library.example/hours", "a"}
LABELS = Labels(
    lambda label: label_key(label) in KNOWN,
    lambda label: shape_of(label_key(label)) in ("kb0", "00000"),
    {"S0", "S1", "kb-12"}.__contains__,
)

CITES = [
    ("Nine [1].", ["1"]),
    ("Nine [S0].", ["S0"]),
    ("Nine [s0].", ["s0"]),
    ("Nine [S9].", ["S9"]),
    ("Nine [doc_7].", ["doc_7"]),
    ("Nine [doc-3].", ["doc-3"]),
    ("Nine [^1].", ["1"]),
    ("Nine 【1】。", ["1"]),
    ("九点【S1】。", ["S1"]),
    ("九点［１］。", ["1"]),
    ("九点〔2〕。", ["2"]),
    ("九点（来源：handbook.pdf）。", ["handbook.pdf"]),
    ("Nine [1][2].", ["1", "2"]),
    ("Nine [S0][S1].", ["S0", "S1"]),
    ("Nine [1, 2].", ["1", "2"]),
    ("Nine [1,2].", ["1", "2"]),
    ("Nine [S0; S1].", ["S0", "S1"]),
    ("Nine [S0 and S1].", ["S0", "S1"]),
    ("九点【1、2】。", ["1", "2"]),
    ("Nine [1-3].", ["1", "2", "3"]),
    ("Nine [1–3].", ["1", "2", "3"]),
    ("Nine [S0-S1].", ["S0", "S1"]),
    ("Nine [1, 3-4].", ["1", "3", "4"]),
    ("Nine [ID:3].", ["ID:3"]),
    ("Nine [ID: 3].", ["ID: 3"]),
    ("Nine [Source 2].", ["Source 2"]),
    ("Nine [来源1]。", ["来源1"]),
    ("Neun [Quelle 2].", ["Quelle 2"]),
    ("Nine [handbook.pdf].", ["handbook.pdf"]),
    ("Nine [other.docx].", ["other.docx"]),
    ("Nine [other.pdf, p. 3].", ["other.pdf, p. 3"]),
    ("Nine (Source: handbook.pdf).", ["handbook.pdf"]),
    ("Nine (source: 3).", ["3"]),
    ("Nine (Sources: S0, S1).", ["S0", "S1"]),
    ("Nine (Source: [1]).", ["1"]),
    ("Neun (Quelle: S0).", ["S0"]),
    ("Nine 【4:0†handbook.pdf】.", ["handbook.pdf"]),
    ("Nine 【2†source】.", ["2"]),
    ("Nine [kb-99].", ["kb-99"]),
    ("Nine [12345].", ["12345"]),
    ("nine[1].", ["1"]),
    ("Nine [[1]].", ["1"]),
    ("[1] says nine.", ["1"]),
    ("- nine [1]\n- ten [2]", ["1", "2"]),
    ("| nine [1] | ten [S0] |", ["1", "S0"]),
    ("See [A].", ["A"]),
    ("Nine [hours](https://library.example/hours).", ["https://library.example/hours"]),
    ("Nine [S0](https://elsewhere.example).", ["S0"]),
    ("Sources:\n[1] One\n[2] Two", ["1", "2"]),
    ("`a` and [1] and `b`", ["1"]),
    ("Nine {{1}}.", ["1"]),
    ("Nine <cite>S0</cite>, <ref id='S1'/>.", ["S0", "S1"]),
    ("Nine (Document 2).", ["Document 2"]),
    ("Nine (kb-12, S1).", ["kb-12", "S1"]),
    ("Nine†1 (p. 3).", ["1"]),
    ("Nine [S0, at ten].", ["S0"]),
    ("Sources: [1], [2]", ["1", "2"]),
]
CITES_NOTHING = [
    "",
    "Nine.",
    "Nine [hours](https://elsewhere.example).",
    "Nine [1](https://elsewhere.example).",
    "![1](picture.png)",
    "- [x] bread\n- [ ] milk\n- [X] eggs",
    "It is `a[1]`.",
    "It is ``a[1] ` b[2]``.",
    "```\na = b[1]\n[2]\n```",
    "~~~python\n[1]\n~~~",
    "```\n[1] never closed",
    "a[1] is the second.",
    "x[i] and x[1][2]",
    "user_ids[0] is the first.",
    "myList[3] is the fourth.",
    "argv[1] is the file.",
    "data[0] = 5",
    "numbers = [1, 2, 3]",
    '{"a": [1, 2]}',
    "[1, 2, 3]",
    'It sends "ids": [1, 2] to the server.',
    "for every x in [0, 1]",
    "It was [2020].",
    "It was [2019-2020].",
    "[sic] [...] [he]",
    "[A]ccording to them",
    "It is [unverified].",
    "［未经证实］",
    "[A sentence was withheld: the provided context does not support it.]",
    "[^1]: https://elsewhere.example",
    "[1]: https://elsewhere.example",
    r"\[1\] and \sqrt[3]{x}",
    "[3-1]",
    "[GPT-4] [COVID-19]",
    "[10%] [00:12]",
    "[]",
    "[ ]",
    "[1",
    "1]",
    "[a\nb]",
    "[" * 50 + "1",
    "(a) pay, (b) wait (KB-12)",
    "f(S0) and x^{{2}}",
    "<b>1</b> <cite>nine</cite>",
    "`(S0)`, `{{1}}` and `<cite>1</cite>`",
]


@pytest.mark.parametrize(("text", "labels"), CITES)
def test_a_citation_is_found_with_its_labels(text: str, labels: list[str]) -> None:
    """What is cited, in the order of the text."""
    found = find_citations(text, LABELS).citations
    assert [label for each in found for label in each.labels] == labels


@pytest.mark.parametrize("text", CITES_NOTHING)
def test_other_brackets_are_no_citations(text: str) -> None:
    """Code, links, check boxes, indices, values, years, definitions and our own marks."""
    assert find_citations(text, LABELS).citations == ()


def test_a_free_name_is_no_id() -> None:
    """It cites, and nothing can be said of it."""
    (found,) = find_citations("Nine (Source: the annual report).", LABELS).citations
    assert (found.labels, found.free) == (("the annual report",), True)


def test_lines_of_sources_are_told_apart() -> None:
    """A list of sources under its heading, and definitions of footnotes, up to the next paragraph."""
    text = "Nine [1].\n\n## Sources\n\n- [1] One\n2. Two\n\nThat is all.\n[^1]: a note"
    listed = find_citations(text, LABELS).listed
    assert [text[start:end] for start, end in listed] == ["## Sources", "- [1] One", "2. Two", "[^1]: a note"]


def test_a_part_is_read_from_its_line_on() -> None:
    """With what is known of the lines before: whether they opened a block of code."""
    text = "```\n[1]\n```\nNine [2]."
    assert fence_after(text, 0, 4, "") == "```"
    assert fence_after(text, 4, 12, "```") == ""
    assert find_citations(text, LABELS, start=4, fence="```").citations[0].labels == ("2",)


MARKS = st.lists(
    st.sampled_from([*"[]()【】（）{}<>/†`~|\n .,:;-^†S1x0a—#\"'\\{}=", "Source: ", "doc_7", "http://a"])
).map("".join)


@given(st.one_of(st.text(), MARKS))
def test_citations_lie_in_the_text_in_order(text: str) -> None:
    """Whatever the text is."""
    found = find_citations(text, LABELS)
    at = 0
    for each in found.citations:
        assert at <= each.start < each.end <= len(text)
        assert each.labels or text[each.start] in "([（【"
        at = each.end
    assert all(0 <= start <= end <= len(text) for start, end in found.listed)

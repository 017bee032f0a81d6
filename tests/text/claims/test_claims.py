"""What counts as a claim, and where one ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detection.hostile_forms import ANSWERS, FORMS
from truthlens.text.claims.claims import MARKER, claims, scored_claims
from truthlens.text.claims.non_claims import is_claimless
from truthlens.text.json_ranges import unescaped

_JOINTS = re.compile(
    r",\s+(?:and|but|yet|while|whereas|so)\s+|;\s+(?:and|but|however|therefore|moreover|furthermore|in addition|also|instead|thus),?\s+"
    r"|[，,]\s*(?:但是?|不过|然而|同时|另外|此外|而且|并且|而)[，,]?"
)
_JSON_LINE = re.compile(r"(?:```|~~~)[ \t]*(?:json[5cl]?|jsonlines)?\s*", re.IGNORECASE)


def factual(text: str) -> list[str]:
    return [claim.text for claim in claims(text) if claim.factual]


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
        "Here is the corrected answer:",
        "What else would you like to know?",
        "I hope this helps!",
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
    assert factual(text) == []


@pytest.mark.parametrize("heading", ["**Opening hours:**", "# The museum of Arvik"])
def test_a_heading_is_a_claim_where_nothing_follows(heading: str) -> None:
    """Before a text it announces that; alone it is the answer."""
    assert factual(f"{heading}\nIt opens at nine.") == ["It opens at nine."]
    assert factual(heading) == [heading.removeprefix("# ")]
    assert factual(f"It opens at nine.\n{heading}") == ["It opens at nine.", heading.removeprefix("# ")]


@pytest.mark.parametrize(
    "text",
    [
        "Sure!",
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


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "```json\n{}\n```",
        "```\n{}\n```",
        "Here it is:\n\n{}\n\nIt is all.",
        "Result: {}",
        "- {}",
        "It follows.\n~~~ JSON\n{}\n~~~\nIt ends.",
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_is_cut_into_its_leaves_wherever_it_stands(around: str, indent: int | None) -> None:
    """From key to value, with the path; the key of an object is read like a heading."""
    tree = {"fee": 3, "branch": {"open": "9, or so", "days": ["Monday", True]}}
    text = around.format(json.dumps(tree, indent=indent))
    found = [claim for claim in claims(text) if claim.path]
    flat = [" ".join(claim.text.split()) for claim in found]
    assert flat[:3] == ['"fee": 3', '"branch"', '"open": "9, or so"']
    assert ["".join(each.split()) for each in flat[3:]] == ['"days":["Monday"', "true"]
    assert [claim.path for claim in found] == [
        "/fee",
        "/branch",
        "/branch/open",
        "/branch/days/0",
        "/branch/days/1",
    ]
    assert [claim.factual for claim in found] == [True, False, True, True, True]
    contexts = [claim.context and text[slice(*claim.context)] for claim in found]
    assert contexts == [None, None, '"branch"', '"branch"', '"days"']
    outside = [claim.text for claim in claims(text) if not claim.path]
    assert outside == [
        each for each in ("Here it is:", "It is all.", "Result:", "It follows.", "It ends.") if each in around
    ]


@pytest.mark.parametrize(
    "around",
    [
        "{}\n{}\n{}",
        "```jsonl\n{}\n{}\n{}\n```",
        "First: {}\n\nthen\n\n{}\n```json\n{}\n```",
        "- {}\n- {}\n- {}",
    ],
)
def test_no_two_documents_of_json_have_one_path(around: str) -> None:
    """Their number is the first step; one that is empty is not counted, and one alone needs none."""
    text = around.format(*(json.dumps({"fee": number, "days": [1]}) for number in (3, 4, 5)))
    found = [claim.path for claim in claims(text) if claim.path]
    assert found == [f"/{number}/{key}" for number in range(3) for key in ("fee", "days/0")]
    text = around.format('{"fee": 3}', "{}", '{"fee": 5}')
    assert [claim.path for claim in claims(text) if claim.path] == ["/0/fee", "/1/fee"]
    assert [claim.path for claim in claims('{"fee": 3}') if claim.path] == ["/fee"]


@pytest.mark.parametrize("rule", ["|-|-|", "| - | - |", "-|-", "|:-|-:|", "|---|:-:|"])
def test_a_rule_of_one_dash_a_cell_parts_the_head_of_a_table(rule: str) -> None:
    """As GitHub reads it: with as many cells as the head. Dashes for values that are not there are a row."""
    text = f"| room | fee |\n{rule}\n| A | 3 |"
    assert [(claim.text, claim.factual) for claim in claims(text)] == [
        ("| room | fee |", False),
        ("| A | 3 |", True),
    ]
    row = f"| room | fee |\n|---|---|\n| A | 3 |\n{rule}\n| B | 4 |"
    assert ("| A | 3 |", True) in [(claim.text, claim.factual) for claim in claims(row)]
    assert factual(f"| room | fee | day |\n{rule}")[0] == "| room | fee | day |"


@pytest.mark.parametrize("case", [str.lower, str.upper])
@pytest.mark.parametrize("mark", [".", ")"])
def test_roman_numerals_are_markers_of_a_list(case: Callable[[str], str], mark: str) -> None:
    numerals = [
        "ii",
        "iii",
        "iv",
        "vi",
        "vii",
        "viii",
        "ix",
        "xi",
        "xii",
        "xiii",
        "xiv",
        "xv",
        "xvi",
        "xix",
        "xx",
        "xxi",
        "xxxix",
    ]
    text = "\n".join(f"{case(each)}{mark} book number {place}" for place, each in enumerate(numerals))
    assert factual(text) == [f"book number {place}" for place in range(len(numerals))]
    assert factual("i. one book\nii. two books\nv. five") == ["one book", "two books", "five"]


@pytest.mark.parametrize("text", ["iiii. two", "vx) two", "mix. two", "Iv. two", "xxxxi) two"])
def test_what_is_no_roman_numeral_is_no_marker(text: str) -> None:
    assert claims(text)[0].start == 0


def test_a_long_value_of_json_is_cut_like_a_text() -> None:
    text = json.dumps({"answer": 'Hello! The fee is \u201c3\u201d euros.\n- Ink is "free".', "sources": []})
    assert [(claim.text, claim.factual, claim.path) for claim in claims(text)] == [
        ('"answer": "Hello!', True, "/answer"),
        ("The fee is \\u201c3\\u201d euros.", True, "/answer"),
        ('Ink is \\"free\\"."', True, "/answer"),
        ('"sources": []', True, "/sources"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2] say that the fee is 3 euros.",
        "The fee [3] is in {braces}.",
        'The object {"fee": 3} is what it sends.',
        "```python\nprint({'a': 1})\n```",
        '```python\nx = f(\n{"a": 1})\n```',
        "[[1]] The fee is 3 euros.",
    ],
)
def test_what_only_looks_like_json_is_cut_as_before(text: str) -> None:
    assert [(claim.text, claim.path) for claim in claims(text)] == [(text, "")]


def test_items_of_lists_and_rows_of_tables_know_what_they_stand_under() -> None:
    text = (
        "Loans are free. Members may borrow:\n- books:\n  - novels\n  - atlases\n- maps\n\nNothing else.\n- pens\n"
        "## Fees\n1. The first is 3 euros.\n2. The second is free, and the third is not known yet.\n\n"
        "| Town | Fee |\n|---|---|\n| Arvik | 3 |\n\n| Bell | 4 |"
    )
    found = {claim.text: claim.context and text[slice(*claim.context)] for claim in claims(text)}
    assert found == {
        "Loans are free.": None,
        "Members may borrow:": None,
        "books:": "Members may borrow:",
        "novels": "books:",
        "atlases": "books:",
        "maps": "Members may borrow:",
        "Nothing else.": None,
        "pens": None,
        "Fees": None,
        "The first is 3 euros.": "Fees",
        "The second is free": "Fees",
        "the third is not known yet.": "Fees",
        "| Town | Fee |": None,
        "| Arvik | 3 |": "| Town | Fee |",
        "| Bell | 4 |": None,
    }


@pytest.mark.parametrize("text", ["42. ", "- 42. ", "(5)", "1. 99. ", "①", "三、", "> a) "])
def test_a_number_with_nothing_behind_it_is_a_claim(text: str) -> None:
    """It is no marker of an item: it is the answer."""
    assert scored_claims(text)


_PIECES = st.sampled_from(
    ["# ", "- ", "1. ", "a) ", "> ", "| ", "|---|\n", "```\n", "```json\n", "~~~", "{", '{"', '": ', "}", "[", "]", ", ",
     ": ", '"', "\\", "\\n", "\n", "\n\n", "  ", "Hello!", "Sure. ", "The fee is 3 euros", ", and it is due", "; however, ",
     "42. ", "①", "一、", "true", "null", "**Fees:**", "您好！", "它有3个。", ". ", "[1]", "(see 2)", "✅", "x"]
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(st.lists(_PIECES, max_size=14).map("".join))
def test_every_letter_and_digit_is_of_one_claim_or_of_what_is_named_none(text: str) -> None:
    assert unexplained(text) == []


@pytest.mark.parametrize("form", FORMS)
def test_nothing_hostile_is_outside_of_all_claims(form: str) -> None:
    for answer, _ in ANSWERS:
        text = FORMS[form](answer)
        assert unexplained(text) == [], text
        scored = [(claim.start, claim.end) for claim in scored_claims(text)]
        for start, end in [(c.start, c.end) for c in claims(text)]:
            assert (start, end) in scored or is_claimless(text[start:end]), text


def unexplained(text: str) -> list[str]:
    """Return what holds a letter or digit and is neither of a claim nor a marker, a joint of clauses or the line of a fence."""
    found: list[str] = []
    place = 0
    for start, end in [*((claim.start, claim.end) for claim in claims(text)), (len(text), len(text))]:
        assert place <= start <= end
        gap = _JOINTS.sub("\n", unescaped(text, place, start).text)
        for line in gap.split("\n"):
            rest = line.lstrip('{}[],:" \t')
            while marker := MARKER.match(rest):
                rest = rest[marker.end() :]
            # The line of a fence, also behind signs of JSON that broke off before it.
            rest = re.sub(r"`{3,}json(?:[5cl]|lines)?$", "", rest.rstrip())
            if any(map(str.isalnum, rest)) and not _JSON_LINE.fullmatch(rest):
                found.append(line)
        place = end
    return found

"""An answer with its marks beside the evidence: the data, the HTML that the macros make of them, and their bounds."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truthlens.desk
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim, NearestSentence
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import Span
from truthlens.desk.annotated import AnnotatedAnswer, annotate, visible

ANSWER = "Tea costs three euros. It is green."
EVIDENCE = "Tea is sold here. Tea costs nine euros."
EXPLAINED = Explanation(
    SpanKind.CONTRADICTED, 0.8, "the nearest sentence gives another number", (18, 39), 0.7,
    (Difference(DifferenceKind.NUMBER, 10, 15, (28, 32)), Difference(DifferenceKind.NAME, 0, 3)),
)  # fmt: skip
SPANS = (Span(10, 21, 0.9, passage=0, explanation=EXPLAINED), Span(26, 34, 0.2, "numbers", note="<i>why</i>"))
HOSTILE = (
    "<img src=x onerror=alert(1)> \u202egnp.exe\u202c \u200bhid\x00den \ud800 \" ' ]]> --> {{ 7*7 }} שלום"
)

_pages = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(truthlens.desk.__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_pages.filters["visible"] = visible


def passage(text: str, title: str = "") -> Passage:
    return Passage(text, Provenance.DOCUMENTS, title=title)


def test_the_wrong_word_is_what_stands_out() -> None:
    """Not the phrase that is shown around it; what stays under the threshold does not."""
    shown = (0, 22)
    spans = (
        Span(10, 15, 0.9, shown=shown),
        Span(10, 21, 0.2, "numbers", shown=shown),
        Span(26, 34, 0.2, "numbers", shown=(23, 35)),
    )
    view = annotate(ANSWER, spans, [], even_threshold=0.5)
    assert [(each.over, each.words) for each in view.marks] == [(True, ((10, 15),)), (False, ())]
    assert next(piece.parts for piece in view.pieces if piece.mark) == (
        ("Tea costs ", False),
        ("three", True),
        (" euros.", False),
    )
    assert re.findall(r"<mark>(.*?)</mark>", rendered(view)) == ["three"]


def test_a_retrieved_passage_is_named_where_a_claim_points_at_it() -> None:
    """Source, id and title beside the claim, escaped; of a passage that came with the request its number alone."""
    found = Passage(EVIDENCE, Provenance.RETRIEVED, "<i>7", "T & 1", "retrieved", source="shelf")
    given = replace(found, provenance=Provenance.TOOL, source="")
    claims = (
        JudgedClaim(0, 22, ClaimOutcome.CONTRADICTED, 0.9, "numbers", passage=1, sentence=(18, 39)),
        JudgedClaim(23, 35, ClaimOutcome.SUPPORTED, 0.1, "reader", passage=1),
    )
    for second, origins in ((found, {1: "shelf · <i>7 · T & 1"}), (given, {})):
        view = annotate(ANSWER, (), [given, second], even_threshold=0.5, claims=claims)
        assert dict(view.origins) == origins
        page = rendered(view)
        named = " (<bdi>shelf · &lt;i&gt;7 · T &amp; 1</bdi>)" if origins else ""
        assert f"Evidence, in passage 2{named}: <q><bdi>Tea costs nine euros.</bdi></q>" in page
        assert f"Evidence: passage 2{named}</p>" in page
        assert "<i>" not in page


def rendered(view: AnnotatedAnswer, prefix: str = "a") -> str:
    template = '{% from "answer_macros.html.j2" import annotated %}{{ annotated(view, prefix) }}'
    return _pages.from_string(template).render(view=view, prefix=prefix)


class _Reader(HTMLParser):
    """The elements of a page, and the text of its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def read(page: str) -> list[tuple[str, dict[str, str | None]]]:
    reader = _Reader()
    reader.feed(page)
    return reader.tags


def test_a_span_points_at_its_sentence_and_says_what_differs() -> None:
    """The link's passage and sentence are there, with kind, probability, reason, values of both sides, and detector."""
    view = annotate(ANSWER, SPANS, [passage("Other."), passage("Other.")], even_threshold=0.5)
    assert view.marks[0].findings[0].nearest == ""
    view = annotate(ANSWER, SPANS, [passage(EVIDENCE)], even_threshold=0.5)
    first, second = view.marks
    assert (first.over, second.over) == (True, False)
    (finding,) = first.findings
    assert (finding.kind, finding.confidence, finding.nearest) == (
        "contradicted",
        0.8,
        "Tea costs nine euros.",
    )
    assert [(each.answer, each.evidence) for each in finding.differences] == [("Tea", ""), ("three", "nine")]
    page = rendered(view)
    marks = [attributes for tag, attributes in read(page) if tag == "a" and "data-span" in attributes]
    assert (marks[0]["data-passage"], marks[0]["data-sentence"]) == ("0", "18-39")
    assert "data-passage" not in marks[1]
    lit = re.findall(r'data-sentence="(\d+)">([^<]*)<', page)
    assert lit == [("18", "Tea costs nine euros.")]
    assert "&lt;i&gt;why" in page
    ids = [attributes["id"] for _, attributes in read(page) if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {str(mark["href"])[1:] for mark in marks} <= set(ids)


def test_what_several_detectors_say_of_one_place_is_one_mark() -> None:
    """The mark has the highest score, and a finding of each."""
    spans = (Span(0, 9, 0.3), Span(4, 15, 0.8, "numbers", passage=0, explanation=EXPLAINED))
    (mark,) = annotate(ANSWER, spans, [passage(EVIDENCE)], even_threshold=0.5).marks
    assert (mark.start, mark.end, mark.score) == (0, 15, 0.8)
    assert [each.detector for each in mark.findings] == ["numbers", "encoder"]
    assert mark.sentence == (18, 39)


def test_hostile_text_is_shown_and_does_nothing() -> None:
    """In every place: no element of it, what would be unseen or turn the text is a code, and the page is UTF-8."""
    note = Span(
        3,
        len(HOSTILE) - 5,
        0.9,
        HOSTILE,
        0,
        Explanation(SpanKind.UNSUPPORTED, 0.5, HOSTILE, (2, 40)),
        note=HOSTILE,
    )
    view = annotate(HOSTILE, (note,), [passage(HOSTILE, title=HOSTILE)], even_threshold=0.5)
    page = rendered(view)
    page.encode()
    assert not {tag for tag, _ in read(page)} & {"img", "script", "i"}
    assert not [name for _, attributes in read(page) for name in attributes if name.startswith("on")]
    for hidden in "\u202e\u202c\u200b\x00\ud800":
        assert hidden not in page
    assert "[U+202E]gnp.exe[U+202C]" in page
    assert "hid[U+0000]den" in page
    assert "שלום" in page
    assert "{{ 7*7 }}" in page


def test_joiners_and_line_ends_stay() -> None:
    """Emoji and Persian need the joiners; a line end is a line end."""
    kept = "👩\u200d💻 می\u200cخواهم\n\ta\u200f"
    assert visible(kept) == kept
    assert visible("a\r\nb") == "a\nb"


@pytest.mark.parametrize("places", [(40, 90), (-5, 3), (9, 3), (35, 35)])
def test_positions_outside_of_the_text_break_nothing(places: tuple[int, int]) -> None:
    """A detector of somebody else's may give any."""
    wrong = Explanation(
        SpanKind.UNSUPPORTED,
        0.5,
        "",
        (900, 990),
        0.0,
        (Difference(DifferenceKind.NUMBER, 800, 810, (7, 900)),),
    )
    for index in (0, 7, -1, None):
        rendered(
            annotate(
                ANSWER,
                (Span(*places, 0.9, passage=index, explanation=wrong),),
                [passage("x")],
                even_threshold=0.5,
            )
        )


def test_many_spans_of_a_long_answer_stay_within_bounds() -> None:
    """The strongest stay: 5,000 marks, 300 of them explained; the page is not many times the texts."""
    text = "Every word counts here. " * 9_000
    spans = [Span(at, at + 4, at / len(text)) for at in range(0, len(text) - 4, 24)]
    view = annotate(text, spans, [passage(text)], even_threshold=0.5)
    assert (len(view.marks), view.more_marks) == (5_000, 4_000)
    assert min(mark.score for mark in view.marks) >= 4_000 / 9_000
    assert sum(bool(mark.findings) for mark in view.marks) == 300
    assert "".join(piece.text for piece in view.pieces) == text
    page = rendered(view)
    assert len(page) < 8 * len(text)
    assert "4000 more spans" in page


def test_of_long_evidence_the_sentences_that_are_pointed_at_are_shown() -> None:
    """Wherever they stand, in whichever passage; what is not shown is counted."""
    long = "x" * 500_000 + EVIDENCE
    sentence = (long.index("Tea costs"), len(long))
    explained = Explanation(SpanKind.CONTRADICTED, 0.8, "", sentence)
    passages = [*[passage("y" * 1_000)] * 400, passage(long)]
    view = annotate(
        ANSWER, (Span(0, 9, 0.9, passage=400, explanation=explained),), passages, even_threshold=0.5
    )
    assert (len(view.passages), view.more_passages) == (200, 201)
    last = view.passages[-1]
    assert [piece.text for piece in last.pieces if piece.sentence] == ["Tea costs nine euros."]
    assert last.pieces[0].left + sum(len(piece.text) for piece in last.pieces) + last.left == len(long)
    assert sum(len(piece.text) for each in view.passages for piece in each.pieces) <= 300_000


_places = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted)


@given(st.text(max_size=60), st.lists(st.tuples(_places, st.floats(0, 1), _places), max_size=12))
def test_nothing_of_answer_and_evidence_is_lost(
    text: str, found: list[tuple[list[int], float, list[int]]]
) -> None:
    """Whatever spans and sentences overlap: the pieces together are the texts, and exactly sentences are marked as such."""
    evidence = "0123456789" * 6
    spans = [
        Span(place[0], place[1], score, passage=0, explanation=Explanation(SpanKind.UNSUPPORTED, 0.5, "", (near[0], near[1])))
        for place, score, near in found
    ]  # fmt: skip
    view = annotate(text, spans, [passage(evidence)], even_threshold=0.5)
    assert "".join(piece.text for piece in view.pieces) == visible(text)
    pieces = view.passages[0].pieces
    assert "".join(piece.text for piece in pieces) == evidence
    lit = {
        at for piece in pieces if piece.sentence for at in range(piece.start, piece.start + len(piece.text))
    }
    named = {mark.sentence for mark in view.marks} | {
        each.sentence for mark in view.marks for each in mark.findings
    }
    assert lit == {at for each in named if each for at in range(*each)}


CLAIMED = "Tea costs three euros. It is green. It grows. Hm! Enjoy!"
CLAIMS = (
    JudgedClaim(0, 22, ClaimOutcome.CONTRADICTED, 0.9, "numbers", 0, (18, 39)),
    JudgedClaim(23, 35, ClaimOutcome.SUPPORTED, 0.3, "encoder"),
    JudgedClaim(
        36, 45, ClaimOutcome.PROVED, 0.05, "numbers", source="teas", reason="teas gives yes", path="/a"
    ),
    JudgedClaim(46, 49, ClaimOutcome.UNJUDGED, None),
)


def test_an_answer_is_shown_by_its_claims() -> None:
    """Level, outcome, risk, detector, evidence, and the words that differ; the surest finding comes first; there is one legend."""
    spans = (*SPANS, Span(10, 15, 0.65), Span(36, 38, 0.9), Span(50, 55, 0.7))
    view = annotate(CLAIMED, spans, [passage(EVIDENCE)], even_threshold=0.6, claims=CLAIMS)
    assert "".join(piece.text for piece in view.pieces) == CLAIMED
    assert [each.claim and each.claim.level.value for each in view.marks] == [
        "flagged", "doubtful", "supported", "unjudged", None,
    ]  # fmt: skip
    assert [each.words for each in view.marks] == [((0, 3), (10, 21)), (), (), (), ((50, 55),)]
    first = view.marks[0]
    assert first.claim is not None
    assert (first.claim.sentence, first.sentence) == ("Tea costs nine euros.", (18, 39))
    two = (Span(0, 3, 0.7), replace(SPANS[0], detector="numbers"))
    (mark,) = annotate(CLAIMED, two, [passage(EVIDENCE)], even_threshold=0.6, claims=CLAIMS[:1]).marks
    assert [each.detector for each in mark.findings] == ["numbers", "encoder"]
    page = rendered(view)
    assert page.count('class="legend"') == 1
    linked = [attributes for tag, attributes in read(page) if tag == "a" and "data-span" in attributes]
    assert [each.get("title") for each in linked] == [
        "contradicted, risk 0.90", "supported, risk 0.30", "proved, risk 0.05", "unjudged", None,
    ]  # fmt: skip
    assert "data-score" not in linked[3]
    shown = re.sub(r"<[^>]*>", "", page)
    for told in ("contradicted, risk 0.90 · decided by numbers", "database teas", "teas gives yes", "· /a"):
        assert told in shown
    assert "legend" not in rendered(annotate(ANSWER, SPANS, [], even_threshold=0.5))


def test_the_nearest_sentence_of_a_supported_claim_is_shown_as_no_more() -> None:
    """It lights up and is called the nearest one; not where a finding names a sentence, nor for a passage that is not there."""
    near = NearestSentence(0, 18, 39, 0.4)
    supported = replace(CLAIMS[1], nearest=near)
    claims = (
        replace(CLAIMS[0], nearest=near),
        supported,
        replace(CLAIMS[3], nearest=replace(near, passage=9)),
    )
    view = annotate(CLAIMED, (), [passage(EVIDENCE)], even_threshold=0.6, claims=claims)
    assert [
        (each.claim.sentence, each.claim.nearest, each.sentence) for each in view.marks if each.claim
    ] == [
        ("Tea costs nine euros.", "", (18, 39)),
        ("", "Tea costs nine euros.", (18, 39)),
        ("", "", None),
    ]
    page = rendered(view)
    shown = re.sub(r"<[^>]*>", "", page)
    assert shown.count("Evidence, in passage 1: Tea costs nine euros.") == 1
    assert shown.count("Nearest, in passage 1: Tea costs nine euros.") == 1
    found = SPANS[0].explanation
    assert found is not None
    explained = annotate(
        CLAIMED,
        (replace(SPANS[0], start=23, end=35),),
        [passage(EVIDENCE)],
        even_threshold=0.6,
        claims=claims,
    )
    assert [each.claim.nearest for each in explained.marks if each.claim] == ["", "", ""]


def test_a_claim_of_another_text_breaks_nothing() -> None:
    """Claims that overlap or end behind the text are cut, as an entry of another version may hold them."""
    claims = (
        JudgedClaim(0, 9, ClaimOutcome.SUPPORTED, 0.1),
        JudgedClaim(4, 99, ClaimOutcome.NOT_STATED, 0.8),
        JudgedClaim(99, 120, ClaimOutcome.SUPPORTED, 0.1),
    )
    view = annotate("Tea is green.", (), [], even_threshold=0.6, claims=claims)
    assert [(each.start, each.end) for each in view.marks] == [(0, 9), (9, 13)]
    assert "".join(piece.text for piece in view.pieces) == "Tea is green."

"""What ``truthlens detect`` prints of an explanation, and the bundled model's own example."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path

from truthlens.cli import main
from truthlens.cli.scoring import claim_lines, explanation_lines
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim, NearestSentence
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import Mark, Span, marks_of

PASSAGES = (Passage("Adults take\n54 mg a day.", Provenance.DOCUMENTS),)
RESPONSE = "Adults take 45 mg a day, says Norrel."
EXPLANATION = Explanation(
    SpanKind.CONTRADICTED,
    confidence=0.714,
    reason="the nearest sentence gives another number",
    sentence=(0, 24),
    similarity=0.8,
    differences=(
        Difference(DifferenceKind.NUMBER, 12, 17, (12, 17)),
        Difference(DifferenceKind.NAME, 30, 36),
    ),
)


def mark_of(span: Span) -> Mark:
    """Return the one mark of a span of ``RESPONSE``."""
    (mark,) = marks_of([span], length=len(RESPONSE))
    return mark


def test_an_explanation_is_four_plain_lines() -> None:
    """Kind and reason, each difference, and the nearest sentence on one line."""
    span = Span(12, 14, 0.9, passage=0, explanation=EXPLANATION)
    assert list(explanation_lines(mark_of(span), RESPONSE, PASSAGES)) == [
        "contradicted (0.71): the nearest sentence gives another number",
        "number: 45 mg, in the evidence 54 mg",
        "name: Norrel, which stands nowhere in the evidence",
        "nearest: passage 1, similarity 0.80: Adults take 54 mg a day.",
    ]


def test_what_the_surest_finding_says_comes_first() -> None:
    """Wherever it stands in the mark."""
    name, number = (replace(EXPLANATION, differences=(each,)) for each in reversed(EXPLANATION.differences))
    spans = [Span(30, 36, 0.9, passage=0, explanation=name), Span(12, 31, 0.6, passage=0, explanation=number)]
    (mark,) = marks_of(spans, length=len(RESPONSE))
    lines = list(explanation_lines(mark, RESPONSE, PASSAGES))
    assert [line.split(":")[0] for line in lines[1:3]] == ["name", "number"]


def test_a_claim_that_nothing_is_held_against_tells_its_sentence() -> None:
    """What proves it, or what is nearest and called so; the spans of others tell it."""
    near = NearestSentence(0, 0, 24, 0.8)
    supported = JudgedClaim(0, 24, ClaimOutcome.SUPPORTED, 0.1, "encoder", nearest=near)
    proved = JudgedClaim(0, 24, ClaimOutcome.PROVED, 0.05, "quotation", 0, (0, 24))
    wrong = JudgedClaim(0, 24, ClaimOutcome.NOT_STATED, 0.8, "encoder", nearest=near)
    assert list(claim_lines(supported, PASSAGES)) == [
        "nearest: passage 1, similarity 0.80: Adults take 54 mg a day."
    ]
    assert list(claim_lines(proved, PASSAGES)) == ["evidence: passage 1: Adults take 54 mg a day."]
    assert [*claim_lines(wrong, PASSAGES), *claim_lines(replace(supported, nearest=None), PASSAGES)] == []


def test_nothing_near_and_nothing_explained_print_no_sentence() -> None:
    """A fabrication has its kind alone; a span that nobody explained has no line."""
    alone = Explanation(SpanKind.FABRICATED, confidence=0.9, reason="nothing in the evidence comes near")
    assert list(explanation_lines(mark_of(Span(0, 6, 0.9, explanation=alone)), RESPONSE, PASSAGES)) == [
        "fabricated (0.90): nothing in the evidence comes near"
    ]
    assert list(explanation_lines(mark_of(Span(0, 6, 0.9)), RESPONSE, PASSAGES)) == []


def test_a_long_sentence_is_cut_for_the_terminal() -> None:
    """One line stays one line."""
    passages = (Passage("word " * 100, Provenance.DOCUMENTS),)
    far = Explanation(SpanKind.UNSUPPORTED, confidence=0.5, reason="r", sentence=(0, 499), similarity=0.1)
    *_, last = explanation_lines(mark_of(Span(0, 6, 0.9, passage=0, explanation=far)), RESPONSE, passages)
    assert last.endswith("…")
    assert len(last) < 220


def test_the_bundled_model_names_the_wrong_dose(tmp_path: Path) -> None:
    """From files to the figure that the leaflet gives, readable and as JSON."""
    leaflet, answer = tmp_path / "leaflet.txt", tmp_path / "answer.txt"
    leaflet.write_text("The starting dose of Corvadil for adults is 54 mg a day, taken with food.")
    answer.write_text("Adults start with 45 mg of Corvadil a day.")
    command = ["detect", "--context", str(leaflet), "--response", str(answer)]
    printed = _printed(command)
    assert "number: 45 mg, in the evidence 54 mg" in printed
    assert "nearest: passage 1" in printed
    assert re.search(
        r"^  0–42  contradicted  risk [01]\.\d\d  numbers  Adults start with 45 mg", printed, re.MULTILINE
    )
    spans = json.loads(_printed([*command, "--json"]))["spans"]
    found = {span["detector"]: span for span in spans if "45" in span["text"]}
    assert found.keys() == {"encoder", "numbers"}
    for span in found.values():
        assert span["kind"] == "contradicted"
        assert span["sentence"]["text"] == leaflet.read_text()
        assert [(each["answer"], each["evidence"]) for each in span["differences"]] == [("45 mg", "54 mg")]


def _printed(command: list[str]) -> str:
    out = io.StringIO()
    with redirect_stdout(out), suppress(SystemExit):
        main(command)
    return out.getvalue()

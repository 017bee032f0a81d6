"""Pairs of sentences: which contradict each other, and which say the same or cannot be told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detection.detectors.contradictions.table import EQUAL, FLAGGED
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.contradictions.detector import SCORE, ContradictionDetector
from truthlens.detection.detectors.contradictions.tables import PHRASES


def result(passages: str | list[str], text: str) -> DetectorResult:
    """The result of the detector on one answer."""
    listed = [passages] if isinstance(passages, str) else passages
    exchange = Exchange(Endpoint.CHAT, "m", "", tuple(Passage(each, Provenance.TOOL) for each in listed))
    (found,) = ContradictionDetector().detect_all(
        exchange, [Answer(0, AnswerKind.TEXT, text)], aggregation=None, stop=lambda: False
    )
    return found


@pytest.mark.parametrize(("evidence", "claim"), FLAGGED)
def test_what_contradicts_is_flagged(evidence: str, claim: str) -> None:
    """By one word of logic, with a place in the answer."""
    found = result(evidence, claim)
    assert found.score == SCORE
    assert all(0 <= span.start < span.end <= len(claim) for span in found.spans)


@pytest.mark.parametrize(("evidence", "claim"), EQUAL)
def test_what_says_the_same_passes(evidence: str, claim: str) -> None:
    """In other words, or where it cannot be told."""
    assert not result(evidence, claim).score


@pytest.mark.parametrize(("evidence", "claim"), [*FLAGGED, *EQUAL])
def test_what_is_repeated_passes(evidence: str, claim: str) -> None:
    """A sentence never contradicts itself, nor beside another one that does."""
    assert not result(evidence, evidence).score
    assert not result([claim, evidence], evidence).score


def test_the_worst_claim_counts_however_long_the_rest() -> None:
    """One finding flags an answer, and its span says where and against which passage."""
    rest = "The weather was pleasant and the guests were happy. " * 30
    text = f"{rest}The gate is closed during the night shift."
    found = result(["Nothing of it.", "The gate is open during the night shift."], text)
    (span,) = found.spans
    assert (found.score, text[span.start : span.end], span.passage) == (SCORE, "closed", 1)


_WORDS = sorted({phrase for phrases in PHRASES.values() for phrase in phrases.split("|")})


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*_WORDS, "dog", "gate", "Anna", "open", "sold", "20", ",", "."]), max_size=40)
)
def test_no_text_contradicts_itself(parts: list[str]) -> None:
    """Whatever marks stand in it."""
    text = " ".join(parts)
    assert not result(text, text).score

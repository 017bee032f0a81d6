"""The detector of contradictions: languages, abstaining, growing answers, sizes, and what it says."""

from __future__ import annotations

import time

import pytest

from tests.detection.detectors.contradictions.test_judge import result
from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import AnswerKind, DetectorName, Endpoint, Provenance
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import DifferenceKind, SpanKind
from truthlens.core.registry import detector_types
from truthlens.detection.detectors.contradictions.detector import ContradictionDetector
from truthlens.detection.detectors.contradictions.evidence import MOST_CHARS
from truthlens.detection.fusion import fuse

PASSAGE = "The pool is open on holidays. Members must show a card at the gate."


def exchange(text: str = PASSAGE) -> Exchange:
    return Exchange(Endpoint.CHAT, "m", "", (Passage(text, Provenance.TOOL),))


def answer(text: str) -> Answer:
    return Answer(0, AnswerKind.TEXT, text)


def test_it_is_registered_and_follows_streams() -> None:
    """Without options."""
    found = detector_types()[DetectorName.CONTRADICTIONS]
    assert (found.follows, found.needs) == (True, frozenset())


def test_a_finding_flags_the_verdict_and_is_explained() -> None:
    """By positions in the answer and in the passage."""
    found = result(PASSAGE, "The pool is not open on holidays.")
    assert fuse([found], threshold=0.6).flagged
    (span,) = found.spans
    assert span.explanation is not None
    assert (span.explanation.kind, span.explanation.differences[0].kind) == (
        SpanKind.CONTRADICTED,
        DifferenceKind.NEGATION,
    )
    assert PASSAGE[slice(*span.explanation.sentence or (0, 0))] == "The pool is open on holidays."


@pytest.mark.parametrize("text", ["The lake is deep.", "Hello!", "Is the pool open?", "42"])
def test_it_abstains_where_nothing_is_comparable(text: str) -> None:
    """No score, no reason."""
    found = result(PASSAGE, text)
    assert found.abstained
    assert found.score is None


def test_it_reads_english() -> None:
    """Other languages are left to others."""
    detector = ContradictionDetector()
    assert detector.reads(
        exchange(), answer("The pool is not open on holidays, and members must show a card.")
    )
    assert not detector.reads(
        exchange(),
        answer("Das Schwimmbad ist an Feiertagen nicht geöffnet, und die Mitglieder brauchen eine Karte."),
    )


def test_a_growing_answer_is_judged_part_by_part() -> None:
    """With the offsets of the whole answer."""
    text = "Members must show a card at the gate. The pool is not open on holidays."
    cut = text.index("The pool")
    follower = ContradictionDetector().follow(exchange())
    whole, first, second = follower.detect_all(
        [answer(text)], [[(0, cut), (cut, len(text))]], aggregation=None, stop=lambda: False
    )
    assert (whole.score, first.score, second.score) == (0.95, 0.0, 0.95)
    assert whole.spans == second.spans
    assert text[whole.spans[0].start : whole.spans[0].end] == "not"


def test_work_is_given_up() -> None:
    """Once nobody waits."""
    with pytest.raises(StoppedError):
        ContradictionDetector().detect_all(exchange(), [answer("x")], aggregation=None, stop=lambda: True)


@pytest.mark.parametrize(
    "piece",
    [
        "The pool is not open on holidays. ",
        "not " * 50 + ". ",
        "no more than ",
        "a, ",
        "(",
        "is open, and is not open ",
    ],
)
def test_large_texts_stay_cheap(piece: str) -> None:
    """What exceeds the bounds is said to be unread."""
    text = piece * (2 * MOST_CHARS // len(piece))
    started = time.process_time()
    found = result(text, text[:60_000])
    assert time.process_time() - started < 30
    assert not found.score
    assert found.abstained or (found.coverage is not None and not found.coverage.complete)

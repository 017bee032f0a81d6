"""Tests of ``truthlens.detection.detectors.encoder.results``: what is said of a text, and of parts of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from truthlens.core.records.enums import Aggregation, LeftOut, Reason
from truthlens.core.records.verdict import Coverage
from truthlens.detection.detectors.encoder.results import Scored, nothing, result_of
from truthlens.detection.detectors.encoder.token_scores import Reading
from truthlens.detection.models.aggregation import spans_of
from truthlens.detection.models.inputs.manifest import InputFormat, Manifest

MANIFEST = Manifest(name="m", base="none", input=InputFormat(), tau_span=0.5, tau_token=0.5)
TEXT = "Red lamp. Nine boats."
OFFSETS = np.array([(0, 3), (4, 8), (8, 9), (10, 14), (15, 20), (20, 21)])
COVERAGE = Coverage(6, 6, 40, 40, 30, 2)
LAST = (10, 21)


def scored(
    odds: list[float],
    *,
    read: list[bool] | None = None,
    evidence_read: float = 1.0,
    reason: Reason | None = None,
    unread: tuple[tuple[int, int], ...] = (),
    phrases: tuple[int, ...] = (),
) -> Scored:
    held = np.array(read if read is not None else [True] * 6)
    return Scored(
        reading_of(odds, held, OFFSETS, TEXT, unread, phrases=phrases), COVERAGE, evidence_read, reason
    )


def reading_of(
    odds: list[float],
    held: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    text: str,
    unread: tuple[tuple[int, int], ...] = (),
    *,
    phrases: tuple[int, ...] = (),
) -> Reading:
    """The reading of a text whose tokens ``phrases`` claim nothing."""
    words = np.array([text[start:end].isalnum() for start, end in offsets])
    idle = np.isin(np.arange(len(odds)), phrases)
    kept = np.where(idle | ~held, -np.inf, np.array(odds))
    return Reading(kept, held, offsets, text, words, idle, np.zeros_like(idle), unread)


def test_a_part_is_scored_by_its_own_tokens() -> None:
    """What is wrong elsewhere does not count, and spans and coverage are the part's."""
    each = scored([4.0, 4.0, -4.0, -4.0, 2.0, -4.0])
    whole = result_of(each, MANIFEST, Aggregation.SPAN_MAX)
    part = result_of(each, MANIFEST, Aggregation.SPAN_MAX, part=LAST)
    assert (whole.score, part.score) == pytest.approx((0.982, 0.881), abs=1e-3)
    assert [(span.start, span.end) for span in whole.spans] == [(0, 8), (15, 20)]
    assert [(span.start, span.end) for span in part.spans] == [(15, 20)]
    assert part.coverage == Coverage(3, 3, 40, 40, 30, 2)
    assert part.details["top_span"] == part.score


def test_a_span_across_the_border_is_cut_at_it() -> None:
    """A token that reaches into the part from before belongs to it, as far as it lies in it."""
    each = scored([-4.0, -4.0, -4.0, 4.0, 4.0, -4.0])
    (span,) = result_of(each, MANIFEST, Aggregation.SPAN_MAX, part=(12, 21)).spans
    assert (span.start, span.end) == (12, 20)


@pytest.mark.parametrize(
    ("part", "unread", "reason"),
    [
        (LAST, (), Reason.TOO_LARGE),
        (LAST, (LAST,), Reason.LANGUAGE),
        ((9, 10), (), Reason.EMPTY_ANSWER),
    ],
)
def test_a_part_without_scored_tokens_says_why(
    part: tuple[int, int], unread: tuple[tuple[int, int], ...], reason: Reason
) -> None:
    """No window held it, its script is not read, or there is no token in it."""
    each = scored([0.0] * 6, read=[True] * 3 + [False] * 3, unread=unread)
    found = result_of(each, MANIFEST, Aggregation.SPAN_MAX, part=part)
    assert (found.score, found.reason) == (None, reason)


@pytest.mark.parametrize(
    ("phrases", "scored_tokens", "left_out"),
    [
        ((0, 1, 2), 3, {LeftOut.PHRASES: 3}),
        ((0, 1, 2, 3, 4, 5), 0, {LeftOut.PHRASES: 6}),
        # The full stops alone are left.
        ((0, 1, 3, 4), 0, {LeftOut.PHRASES: 4, LeftOut.SIGNS: 2}),
    ],
)
def test_what_claims_nothing_is_counted_and_nothing_at_all_is_no_score(
    phrases: tuple[int, ...], scored_tokens: int, left_out: dict[LeftOut, int]
) -> None:
    """Phrases are left out by name; of an answer of which no word is left nothing is known, signs included."""
    found = result_of(scored([1.0] * 6, phrases=phrases), MANIFEST, Aggregation.SPAN_MAX)
    assert found.coverage is not None
    assert found.coverage.answer_tokens_scored == scored_tokens
    assert dict(found.coverage.left_out) == left_out
    assert found.coverage.complete
    if scored_tokens:
        assert found.score
    else:
        assert (found.score, found.reason) == (None, Reason.EMPTY_ANSWER)


def test_where_only_parts_are_scored_the_whole_has_no_score() -> None:
    """The reason is that of the whole; its parts are not touched by it."""
    each = scored([4.0] * 6, reason=Reason.LANGUAGE)
    assert result_of(each, MANIFEST, Aggregation.SPAN_MAX) == nothing(Reason.LANGUAGE)
    assert result_of(each, MANIFEST, Aggregation.SPAN_MAX, part=LAST).score is not None


def test_evidence_that_is_not_read_is_not_covered() -> None:
    """By its share of the characters, and never all of it; the result says that a language is to blame."""
    found = result_of(scored([0.0] * 6, evidence_read=0.999), MANIFEST, Aggregation.SPAN_MAX)
    assert found.coverage is not None
    assert found.coverage.evidence_tokens_seen == 39
    assert found.reason is Reason.LANGUAGE
    found = result_of(scored([0.0] * 6, evidence_read=0.5), MANIFEST, Aggregation.SPAN_MAX)
    assert found.coverage is not None
    assert found.coverage.evidence_tokens_seen == 20


def test_joined_spans_leave_every_score_as_it_was() -> None:
    """Spans that are joined for people count as the findings that they were, under every aggregation."""
    text = "Red lamps burn."
    offsets = np.array([(0, 3), (4, 9), (10, 14), (14, 15)])
    reading = reading_of([4.0, -4.0, 3.0, -4.0], np.array([True] * 4), offsets, text)
    each = Scored(reading, Coverage(4, 4, 40, 40, 30, 1), 1.0, None)
    p = reading.probabilities(temperature=1.0)
    for aggregation in Aggregation:
        result = result_of(each, MANIFEST, aggregation)
        assert [(span.start, span.end) for span in result.spans] == [(0, 14)]
        apart = spans_of(p, offsets, MANIFEST.tau_span, text)
        assert len(apart) == 2
        assert result.score == MANIFEST.scoring.score(aggregation, p=p, spans=apart)

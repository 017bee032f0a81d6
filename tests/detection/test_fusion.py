"""Tests of ``truthlens.detection.fusion``."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.detectors import scored
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.verdict import Coverage, DetectorResult, Span
from truthlens.core.thresholds import at_rate
from truthlens.detection.fusion import fuse

probability = st.floats(0.0, 1.0)


def test_fuse_is_a_noisy_or_of_the_detectors_that_ran() -> None:
    """Each counts with its weight over the largest weight."""
    verdict = fuse([scored(0.5, weight=2.0), scored(0.4, detector="numbers")], threshold=0.6)
    assert verdict.status is Status.CHECKED
    assert verdict.reason is None
    assert verdict.score == pytest.approx(1 - 0.5 * 0.6**0.5)
    assert verdict.flagged


@given(probability, st.floats(0.01, 100.0))
def test_one_detector_alone_gives_its_own_score(score: float, weight: float) -> None:
    """Whatever its weight, to the last bit; also beside detectors that abstain."""
    alone = scored(score, weight=weight)
    nothing = DetectorResult("numbers", None, abstained=True, weight=7.0)
    assert fuse([alone], threshold=0.5).score == score
    both = fuse([alone, nothing], threshold=0.5)
    assert (both.score, both.status, both.reason) == (score, Status.CHECKED, None)


@given(probability, probability, st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_no_detector_lowers_the_score_of_the_heaviest(a: float, b: float, v: float, w: float) -> None:
    """A detector that finds nothing changes nothing, and one that finds something only adds to it."""
    first, second = scored(a, weight=max(v, w)), scored(b, detector="numbers", weight=min(v, w))
    fused = fuse([first, second], threshold=0.5).score
    assert fused is not None
    assert fused >= a - 1e-12
    assert fuse(
        [first, scored(0.0, detector="numbers", weight=min(v, w))], threshold=0.5
    ).score == pytest.approx(a)


@given(
    st.lists(st.tuples(probability, st.floats(0.01, 100.0)), max_size=4),
    st.floats(0.9, 1.0),
    st.floats(0.01, 100.0),
)
def test_a_detector_that_is_sure_is_not_outweighed(
    others: list[tuple[float, float]], sure: float, weight: float
) -> None:
    """One typed value that is surely wrong flags the answer at 0.6, whatever else was scored and how it weighs."""
    results = [scored(score, weight=own) for score, own in others]
    verdict = fuse([*results, scored(sure, detector="numbers", weight=weight)], threshold=0.6)
    assert verdict.score is not None
    assert 0.6 <= verdict.score <= 1.0


def test_the_expected_rate_shifts_the_fused_score_alone() -> None:
    """Its log-odds move by logit(rate); the detectors' own scores and the spans' stay at even odds."""
    one = replace(scored(0.5), spans=(Span(0, 3, 0.5),))
    fused = fuse([one, scored(0.4, detector="numbers")], threshold=0.6, expected_rate=0.2)
    assert fused.score == pytest.approx(at_rate(0.7, 0.2))
    assert [span.score for span in fused.spans] == [0.5]
    assert [result.score for result in fused.results] == [0.5, 0.4]
    assert fuse([one], threshold=0.6, expected_rate=0.2).score == pytest.approx(0.2)


def test_no_rate_shifts_a_fact() -> None:
    """A floor holds after the shift: a finding that is a fact is one also where errors are rare."""
    fact = DetectorResult("citations", 0.7, floor=0.6)
    assert fuse([fact], threshold=0.6, expected_rate=0.01).score == 0.6


def test_a_finding_that_is_a_fact_has_a_floor() -> None:
    """The score is at least the highest floor, whatever the scores are."""
    fact = DetectorResult("numbers", 0.3, floor=0.6)
    assert fuse([scored(0.1), fact], threshold=0.6).score == 0.6
    assert fuse([fact], threshold=0.6).score == 0.6


def test_fuse_says_unchecked_where_all_abstain() -> None:
    """Nothing was compared with the evidence, so the answer must not pass as checked."""
    verdict = fuse([DetectorResult("numbers", None, abstained=True)], threshold=0.6)
    assert (verdict.status, verdict.reason, verdict.score) == (Status.UNCHECKED, Reason.NO_CONTEXT, None)


def test_a_failure_beside_an_abstention_is_still_partial_or_unchecked() -> None:
    """Who abstains neither hides a failure nor stands in for a score."""
    failed = DetectorResult("judge", None, reason=Reason.TIMEOUT)
    nothing = DetectorResult("numbers", None, abstained=True)
    assert fuse([nothing, failed], threshold=0.6).reason is Reason.TIMEOUT
    verdict = fuse([nothing, failed, scored(0.4)], threshold=0.6)
    assert (verdict.status, verdict.reason, verdict.score) == (Status.PARTIAL, Reason.TIMEOUT, 0.4)


def test_fuse_says_partial_where_a_detector_did_not_run() -> None:
    """The others still give a score; the missing one gives the reason."""
    missing = DetectorResult("judge", None, reason=Reason.TIMEOUT, weight=5.0)
    verdict = fuse([scored(0.4), missing], threshold=0.6)
    assert (verdict.status, verdict.reason, verdict.score) == (Status.PARTIAL, Reason.TIMEOUT, 0.4)
    assert verdict.results == (scored(0.4), missing)


def test_fuse_says_too_large_where_coverage_is_incomplete() -> None:
    """A score over a part of the answer is never reported as checked."""
    verdict = fuse([scored(0.4, coverage=Coverage(10, 6, 8, 8))], threshold=0.6)
    assert (verdict.status, verdict.reason) == (Status.PARTIAL, Reason.TOO_LARGE)
    assert verdict.coverage == Coverage(10, 6, 8, 8)


def test_fuse_says_unchecked_where_none_ran() -> None:
    """Without any score the verdict carries none, and the first reason."""
    verdict = fuse(
        [
            DetectorResult("encoder", None, reason=Reason.LANGUAGE),
            DetectorResult("judge", None, reason=Reason.TIMEOUT),
        ],
        threshold=0.6,
    )
    assert (verdict.status, verdict.reason, verdict.score) == (Status.UNCHECKED, Reason.LANGUAGE, None)


def test_fuse_gathers_the_spans_in_order() -> None:
    """Spans of all detectors stand in the order of the text."""
    one = DetectorResult("encoder", 0.5, spans=(Span(10, 12, 0.5),))
    two = DetectorResult("numbers", 0.5, spans=(Span(3, 5, 0.9, "numbers"),))
    assert [span.start for span in fuse([one, two], threshold=0.5).spans] == [3, 10]


@given(st.lists(st.tuples(probability, st.floats(0.01, 100.0)), min_size=1, max_size=5), st.data())
def test_raising_a_detector_never_lowers_the_verdict(
    pairs: list[tuple[float, float]], data: st.DataObject
) -> None:
    """Fusion is monotone in every score and stays within 0..1."""
    place = data.draw(st.integers(0, len(pairs) - 1))
    raised = [*pairs]
    raised[place] = (data.draw(st.floats(pairs[place][0], 1.0)), pairs[place][1])
    before = fuse([scored(s, weight=w) for s, w in pairs], threshold=0.5).score
    after = fuse([scored(s, weight=w) for s, w in raised], threshold=0.5).score
    assert before is not None
    assert after is not None
    assert 0.0 <= before <= after + 1e-12
    assert after <= 1.0


@pytest.mark.parametrize(
    "results",
    [
        [DetectorResult("encoder", 1.5)],
        [DetectorResult("encoder", math.nan)],
        [scored(0.5, weight=0.0)],
        [DetectorResult("encoder", 0.5, floor=1.5)],
    ],
    ids=["above 1", "not a number", "no weight", "floor"],
)
def test_fuse_refuses_what_cannot_be_a_verdict(results: list[DetectorResult]) -> None:
    """A score or weight out of range raises and never becomes a verdict."""
    with pytest.raises(ValueError, match="expected"):
        fuse(results, threshold=0.5)

"""Tests of ``truthlens.lab.calibrate.flag_share``: the quantile of unlabelled scores, ties and too few of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.verdict import DetectorResult, Verdict, unchecked
from truthlens.lab.calibrate.conformal import UnattainableError
from truthlens.lab.calibrate.flag_share import (
    MOST_EXCESS,
    TrafficScores,
    score_traffic,
    shares_at,
    threshold_for_share,
)
from truthlens.lab.calibrate.threshold import score_labelled
from truthlens.lab.data.dataset import DataError, Example
from truthlens.lab.data.traffic import TrafficAnswer


def scores_of(values: Any, **unscored: int) -> TrafficScores:
    return TrafficScores(np.asarray(values, dtype=np.float64), unscored)


def test_the_threshold_flags_the_share() -> None:
    """Of a thousand different scores exactly the upper fifth."""
    values = np.random.default_rng(1).permutation(np.linspace(0.01, 0.99, 1000))
    found = threshold_for_share(scores_of(values), 0.2)
    assert (found.flagged, found.checked, found.share) == (200, 1000, 0.2)
    assert (values >= found.threshold).sum() == 200
    assert found.low < 0.2 < found.high
    assert found.high - found.low == pytest.approx(0.05, abs=0.01)


@given(
    st.lists(st.sampled_from([0.05, 0.1, 0.3, 0.31, 0.5, 0.7, 0.9, 1.0]), min_size=60, max_size=200),
    st.sampled_from([0.1, 0.2, 0.5, 0.8]),
)
def test_ties_never_exceed_the_share_by_much(values: list[float], share: float) -> None:
    """Whatever ties: at most a tenth beyond, and what is said is what the threshold flags."""
    try:
        found = threshold_for_share(scores_of(values), share)
    except UnattainableError:
        assert np.mean(np.array(values) == max(values)) > share
        return
    assert found.share <= share * (1 + MOST_EXCESS) + 1e-9
    assert found.flagged == (np.array(values) >= found.threshold).sum() > 0


def test_of_two_sides_of_a_tie_the_nearer_is_taken() -> None:
    """21 % is a tenth beyond 20 % at most and nearer than 5 %; 25 % is too many."""
    few, near = [0.9] * 5, [0.6] * 16
    assert threshold_for_share(scores_of([*few, *near, *[0.1] * 79]), 0.2).share == 0.21
    assert threshold_for_share(scores_of([*few, *[0.6] * 20, *[0.1] * 75]), 0.2).share == 0.05


def test_a_tie_at_the_top_cannot_be_divided() -> None:
    """The message says what share can be had."""
    with pytest.raises(UnattainableError, match=r"30\.0% of the checked answers share .* of 0\.3 or more"):
        threshold_for_share(scores_of([1.0] * 30 + [0.2] * 70), 0.2)


@pytest.mark.parametrize(
    ("count", "share", "needed"), [(19, 0.5, 20), (24, 0.2, 25), (24, 0.8, 25), (499, 0.01, 500)]
)
def test_too_few_answers_are_refused(count: int, share: float, needed: int) -> None:
    """A share of few answers says little of the next ones; with one more it goes."""
    with pytest.raises(DataError, match=f"needs at least {needed}"):
        threshold_for_share(scores_of(np.linspace(0, 1, count)), share)
    assert threshold_for_share(scores_of(np.linspace(0, 1, count + 1)), share).checked == needed


def test_nothing_checked_is_an_error_with_the_reasons() -> None:
    """An empty file, and one whose answers have no evidence."""
    with pytest.raises(DataError, match="no-context 7"):
        threshold_for_share(TrafficScores(np.zeros(0), {"no-context": 7}), 0.2)
    with pytest.raises(DataError, match="the file is empty"):
        threshold_for_share(scores_of([]), 0.2)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1])
def test_a_share_is_between_nothing_and_all(share: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        threshold_for_share(scores_of([0.5] * 30), share)


def test_shares_at_other_thresholds() -> None:
    assert shares_at([0.1, 0.5, 0.9, 0.9], {"low": 0.1, "high": 0.9}) == {"low": 1.0, "high": 0.5}


def test_answers_are_counted_by_why_they_were_not_checked() -> None:
    """Only checked ones have a score; a failing detector is an error."""
    verdicts = {
        "good": Verdict(Status.CHECKED, score=0.4),
        "none": unchecked(Reason.NO_CONTEXT),
        "fails": unchecked(Reason.DETECTOR_ERROR),
    }

    def scorer(_query: str, _passages: object, answer: str) -> Verdict:
        return verdicts[answer]

    found = score_traffic([TrafficAnswer("", ("c",), each) for each in ("good", "none", "good")], scorer)
    assert (found.scores.tolist(), found.unscored) == ([0.4, 0.4], {"no-context": 1})
    with pytest.raises(DetectorError, match="row 2"):
        score_traffic([TrafficAnswer("", ("c",), each) for each in ("good", "fails")], scorer)


def test_a_failure_behind_another_shortfall_is_an_error_too() -> None:
    """The verdict names one reason; the detector that failed may be another."""
    failed = DetectorResult("numbers", None, reason=Reason.DETECTOR_ERROR)
    verdict = Verdict(Status.PARTIAL, Reason.LANGUAGE, 0.4, results=(failed,))
    with pytest.raises(DetectorError, match="detector-error"):
        score_traffic([TrafficAnswer("", ("c",), "a")], lambda *_: verdict)
    row = Example("1", "own", "", "", ("c",), "a", 1, None, "g")
    with pytest.raises(DetectorError, match="detector-error"):
        score_labelled([row], lambda *_: verdict)

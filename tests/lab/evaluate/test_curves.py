"""Tests of ``truthlens.lab.evaluate.curves`` against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.lab.evaluate import curves, metrics

LABELS = [1, 0, 1, 0]
SCORES = [0.9, 0.8, 0.7, 0.1]


def test_each_distinct_score_is_a_threshold() -> None:
    """At 0.7: three flagged, two of them right, both positives found, one of two negatives flagged."""
    found = curves.threshold_curve(LABELS, SCORES)
    assert found.threshold.tolist() == [0.9, 0.8, 0.7, 0.1]
    assert found.precision.tolist() == pytest.approx([1, 1 / 2, 2 / 3, 1 / 2])
    assert found.recall.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert found.f1.tolist() == pytest.approx([2 / 3, 1 / 2, 4 / 5, 2 / 3])
    assert found.false_positive_rate.tolist() == [0.0, 0.5, 0.5, 1.0]


def test_a_missing_class_has_no_rate() -> None:
    """Without positives there is no recall, without negatives no false-positive rate."""
    assert np.isnan(curves.threshold_curve([0, 0], [0.1, 0.2]).recall).all()
    assert np.isnan(curves.threshold_curve([1, 1], [0.1, 0.2]).false_positive_rate).all()


def test_a_decision_is_as_sure_as_its_side_of_the_score() -> None:
    """Flagged at 0.9: 0.9; passed at 0.1: 0.9; passed at 0.5 under a threshold of 0.6: 0.5; never scored: last."""
    found = curves.confidence_of([0.9, 0.1, 0.5, 0.0], [True, True, True, False], threshold=0.6)
    assert found.tolist() == pytest.approx([0.9, 0.9, 0.5, -1.0])


def test_risk_is_the_error_rate_of_the_surest() -> None:
    """Right, wrong, right, wrong by falling confidence: risks 0, 1/2, 1/3, 1/2, and the area is their mean."""
    found = curves.risk_coverage([0.9, 0.8, 0.7, 0.6], [0, 1, 0, 1])
    assert found is not None
    assert found.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert found.risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    assert found.aurc == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert found.oracle == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)
    assert found.risk_at_full == 0.5


def test_rows_of_equal_confidence_share_their_errors() -> None:
    """The order of tied rows changes nothing: their risk is their mean error throughout."""
    first, second = (curves.risk_coverage([0.5] * 4, wrong) for wrong in ([1, 0, 0, 0], [0, 0, 0, 1]))
    assert first is not None
    assert second is not None
    assert first.risk.tolist() == second.risk.tolist() == [0.25] * 4
    assert first.aurc == second.aurc == 0.25


def test_nothing_has_no_curve() -> None:
    """No rows, or rows of no weight."""
    assert curves.risk_coverage([], []) is None
    assert curves.risk_coverage([0.5], [1], weights=[0.0]) is None


def test_bins_hold_mean_score_and_rate() -> None:
    """Two scores in the second bin, one of them positive; empty bins are left out."""
    low, high = curves.reliability_bins([1, 0, 1], [0.12, 0.18, 0.95], weights=[1.0, 3.0, 4.0])
    assert (low.rows, low.share) == (2, 0.5)
    assert (low.score, low.rate) == (pytest.approx((0.12 + 3 * 0.18) / 4), 0.25)
    assert low.low < low.rate < low.high
    assert (high.rows, high.rate, high.high) == (1, 1.0, 1.0)
    assert curves.reliability_bins([], []) == ()


def test_wilson_interval_of_the_textbook() -> None:
    """Half of 10: 0.237 to 0.763; none of 10: from 0 to 0.278."""
    assert curves.wilson(0.5, 10) == (pytest.approx(0.2366, abs=1e-4), pytest.approx(0.7634, abs=1e-4))
    assert curves.wilson(0.0, 10) == (0.0, pytest.approx(0.2775, abs=1e-4))


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=25))
def test_the_oracle_is_never_worse_and_the_last_risk_is_that_of_all(rows: list[tuple[bool, float]]) -> None:
    """No order has less area than right before wrong."""
    found = curves.risk_coverage([confidence for _, confidence in rows], [wrong for wrong, _ in rows])
    assert found is not None
    assert found.oracle <= found.aurc + 1e-9
    assert found.risk[-1] == pytest.approx(found.risk_at_full)
    assert found.coverage[-1] == pytest.approx(1.0)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.2, 0.5, 0.9]), st.integers(1, 3)), min_size=1))
def test_the_order_of_the_rows_changes_no_curve(rows: list[tuple[bool, float, int]]) -> None:
    """Forwards and backwards, the weighted area is one figure."""
    found = []
    for ordered in (rows, rows[::-1]):
        wrong, confidence, weights = ([row[column] for row in ordered] for column in range(3))
        curve = curves.risk_coverage(confidence, wrong, weights=weights)
        assert curve is not None
        found.append(curve.aurc)
    assert found[0] == pytest.approx(found[1])


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=25))
def test_bins_add_up_to_the_calibration_error(rows: list[tuple[bool, float]]) -> None:
    """The gaps of the diagram, weighed by their shares, are the ECE."""
    labels, scores = [label for label, _ in rows], [score for _, score in rows]
    gap = sum(one.share * abs(one.rate - one.score) for one in curves.reliability_bins(labels, scores))
    assert gap == pytest.approx(metrics.ece(labels, scores))

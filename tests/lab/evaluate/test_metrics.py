"""Tests of ``truthlens.lab.evaluate.metrics`` against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.lab.evaluate import metrics
from truthlens.lab.evaluate.metrics import PRF, Ranking, prf_of_spans, span_counts

LABELS = [1, 0, 1, 0]
SCORES = [0.9, 0.8, 0.7, 0.1]


def test_auroc_is_the_share_of_ordered_pairs() -> None:
    """Of four pairs (positive, negative) three are in order."""
    assert metrics.auroc(LABELS, SCORES) == pytest.approx(3 / 4)


def test_auroc_counts_ties_half() -> None:
    """A tie between the classes counts as half a pair."""
    assert metrics.auroc([1, 0], [0.5, 0.5]) == pytest.approx(0.5)
    assert metrics.auroc([1, 1, 0], [0.9, 0.5, 0.5]) == pytest.approx(0.75)


@pytest.mark.parametrize("labels", [[1, 1], [0, 0], []])
def test_auroc_needs_both_classes(labels: list[int]) -> None:
    """With one class there is no figure."""
    assert metrics.auroc(labels, [0.1] * len(labels)) is None


def test_auprc_is_average_precision() -> None:
    """Precision 1 at recall 1/2, 2/3 at recall 1: 1/2 x 1 + 1/2 x 2/3."""
    assert Ranking.of(LABELS, SCORES).auprc() == pytest.approx(0.5 + 1 / 3)


def test_auprc_takes_tied_scores_in_one_step() -> None:
    """All scores equal: precision is the base rate, in whatever order the rows stand."""
    assert Ranking.of([1, 0, 0, 0], [0.5] * 4).auprc() == pytest.approx(0.25)
    assert Ranking.of([0, 0, 0, 1], [0.5] * 4).auprc() == pytest.approx(0.25)
    assert Ranking.of([0, 0], [0.1, 0.2]).auprc() is None


def test_example_figures_count_scores_from_the_threshold_on() -> None:
    """At 0.7: predicted 0.9, 0.8, 0.7; two of them right, both gold ones found."""
    found = metrics.prf_of_flags(LABELS, np.array(SCORES) >= 0.7)
    assert found == PRF(pytest.approx(2 / 3), pytest.approx(1.0), pytest.approx(0.8))


def test_nothing_predicted_is_zero_not_an_error() -> None:
    """Empty denominators give zeros."""
    assert metrics.prf_of_flags(LABELS, [False] * 4) == PRF(0.0, 0.0, 0.0)
    assert metrics.char_prf([], []) == PRF(0.0, 0.0, 0.0)


def test_character_figures_are_of_unions_summed_over_answers() -> None:
    """Gold 10 + 0 characters, predicted 8 + 2, shared 5: P 5/10, R 5/10."""
    gold = [[(0, 10)], []]
    predicted = [[(5, 11), (9, 13)], [(0, 2)]]
    assert metrics.char_prf(gold, predicted) == PRF(
        pytest.approx(0.5), pytest.approx(0.5), pytest.approx(0.5)
    )


def test_overlapping_gold_spans_count_once() -> None:
    """Doubled marks are one union: all of it found is recall 1."""
    assert metrics.char_prf([[(0, 6), (4, 10)]], [[(0, 10)]]) == PRF(1.0, 1.0, 1.0)


def test_span_figures_need_any_overlap() -> None:
    """Two of three predicted spans touch gold; two of four gold spans are touched."""
    gold = [[(0, 5), (10, 15), (20, 25)], [(0, 3)]]
    predicted = [[(4, 6), (12, 13), (30, 40)], []]
    found = prf_of_spans(span_counts(gold, predicted), np.ones(2))
    assert (found.precision, found.recall) == (pytest.approx(2 / 3), pytest.approx(0.5))
    assert prf_of_spans(span_counts([[(0, 5)]], [[(5, 8)]]), np.ones(1)) == PRF(0.0, 0.0, 0.0)


def test_ece_is_the_weighted_gap_of_the_bins() -> None:
    """Bins [0.1, 0.1] with rate 0.5 and [0.9] with rate 1: 2/3 x 0.4 + 1/3 x 0.1."""
    assert metrics.ece([1, 0, 1], [0.1, 0.1, 0.9]) == pytest.approx(2 / 3 * 0.4 + 1 / 3 * 0.1)


def test_ece_of_equal_mass_puts_as_many_rows_in_each_bin() -> None:
    """Two bins of two rows: |0.5 - 0.15| / 2 + |1 - 0.65| / 2."""
    found = metrics.ece([0, 1, 1, 1], [0.1, 0.2, 0.6, 0.7], bins=2, equal_mass=True)
    assert found == pytest.approx(0.35)


def test_ece_weights_count_rows_more() -> None:
    """A row of weight 3 counts like three rows."""
    weighted = metrics.ece([1, 0], [0.15, 0.15], weights=[3.0, 1.0])
    assert weighted == pytest.approx(metrics.ece([1, 1, 1, 0], [0.15] * 4))


def test_a_score_of_one_is_in_the_last_bin() -> None:
    """Scores of exactly 0 and 1 have bins."""
    assert metrics.ece([0, 1], [0.0, 1.0]) == 0.0
    assert metrics.ece([], []) == 0.0


def test_brier_is_the_mean_square() -> None:
    """(0.1^2 + 0.8^2) / 2."""
    assert metrics.brier([1, 0], [0.9, 0.8]) == pytest.approx(0.325)
    assert metrics.brier([], []) == 0.0


def test_best_f1_names_the_threshold_that_reaches_it() -> None:
    """Best at 0.7: P 2/3, R 1, F1 0.8; and that threshold gives that F1."""
    f1, threshold = metrics.best_f1(LABELS, SCORES)
    assert (f1, threshold) == (pytest.approx(0.8), 0.7)
    assert metrics.prf_of_flags(LABELS, np.array(SCORES) >= threshold).f1 == pytest.approx(f1)
    assert metrics.best_f1([0, 0], [0.3, 0.4]) == (0.0, 1.0)


def test_thresholds_must_be_above_the_limit() -> None:
    """Scores at the limit are no threshold: flagging everything is not an operating point."""
    assert metrics.best_f1([1, 1, 0], [0.0, 0.4, 0.0], above=0.0) == (pytest.approx(2 / 3), 0.4)
    assert metrics.best_f1([1], [0.0], above=0.0) == (0.0, 1.0)


def test_of_near_equal_thresholds_the_highest_is_taken() -> None:
    """F1 is 2/3 at 0.9 and 0.8 at 0.7: with that much slack the higher threshold wins."""
    assert metrics.best_f1(LABELS, SCORES, slack=0.15) == (pytest.approx(0.8), 0.9)


def test_base_rate_weights_have_mean_one_and_the_rate() -> None:
    """Weighted, the positives are the wanted share; the total stays the number of rows."""
    labels = np.array([1, 1, 1, 0])
    weights = metrics.base_rate_weights(labels, base_rate=0.2)
    assert weights.sum() == pytest.approx(4)
    assert weights[labels == 1].sum() / weights.sum() == pytest.approx(0.2)
    assert metrics.base_rate_weights([1, 1], base_rate=0.2).tolist() == [1.0, 1.0]


def test_an_interval_spans_what_the_resamples_give() -> None:
    """With one group there is nothing to vary; with two that differ the interval spans them."""
    values = np.array([0.0, 1.0, 0.0, 1.0])

    def means(groups: list[str], rounds: int) -> list[float]:
        return [float(np.average(values, weights=mass)) for mass in metrics.resamples(groups, rounds=rounds)]

    assert metrics.interval(means(["a"] * 4, 20)) == [0.5, 0.5]
    assert metrics.interval(means(["a", "b", "a", "b"], 200)) == [0.0, 1.0]
    assert metrics.interval([None, None]) is None


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=40))
def test_auroc_turns_round_with_the_scores(rows: list[tuple[bool, float]]) -> None:
    """Reversed scores give one minus the area."""
    labels = [label for label, _ in rows]
    scores = np.round([score for _, score in rows], 3)
    area, turned = metrics.auroc(labels, scores), metrics.auroc(labels, -scores)
    if area is None or turned is None:
        assert len(set(labels)) == 1
    else:
        assert area == pytest.approx(1 - turned)


def test_weights_count_rows_as_often() -> None:
    """A row of weight 2 counts like two rows, in every figure that takes weights."""
    labels, scores, weights = [1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1], [1.0, 2.0, 3.0, 0.0]
    rows = [0, 1, 1, 2, 2, 2]
    doubled = [labels[row] for row in rows], [scores[row] for row in rows]
    assert metrics.auroc(labels, scores, weights=weights) == pytest.approx(metrics.auroc(*doubled))
    assert Ranking.of(labels, scores).auprc(weights) == pytest.approx(Ranking.of(*doubled).auprc())
    assert metrics.brier(labels, scores, weights=weights) == pytest.approx(metrics.brier(*doubled))
    assert metrics.best_f1(labels, scores, weights=weights) == pytest.approx(metrics.best_f1(*doubled))
    gold, predicted = [[(0, 4)], [(0, 2)]], [[(2, 6)], [(0, 2), (5, 6)]]
    twice = [gold[0], gold[1], gold[1]], [predicted[0], predicted[1], predicted[1]]
    assert metrics.char_prf(gold, predicted, weights=[1.0, 2.0]) == metrics.char_prf(*twice)
    assert prf_of_spans(span_counts(gold, predicted), np.array([1.0, 2.0])) == prf_of_spans(
        span_counts(*twice), np.ones(3)
    )


def test_a_class_of_no_weight_has_no_area() -> None:
    """Rows of weight 0 are not there."""
    assert metrics.auroc([1, 0], [0.9, 0.1], weights=[1.0, 0.0]) is None
    assert Ranking.of([1, 0], [0.9, 0.1]).auprc([0.0, 1.0]) is None
    assert metrics.ece([1], [0.2], weights=[0.0]) == 0.0


def test_resamples_draw_whole_groups_as_often_as_there_are_groups() -> None:
    """Rows of one group have one weight, and three groups are drawn three times."""
    groups = ["a", "b", "a", "c"]
    drawn = list(metrics.resamples(groups, rounds=50, seed=1))
    assert len(drawn) == 50
    assert all(weights[0] == weights[2] for weights in drawn)
    assert all(weights[[0, 1, 3]].sum() == 3 for weights in drawn)
    assert len({tuple(weights.tolist()) for weights in drawn}) > 5
    assert list(metrics.resamples([], rounds=50)) == []


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=25))
def test_weighted_areas_are_those_of_repeated_rows(rows: list[tuple[bool, float, int]]) -> None:
    """Whole weights and repeated rows give the same areas."""
    repeated = [(label, score) for label, score, count in rows for _ in range(count)]
    weights = [float(count) for _, _, count in rows]
    labels, scores = [label for label, _, _ in rows], [score for _, score, _ in rows]
    for area in (Ranking.auroc, Ranking.auprc):
        found = area(Ranking.of(labels, scores), weights)
        expected = area(Ranking.of([label for label, _ in repeated], [score for _, score in repeated]))
        assert found == pytest.approx(expected) if expected is not None else found is None

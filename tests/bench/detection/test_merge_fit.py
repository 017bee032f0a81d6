"""Tests of ``bench.detection.merge_fit``."""

from __future__ import annotations

import numpy as np
import pytest

from bench.detection.merge_fit import fit_merge
from truthlens.detection.detectors.encoder.merging import combine, statistics
from truthlens.lab.train.batches import IGNORED


def _answers(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-odds of three windows of which only the related one knows, its relevance, and the labels."""
    dice = np.random.default_rng(seed)
    labels = (dice.random(400) < 0.3).astype(np.int16)
    stacked = dice.normal(0.0, 2.0, (3, 400))
    relevance = np.zeros((3, 400))
    relevance[1] = 0.9
    stacked[1] = dice.normal(np.where(labels == 1, 2.0, -2.0), 1.0)
    return stacked, relevance, labels


def test_the_fit_believes_the_statistic_that_tells_the_classes_apart() -> None:
    """Where only the related window knows, the weighted mean gets the weight, and new answers come out right."""
    stacked, relevance, labels = _answers(0)
    weights = fit_merge([statistics(stacked, relevance)], [labels], temperature=1.0)
    assert weights[4] == max(weights[1:])
    stacked, relevance, labels = _answers(1)
    learned = combine(stacked, relevance, merge="learned", weights=weights)
    plain = combine(stacked, relevance, merge="mean")
    assert ((learned > 0) == (labels == 1)).mean() > ((plain > 0) == (labels == 1)).mean() + 0.1
    assert ((learned > 0) == (labels == 1)).mean() > 0.93


def test_the_temperature_is_made_up_for() -> None:
    """Divided by the temperature, the merge gives the fitted log-odds whatever the temperature."""
    stacked, relevance, labels = _answers(2)
    one, two = (
        np.array(fit_merge([statistics(stacked, relevance)], [labels], temperature=value)) / value
        for value in (1.0, 2.0)
    )
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_tokens_that_nobody_marked_do_not_count() -> None:
    """Ignored tokens change nothing, however wild."""
    stacked, relevance, labels = _answers(3)
    found = statistics(stacked, relevance)
    wild = np.full((4, 50), 99.0)
    ignored = np.full(50, IGNORED, dtype=np.int16)
    assert fit_merge([found], [labels], temperature=1.0) == fit_merge(
        [found, wild], [labels, ignored], temperature=1.0
    )


@pytest.mark.parametrize("labels", [[], [np.zeros(3, dtype=np.int16)]])
def test_one_class_alone_is_refused(labels: list[np.ndarray]) -> None:
    """Nothing can be fitted to supported tokens only."""
    with pytest.raises(ValueError, match="one class"):
        fit_merge([np.zeros((4, len(one))) for one in labels], labels, temperature=1.0)

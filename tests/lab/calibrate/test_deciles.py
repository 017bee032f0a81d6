"""Tests of ``truthlens.lab.calibrate.calibration``: even odds within each source, ties, one label alone."""

from __future__ import annotations

import numpy as np
import pytest

from truthlens.lab.calibrate.calibration import deciles_at_even_odds
from truthlens.lab.data.dataset import Example


def _rows(labels: list[int], source: str = "s") -> list[Example]:
    return [
        Example(str(n), source, "qa", "", ("c",), "r", label, None, str(n)) for n, label in enumerate(labels)
    ]


def test_balanced_answers_have_their_own_deciles() -> None:
    """Of a hundred different scores the tenth, the twentieth and so on."""
    scores = np.arange(1, 101) / 100
    found = deciles_at_even_odds(scores, _rows([0, 1] * 50))
    assert found == pytest.approx(tuple(step / 10 for step in range(1, 10)))


def test_rare_errors_count_for_half() -> None:
    """Ten errors at .9 among ninety supported answers at .1: half of the weight is on either."""
    found = deciles_at_even_odds([0.1] * 90 + [0.9] * 10, _rows([0] * 90 + [1] * 10))
    assert found == (0.1,) * 5 + (0.9,) * 4


def test_each_source_is_balanced_by_itself() -> None:
    """A source of many errors does not make up for one of few; one of a single label has no say."""
    rows = [*_rows([1] * 30 + [0] * 10, "a"), *_rows([1] * 10 + [0] * 30, "b"), *_rows([1] * 500, "c")]
    scores = [0.8] * 30 + [0.2] * 10 + [0.6] * 10 + [0.4] * 30 + [0.99] * 500
    found = deciles_at_even_odds(scores, rows)
    assert found == (0.2, 0.2, 0.4, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8)


@pytest.mark.parametrize("label", [0, 1])
def test_one_label_alone_has_no_even_odds(label: int) -> None:
    assert deciles_at_even_odds([0.1, 0.2], _rows([label] * 2)) is None

from dataclasses import replace

import pytest

from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.ranking import pairwise_ranking, twin_ranking

ROW = Example("r", "s", "qa", "q", ("first",), "a", 0, None, "g")
TWINS = [
    ROW,
    replace(ROW, context=("second",), label=1),
    replace(ROW, response="b", label=1),
    replace(ROW, response="b", context=("second",)),
]


@pytest.mark.parametrize(
    ("scores", "twins", "pairs"),
    [
        ([0.1, 0.9, 0.8, 0.2], 1.0, 1.0),
        ([0.9, 0.1, 0.2, 0.8], 0.0, 0.0),
        ([0.5, 0.5, 0.5, 0.5], 0.5, 0.5),
        # Wording alone: b above a whatever the evidence.
        ([0.1, 0.1, 0.9, 0.9], 0.5, 0.5),
    ],
)
def test_rankings(scores: list[float], twins: float, pairs: float) -> None:
    assert twin_ranking(TWINS, scores) == twins
    assert pairwise_ranking(TWINS, scores) == pairs


def test_without_both_labels_there_is_nothing_to_rank() -> None:
    assert twin_ranking([ROW], [0.3]) is None
    assert pairwise_ranking([replace(ROW, label=1)], [0.3]) is None
    # Answers of two groups are not compared.
    assert pairwise_ranking([ROW, replace(ROW, label=1, group="h")], [0.3, 0.4]) is None

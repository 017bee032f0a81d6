"""Tests of ``truthlens.lab.evaluate.score_table``: columns of scored answers, taken apart and put together."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import pytest

from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.score_table import EvaluationTally, ScoreTable

ROWS = [
    Example("1", "made", "qa", "q", ("c",), "aaaaaaaaaa", 1, ((0, 4),), "g1"),
    Example("2", "made", "qa", "q", ("c",), "bbbbbbbbbb", 0, (), "g1"),
    Example("3", "other", "", "q", ("c",), "cccccccccc", 1, None, "g2"),
]
SAID = ScoreTable(
    scores=np.array([0.9, 0.7, 0.0]),
    spans=(((2, 6),), ((0, 2), (4, 5)), ((0, 3),)),
    coverage=np.array([1.0, 0.5, 0.0]),
    seconds=np.array([0.1, 0.2, 0.3]),
    scored=np.array([True, True, False]),
    tokens=np.array([30.0, 20.0, 0.0]),
    readings=(None, None, None),
    detectors=("first", "second"),
    parts=np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.7, np.nan], [np.nan, 0.7]], [[np.nan, np.nan]] * 2]),
    abstained=np.array([[False, False], [False, True], [False, False]]),
)


def test_columns_hold_counts_and_labels_of_each_row() -> None:
    """Characters and spans are counted where people marked, and nowhere else."""
    tally = EvaluationTally.of(ROWS, SAID)
    assert len(tally) == 3
    assert tally.labels.tolist() == [True, False, True]
    assert tally.marked.tolist() == [True, True, False]
    assert tally.chars.tolist() == [[2, 4, 4], [0, 3, 0], [0, 0, 0]]
    assert tally.spans.tolist() == [[1, 1, 1, 1], [0, 2, 0, 0], [0, 0, 0, 0]]
    assert tally.any_span.all()
    assert (tally.group.tolist(), tally.source.tolist()) == (["g1", "g1", "g2"], ["made", "made", "other"])
    assert tally.task.tolist() == ["qa", "qa", ""]


def test_parts_joined_again_are_the_whole() -> None:
    """Taking rows and joining them loses nothing."""
    whole = EvaluationTally.of(ROWS, SAID)
    first = whole.source == "made"
    joined = EvaluationTally.join([whole.take(first), whole.take(~first)])
    for name in EvaluationTally.__dataclass_fields__:
        floats = name in ("parts", "blind")
        assert np.array_equal(getattr(joined, name), getattr(whole, name), equal_nan=floats)


def test_weights_make_the_base_rate() -> None:
    """By default every row counts once."""
    tally = EvaluationTally.of(ROWS, SAID)
    assert tally.weights(None).tolist() == [1.0, 1.0, 1.0]
    weights = tally.weights(0.2)
    assert weights @ tally.labels / weights.sum() == pytest.approx(0.2)


@dataclass(frozen=True, slots=True)
class Written(Example):
    """An answer whose author is known."""

    generator: str = ""


def test_a_row_keeps_the_model_that_wrote_it() -> None:
    """Where a row names its generator, the column has it."""
    rows = [Written(**{**asdict(row), "generator": "llama"}) for row in ROWS[:2]]
    tally = EvaluationTally.of([*rows, ROWS[2]], SAID)
    assert tally.generator.tolist() == ["llama", "llama", ""]


def test_no_rows_are_a_tally_too() -> None:
    """An empty file has columns, of no length."""
    nothing = ScoreTable(
        np.zeros(0),
        (),
        np.zeros(0),
        np.zeros(0),
        np.zeros(0, dtype=bool),
        np.zeros(0),
        (),
        (),
        np.zeros((0, 2, 2)),
        np.zeros((0, 2), dtype=bool),
    )
    tally = EvaluationTally.of([], nothing)
    assert len(tally) == 0
    assert len(EvaluationTally.join([tally, EvaluationTally.of(ROWS, SAID)])) == 3


def test_rows_know_their_twins_and_siblings() -> None:
    """Rows of one group share a key with one answer, or with one evidence; no text is kept."""
    twins = [Example(str(n), "made", "qa", "q", (c,), r, 0, None, "g") for n, (c, r) in enumerate(
        [("first", "a"), ("second", "a"), ("second", "b")])]  # fmt: skip
    tally = EvaluationTally.of(twins, SAID, blind=[0.1, 0.2, 0.3])
    assert tally.twin[0] == tally.twin[1] != tally.twin[2]
    assert tally.sibling[0] != tally.sibling[1] == tally.sibling[2]
    assert tally.blind.tolist() == [0.1, 0.2, 0.3]
    assert np.isnan(EvaluationTally.of(twins, SAID).blind).all()

"""Tests of ``truthlens.detection.detectors.encoder.merging``."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.detection.detectors.encoder.merging import (
    combine,
    merge_windows,
    quiet_punctuation,
    tokens_within,
)
from truthlens.detection.models.inputs.manifest import InputFormat, Merge
from truthlens.detection.models.inputs.windows import Window


def window(first: int, tokens: int, *, relevance: float | None = None) -> Window:
    """A window that holds ``tokens`` answer tokens from ``first`` on, with the same relevance for all."""
    ids = np.zeros(tokens + 2, dtype=np.int64)
    shares = None if relevance is None else np.full(tokens, relevance, dtype=np.float32)
    return Window(ids, ids, slice(1, tokens + 1), first, relevance=shares)


def test_evidence_windows_of_one_chunk_give_their_lowest_score() -> None:
    """A token that one window supports is supported."""
    merged = merge_windows([window(0, 2), window(0, 2)], [np.array([0.9, 0.1]), np.array([0.2, 0.8])], 2)
    assert merged.tolist() == [0.2, 0.1]


@pytest.mark.parametrize(
    ("merge", "expected"), [("min", [-3.0]), ("mean", [0.0]), ("nearest", [1.0]), ("weighted", [1.0])]
)
def test_merges_differ_in_which_window_they_believe(merge: Merge, expected: list[float]) -> None:
    """Lowest, mean, the window with the related evidence, and a mean that leans towards it."""
    windows = [window(0, 1, relevance=0.9), window(0, 1, relevance=0.1), window(0, 1, relevance=0.1)]
    scores = [np.array([1.0]), np.array([-3.0]), np.array([2.0])]
    np.testing.assert_allclose(merge_windows(windows, scores, 1, merge=merge), expected, atol=0.02)


def test_the_learned_merge_is_a_linear_form() -> None:
    """Constant, lowest, highest, mean and weighted mean, each with its weight."""
    windows = [window(0, 1, relevance=1.0), window(0, 1, relevance=0.0)]
    scores = [np.array([1.0]), np.array([-3.0])]
    for weights, expected in (
        ((0.5, 0.0, 0.0, 0.0, 0.0), 0.5),
        ((0.0, 1.0, 0.0, 0.0, 0.0), -3.0),
        ((0.0, 0.0, 1.0, 0.0, 0.0), 1.0),
        ((0.0, 0.0, 0.0, 1.0, 0.0), -1.0),
        ((0.0, 0.0, 0.0, 0.0, 1.0), 1.0),
    ):
        merged = merge_windows(windows, scores, 1, merge="learned", weights=weights)
        np.testing.assert_allclose(merged, [expected], atol=1e-3)


@pytest.mark.parametrize("merge", ["min", "mean", "nearest", "weighted", "learned"])
def test_a_chunk_with_one_window_keeps_its_scores(merge: Merge) -> None:
    """Where nothing is merged, no merging changes anything."""
    weights = (9.0, 9.0, 9.0, 9.0, 9.0) if merge == "learned" else None
    merged = merge_windows([window(0, 2)], [np.array([0.3, -2.0])], 2, merge=merge, weights=weights)
    assert merged.tolist() == [0.3, -2.0]


@given(
    st.integers(1, 5).flatmap(
        lambda windows: st.lists(
            st.tuples(st.floats(-9, 9), st.floats(0, 1)), min_size=windows * 2, max_size=windows * 2
        )
    ),
    st.sampled_from(["min", "mean", "nearest", "weighted"]),
)
def test_a_merged_score_lies_between_lowest_and_highest(
    cells: list[tuple[float, float]], merge: Merge
) -> None:
    """No merging but the learned one leaves the range of what the windows said."""
    stacked = np.array([score for score, _ in cells]).reshape(-1, 2)
    relevance = np.array([share for _, share in cells]).reshape(-1, 2)
    merged = combine(stacked, relevance, merge=merge)
    assert (merged >= stacked.min(axis=0) - 1e-9).all()
    assert (merged <= stacked.max(axis=0) + 1e-9).all()


def test_of_equally_related_windows_the_lowest_counts() -> None:
    """Without anything to choose by, ``nearest`` is any-window support."""
    stacked = np.array([[1.0, 5.0], [2.0, 4.0]])
    assert combine(stacked, np.zeros((2, 2)), merge="nearest").tolist() == [1.0, 4.0]


@pytest.mark.parametrize(
    "settings", [{"merge": "learned"}, {"merge": "min", "merge_weights": [0.0, 1.0, 0.0, 0.0, 0.0]}]
)
def test_learned_weights_and_learned_merge_belong_together(settings: dict[str, object]) -> None:
    """A manifest with one but not the other is refused."""
    with pytest.raises(ValueError, match="merge_weights"):
        InputFormat.model_validate(settings)


def test_overlapping_chunks_give_the_score_with_the_most_context() -> None:
    """In an overlap the chunk counts in which the token is further from the edge."""
    first, second = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.6, 0.7, 0.8, 0.9])
    merged = merge_windows([window(0, 4), window(2, 4)], [first, second], 6)
    assert merged.tolist() == [0.1, 0.2, 0.3, 0.7, 0.8, 0.9]


def test_a_token_in_no_window_has_no_score() -> None:
    """What was not scored is NaN, not 0."""
    merged = merge_windows([window(0, 2)], [np.array([0.1, 0.2])], 3)
    assert merged[:2].tolist() == [0.1, 0.2]
    assert np.isnan(merged[2])


def test_tokens_within_ranges() -> None:
    """Only tokens that lie wholly in a range are in it; a leading blank of the first one does not count."""
    text = "No. Sure thing. Yes"
    offsets = np.array([(0, 2), (2, 3), (3, 8), (8, 14), (14, 15), (15, 19)])
    assert tokens_within(offsets, text, [(4, 8)]).tolist() == [False, False, True, False, False, False]
    assert tokens_within(offsets, text, [(0, 3), (4, 15)]).tolist() == [True, True, True, True, True, False]


def test_no_ranges_hold_no_token() -> None:
    """Without ranges the mask is all false."""
    assert not tokens_within(np.array([(0, 2)]), "ab", []).any()


def test_punctuation_is_never_louder_than_the_words_around_it() -> None:
    """A lone comma falls to its louder neighbour, one between two suspicious words keeps its value."""
    text = "Tea , is 5 % free ."
    offsets = np.array([(0, 3), (4, 5), (6, 8), (9, 10), (11, 12), (13, 17), (18, 19)])
    values = np.array([0.1, 0.9, 0.2, 0.8, 0.7, 0.9, np.nan])
    quiet = quiet_punctuation(values, offsets, text)
    np.testing.assert_array_equal(quiet[:6], [0.1, 0.2, 0.2, 0.8, 0.7, 0.9])
    assert np.isnan(quiet[6])
    np.testing.assert_array_equal(quiet_punctuation(np.array([0.9]), np.array([(1, 2)]), "a."), [-np.inf])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=20))
def test_quiet_punctuation_commutes_with_monotone_maps(tokens: list[tuple[float, bool]]) -> None:
    """Calibrating before or after gives the same values."""
    text = "".join("a" if word else "." for _, word in tokens)
    offsets = np.array([(i, i + 1) for i in range(len(tokens))])
    values = np.array([value for value, _ in tokens])
    np.testing.assert_allclose(
        np.exp(quiet_punctuation(values, offsets, text)),
        quiet_punctuation(np.exp(values), offsets, text).clip(0),
    )

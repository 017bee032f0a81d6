"""Tests of ``truthlens.detection.merging``."""

from __future__ import annotations

import numpy as np

from truthlens.detection.merging import merge_windows, tokens_within
from truthlens.detection.windows import Window


def window(first: int, tokens: int) -> Window:
    """A window that holds ``tokens`` answer tokens from ``first`` on."""
    ids = np.zeros(tokens + 2, dtype=np.int64)
    return Window(ids, ids, slice(1, tokens + 1), first)


def test_evidence_windows_of_one_chunk_give_their_lowest_score() -> None:
    """A token that one window supports is supported."""
    merged = merge_windows([window(0, 2), window(0, 2)], [np.array([0.9, 0.1]), np.array([0.2, 0.8])], 2)
    assert merged.tolist() == [0.2, 0.1]


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

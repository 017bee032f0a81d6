"""Token scores of overlapping windows brought together, and token masks from character ranges. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.windows import Window


def merge_windows(
    windows: Sequence[Window], scores: Sequence[NDArray[np.float64]], tokens: int
) -> NDArray[np.float64]:
    """One score per answer token.

    Windows that hold the same answer chunk differ in their evidence: there the lowest score counts, because a token
    is supported as soon as some window supports it. Where chunks overlap, the chunk counts in which the token
    stands furthest from the edge, for it has the most context there; the answer's own ends are no edges.

    Args:
        windows: the inputs.
        scores: per window the scores of its answer tokens.
        tokens: length of the answer in tokens.

    Returns:
        Shape (tokens,), float64; NaN where no window holds the token.
    """
    chunks: dict[tuple[int, int], NDArray[np.float64]] = {}
    for window, values in zip(windows, scores, strict=True):
        key = (window.first, len(values))
        chunks[key] = np.minimum(chunks[key], values) if key in chunks else values
    merged = np.full(tokens, np.nan)
    depth = np.full(tokens, -1.0)
    for (first, length), values in chunks.items():
        place = np.arange(length, dtype=np.float64)
        before = place if first > 0 else np.full(length, np.inf)
        after = place[::-1] if first + length < tokens else np.full(length, np.inf)
        here = np.minimum(before, after)
        part = slice(first, first + length)
        deeper = here > depth[part]
        merged[part] = np.where(deeper, values, merged[part])
        depth[part] = np.where(deeper, here, depth[part])
    return merged


def tokens_within(
    offsets: NDArray[np.int64], text: str, ranges: Sequence[tuple[int, int]]
) -> NDArray[np.bool_]:
    """Which tokens lie wholly within one of ``ranges``; white space before a range belongs to it.

    Args:
        offsets: character ranges of the tokens, shape (tokens, 2).
        text: what the offsets point into.
        ranges: character ranges in order, not overlapping.

    Returns:
        Shape (tokens,).
    """
    if not ranges:
        return np.zeros(len(offsets), dtype=np.bool_)
    starts = np.array([_before_space(text, start) for start, _ in ranges])
    ends = np.array([end for _, end in ranges])
    at = np.searchsorted(starts, offsets[:, 0], side="right") - 1
    within: NDArray[np.bool_] = (at >= 0) & (offsets[:, 1] <= ends[np.maximum(at, 0)])
    return within


def _before_space(text: str, start: int) -> int:
    while start > 0 and text[start - 1].isspace():
        start -= 1
    return start


def quiet_punctuation(
    values: NDArray[np.float64], offsets: NDArray[np.int64], text: str
) -> NDArray[np.float64]:
    """``values`` with no token of mere punctuation above both of the words around it.

    A lone comma claims nothing, whatever the model thinks of it; within a span it keeps the span together. Only
    compares values, so probabilities and log-odds come out alike.

    Args:
        values: shape (tokens,); NaN where a token was not scored.
        offsets: character ranges of the tokens, shape (tokens, 2).
        text: what the offsets point into.

    Returns:
        Shape (tokens,).
    """
    words = np.array([any(map(str.isalnum, text[start:end])) for start, end in offsets], dtype=np.bool_)
    if words.all():
        return values
    known = np.where(words & ~np.isnan(values), values, -np.inf)
    places = np.arange(len(values))
    before = np.maximum.accumulate(np.where(words, places, -1))
    after = np.minimum.accumulate(np.where(words, places, len(values))[::-1])[::-1]
    padded = np.append(known, -np.inf)  # index -1 and index len both mean "no word there"
    loudest = np.maximum(padded[before], padded[after])
    return np.where(words | np.isnan(values), values, np.minimum(values, loudest))

"""Token scores of overlapping windows brought together, and token masks from character ranges. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.models.inputs.manifest import Merge, MergeWeights
from truthlens.detection.models.inputs.windows import Window

# A window that holds a tenth more of a sentence's rare words weighs e times as much.
_STEEPNESS = 10.0
_EQUAL = 1e-6


def merge_windows(
    windows: Sequence[Window],
    scores: Sequence[NDArray[np.float64]],
    tokens: int,
    *,
    merge: Merge = "min",
    weights: MergeWeights | None = None,
) -> NDArray[np.float64]:
    """Merge the scores of all windows into one score per answer token.

    Windows that hold the same answer chunk differ in their evidence; there ``merge`` says what counts:

    - ``min``: the lowest score, because a token is supported as soon as some window supports it.
    - ``mean``: all windows alike.
    - ``nearest``: the window that holds most of the rare words of the token's sentence (of equals, the
      lowest).
    - ``weighted``: the mean, with weights that rise steeply with that share.
    - ``learned``: a linear form of lowest, highest, mean and weighted mean, fitted on held-out answers.

    A chunk with one window keeps its scores. Where chunks overlap, the chunk counts in which the token is
    furthest from the edge, for it has the most context there; the answer's own ends are no edges.

    Args:
        windows: the inputs; ``nearest``, ``weighted`` and ``learned`` need their ``relevance``.
        scores: per window the scores of its answer tokens. ``min`` and ``nearest`` take any scale, the others
            are meant for log-odds.
        tokens: length of the answer in tokens.
        merge: see above.
        weights: of ``learned``.

    Returns:
        Shape (tokens,), float64; NaN where no window holds the token.
    """
    merged = np.full(tokens, np.nan)
    depth = np.full(tokens, -1.0)
    for first, stacked, relevance in by_chunk(windows, scores):
        values = stacked[0]
        if len(stacked) > 1:
            values = combine(stacked, relevance, merge=merge, weights=weights)
        length = len(values)
        place = np.arange(length, dtype=np.float64)
        before = place if first > 0 else np.full(length, np.inf)
        after = place[::-1] if first + length < tokens else np.full(length, np.inf)
        here = np.minimum(before, after)
        part = slice(first, first + length)
        deeper = here > depth[part]
        merged[part] = np.where(deeper, values, merged[part])
        depth[part] = np.where(deeper, here, depth[part])
    return merged


def by_chunk(
    windows: Sequence[Window], scores: Sequence[NDArray[np.float64]]
) -> list[tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
    """Return, per answer chunk, its first token and its windows' scores and relevance, as arrays.

    Relevance is 0 throughout where the windows carry none, which ``min`` and ``mean`` do not ask for.
    """
    chunks: dict[tuple[int, int], list[int]] = {}
    for number, (window, values) in enumerate(zip(windows, scores, strict=True)):
        chunks.setdefault((window.first, len(values)), []).append(number)
    return [
        (
            first,
            np.stack([scores[number] for number in numbers]),
            np.stack([_relevance(windows[number], length) for number in numbers]),
        )
        for (first, length), numbers in chunks.items()
    ]


def combine(
    stacked: NDArray[np.float64],
    relevance: NDArray[np.float64],
    *,
    merge: Merge,
    weights: MergeWeights | None = None,
) -> NDArray[np.float64]:
    """Merge the scores of one chunk's windows into shape (tokens,); see ``merge_windows``.

    Args:
        stacked: shape (windows, tokens).
        relevance: same shape, 0..1.
        merge: how.
        weights: of ``learned``.
    """
    match merge:
        case "min":
            combined = stacked.min(axis=0)
        case "mean":
            combined = stacked.mean(axis=0)
        case "nearest":
            best = relevance >= relevance.max(axis=0) - _EQUAL
            combined = np.where(best, stacked, np.inf).min(axis=0)
        case "weighted":
            combined = _weighted(stacked, relevance)
        case "learned":
            assert weights is not None, "the manifest demands weights with learned"
            combined = weights[0] + np.asarray(weights[1:]) @ statistics(stacked, relevance)
    return np.asarray(combined, dtype=np.float64)


def statistics(stacked: NDArray[np.float64], relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an array (4, tokens): lowest, highest, mean and weighted mean over the windows."""
    return np.stack(
        [stacked.min(axis=0), stacked.max(axis=0), stacked.mean(axis=0), _weighted(stacked, relevance)]
    )


def _weighted(stacked: NDArray[np.float64], relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    raised = np.exp(_STEEPNESS * (relevance - relevance.max(axis=0)))
    return np.asarray((raised * stacked).sum(axis=0) / raised.sum(axis=0), dtype=np.float64)


def _relevance(window: Window, length: int) -> NDArray[np.float64]:
    return np.zeros(length) if window.relevance is None else window.relevance.astype(np.float64)


def tokens_within(
    offsets: NDArray[np.int64], text: str, ranges: Sequence[tuple[int, int]]
) -> NDArray[np.bool_]:
    """Return which tokens lie wholly within one of ``ranges``; white space before a range belongs to it.

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
    """Return ``values`` where no punctuation token is above both of the words around it.

    A lone comma claims nothing, whatever the model thinks of it; within a span it keeps the span together.
    Only compares values, so probabilities and log-odds come out alike.

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

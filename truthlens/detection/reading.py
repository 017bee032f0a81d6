"""The token scores of one answer, from the model's log-odds per window: the one place where they are put together.

Serving, calibration and evaluation all read them here, so that what is fitted and measured is what is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truthlens.core.text import sentences
from truthlens.detection.claims import claimless_ranges
from truthlens.detection.manifest import InputFormat
from truthlens.detection.merging import merge_windows, quiet_punctuation, tokens_within
from truthlens.detection.scripts import readable
from truthlens.detection.windows import Window


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The tokens of one answer.

    ``odds`` has shape (tokens,), float64: log-odds before the temperature, -inf where a token cannot be suspicious
    (its sentence claims nothing, no window held it, or the model does not read its script). ``scored`` has the same
    shape: whether a window held the token and the model reads it. ``offsets`` are its characters in ``text``. ``unread``
    are the sentences, as character ranges, in a script that the model does not read. ``query`` is what the user asked.
    """

    odds: NDArray[np.float64]
    scored: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    text: str
    unread: tuple[tuple[int, int], ...] = ()
    query: str = ""

    def probabilities(self, *, temperature: float, shift: float = 0.0) -> NDArray[np.float64]:
        """Shape (tokens,), 0..1: the probability that a token is unsupported; 0 where ``odds`` is -inf."""
        silent = np.isneginf(self.odds)
        return np.where(silent, 0.0, sigmoid((np.where(silent, 0.0, self.odds) + shift) / temperature))


def read_answer(
    windows: Sequence[Window],
    odds: Sequence[NDArray[np.floating]],
    *,
    offsets: NDArray[np.int64],
    text: str,
    query: str,
    fmt: InputFormat,
    languages: Sequence[str] = ("*",),
) -> Reading:
    """The answer's token scores, merged over its windows.

    Args:
        windows: the answer's windows.
        odds: per window the log-odds of its answer tokens.
        offsets: character ranges of the answer's tokens, shape (tokens, 2).
        text: the answer.
        query: what the user asked: sentences that only repeat it claim nothing.
        fmt: how the windows of one chunk are merged.
        languages: that the model reads.
    """
    merged = merge_windows(
        windows, [values.astype(np.float64) for values in odds], len(offsets), merge=fmt.merge, weights=fmt.merge_weights
    )  # fmt: skip
    merged = quiet_punctuation(merged, offsets, text)
    unread = _unread(text, languages)
    scored = ~np.isnan(merged) & ~tokens_within(offsets, text, unread)
    claimless = tokens_within(offsets, text, claimless_ranges(text, query=query))
    return Reading(np.where(scored & ~claimless, merged, -np.inf), scored, offsets, text, unread, query)


def sigmoid(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logistic function, without overflow."""
    small = np.exp(-np.abs(odds))
    return np.where(odds >= 0, 1.0, small) / (1.0 + small)


def _unread(text: str, languages: Sequence[str]) -> tuple[tuple[int, int], ...]:
    if text.isascii():
        return ()
    return tuple((start, end) for start, end in sentences(text) if not readable(text[start:end], languages))

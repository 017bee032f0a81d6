"""Merge the log-odds of all windows into the token scores of one answer.

No other module does.

Serving, calibration and evaluation all read them here, so that what is fitted and measured is what is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.detectors.encoder.merging import merge_windows, quiet_punctuation, tokens_within
from truthlens.detection.models.inputs.manifest import InputFormat
from truthlens.detection.models.inputs.windows import Window
from truthlens.text.claims.non_claims import claimless_ranges
from truthlens.text.language import unread
from truthlens.text.spans import merge_ranges

_ALL = slice(None)
_VALUE_TOKENS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The tokens of one answer.

    ``odds`` has shape (tokens,), float64: log-odds before the temperature, -inf where a token cannot be suspicious
    (its sentence claims nothing, no window held it, or the model does not read its language). ``scored`` has the same
    shape: whether a window held the token and the model reads it; ``words``, ``phrases`` and ``inserted``, too: whether it
    has a letter or digit, is of a phrase that claims nothing, and is not the answer's. ``offsets`` are its characters in ``text``. ``unread``
    are the sentences, as character ranges, in a language that the model does not read.
    ``values`` are the values of JSON in it, as character ranges.
    """

    odds: NDArray[np.float64]
    scored: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    text: str
    words: NDArray[np.bool_]
    phrases: NDArray[np.bool_]
    inserted: NDArray[np.bool_]
    unread: tuple[tuple[int, int], ...] = ()
    values: tuple[tuple[int, int], ...] = ()

    def probabilities(self, *, temperature: float, shift: float = 0.0) -> NDArray[np.float64]:
        """Return the probability that each token is unsupported, shape (tokens,), 0..1.

        It is 0 where ``odds`` is -inf.
        """
        silent = np.isneginf(self.odds)
        return np.where(silent, 0.0, sigmoid((np.where(silent, 0.0, self.odds) + shift) / temperature))

    def counted(self, p: NDArray[np.float64], own: slice = _ALL) -> NDArray[np.float64]:
        """Return the part of ``p``, the probabilities of the tokens ``own``, that the response score counts.

        A value of JSON is a claim of its own, however short: one of fewer than three tokens counts as three,
        its worst. Otherwise a wrong figure of one token would differ from noise only by the length of the
        text around it.
        """
        if not self.values:
            return p
        ends = self.offsets[own, 1]
        added = [p]
        for start, end in self.values:
            first, last = np.searchsorted(ends, [start, end], side="right")
            if 0 < last - first < _VALUE_TOKENS:
                added.append(np.full(_VALUE_TOKENS - (last - first), p[first:last].max()))
        return np.concatenate(added)


def read_answer(
    windows: Sequence[Window],
    odds: Sequence[NDArray[np.floating]],
    *,
    offsets: NDArray[np.int64],
    text: str,
    query: str,
    fmt: InputFormat,
    languages: Sequence[str] = ("*",),
    silent: Sequence[tuple[int, int]] = (),
    values: Sequence[tuple[int, int]] = (),
) -> Reading:
    """Return the answer's token scores, merged over its windows.

    Args:
        windows: the answer's windows.
        odds: per window the log-odds of its answer tokens.
        offsets: character ranges of the answer's tokens, shape (tokens, 2).
        text: the answer.
        query: what the user asked; it helps to tell the answer's language.
        fmt: how the windows of one chunk are merged.
        languages: that the model reads.
        silent: characters that are not the answer's, such as those between the values of JSON.
        values: characters of the values of JSON.
    """
    merged = merge_windows(
        windows, [values.astype(np.float64) for values in odds], len(offsets), merge=fmt.merge, weights=fmt.merge_weights
    )  # fmt: skip
    merged = quiet_punctuation(merged, offsets, text)
    foreign = unread(text, languages, before=query)
    scored = ~np.isnan(merged) & ~tokens_within(offsets, text, foreign)
    inserted = tokens_within(offsets, text, merge_ranges(silent))
    phrases = tokens_within(offsets, text, claimless_ranges(text)) & ~inserted
    odds_of_claims = np.where(scored & ~phrases & ~inserted, merged, -np.inf)
    words = np.array([any(map(str.isalnum, text[start:end])) for start, end in offsets], dtype=np.bool_)
    return Reading(odds_of_claims, scored, offsets, text, words, phrases, inserted, foreign, tuple(values))


def sigmoid(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logistic function, without overflow."""
    small = np.exp(-np.abs(odds))
    return np.where(odds >= 0, 1.0, small) / (1.0 + small)

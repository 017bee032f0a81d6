"""Aggregate token scores to spans and one response score (white paper, definition 4 and 3.1.3).

Pure numerics in float64: no model, no tokenizer, no I/O. It does not calibrate: the probabilities that come
in already carry the model's temperature.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truthlens.core.records.enums import Aggregation
from truthlens.core.records.verdict import Span
from truthlens.text.scripts import UNSPACED
from truthlens.text.spans import trimmed

CLIP = 1e-6
"""Probabilities are held below ``1 - CLIP`` in products, so that no single token makes a score exactly 1."""

_WORST_TOKENS = 3
# Scripts that write no space between words: there, neighbouring characters are not parts of one word.
_WORD = re.compile(rf"[^\W_{UNSPACED}]+")
_STOPS = ".,;:!?。，；：！？"
_IN_NUMBER = re.compile(r"\d+[.,]\d+")


def worst_tokens(p: ArrayLike, tau: float) -> float:
    """Return the mean of the three highest token scores above ``tau``, missing ones counted as 0; in 0..1."""
    scores = np.asarray(p, dtype=np.float64)
    top = np.sort(scores[scores > tau])[-_WORST_TOKENS:]
    return float(top.sum() / _WORST_TOKENS)


def noisy_or(p: ArrayLike, tau: float, exponent: float = 1.0) -> float:
    """Return the response score ``1 - prod((1 - p_i) ** exponent)`` over the tokens with ``p_i > tau``.

    Computed in log space, because the product reaches exactly 0 in float32. Raising any ``p_i`` never lowers
    it.

    Args:
        p: token probabilities, shape (tokens,), each 0..1.
        tau: the model's ``tau_token``; tokens at or below it do not count.
        exponent: 1/c of the tempered form, above 0 and at most 1; 1 is the white paper's formula.

    Returns:
        0..1; 0.0 where no token is above ``tau``.

    Raises:
        ValueError: a probability is not a number in 0..1, or the exponent is out of range.

    Source: white paper, definition 4.
    """
    if not 0.0 < exponent <= 1.0:
        raise ValueError(f"the Noisy-OR exponent is {exponent}; expected above 0 and at most 1")
    values = _probabilities(p)
    above = np.minimum(values[values > tau], 1.0 - CLIP)
    return float(-np.expm1(exponent * np.log1p(-above).sum()))


def spans_of(
    p: ArrayLike, offsets: NDArray[np.int64], tau: float, text: str, *, detector: str = "encoder"
) -> tuple[Span, ...]:
    """Return the maximal runs of tokens with ``p >= tau`` as spans of ``text``.

    A span's score is its highest token.

    Runs that are separated only by white space, or that are pieces of one word or number, are one span. White
    space at a span's edges is trimmed (byte-pair tokens begin with their space) and a span of nothing else is
    dropped; so is a full stop before a span's first word, which belongs to the previous sentence.

    Args:
        p: token probabilities, shape (tokens,), each 0..1.
        offsets: character ranges of the tokens in ``text``, shape (tokens, 2), in order.
        tau: the lowest probability of a token that belongs to a span.
        text: the answer.
        detector: the name that the spans carry.

    Raises:
        ValueError: a probability is not a number in 0..1, or the shapes do not fit.

    Source: white paper, definition 4 and 3.1.3.
    """
    values = _probabilities(p)
    if offsets.shape != (len(values), 2):
        raise ValueError(f"offsets have shape {offsets.shape}; expected ({len(values)}, 2)")
    found: list[tuple[int, int, float]] = []
    newest = -2  # index of the newest token of the newest run
    for index in np.flatnonzero(values >= tau).tolist():
        adjacent = index == newest + 1
        start, end = trimmed(text, int(offsets[index, 0]), int(offsets[index, 1]))
        if start >= end:
            newest = index if adjacent else newest
            continue
        score = float(values[index])
        if found and (adjacent or _is_one(text, found[-1][1], start)):
            first, last, best = found[-1]
            found[-1] = (first, max(last, end), max(best, score))
        else:
            found.append((start, end, score))
        newest = index
    return tuple(
        Span(start=_after_stop(text, s, e), end=e, score=score, detector=detector) for s, e, score in found
    )


def span_max(spans: Sequence[Span]) -> float:
    """Return the highest span score, 0..1; 0.0 without spans.

    Raising a token's probability never lowers it.

    Source: white paper 3.1.3, the alternative by spans.
    """
    return max((span.score for span in spans), default=0.0)


def span_noisy_or(spans: Sequence[Span]) -> float:
    """Return Noisy-OR over span scores, 0..1; 0.0 without spans; never below ``span_max``.

    Raising a token that leaves the spans where they are never lowers it. A token that joins two spans can:
    two independent faults have then become one, and Noisy-OR counts independent faults.
    """
    scores = np.minimum(_probabilities([span.score for span in spans]), 1.0 - CLIP)
    return max(span_max(spans), float(-np.expm1(np.log1p(-scores).sum())))


def aggregate(
    aggregation: Aggregation, *, p: ArrayLike, spans: Sequence[Span], tau: float, exponent: float = 1.0
) -> float:
    """Return the response score, 0..1, by the aggregation that the plan or the model's manifest names.

    ``exponent`` tempers ``noisy_or`` alone: within a span, tokens are already counted once.
    """
    match aggregation:
        case Aggregation.NOISY_OR:
            return noisy_or(p, tau, exponent)
        case Aggregation.SPAN_MAX:
            return span_max(spans)
        case Aggregation.SPAN_NOISY_OR:
            return span_noisy_or(spans)


def _probabilities(p: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"probabilities have shape {values.shape}; expected (tokens,)")
    if not bool(np.all((values >= 0.0) & (values <= 1.0))):
        raise ValueError("a token probability is outside 0..1 or not a number")
    return values


def _after_stop(text: str, start: int, end: int) -> int:
    """Return ``start`` past a full stop or comma of the previous sentence, if words follow in the span."""
    at = start
    while at < end and (text[at].isspace() or text[at] in _STOPS):
        at += 1
    return at if at < end else start


def _is_one(text: str, last: int, start: int) -> bool:
    """Return whether the text between ``last`` and ``start`` is white space or inside a word or number."""
    gap = text[last:start]
    if not gap or gap.isspace():
        return True
    around = text[max(0, last - 1) : start + 1]
    return _WORD.fullmatch(around) is not None or _IN_NUMBER.fullmatch(around) is not None

"""Figures of a detector on labelled answers, in numpy alone; ``docs/evaluation.md`` has their definitions.

Example: gold is "any unsupported part", predicted is "score reaches the threshold". Span and character: per
answer the union of gold characters and of predicted ones, sums over all answers. Ties in scores are handled
exactly (AUROC counts them half; AUPRC steps once per distinct score). Rows may carry weights: those of a base
rate, of a resample, or the product of both. Curves are in ``curves``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truthlens.text.spans import merge_ranges

Floats = NDArray[np.float64]
Ranges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PRF:
    """Precision, recall and F1 of the positive class, 0..1; 0.0 where a denominator is 0."""

    precision: float
    recall: float
    f1: float


def prf(true_positive: float, predicted: float, gold: float) -> PRF:
    """Return precision, recall and F1 from counts: how many were right, predicted, and there."""
    return _prf(true_positive / predicted if predicted else 0.0, true_positive / gold if gold else 0.0)


def _prf(precision: float, recall: float) -> PRF:
    total = precision + recall
    return PRF(precision, recall, 2 * precision * recall / total if total else 0.0)


def prf_of_flags(labels: ArrayLike, flagged: ArrayLike, *, weights: ArrayLike | None = None) -> PRF:
    """Return the figures at example level, of rows that are flagged or not."""
    gold, predicted = np.asarray(labels, dtype=bool), np.asarray(flagged, dtype=bool)
    mass = _mass(weights, len(gold))
    return prf(*(float(mass[rows].sum()) for rows in (gold & predicted, predicted, gold)))


def char_counts(gold: Sequence[Ranges], predicted: Sequence[Ranges]) -> Floats:
    """Return per answer the characters (shared, predicted, gold), shape (answers, 3)."""
    counts = np.zeros((len(gold), 3))
    for row, (gold_ranges, predicted_ranges) in enumerate(zip(gold, predicted, strict=True)):
        gold_union, predicted_union = merge_ranges(gold_ranges), merge_ranges(predicted_ranges)
        counts[row] = _shared(gold_union, predicted_union), _length(predicted_union), _length(gold_union)
    return counts


def char_prf(gold: Sequence[Ranges], predicted: Sequence[Ranges], *, weights: ArrayLike | None = None) -> PRF:
    """Return the figures at character level over many answers, each with its gold and predicted ranges."""
    return prf_of_chars(char_counts(gold, predicted), _mass(weights, len(gold)))


def prf_of_chars(counts: Floats, weights: Floats) -> PRF:
    """Return the figures from ``char_counts`` and a weight per answer."""
    shared, predicted, gold = (float(value) for value in weights @ counts)
    return prf(shared, predicted, gold)


def span_counts(gold: Sequence[Ranges], predicted: Sequence[Ranges]) -> Floats:
    """Return per answer the spans (predicted and right, predicted, gold and found, gold), shape (answers, 4).

    A predicted span is right, a gold one found, where it overlaps one of the other side by a character or
    more.
    """
    counts = np.zeros((len(gold), 4))
    for row, (gold_ranges, predicted_ranges) in enumerate(zip(gold, predicted, strict=True)):
        gold_union, predicted_union = merge_ranges(gold_ranges), merge_ranges(predicted_ranges)
        right = sum(touches(span, gold_union) for span in predicted_union)
        found = sum(touches(span, predicted_union) for span in gold_union)
        counts[row] = right, len(predicted_union), found, len(gold_union)
    return counts


def prf_of_spans(counts: Floats, weights: Floats) -> PRF:
    """Return the figures from ``span_counts`` and a weight per answer."""
    right, predicted, found, gold = (float(value) for value in weights @ counts)
    return _prf(right / predicted if predicted else 0.0, found / gold if gold else 0.0)


def touches(span: tuple[int, int], others: Ranges) -> bool:
    """Return whether ``span`` shares a character with one of ``others``."""
    return any(span[0] < end and start < span[1] for start, end in others)


def _length(ranges: Ranges) -> int:
    return sum(end - start for start, end in ranges)


def _shared(first: Ranges, second: Ranges) -> int:
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in first for b in second)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Rows put in order of their scores once, so that figures under many weightings cost one pass each.

    ``gold`` has shape (rows,); ``scores`` the distinct scores in ascending order; ``place`` the index into
    them of each row's score.
    """

    gold: NDArray[np.bool_]
    scores: Floats
    place: NDArray[np.int64]

    @classmethod
    def of(cls, labels: ArrayLike, scores: ArrayLike) -> Ranking:
        """Build the ranking from labels and scores, each of shape (rows,)."""
        distinct, place = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True)
        return cls(np.asarray(labels, dtype=bool), distinct, place)

    def masses(self, weights: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the weight of the positives and of the negatives at each of ``scores``."""
        mass = _mass(weights, len(self.gold))
        positive, negative = (
            np.bincount(self.place, weights=mass * chosen, minlength=len(self.scores)).astype(np.float64)
            for chosen in (self.gold, ~self.gold)
        )
        return positive, negative

    def auroc(self, weights: ArrayLike | None = None) -> float | None:
        """Return the area under the ROC curve; ``None`` if one class is missing."""
        positive, negative = self.masses(weights)
        pairs = positive.sum() * negative.sum()
        if not pairs > 0.0:
            return None
        below = np.cumsum(negative) - negative
        return float((positive * (below + negative / 2)).sum() / pairs)

    def auprc(self, weights: ArrayLike | None = None) -> float | None:
        """Return the average precision (no interpolation); ``None`` if there is no positive."""
        positive, negative = (mass[::-1] for mass in self.masses(weights))
        total = positive.sum()
        if not total > 0.0:
            return None
        hits, flagged = np.cumsum(positive), np.cumsum(positive + negative)
        precision = np.divide(hits, flagged, out=np.zeros_like(hits), where=flagged > 0.0)
        return float((precision * positive).sum() / total)


def auroc(labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None) -> float | None:
    """Return the area under the ROC curve; ``None`` if one class is missing."""
    return Ranking.of(labels, scores).auroc(weights)


def _mass(weights: ArrayLike | None, rows: int) -> Floats:
    return np.ones(rows) if weights is None else np.asarray(weights, dtype=np.float64)


def ece(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    bins: int = 10,
    equal_mass: bool = False,
    weights: ArrayLike | None = None,
) -> float:
    """Return the expected calibration error over ``bins`` of equal width, or equal mass; 0.0 for no rows.

    ``weights`` (by default all 1) count rows as more or less than one, within bins and between them.
    """
    gold = np.asarray(labels, dtype=np.float64)
    values = np.asarray(scores, dtype=np.float64)
    mass = _mass(weights, len(values))
    if not mass.sum() > 0.0:
        return 0.0
    place = bins_of(values, bins=bins, equal_mass=equal_mass)
    # Per bin: |sum of weighted (label - score)| is its gap times its mass.
    gaps = np.bincount(place, weights=mass * (gold - values), minlength=bins)
    return float(np.abs(gaps).sum() / mass.sum())


def bins_of(scores: ArrayLike, *, bins: int = 10, equal_mass: bool = False) -> NDArray[np.int64]:
    """Return the bin of each score, 0 to ``bins - 1``: of equal width over 0..1, or of nearly equal size."""
    values = np.asarray(scores, dtype=np.float64)
    if not equal_mass:
        return np.minimum((values * bins).astype(np.int64), bins - 1)
    place = np.empty(len(values), dtype=np.int64)
    place[np.argsort(values, kind="stable")] = np.arange(len(values)) * bins // max(len(values), 1)
    return place


def brier(labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Return the mean squared difference of score and label; 0.0 for no rows."""
    difference = np.asarray(scores, dtype=np.float64) - np.asarray(labels, dtype=np.float64)
    mass = _mass(weights, len(difference))
    return float((mass * difference**2).sum() / mass.sum()) if mass.sum() > 0.0 else 0.0


def best_f1(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    slack: float = 0.0,
    above: float = -np.inf,
    weights: ArrayLike | None = None,
) -> tuple[float, float]:
    """Return the highest example F1 over all thresholds above ``above``, and its threshold (a score).

    The threshold is the highest one whose F1 is at most ``slack`` below the best: of points that are as good,
    the one with the fewest false alarms. Without positives, or scores above: F1 0.0 at threshold 1.0.
    """
    ranking = Ranking.of(labels, scores)
    positive, negative = (mass[::-1] for mass in ranking.masses(weights))
    limits = ranking.scores[::-1]
    total = positive.sum()
    if not total > 0.0 or not (limits > above).any():
        return 0.0, 1.0
    f1 = (2 * np.cumsum(positive) / (np.cumsum(positive + negative) + total))[limits > above]
    chosen = int(np.flatnonzero(f1 >= f1.max() - slack)[0])
    return float(f1.max()), float(limits[chosen])


def base_rate_weights(labels: ArrayLike, *, base_rate: float, weights: ArrayLike | None = None) -> Floats:
    """Return ``weights`` (by default all 1), shape (rows,), changed so that the share of positives is ``base_rate``.

    Their sum stays; of one class alone they stay as they are.
    """
    gold = np.asarray(labels, dtype=bool)
    mass = _mass(weights, gold.size)
    share = float(mass @ gold / mass.sum()) if mass.sum() > 0.0 else 0.0
    if not 0.0 < share < 1.0:
        return mass
    return mass * np.where(gold, base_rate / share, (1 - base_rate) / (1 - share))


def resamples(groups: Sequence[str], *, rounds: int = 1000, seed: int = 0) -> Iterator[Floats]:
    """Yield the weights of ``rounds`` resamples of whole groups: how often each row was drawn, shape (rows,)."""
    dice = np.random.default_rng(seed)
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    for _ in range(rounds if len(names) else 0):
        picked = dice.integers(0, len(names), len(names))
        yield np.bincount(picked, minlength=len(names)).astype(np.float64)[member]


def interval(values: Iterable[float | None]) -> list[float] | None:
    """Return the 2.5 % and 97.5 % points of a figure's values under ``resamples``; ``None`` where none has the figure."""
    known = [value for value in values if value is not None]
    return [float(end) for end in np.percentile(known, [2.5, 97.5])] if known else None


def rounded(value: Any) -> Any:
    """Return ``value`` with every number of its mappings and lists at four digits, as figures are kept."""
    match value:
        case float():
            return round(value, 4)
        case dict():
            return {key: rounded(inner) for key, inner in value.items()}
        case list() | tuple():
            return [rounded(inner) for inner in value]
    return value

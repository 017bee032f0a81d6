"""Figures of a detector on labelled answers, in numpy alone; ``docs/evaluation.md`` has their definitions.

Example: gold is "any unsupported part", predicted is "score reaches the threshold". Span and character: per
answer the union of gold characters and of predicted ones, sums over all answers. Ties in scores are handled
exactly (AUROC counts them half; AUPRC steps once per distinct score). Rows may carry weights: those of a base
rate, of a resample, or the product of both. Curves are in ``curves``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    precision = true_positive / predicted if predicted else 0.0
    recall = true_positive / gold if gold else 0.0
    total = precision + recall
    return PRF(precision, recall, 2 * precision * recall / total if total else 0.0)


def example_prf(labels: ArrayLike, scores: ArrayLike, *, threshold: float) -> PRF:
    """Return the figures at example level: predicted where ``scores >= threshold``."""
    gold = np.asarray(labels, dtype=bool)
    predicted = np.asarray(scores, dtype=np.float64) >= threshold
    return prf(float((gold & predicted).sum()), float(predicted.sum()), float(gold.sum()))


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


def span_prf(gold: Sequence[Ranges], predicted: Sequence[Ranges], *, weights: ArrayLike | None = None) -> PRF:
    """Return the figures at span level, where a span is right or found if it overlaps the other side."""
    return prf_of_spans(span_counts(gold, predicted), _mass(weights, len(gold)))


def prf_of_spans(counts: Floats, weights: Floats) -> PRF:
    """Return the figures from ``span_counts`` and a weight per answer."""
    right, predicted, found, gold = (float(value) for value in weights @ counts)
    precision = right / predicted if predicted else 0.0
    recall = found / gold if gold else 0.0
    total = precision + recall
    return PRF(precision, recall, 2 * precision * recall / total if total else 0.0)


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


def auprc(labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None) -> float | None:
    """Return the average precision (no interpolation); ``None`` if there is no positive."""
    return Ranking.of(labels, scores).auprc(weights)


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


def base_rate_weights(labels: ArrayLike, *, base_rate: float) -> Floats:
    """Return weights of shape (rows,), mean 1, under which the share of positives is ``base_rate``."""
    gold = np.asarray(labels, dtype=bool)
    share = float(gold.mean()) if gold.size else 0.0
    if share in (0.0, 1.0):
        return np.ones(gold.size)
    return np.where(gold, base_rate / share, (1 - base_rate) / (1 - share))


def bootstrap(
    groups: Sequence[str],
    figure: Callable[[NDArray[np.int64]], float | None],
    *,
    rounds: int = 1000,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Return the 95 % interval of ``figure`` under resampling of whole groups.

    Args:
        groups: the source text of each row.
        figure: from row numbers (with repeats) to the figure; ``None`` where it is not defined.
        rounds: resamples.
        seed: of the resampling.

    Returns:
        The 2.5 % and 97.5 % points, or ``None`` where no resample gave a figure.
    """
    dice = np.random.default_rng(seed)
    names = np.asarray(groups)
    members = [np.flatnonzero(names == name) for name in np.unique(names)]
    found: list[float] = []
    for _ in range(rounds):
        picked = dice.integers(0, len(members), len(members))
        value = figure(np.concatenate([members[group] for group in picked]))
        if value is not None:
            found.append(value)
    if not found:
        return None
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


def resamples(groups: Sequence[str], *, rounds: int = 1000, seed: int = 0) -> Iterator[Floats]:
    """Yield the weights of ``rounds`` resamples of whole groups: how often each row was drawn, shape (rows,).

    As ``bootstrap`` draws them, for figures that take weights.
    """
    dice = np.random.default_rng(seed)
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    for _ in range(rounds if len(names) else 0):
        picked = dice.integers(0, len(names), len(names))
        yield np.bincount(picked, minlength=len(names)).astype(np.float64)[member]


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

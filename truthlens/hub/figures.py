"""Figures of a detector on labelled answers, in numpy alone. Definitions are those of the README's glossary.

Example: gold is "any unsupported part", predicted is "score reaches the threshold". Span and character:
per answer the union of gold characters and of predicted ones, sums over all answers. Ties in scores are
handled exactly (AUROC counts them half; AUPRC steps once per distinct score).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truthlens.core.text import merge_ranges

Floats = NDArray[np.float64]
Ranges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PRF:
    """Precision, recall and F1 of the positive class, 0..1; 0.0 where a denominator is 0."""

    precision: float
    recall: float
    f1: float


def prf(true_positive: float, predicted: float, gold: float) -> PRF:
    """From counts: how many were right, how many were predicted, how many there are."""
    precision = true_positive / predicted if predicted else 0.0
    recall = true_positive / gold if gold else 0.0
    total = precision + recall
    return PRF(precision, recall, 2 * precision * recall / total if total else 0.0)


def example_prf(labels: ArrayLike, scores: ArrayLike, *, threshold: float) -> PRF:
    """At example level: predicted where ``scores >= threshold``."""
    gold = np.asarray(labels, dtype=bool)
    predicted = np.asarray(scores, dtype=np.float64) >= threshold
    return prf(float((gold & predicted).sum()), float(predicted.sum()), float(gold.sum()))


def char_prf(gold: Sequence[Ranges], predicted: Sequence[Ranges]) -> PRF:
    """At character level over many answers, each with its gold and its predicted ranges."""
    found = marked = right = 0
    for gold_ranges, predicted_ranges in zip(gold, predicted, strict=True):
        gold_union, predicted_union = merge_ranges(gold_ranges), merge_ranges(predicted_ranges)
        found += _length(predicted_union)
        marked += _length(gold_union)
        right += _shared(gold_union, predicted_union)
    return prf(right, found, marked)


def span_prf(gold: Sequence[Ranges], predicted: Sequence[Ranges]) -> PRF:
    """At span level: a predicted span is right, a gold one found, where it overlaps one of the other side."""
    right = found = predictions = marked = 0
    for gold_ranges, predicted_ranges in zip(gold, predicted, strict=True):
        gold_union, predicted_union = merge_ranges(gold_ranges), merge_ranges(predicted_ranges)
        right += sum(_touches(span, gold_union) for span in predicted_union)
        found += sum(_touches(span, predicted_union) for span in gold_union)
        predictions += len(predicted_union)
        marked += len(gold_union)
    precision = right / predictions if predictions else 0.0
    recall = found / marked if marked else 0.0
    total = precision + recall
    return PRF(precision, recall, 2 * precision * recall / total if total else 0.0)


def _length(ranges: Ranges) -> int:
    return sum(end - start for start, end in ranges)


def _shared(first: Ranges, second: Ranges) -> int:
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in first for b in second)


def _touches(span: tuple[int, int], others: Ranges) -> bool:
    return any(span[0] < end and start < span[1] for start, end in others)


def auroc(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Area under the ROC curve; ``None`` where one class is missing."""
    gold = np.asarray(labels, dtype=bool)
    values = np.asarray(scores, dtype=np.float64)
    positives, negatives = int(gold.sum()), int((~gold).sum())
    if not positives or not negatives:
        return None
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = float(ranks[inverse][gold].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def auprc(labels: ArrayLike, scores: ArrayLike) -> float | None:
    """Average precision (no interpolation); ``None`` where there is no positive."""
    gold = np.asarray(labels, dtype=bool)
    values = np.asarray(scores, dtype=np.float64)
    if not gold.any():
        return None
    order = np.argsort(-values, kind="stable")
    hits = np.cumsum(gold[order])
    last = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
    precision = hits[last] / (last + 1)
    recall = hits[last] / gold.sum()
    return float((precision * np.diff(recall, prepend=0.0)).sum())


def ece(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    bins: int = 10,
    equal_mass: bool = False,
    weights: ArrayLike | None = None,
) -> float:
    """Expected calibration error over ``bins`` of equal width, or of equal mass; 0.0 for no rows.

    ``weights`` (by default all 1) count rows as more or less than one, within bins and between them.
    """
    gold = np.asarray(labels, dtype=np.float64)
    values = np.asarray(scores, dtype=np.float64)
    mass = np.ones_like(values) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(values):
        return 0.0
    if equal_mass:
        place = np.empty(len(values), dtype=np.int64)
        place[np.argsort(values, kind="stable")] = np.arange(len(values)) * bins // len(values)
    else:
        place = np.minimum((values * bins).astype(np.int64), bins - 1)
    # Per bin: |sum of weighted (label - score)| is its gap times its mass.
    gaps = np.bincount(place, weights=mass * (gold - values), minlength=bins)
    return float(np.abs(gaps).sum() / mass.sum())


def brier(labels: ArrayLike, scores: ArrayLike) -> float:
    """Mean squared difference of score and label; 0.0 for no rows."""
    difference = np.asarray(scores, dtype=np.float64) - np.asarray(labels, dtype=np.float64)
    return float(np.mean(difference**2)) if difference.size else 0.0


def best_f1(
    labels: ArrayLike, scores: ArrayLike, *, slack: float = 0.0, above: float = -np.inf
) -> tuple[float, float]:
    """The highest example F1 over all thresholds higher than ``above``, and a threshold (a score).

    The threshold is the highest one whose F1 is at most ``slack`` below the best: of points that are as good, the
    one with the fewest false alarms. Without positives, or scores above: F1 0.0 at threshold 1.0.
    """
    gold = np.asarray(labels, dtype=bool)
    values = np.asarray(scores, dtype=np.float64)
    if not gold.any() or not (values > above).any():
        return 0.0, 1.0
    order = np.argsort(-values, kind="stable")
    hits = np.cumsum(gold[order])
    last = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
    last = last[values[order][last] > above]
    f1 = 2 * hits[last] / (last + 1 + gold.sum())
    chosen = int(np.flatnonzero(f1 >= f1.max() - slack)[0])
    return float(f1.max()), float(values[order][last[chosen]])


def shift_prior(scores: ArrayLike, *, trained: float, deployed: float) -> Floats:
    """Scores moved to another base rate: logit plus the difference of the priors' logits.

    Args:
        scores: probabilities, 0..1.
        trained: base rate of the data that they were calibrated on, inside 0..1.
        deployed: base rate that is expected, inside 0..1.
    """
    values = np.clip(np.asarray(scores, dtype=np.float64), 1e-6, 1 - 1e-6)
    logit = (
        np.log(values / (1 - values)) + np.log(deployed / (1 - deployed)) - np.log(trained / (1 - trained))
    )
    return np.asarray(1 / (1 + np.exp(-logit)), dtype=np.float64)


def base_rate_weights(labels: ArrayLike, *, base_rate: float) -> Floats:
    """Shape (rows,), mean 1: weights under which the share of positives is ``base_rate``."""
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
    """The 95 % interval of ``figure`` under resampling of whole groups.

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

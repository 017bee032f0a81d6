"""Curves of a detector on labelled answers: ROC, precision–recall, threshold, risk–coverage, reliability.

Numbers alone; ``plots`` draws them. Rows may carry weights, as in ``figures``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truthlens.core.intervals import wilson
from truthlens.lab.evaluate.metrics import Floats, Ranking, bins_of


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdCurve:
    """What each threshold gives; all of shape (distinct scores,), thresholds from high to low.

    ``recall`` is ``NaN`` without positives, ``false_positive_rate`` without negatives.
    """

    threshold: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    false_positive_rate: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Error rate of the decisions that are kept, by the share that is kept.

    ``coverage`` (0..1, ascending) and ``risk`` have shape (rows,). ``aurc`` is the area under the curve,
    ``oracle`` what the same decisions would have if every right one were more confident than every wrong one,
    and ``risk_at_full`` the error rate of all.
    """

    coverage: Floats
    risk: Floats
    aurc: float
    oracle: float
    risk_at_full: float


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of a reliability diagram.

    ``score`` is the mean score, ``rate`` the share of positives, both weighted; ``low`` and ``high`` are the
    95 % Wilson interval of the rate for so many (unweighted) rows.
    """

    rows: int
    share: float
    score: float
    rate: float
    low: float
    high: float


def threshold_curve(
    labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
) -> ThresholdCurve:
    """Return precision, recall, F1 and false-positive rate with each distinct score as the threshold."""
    ranking = Ranking.of(labels, scores)
    positive, negative = (mass[::-1] for mass in ranking.masses(weights))
    hits, alarms = np.cumsum(positive), np.cumsum(negative)
    return ThresholdCurve(
        threshold=ranking.scores[::-1],
        precision=_ratio(hits, hits + alarms, 0.0),
        recall=_ratio(hits, positive.sum(), np.nan),
        f1=_ratio(2 * hits, hits + alarms + positive.sum(), 0.0),
        false_positive_rate=_ratio(alarms, negative.sum(), np.nan),
    )


def confidence_of(scores: ArrayLike, scored: ArrayLike, *, threshold: float) -> Floats:
    """Return the confidence of the decision "score >= threshold": the score for yes, one minus it for no.

    A row that was not scored has -1: it was decided without looking, and counts as the least sure.

    Args:
        scores: 0..1, shape (rows,).
        scored: whether there is a score, shape (rows,).
        threshold: of the decision.
    """
    values = np.asarray(scores, dtype=np.float64)
    sure = np.where(values >= threshold, values, 1.0 - values)
    return np.where(np.asarray(scored, dtype=bool), sure, -1.0)


def risk_coverage(
    confidence: ArrayLike, wrong: ArrayLike, *, weights: ArrayLike | None = None
) -> RiskCoverage | None:
    """Return the risk–coverage curve and its area; ``None`` for no rows.

    Rows are kept in order of falling confidence. Rows of equal confidence have no order of their own, so each
    carries the mean error of its kind, which is what a random order gives on average. The area is the mean of
    the risks at every coverage, one step a row.

    Args:
        confidence: higher is surer, shape (rows,).
        wrong: whether the decision was wrong, shape (rows,).
        weights: by default all 1.

    Source: El-Yaniv and Wiener, "On the foundations of noise-free selective classification", JMLR 11 (2010);
    the area (AURC) as in Geifman, Uziel and El-Yaniv, "Bias-reduced uncertainty estimation for deep neural
    classifiers", ICLR 2019.
    """
    errors = np.asarray(wrong, dtype=np.float64)
    mass = np.ones(len(errors)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not mass.sum() > 0.0:
        return None
    coverage, risk, aurc = _kept(np.asarray(confidence, dtype=np.float64), errors, mass)
    _, _, oracle = _kept(-errors, errors, mass)
    return RiskCoverage(coverage, risk, aurc, oracle, risk_at_full=float(mass @ errors / mass.sum()))


def reliability_bins(
    labels: ArrayLike, scores: ArrayLike, *, weights: ArrayLike | None = None
) -> tuple[Bin, ...]:
    """Return the bins of equal width that hold a row, in order of their scores."""
    gold = np.asarray(labels, dtype=np.float64)
    values = np.asarray(scores, dtype=np.float64)
    mass = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    place = bins_of(values)
    rows = np.bincount(place)
    held, scored, positive = (np.bincount(place, weights=part) for part in (mass, mass * values, mass * gold))
    found = []
    for index in np.flatnonzero(held > 0.0):
        rate = float(positive[index] / held[index])
        low, high = wilson(rate, int(rows[index]))
        found.append(
            Bin(
                rows=int(rows[index]),
                share=float(held[index] / held.sum()),
                score=float(scored[index] / held[index]),
                rate=rate,
                low=low,
                high=high,
            )
        )
    return tuple(found)


def _kept(confidence: Floats, errors: Floats, mass: Floats) -> tuple[Floats, Floats, float]:
    """Return coverage and risk with the surest 1, 2, ... rows kept, and the area under them."""
    _, place = np.unique(-confidence, return_inverse=True)
    held, wrong = (np.bincount(place, weights=part).astype(np.float64) for part in (mass, mass * errors))
    mean = _ratio(wrong, held, 0.0)
    # Tied rows in order of their weights, so that the order of the file changes nothing.
    order = np.lexsort((mass, place))
    kept = np.cumsum(mass[order])
    risk = _ratio(np.cumsum(mass[order] * mean[place[order]]), kept, 0.0)
    return kept / kept[-1], risk, float(mass[order] @ risk / kept[-1])


def _ratio(part: Floats, whole: Floats | float, otherwise: float) -> Floats:
    base = np.broadcast_to(np.asarray(whole, dtype=np.float64), part.shape)
    found: NDArray[np.float64] = np.full(part.shape, otherwise)
    np.divide(part, base, out=found, where=base > 0.0)
    return found

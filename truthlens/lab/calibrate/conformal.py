"""Response thresholds from labelled answers: a bounded miss rate, or the least cost.

Pure numerics.

A miss is an unsupported answer that is not flagged: its score is below the threshold. An answer that was not
scored has the score ``-inf`` here, so that it is missed at every threshold: not looking never improves a
figure. Fitting token probabilities to a model is another matter; that is in
``training.calibrate.calibration``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truthlens.core.errors import TruthLensError

UNSCORED = -math.inf


class UnattainableError(TruthLensError):
    """No threshold keeps the asked miss rate on these answers; the message says what would do."""


@dataclass(frozen=True, slots=True)
class ControlledMisses:
    """A threshold whose miss rate is bounded.

    ``miss_rate`` is the one on the calibration answers, the mean over source texts of the share of a text's
    unsupported answers that are missed. ``bound`` is the same with one more text counted as wholly missed; it
    is at most the rate that was asked for. ``groups`` are the source texts, ``answers`` the unsupported
    answers.
    """

    threshold: float
    miss_rate: float
    bound: float
    groups: int
    answers: int


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """What one threshold does to the labelled answers.

    ``miss_rate`` is the share of unsupported answers that are not flagged, ``false_alarm_rate`` the share of
    supported ones that are. ``cost`` is the expected cost of an answer, in false alarms.
    """

    threshold: float
    miss_rate: float
    false_alarm_rate: float
    cost: float


def control_miss_rate(scores: ArrayLike, groups: Sequence[str], *, max_miss_rate: float) -> ControlledMisses:
    """Return the largest threshold whose miss rate is controlled at ``max_miss_rate``.

    Conformal risk control with the loss "share of the unsupported answers of one source text that are missed"
    (0..1, so B = 1): with n texts and the mean loss R(t), the largest t with n / (n + 1) * R(t) + 1 / (n + 1)
    <= max_miss_rate. For one more source text that is exchangeable with these n, the expected share of its
    unsupported answers that are missed is then at most ``max_miss_rate``. The expectation is over the
    calibration answers too: it is a promise about the procedure, not about each single file. Answers of one
    text are near-copies of each other; that is why texts are counted and not answers. Where every text has
    one answer, both are the same.

    Args:
        scores: response scores of unsupported answers, shape (answers,), 0..1, or ``UNSCORED``.
        groups: the source text of each of them.
        max_miss_rate: inside 0..1.

    Raises:
        UnattainableError: there are too few source texts, or too many answers that were not scored.
        ValueError: shapes or ranges do not fit.

    Source: Angelopoulos, Bates, Fisch, Lei and Schuster, Conformal Risk Control (2022, arXiv:2208.02814),
    theorem 1.
    """
    values = _scores(scores)
    if len(values) != len(groups):
        raise ValueError(f"{len(values)} scores for {len(groups)} groups; expected one group a score")
    if not 0.0 < max_miss_rate < 1.0:
        raise ValueError(f"max_miss_rate is {max_miss_rate}; expected a share between 0 and 1")
    sizes = Counter(groups)
    count = len(sizes)
    if not count:
        raise UnattainableError(
            "the file has no unsupported answers (label 1), so a miss rate cannot be measured; add at least"
            f" {least_groups(max_miss_rate)} from different source texts"
        )
    # Exact fractions: 0.29 * 100 is below 29 in binary, and one answer more or less is what this is about.
    allowed = Fraction(repr(float(max_miss_rate))) * (count + 1) - 1
    if allowed < 0:
        raise UnattainableError(
            f"a miss rate of at most {max_miss_rate:g} needs unsupported answers from at least"
            f" {least_groups(max_miss_rate)} source texts, and the file has {count}; label more answers, or ask for"
            f" {_rounded_up(Fraction(1, count + 1))} or more"
        )
    # Whole numbers from here on: a missed answer counts as its share of its text, in units that divide every
    # text.
    unit = math.lcm(*sizes.values())
    shares = {group: unit // size for group, size in sizes.items()}
    rows = sorted((value, shares[group]) for value, group in zip(values.tolist(), groups, strict=True))
    threshold, missed, below, most = UNSCORED, 0, 0, math.floor(allowed * unit)
    for value, tied in groupby(rows, key=itemgetter(0)):
        if below > most:
            break
        threshold, missed = value, below
        below += sum(share for _, share in tied)
    if threshold == UNSCORED:
        unscored = [share for value, share in rows if value == UNSCORED]
        raise UnattainableError(
            f"{len(unscored)} of {len(rows)} unsupported answers were not scored and count as missed at every"
            f" threshold, so a miss rate of at most {max_miss_rate:g} cannot be had; fix or remove those rows, or ask"
            f" for {_rounded_up(Fraction(sum(unscored) + unit, unit * (count + 1)))} or more"
        )
    return ControlledMisses(
        threshold=threshold,
        miss_rate=missed / (unit * count),
        bound=(missed + unit) / (unit * (count + 1)),
        groups=count,
        answers=len(rows),
    )


def least_groups(max_miss_rate: float) -> int:
    """Return the fewest source texts with an unsupported answer that can control ``max_miss_rate``."""
    return max(math.ceil(1 / Fraction(repr(float(max_miss_rate)))) - 1, 1)


def least_cost(labels: ArrayLike, scores: ArrayLike, *, cost_ratio: float, prior: float) -> OperatingPoint:
    """Return the threshold of least expected cost on these answers; of equal ones the highest.

    A fit to these answers, without a guarantee: on new ones the cost is likely to be a little higher.

    Args:
        labels: 1 for unsupported, shape (answers,); both kinds must be there.
        scores: response scores, shape (answers,), 0..1, or ``UNSCORED``.
        cost_ratio: cost of a miss over that of a false alarm, above 0.
        prior: share of answers that are unsupported where the threshold will be used, inside 0..1.

    Raises:
        UnattainableError: one kind of answers is missing.
        ValueError: shapes or ranges do not fit.
    """
    values = _scores(scores)
    finite = np.unique(values[np.isfinite(values)])
    # At 1 as few answers are flagged as a threshold can flag.
    candidates = np.append(finite[finite < 1.0], 1.0)
    points = operating_points(labels, values, candidates, cost_ratio=cost_ratio, prior=prior)
    return min(reversed(points), key=lambda point: point.cost)


def operating_points(
    labels: ArrayLike, scores: ArrayLike, thresholds: ArrayLike, *, cost_ratio: float, prior: float
) -> list[OperatingPoint]:
    """Return what each of ``thresholds`` does to the labelled answers; see ``least_cost`` for arguments.

    The expected cost of an answer is prior * cost_ratio * miss rate + (1 - prior) * false alarm rate.
    """
    gold = np.asarray(labels, dtype=bool)
    values = _scores(scores)
    if gold.shape != values.shape:
        raise ValueError(f"{gold.size} labels for {values.size} scores; expected one label a score")
    if not (math.isfinite(cost_ratio) and cost_ratio > 0):
        raise ValueError(f"cost_ratio is {cost_ratio}; expected a finite number above 0")
    if not 0.0 < prior < 1.0:
        raise ValueError(f"prior is {prior}; expected a share between 0 and 1")
    if gold.all() or not gold.any():
        missing = "supported" if gold.any() else "unsupported"
        raise UnattainableError(
            f"the file has no {missing} answers (label {0 if gold.any() else 1}), so what mistakes cost cannot be"
            " measured; add some"
        )
    unsupported, supported = np.sort(values[gold]), np.sort(values[~gold])
    found = []
    for threshold in np.asarray(thresholds, dtype=np.float64).tolist():
        miss = float(np.searchsorted(unsupported, threshold, side="left") / len(unsupported))
        alarm = 1.0 - float(np.searchsorted(supported, threshold, side="left") / len(supported))
        cost = prior * cost_ratio * miss + (1.0 - prior) * alarm
        found.append(OperatingPoint(float(threshold), miss, alarm, cost))
    return found


def flagged_share(scores: ArrayLike, *, threshold: float) -> float | None:
    """Return the share of ``scores`` at or above ``threshold``; ``None`` for no scores."""
    values = _scores(scores)
    return float((values >= threshold).mean()) if values.size else None


def _scores(scores: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"scores have shape {values.shape}; expected (answers,)")
    if not bool((((values >= 0.0) & (values <= 1.0)) | (values == UNSCORED)).all()):
        raise ValueError("a score is outside 0..1 and is not UNSCORED")
    return values


def _rounded_up(share: Fraction) -> str:
    """Return ``share`` as a decimal of four digits, rounded up so that a request for it succeeds."""
    return f"{math.ceil(share * 10_000) / 10_000:g}"

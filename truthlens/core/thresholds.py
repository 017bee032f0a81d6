"""Probabilities at another base rate, and the decision threshold that follows from costs; pure arithmetic."""

from __future__ import annotations

import math

EVEN_ODDS = 0.5
"""The base rate that detectors' scores are at: as many answers are unsupported as are supported."""
LEAST_RATE = 0.0001
"""An operator's base rate lies above it and below 1 less it: beyond, no finding would ever or would always be flagged."""


def at_rate(probability: float, rate: float, *, given: float = EVEN_ODDS) -> float:
    """Return what a probability at the base rate ``given`` is at the base rate ``rate``.

    Its log-odds are shifted by logit(rate) − logit(given): Bayes' rule for the same finding where another share
    of the answers is unsupported. 0 and 1 stay, the order of any two stays, and ``rate`` equal to ``given``
    changes nothing.

    Raises:
        ValueError: ``probability`` is outside of 0..1, or a rate outside of it or at its ends.
    """
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"probability is {probability}; expected 0..1")
    for name, value in (("rate", rate), ("given", given)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} is {value}; expected a number between 0 and 1, both excluded")
    if rate == given or probability in (0.0, 1.0):
        return probability
    unsupported = probability * rate * (1.0 - given)
    supported = (1.0 - probability) * given * (1.0 - rate)
    return unsupported / (unsupported + supported)


def least_cost_threshold(*, cost_ratio: float, prior: float, rate: float = EVEN_ODDS) -> float:
    """Return the threshold of least expected cost, in 0..1, for scores that are probabilities at the base rate ``rate``.

    At the base rate ``prior`` a flag is worth its false alarm from 1 / (1 + λ) on, which is proposition 1 for
    a prior of one half: the scores themselves carry the prior. On another scale that is λ, π and one shift; for
    scores at even odds 1 / (1 + λ · π / (1 − π)).

    Args:
        cost_ratio: λ, above 0: the cost of a missed unsupported answer over the cost of a false alarm.
        prior: π, between 0 and 1: the share of unsupported answers where the threshold is used.
        rate: the base rate that the scores are at.

    Raises:
        ValueError: an argument is out of its range.

    Source: Bayes' rule; white paper 3.1.4 (its proposition 1 is ``threshold_from_cost``).
    """
    _check(cost_ratio, prior)
    return at_rate(threshold_from_cost(cost_ratio=cost_ratio, prior=0.5), rate, given=prior)


def threshold_from_cost(*, cost_ratio: float, prior: float) -> float:
    """Return the threshold that proposition 1 of the white paper gives, in 0..1.

    ``cost_ratio`` (λ, above 0) is the cost of a missed unsupported answer over the cost of a false alarm,
    ``prior`` (π, between 0 and 1) the share of answers that are unsupported. A higher ratio gives a lower,
    stricter threshold. On calibrated scores its cost is least for a prior of one half; see
    ``least_cost_threshold`` for any other.

    Raises:
        ValueError: ``cost_ratio`` or ``prior`` is out of its range.

    Source: white paper 3.1.4, proposition 1: τ* = 1 / (1 + λ · (1 − π) / π).
    """
    _check(cost_ratio, prior)
    return 1 / (1 + cost_ratio * (1 - prior) / prior)


def _check(cost_ratio: float, prior: float) -> None:
    if not (math.isfinite(cost_ratio) and cost_ratio > 0):
        raise ValueError(f"cost_ratio is {cost_ratio}; expected a finite number above 0")
    if not 0 < prior < 1:
        raise ValueError(f"prior is {prior}; expected a number between 0 and 1, both excluded")

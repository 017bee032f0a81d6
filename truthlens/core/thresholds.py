"""The decision threshold that follows from costs; pure arithmetic."""

from __future__ import annotations

import math


def threshold_from_cost(*, cost_ratio: float, prior: float) -> float:
    """The threshold that proposition 1 of the white paper gives, in 0..1.

    ``cost_ratio`` (λ, above 0) is the cost of a missed unsupported answer over the cost of a false alarm,
    ``prior`` (π, between 0 and 1) the share of answers that are unsupported. A higher ratio gives a lower,
    stricter threshold.

    Raises:
        ValueError: ``cost_ratio`` or ``prior`` is out of its range.

    Source: white paper 3.1.4, proposition 1: τ* = 1 / (1 + λ · (1 − π) / π).
    """
    if not (math.isfinite(cost_ratio) and cost_ratio > 0):
        raise ValueError(f"cost_ratio is {cost_ratio}; expected a finite number above 0")
    if not 0 < prior < 1:
        raise ValueError(f"prior is {prior}; expected a number between 0 and 1, both excluded")
    return 1 / (1 + cost_ratio * (1 - prior) / prior)

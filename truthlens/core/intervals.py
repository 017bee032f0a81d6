"""The interval of a rate; pure arithmetic."""

from __future__ import annotations

import math

_Z95 = 1.959964


def wilson(rate: float, count: float) -> tuple[float, float]:
    """Return the 95 % interval of a rate (0..1) that was seen on ``count`` cases (at least 1; weighted ones by their effective number).

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    square = _Z95**2 / count
    middle = (rate + square / 2) / (1 + square)
    half = _Z95 * math.sqrt(rate * (1 - rate) / count + square / (4 * count)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)

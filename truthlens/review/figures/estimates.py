"""Estimate a share of all answers from entries that were queued with different probabilities.

An entry weighs 1 / ``sample``, for one that was queued with probability 0.05 stands for twenty answers. The interval is Wilson's at 95 %, of the
effective number of entries (Kish 1965).
"""

from __future__ import annotations

from dataclasses import dataclass

from truthlens.core.intervals import wilson

_LEAST_SAMPLE = 1e-6


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share, 0..1, of ``count`` entries, weighted, with its 95 % interval ``low`` to ``high``."""

    share: float
    low: float
    high: float
    count: int


@dataclass(slots=True)
class WeightedShare:
    """Adds entries up."""

    hits: float = 0.0
    weight: float = 0.0
    squares: float = 0.0
    count: int = 0

    def add(self, *, hit: bool, sample: float, count: int = 1) -> None:
        """Count ``count`` entries alike that were queued with probability ``sample``."""
        weight = 1.0 / max(sample, _LEAST_SAMPLE)
        self.hits += weight * count * hit
        self.weight += weight * count
        self.squares += weight * weight * count
        self.count += count

    def estimate(self) -> Estimate | None:
        """Return the share of hits; ``None`` of nothing."""
        if not self.count:
            return None
        share = min(1.0, self.hits / self.weight)
        return Estimate(share, *wilson(share, max(1.0, self.weight**2 / self.squares)), self.count)

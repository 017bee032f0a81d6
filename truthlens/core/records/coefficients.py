"""What findings of a claim are worth in its risk: the coefficients of a logistic that is monotone by construction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_NONE: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The log-odds, at even odds, that a claim is unsupported: a sum over the findings of it.

    ``opinions`` weighs the log-odds of detectors that judge every claim, either way, and ``intercept`` is added where there is one.
    ``whole`` has the weights of opinions where a detector that selects sentences read all of the evidence with the claim, by default
    the same ones; where it read a share, the weight is between the two by that share. ``most`` is what the log-odds of an opinion count
    for at most where any of it was read: beyond that the detector is surer, and no more often right.
    ``accusations`` weighs the hazard −ln(1 − p) of detectors that only ever find faults, ``vouchers`` what is taken off where all values of
    the claim are verified. None is negative: more suspicion never lowers a risk, and support never raises one. A claim that is
    ``proved`` has a risk of at most ``proved_risk``. Risks up to ``idle_risk`` (0..1) add nothing to the score of an answer: length alone
    flags none.
    """

    intercept: float
    opinions: Mapping[str, float] = field(hash=False)
    accusations: Mapping[str, float] = field(default_factory=lambda: _NONE, hash=False)
    vouchers: float = 0.0
    whole: Mapping[str, float] = field(default_factory=lambda: _NONE, hash=False)
    most: Mapping[str, float] = field(default_factory=lambda: _NONE, hash=False)
    proved_risk: float = 0.05
    idle_risk: float = 0.5

    def __post_init__(self) -> None:
        weights = (self.opinions, self.whole, self.accusations, self.most)
        values = [*(value for each in weights for value in each.values()), self.vouchers]
        if not all(0.0 <= value < math.inf for value in values) or not math.isfinite(self.intercept):
            raise ValueError(
                "a coefficient is below 0 or no number; expected 0 or more: the risk must not fall where suspicion grows"
            )
        if not 0.0 <= self.proved_risk <= 1.0 or not 0.0 <= self.idle_risk < 1.0:
            raise ValueError("proved_risk or idle_risk is outside of 0..1")

    def weight(self, detector: str, read: float) -> float:
        """Return the weight of a detector's opinion on a claim with which the share ``read`` of the evidence (0..1) was read."""
        apart = self.opinions.get(detector, 1.0)
        return apart + (self.whole.get(detector, apart) - apart) * read

    def opinion(self, detector: str, log_odds: float, read: float) -> float:
        """Return what a detector's opinion adds to the log-odds of such a claim."""
        return self.weight(detector, read) * self.counted(detector, log_odds, read)

    def counted(self, detector: str, log_odds: float, read: float) -> float:
        """Return what the log-odds of a detector's opinion on such a claim count for, before its weight."""
        return min(log_odds, self.most.get(detector, math.inf)) if read else log_odds

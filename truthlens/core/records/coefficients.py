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
    ``accusations`` weighs the hazard −ln(1 − p) of detectors that only ever find faults, ``vouchers`` what is taken off where all values of
    the claim are verified. None is negative: more suspicion never lowers a risk, and support never raises one. A claim that is
    ``proved`` has a risk of at most ``proved_risk``. Risks up to ``idle_risk`` (0..1) add nothing to the score of an answer: length alone
    flags none.
    """

    intercept: float
    opinions: Mapping[str, float] = field(hash=False)
    accusations: Mapping[str, float] = field(default_factory=lambda: _NONE, hash=False)
    vouchers: float = 0.0
    proved_risk: float = 0.05
    idle_risk: float = 0.5

    def __post_init__(self) -> None:
        values = [*self.opinions.values(), *self.accusations.values(), self.vouchers]
        if not all(0.0 <= value < math.inf for value in values) or not math.isfinite(self.intercept):
            raise ValueError(
                "a coefficient is below 0 or no number; expected 0 or more: the risk must not fall where suspicion grows"
            )
        if not 0.0 <= self.proved_risk <= 1.0 or not 0.0 <= self.idle_risk < 1.0:
            raise ValueError("proved_risk or idle_risk is outside of 0..1")

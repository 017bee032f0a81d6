"""The risk levels by rules, and their limits, which the detectors ``citations`` and ``judge`` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import pydantic

from truthlens.core.records.enums import Risk, Stricter
from truthlens.core.risk import HIGH_RISK, LOW_RISK

# A level begins above its limit.
_ABOVE = 0.001


@dataclass(frozen=True, slots=True)
class LevelFigures:
    """What the rules found: the risk, and the share of claims that cite; by default nothing."""

    risk: float = 0.0
    ratio: float = 1.0
    invalid: int = 0
    uncited: int = 0
    claims: int = 0


class LevelOptions(pydantic.BaseModel):
    """Options of a detector that tells levels. The defaults are the figures of hallucination-guidelines."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    moderate_risk: Annotated[float, Stricter.UNKNOWN] = pydantic.Field(
        default=LOW_RISK, ge=0, lt=1, allow_inf_nan=False
    )
    high_risk: Annotated[float, Stricter.UNKNOWN] = pydantic.Field(
        default=HIGH_RISK, ge=0, lt=1, allow_inf_nan=False
    )
    high_uncited: Annotated[int, Stricter.LOWER] = pydantic.Field(default=3, ge=1, le=10_000, strict=True)
    high_ratio: Annotated[float, Stricter.HIGHER] = pydantic.Field(
        default=0.3, ge=0, le=1, allow_inf_nan=False
    )
    low_ratio: Annotated[float, Stricter.HIGHER] = pydantic.Field(
        default=0.7, ge=0, le=1, allow_inf_nan=False
    )
    ratio_claims: Annotated[int, Stricter.LOWER] = pydantic.Field(default=3, ge=1, le=10_000, strict=True)

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.moderate_risk >= self.high_risk:
            raise ValueError("moderate_risk must be below high_risk")
        if self.high_ratio > self.low_ratio:
            raise ValueError("high_ratio must not be above low_ratio")
        return self

    def floor_of(self, level: Risk) -> float:
        """Return the lower end of a level."""
        match level:
            case Risk.HIGH:
                return min(1.0, self.high_risk + _ABOVE)
            case Risk.MODERATE:
                return min(1.0, self.moderate_risk + _ABOVE)
            case Risk.LOW:
                return 0.0

    def level_of(self, figures: LevelFigures) -> tuple[Risk, tuple[str, ...]]:
        """Return the level and the codes of what makes it so: high if any rule says it, low if all do."""
        high = {
            "risk": figures.risk > self.high_risk,
            "invalid-citation": figures.invalid > 0,
            "uncited": figures.uncited >= self.high_uncited,
            "ratio": figures.claims >= self.ratio_claims and figures.ratio < self.high_ratio,
        }
        moderate = {
            "risk": figures.risk > self.moderate_risk,
            "uncited": figures.uncited > 0,
            "ratio": figures.claims > 0 and figures.ratio < self.low_ratio,
        }
        for level, rules in ((Risk.HIGH, high), (Risk.MODERATE, moderate)):
            if codes := tuple(code for code, holds in rules.items() if holds):
                return level, codes
        return Risk.LOW, ()

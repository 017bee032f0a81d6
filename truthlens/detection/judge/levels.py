"""Tell the risk level of an answer from what rules and judge found. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from truthlens.core.records.enums import Risk

# A level begins above its limit.
_ABOVE = 0.001
_HIGH, _MODERATE = 0.6, 0.3
_LOW_RATIO, _HIGH_RATIO = 0.7, 0.3
_HIGH_UNCITED, _RATIO_CLAIMS, _HIGH_UNSUPPORTED = 3, 3, 2


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known; ``rule_risk`` and ``ratio`` are ``None`` where the rules did not judge. ``unsupported`` were located."""

    judge_risk: float
    unsupported: int = 0
    rule_risk: float | None = None
    invalid: int = 0
    uncited: int = 0
    ratio: float | None = None
    claims: int = 0


def level_of(figures: Figures) -> Risk:
    """Return high if any finding says so, low only if all do, else moderate."""
    rule, ratio = figures.rule_risk, figures.ratio
    if (
        (rule is not None and rule > _HIGH)
        or figures.invalid > 0
        or figures.uncited >= _HIGH_UNCITED
        or figures.judge_risk > _HIGH
        or figures.unsupported >= _HIGH_UNSUPPORTED
        or (ratio is not None and ratio < _HIGH_RATIO and figures.claims >= _RATIO_CLAIMS)
    ):
        return Risk.HIGH
    low = (
        (rule is None or rule <= _MODERATE)
        and figures.uncited == 0
        and figures.unsupported == 0
        and figures.judge_risk <= _MODERATE
        and (ratio is None or ratio >= _LOW_RATIO)
    )
    return Risk.LOW if low else Risk.MODERATE


def floor_of(level: Risk) -> float:
    """Return the lower end of a level."""
    return {Risk.HIGH: _HIGH + _ABOVE, Risk.MODERATE: _MODERATE + _ABOVE, Risk.LOW: 0.0}[level]

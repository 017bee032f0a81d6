"""Risk levels, and what a judge's word comes to."""

from __future__ import annotations

import pytest

from truthlens.core.risk import decide, is_near_limit


@pytest.mark.parametrize(
    ("quality", "risk", "decision"),
    [(0.9, 0.61, "reject"), (0.9, 0.6, "refine_search"), (0.6, 0.3, "synthesize"), (0.59, 0.3, "continue")],
)
def test_a_high_risk_is_rejected(quality: float, risk: float, decision: str) -> None:
    assert decide(quality, risk) == decision


def test_near_the_limit_is_with_three_iterations_left() -> None:
    assert [is_near_limit(each, 10) for each in (6, 7)] == [False, True]
    assert is_near_limit(0, 3)

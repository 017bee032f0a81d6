import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.thresholds import threshold_from_cost

ratios = st.floats(0.001, 1000)
priors = st.floats(0.001, 0.999)


@pytest.mark.parametrize(
    ("cost_ratio", "prior", "expected"),
    [(1, 0.5, 0.5), (10, 0.2, 1 / 41), (0.25, 0.5, 0.8), (4, 0.8, 0.5), (1, 0.25, 0.25)],
)
def test_formula(cost_ratio: float, prior: float, expected: float) -> None:
    """The threshold is 1 / (1 + λ (1 − π) / π)."""
    assert threshold_from_cost(cost_ratio=cost_ratio, prior=prior) == pytest.approx(expected)


@settings(deadline=None)
@given(ratios, ratios, priors)
def test_costlier_misses_are_stricter(one: float, other: float, prior: float) -> None:
    """A higher cost of misses never gives a higher threshold, and every threshold lies in 0..1."""
    low, high = sorted((one, other))
    strict = threshold_from_cost(cost_ratio=high, prior=prior)
    assert 0 < strict <= threshold_from_cost(cost_ratio=low, prior=prior) < 1


@pytest.mark.parametrize(
    ("cost_ratio", "prior"),
    [(0, 0.5), (-1, 0.5), (math.inf, 0.5), (math.nan, 0.5), (1, 0), (1, 1), (1, math.nan)],
)
def test_out_of_range(cost_ratio: float, prior: float) -> None:
    """A ratio that is not above 0 and finite, or a prior outside of 0..1, is refused by name."""
    with pytest.raises(ValueError, match=r"cost_ratio is|prior is"):
        threshold_from_cost(cost_ratio=cost_ratio, prior=prior)

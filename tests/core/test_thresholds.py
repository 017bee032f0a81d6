import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.thresholds import at_rate, least_cost_threshold, threshold_from_cost

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
    with pytest.raises(ValueError, match=r"cost_ratio is|prior is"):
        least_cost_threshold(cost_ratio=cost_ratio, prior=prior)


rates = st.floats(0.001, 0.999)
probabilities = st.floats(0.0, 1.0)


@given(probabilities, rates)
def test_a_rate_shifts_log_odds(probability: float, rate: float) -> None:
    """By logit(rate), from even odds; certain answers stay certain, and even odds change nothing."""
    shifted = at_rate(probability, rate)
    assert at_rate(probability, 0.5) == probability
    assert at_rate(0.0, rate) == 0.0
    assert at_rate(1.0, rate) == 1.0
    if 1e-9 < probability < 1 - 1e-9:
        own, moved, by = (math.log(p / (1 - p)) for p in (probability, shifted, rate))
        assert moved == pytest.approx(own + by, abs=1e-6)


@given(probabilities, probabilities, rates, rates)
def test_a_rate_keeps_the_order(one: float, other: float, rate: float, given_rate: float) -> None:
    """What is more suspicious stays so at every rate, and going back gives what it was."""
    low, high = sorted((one, other))
    moved = at_rate(low, rate, given=given_rate)
    assert moved <= at_rate(high, rate, given=given_rate) + 1e-12
    assert at_rate(moved, given_rate, given=rate) == pytest.approx(low, abs=1e-6)


@pytest.mark.parametrize("values", [(-0.1, 0.5, 0.5), (math.nan, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 1.0)])
def test_what_is_no_probability_or_rate_is_refused(values: tuple[float, float, float]) -> None:
    """Values outside of their range are named."""
    with pytest.raises(ValueError, match=r"probability is|rate is|given is"):
        at_rate(values[0], values[1], given=values[2])


@given(st.floats(0.05, 50), st.floats(0.02, 0.98), st.floats(0.02, 0.98))
def test_the_threshold_of_costs_is_bayes_at_every_rate(cost_ratio: float, prior: float, rate: float) -> None:
    """No other threshold on calibrated scores costs less, whatever the rate that the scores are at.

    The scores are probabilities at even odds on a grid: of those at s, a share s is unsupported.
    """
    at_even = np.linspace(0.0005, 0.9995, 1000)
    scores = np.array([at_rate(score, rate) for score in at_even.tolist()])
    missed = prior * cost_ratio * 2 * np.append(0.0, np.cumsum(at_even))
    alarms = (1 - prior) * 2 * np.append(np.cumsum((1 - at_even)[::-1])[::-1], 0.0)
    costs = (missed + alarms) / len(at_even)
    threshold = least_cost_threshold(cost_ratio=cost_ratio, prior=prior, rate=rate)
    own = costs[int(np.searchsorted(scores, threshold))]
    assert own == pytest.approx(costs.min(), rel=1e-9)


@given(ratios)
def test_for_a_prior_of_one_half_it_is_proposition_1(cost_ratio: float) -> None:
    """There the white paper's formula and Bayes' rule agree."""
    own = least_cost_threshold(cost_ratio=cost_ratio, prior=0.5)
    assert own == pytest.approx(threshold_from_cost(cost_ratio=cost_ratio, prior=0.5))

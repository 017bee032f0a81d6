"""Thresholds from labelled answers: the guarantee on simulated data, and the edges by hand."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.lab.calibrate.conformal import (
    UNSCORED,
    UnattainableError,
    control_miss_rate,
    flagged_share,
    least_cost,
    least_groups,
    operating_points,
)

GRID = st.integers(0, 10).map(lambda n: n / 10)
ROWS = st.lists(st.tuples(GRID, st.sampled_from("abcdefghij")), min_size=1, max_size=60)


def own(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def mean_loss(rows: list[tuple[float, str]], threshold: float) -> Fraction:
    texts: dict[str, list[int]] = defaultdict(list)
    for score, group in rows:
        texts[group].append(score < threshold)
    return sum((Fraction(sum(lost), len(lost)) for lost in texts.values()), Fraction(0)) / len(texts)


def test_by_hand() -> None:
    """Of 19 texts none may be missed at 0.05, of 39 one: the lowest score, then the second."""
    scores = [(n + 1) / 100 for n in range(39)]
    assert control_miss_rate(scores[:19], own(19), max_miss_rate=0.05).threshold == 0.01
    found = control_miss_rate(scores, own(39), max_miss_rate=0.05)
    assert (found.threshold, found.groups, found.answers) == (0.02, 39, 39)
    assert (found.miss_rate, found.bound) == (1 / 39, 0.05)


def test_exact_where_binary_fractions_are_not() -> None:
    """0.29 of 100 is 29, although the product of the two floats is a little less."""
    found = control_miss_rate(np.arange(99) / 100, own(99), max_miss_rate=0.29)
    assert found.threshold == 0.28
    assert found.bound == 0.29


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, rate=st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.9]))
def test_it_is_the_largest_threshold_within_the_bound(rows: list[tuple[float, str]], rate: float) -> None:
    """The bound holds at the threshold and at no larger score, ties and shared texts included."""
    scores, groups = [score for score, _ in rows], [group for _, group in rows]
    count = len(set(groups))
    allowed = Fraction(str(rate))
    try:
        found = control_miss_rate(scores, groups, max_miss_rate=rate)
    except UnattainableError:
        assert Fraction(1, count + 1) > allowed
        return
    assert (count * mean_loss(rows, found.threshold) + 1) / (count + 1) <= allowed
    assert found.bound <= rate + 1e-12
    assert found.miss_rate == pytest.approx(float(mean_loss(rows, found.threshold)))
    above = math.nextafter(found.threshold, 2.0)
    assert (count * mean_loss(rows, above) + 1) / (count + 1) > allowed


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, rates=st.tuples(GRID, GRID))
def test_a_higher_rate_never_lowers_the_threshold(
    rows: list[tuple[float, str]], rates: tuple[float, float]
) -> None:
    """Monotone in the rate; what is attainable stays so."""
    low, high = sorted(min(max(rate, 0.05), 0.95) for rate in rates)
    scores, groups = [score for score, _ in rows], [group for _, group in rows]
    try:
        strict = control_miss_rate(scores, groups, max_miss_rate=low)
    except UnattainableError:
        return
    assert control_miss_rate(scores, groups, max_miss_rate=high).threshold >= strict.threshold


@pytest.mark.parametrize(("count", "rate"), [(19, 0.05), (50, 0.1), (100, 0.05)])
@pytest.mark.parametrize("decimals", [1, 8])
def test_the_guarantee_on_exchangeable_answers(count: int, rate: float, decimals: int) -> None:
    """Over many calibration files, a new unsupported answer is missed at most as often as asked; ties only help."""
    dice = np.random.default_rng(count)
    rounds = 1200
    missed = np.empty(rounds)
    for number in range(rounds):
        scores = np.round(dice.beta(2.0, 1.5, count + 1), decimals)
        missed[number] = scores[-1] < control_miss_rate(scores[:-1], own(count), max_miss_rate=rate).threshold
    noise = 3.0 * math.sqrt(rate * (1 - rate) / rounds)
    assert missed.mean() <= rate + noise
    if decimals > 1:  # without ties the bound is nearly reached: the threshold is no lower than it must be
        assert missed.mean() >= rate - 1 / (count + 1) - noise


def test_the_guarantee_on_answers_that_share_texts() -> None:
    """Texts of one or twelve near-identical answers: a new text keeps the bound, which counting answers would break."""
    dice = np.random.default_rng(7)
    rounds, texts, rate = 400, 30, 0.1
    by_text, by_answer = np.empty(rounds), np.empty(rounds)
    for number in range(rounds):
        # Texts with many answers are the easier ones, as with questions that many models get wrong alike.
        many = dice.random(texts + 1) < 0.5
        sizes = np.where(many, 12, 1)
        level = np.where(many, dice.beta(6.0, 2.0, texts + 1), dice.beta(2.0, 4.0, texts + 1))
        scores = [np.clip(level[t] + dice.normal(0, 0.01, sizes[t]), 0, 1) for t in range(texts + 1)]
        flat = np.concatenate(scores[:-1])
        groups = np.repeat(own(texts), sizes[:-1]).tolist()
        new = scores[-1]
        by_text[number] = (new < control_miss_rate(flat, groups, max_miss_rate=rate).threshold).mean()
        singly = control_miss_rate(flat, own(len(flat)), max_miss_rate=rate).threshold
        by_answer[number] = (new < singly).mean()
    noise = 3.0 * by_text.std() / math.sqrt(rounds)
    assert by_text.mean() <= rate + noise
    assert by_answer.mean() > rate + noise


@pytest.mark.parametrize(("rate", "fewest"), [(0.05, 19), (0.1, 9), (0.3, 3), (0.01, 99), (0.5, 1), (0.9, 1)])
def test_the_fewest_texts(rate: float, fewest: int) -> None:
    """With that many the rate can be had, with one less it cannot."""
    assert least_groups(rate) == fewest
    control_miss_rate([0.5] * fewest, own(fewest), max_miss_rate=rate)
    with pytest.raises(UnattainableError):
        control_miss_rate([0.5] * (fewest - 1), own(fewest - 1), max_miss_rate=rate)


def test_too_few_texts_say_what_would_do() -> None:
    """Both ways out: the number of texts, and a rate that works when it is asked for."""
    with pytest.raises(UnattainableError, match=r"at least 19 .* has 6; .* ask for 0\.1429 or more"):
        control_miss_rate([0.5] * 6, own(6), max_miss_rate=0.05)
    assert control_miss_rate([0.5] * 6, own(6), max_miss_rate=0.1429).threshold == 0.5
    with pytest.raises(UnattainableError, match="no unsupported answers"):
        control_miss_rate([], [], max_miss_rate=0.05)
    with pytest.raises(UnattainableError, match="from at least 19 source texts, and the file has 1"):
        control_miss_rate([0.5] * 40, ["one"] * 40, max_miss_rate=0.05)


def test_unscored_answers_are_missed_at_every_threshold() -> None:
    """They use the allowance up, and where they are too many no threshold is given."""
    scores = [UNSCORED, *[(n + 1) / 100 for n in range(38)]]
    found = control_miss_rate(scores, own(39), max_miss_rate=0.05)
    assert (found.threshold, found.miss_rate) == (0.01, 1 / 39)
    with pytest.raises(UnattainableError, match=r"2 of 39 .* ask for 0\.075 or more"):
        control_miss_rate([UNSCORED, *scores[:-1]], own(39), max_miss_rate=0.05)
    assert control_miss_rate([UNSCORED, *scores[:-1]], own(39), max_miss_rate=0.075).threshold == 0.01
    assert flagged_share([UNSCORED, 0.0], threshold=0.0) == 0.5


def test_all_scores_equal() -> None:
    """One score for all is the threshold, and nothing is missed."""
    found = control_miss_rate([0.7] * 50, own(50), max_miss_rate=0.2)
    assert (found.threshold, found.miss_rate) == (0.7, 0.0)


@pytest.mark.parametrize(
    ("scores", "groups", "rate", "message"),
    [
        ([0.5], [], 0.1, "one group a score"),
        ([1.5], ["a"], 0.1, "outside 0..1"),
        ([math.nan], ["a"], 0.1, "outside 0..1"),
        ([[0.5]], ["a"], 0.1, "shape"),
        ([0.5], ["a"], 0.0, "max_miss_rate"),
        ([0.5], ["a"], 1.0, "max_miss_rate"),
    ],
)
def test_wrong_arguments(scores: list[float], groups: list[str], rate: float, message: str) -> None:
    """Shapes and ranges are checked."""
    with pytest.raises(ValueError, match=message):
        control_miss_rate(scores, groups, max_miss_rate=rate)


def test_costs_by_hand() -> None:
    """Two hits and a false alarm: dear misses lower the threshold, dear alarms raise it."""
    labels, scores = [1, 0, 1, 0], [0.9, 0.6, 0.5, 0.1]
    dear_miss = least_cost(labels, scores, cost_ratio=10.0, prior=0.5)
    assert (dear_miss.threshold, dear_miss.miss_rate, dear_miss.false_alarm_rate) == (0.5, 0.0, 0.5)
    assert dear_miss.cost == pytest.approx(0.25)
    dear_alarm = least_cost(labels, scores, cost_ratio=0.5, prior=0.5)
    assert (dear_alarm.threshold, dear_alarm.cost) == (0.9, pytest.approx(0.125))


def test_of_equal_costs_the_highest_threshold() -> None:
    """Where nothing is gained by flagging, as little as possible is flagged."""
    assert least_cost([1, 0], [0.4, 0.4], cost_ratio=1.0, prior=0.5).threshold == 1.0
    assert least_cost([1, 0], [0.2, 0.4], cost_ratio=1e-6, prior=0.5).threshold == 1.0


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.tuples(st.booleans(), GRID | st.just(UNSCORED)), min_size=2, max_size=40),
    ratio=st.floats(0.01, 100),
    prior=st.floats(0.01, 0.99),
)
def test_no_threshold_costs_less(rows: list[tuple[bool, float]], ratio: float, prior: float) -> None:
    """Of a fine grid of thresholds none is cheaper than the one that is chosen."""
    labels, scores = [label for label, _ in rows], [score for _, score in rows]
    if len(set(labels)) < 2:
        with pytest.raises(UnattainableError, match="supported answers"):
            least_cost(labels, scores, cost_ratio=ratio, prior=prior)
        return
    best = least_cost(labels, scores, cost_ratio=ratio, prior=prior)
    grid = np.linspace(0, 1, 41)
    points = operating_points(labels, scores, grid, cost_ratio=ratio, prior=prior)
    assert best.cost <= min(point.cost for point in points) + 1e-9
    assert 0.0 <= best.threshold <= 1.0


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.booleans(), GRID), min_size=2, max_size=40),
    ratios=st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)),
)
def test_dearer_misses_never_raise_the_threshold(
    rows: list[tuple[bool, float]], ratios: tuple[float, float]
) -> None:
    """A higher cost ratio misses no more."""
    labels, scores = [label for label, _ in rows], [score for _, score in rows]
    if len(set(labels)) < 2:
        return
    low, high = sorted(ratios)
    cheap = least_cost(labels, scores, cost_ratio=low, prior=0.3)
    dear = least_cost(labels, scores, cost_ratio=high, prior=0.3)
    assert dear.miss_rate <= cheap.miss_rate + 1e-9


@pytest.mark.parametrize(
    ("labels", "ratio", "prior", "message"),
    [([1], 1.0, 0.5, "one label"), ([1, 0], 0.0, 0.5, "cost_ratio"), ([1, 0], 1.0, 1.0, "prior")],
)
def test_wrong_costs(labels: list[int], ratio: float, prior: float, message: str) -> None:
    """Shapes and ranges are checked."""
    with pytest.raises(ValueError, match=message):
        least_cost(labels, [0.1, 0.2], cost_ratio=ratio, prior=prior)

"""Tests of ``truthlens.detection.detectors.budget.formulas``: the three methods as tables, and what the claims come to."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.detection.detectors.budget.formulas import (
    FLAGGED,
    SURELY_NOT,
    bits,
    contradicted_score,
    decide,
    directed,
    kl_bernoulli,
    origin,
    overall,
    seed,
)
from truthlens.detection.detectors.budget.options import Method, Options

OPTIONS = Options(model="m")
SHARES = st.floats(0, 1)


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        (0.5, 0.5, 0.0),
        (0.9, 0.5, 0.3680642071684971),
        (0.92, 0.25, 0.92 * math.log(0.92 / 0.25) + 0.08 * math.log(0.08 / 0.75)),
        (1.0, 0.5, math.log(2)),
        (0.0, 0.5, math.log(2)),
        (1.0, 0.0, math.log(1e12)),
        (0.0, 1.0, math.log(1e12)),
        (1.0, 1.0, 0.0),
        (0.0, 0.0, 0.0),
        (2.0, 0.5, math.log(2)),
        (-1.0, 0.5, math.log(2)),
    ],
)
def test_divergences(p: float, q: float, expected: float) -> None:
    """Both arguments are clamped to [1e-12, 1 - 1e-12]."""
    assert kl_bernoulli(p, q) == pytest.approx(expected, abs=1e-9, rel=1e-5)


@given(SHARES, SHARES)
def test_a_divergence_is_finite_and_not_negative(p: float, q: float) -> None:
    """Also at the ends."""
    assert -1e-12 <= kl_bernoulli(p, q) < 30


def test_nats_are_turned_into_bits() -> None:
    """One coin is one bit."""
    assert bits(kl_bernoulli(1.0, 0.5)) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("p1", "p0", "cited", "confidence", "grounded"),
    [
        # The example of the source: its formula gives 1.00 and 0.18 where the example shows 0.88 and 0.15.
        (0.92, 0.25, True, 1.0, True),
        (0.45, 0.42, False, 0.18, False),
        (0.99, 0.99, True, 0.3, False),
        (0.99, 0.99, False, 0.693, True),
        (0.71, 0.0, True, 1.0, True),
        (0.7, 0.0, True, 1.0, True),
        (0.7, 0.55, True, 0.225, False),
        (0.8, 0.65, True, 0.525, False),
        (0.8, 0.64, True, 0.54, True),
        (0.4, 0.1, True, 0.45, False),
        (0.41, 0.1, True, 0.465, True),
        (0.2, 0.9, True, 0.0, False),
        (0.71, 0.9, False, 0.497, True),
        (0.7, 0.0, False, 0.28, False),
        (1.0, 0.0, False, 0.7, True),
        (0.0, 0.0, True, 0.0, False),
    ],
)
def test_the_rule_of_the_source(p1: float, p0: float, cited: bool, confidence: float, grounded: bool) -> None:
    """To the letter, with what it makes of claims that no evidence can make likelier."""
    found = seed(p1, p0, cited=cited, options=OPTIONS)
    assert (found.confidence, found.grounded) == (pytest.approx(confidence), grounded)
    assert found.observed == pytest.approx(kl_bernoulli(p1, 0.5))
    assert found.required == pytest.approx(kl_bernoulli(p1, p0))
    assert found.gap == pytest.approx(found.observed - found.required)


@pytest.mark.parametrize(
    ("p1", "p0", "grounded"),
    [
        (0.95, 0.2, True),
        (0.96, 0.2, True),
        (0.94, 0.2, False),
        (0.92, 0.25, False),
        (0.99, 0.99, False),
        (0.95, 0.95, True),
        # It has no direction: evidence that speaks against a claim gives it many bits.
        (0.01, 0.9, True),
        (0.5, 0.5, False),
    ],
)
def test_the_rule_that_the_source_goes_back_to(p1: float, p0: float, grounded: bool) -> None:
    """A claim is flagged where KL(0.95 | p0) is more than KL(p1 | p0)."""
    assert origin(p1, p0, options=OPTIONS).grounded is grounded


@pytest.mark.parametrize(
    ("p1", "p0", "grounded"),
    [
        (0.92, 0.25, True),
        (0.99, 0.01, True),
        (0.99, 0.9, True),
        (0.9, 0.88, False),
        (0.9, 0.74, True),
        (0.45, 0.42, False),
        (0.7, 0.0, False),
        (0.71, 0.0, True),
        # As good without the evidence.
        (0.99, 0.99, True),
        (0.96, 0.95, True),
        (0.8, 0.97, True),
        # Low is unsupported whatever the bits.
        (0.01, 0.9, False),
        (0.1, 0.99, False),
        (0.3, 0.0, False),
        # Down is no gain.
        (0.75, 0.94, False),
        (0.0, 0.0, False),
    ],
)
def test_the_rule_with_a_direction(p1: float, p0: float, grounded: bool) -> None:
    """The default."""
    assert directed(p1, p0, options=OPTIONS).grounded is grounded


def test_a_gain_has_a_sign() -> None:
    """Evidence that makes a claim less likely takes away."""
    assert directed(0.2, 0.9, options=OPTIONS).observed < 0 < directed(0.9, 0.2, options=OPTIONS).observed


def test_what_is_not_listed_is_less_sure() -> None:
    """Half as much."""
    assert directed(0.9, 0.1, options=OPTIONS, listed=False).confidence == pytest.approx(0.45)


@given(SHARES, SHARES, SHARES)
def test_a_likelier_claim_is_not_less_grounded(lower: float, higher: float, p0: float) -> None:
    """With the same doubt without evidence."""
    low, high = sorted((lower, higher))
    assert directed(high, p0, options=OPTIONS).grounded or not directed(low, p0, options=OPTIONS).grounded


@pytest.mark.parametrize("method", Method)
def test_the_method_is_the_options(method: Method) -> None:
    """Equal certainty tells them apart."""
    found = decide(0.99, 0.99, cited=True, options=Options(model="m", method=method))
    assert found.grounded is (method is Method.DIRECTED)


def test_limits_are_the_options() -> None:
    """Two of them."""
    assert not seed(0.9, 0.5, cited=True, options=Options(model="m", evidence_use=0.5)).grounded
    assert origin(0.8, 0.2, options=Options(model="m", target=0.8)).grounded


@pytest.mark.parametrize(
    ("grounded", "total", "is_grounded", "score"),
    [
        (10, 10, True, 0.0),
        (7, 10, True, 0.55),
        (8, 10, True, 0.55 * 2 / 3),
        (3, 4, True, 0.55 * 0.25 / 0.3),
        (6, 10, False, 0.601 + 0.399 / 7),
        (0, 10, False, 1.0),
        (0, 1, False, 1.0),
        (1, 1, True, 0.0),
        (69, 100, False, 0.601 + 0.399 / 70),
    ],
)
def test_scores_of_answers(grounded: int, total: int, is_grounded: bool, score: float) -> None:
    """Exactly 70 % is grounded."""
    claims = [True] * grounded + [False] * (total - grounded)
    found = overall(claims, [0.9] * total, grounded_ratio=0.7)
    assert (found.grounded, found.score) == (is_grounded, pytest.approx(score))
    assert found.ratio == pytest.approx(grounded / total)


def test_one_claim_that_is_surely_wrong_is_enough() -> None:
    """However many others are right."""
    found = overall([True] * 9 + [False], [0.99] * 9 + [0.1], grounded_ratio=0.7)
    assert found.grounded
    assert found.score == pytest.approx(0.9)
    assert contradicted_score(0.0) == 1.0


@given(st.lists(st.tuples(st.booleans(), SHARES), min_size=1, max_size=12), SHARES)
def test_the_score_says_what_the_method_says(claims: list[tuple[bool, float]], ratio: float) -> None:
    """It is 0.6 or more exactly where the answer is not grounded or a claim is surely wrong."""
    found = overall([each for each, _ in claims], [p1 for _, p1 in claims], grounded_ratio=ratio)
    assert 0.0 <= found.score <= 1.0
    wrong = any(p1 < SURELY_NOT for _, p1 in claims)
    assert (found.score >= FLAGGED) is (wrong or not found.grounded)

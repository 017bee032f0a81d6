"""Tests of ``truthlens.hub.calibrate`` on made-up log-odds."""

from __future__ import annotations

import numpy as np
import pytest

from truthlens.core.records import Aggregation
from truthlens.hub.calibrate import (
    DEFAULT_THRESHOLD,
    MOST_FALSE_ALARMS,
    Calibration,
    ScoredAnswer,
    calibrate,
    response_score,
)
from truthlens.hub.data import Example
from truthlens.hub.figures import example_prf
from truthlens.hub.predict import sigmoid

TOKENS = 20
TEXT = "ab " * TOKENS
OFFSETS = np.array([(3 * i, 3 * i + 2) for i in range(TOKENS)], dtype=np.int64)


def _answers(
    count: int, *, temperature: float = 1.0, shift: float = 0.0, seed: int = 0
) -> tuple[list[ScoredAnswer], list[Example]]:
    """Answers whose true token probability is ``sigmoid((odds + shift) / temperature)``; errors come in runs."""
    dice = np.random.default_rng(seed)
    scored, examples = [], []
    for number in range(count):
        true = np.full(TOKENS, -6.0) + dice.normal(0, 0.7, TOKENS)
        if number % 3 == 0:
            start = int(dice.integers(0, TOKENS - 5))
            true[start : start + 5] += dice.normal(6.5, 1.5)
        gold = dice.random(TOKENS) < sigmoid(true)
        spans = tuple((int(s), int(e)) for s, e in OFFSETS[gold])
        scored.append(ScoredAnswer(true * temperature - shift, OFFSETS, TEXT))
        examples.append(
            Example(str(number), "made", "qa", "", ("c",), TEXT, int(gold.any()), spans, str(number))
        )
    return scored, examples


def _scores(scored: list[ScoredAnswer], found: Calibration, aggregation: Aggregation) -> list[float]:
    return [
        response_score(
            answer,
            answer.probabilities(temperature=found.temperature, shift=found.shift),
            aggregation=aggregation,
            taus=(found.tau_token, found.tau_span),
            length=found.length,
        )
        for answer in scored
    ]


def test_temperature_and_shift_are_found_again() -> None:
    """Log-odds that were stretched and moved come back to what they were."""
    found = calibrate(*_answers(800, temperature=2.5, shift=1.0))
    assert found.temperature == pytest.approx(2.5, rel=0.1)
    assert found.shift == pytest.approx(1.0, abs=0.5)


def test_the_best_threshold_separates_as_well_as_the_figures_say() -> None:
    """Scores at the named threshold reach the named F1."""
    scored, examples = _answers(300)
    found = calibrate(scored, examples)
    figures = found.choices[found.aggregation.value]
    values = _scores(scored, found, found.aggregation)
    reached = example_prf([example.label for example in examples], values, threshold=figures["threshold"]).f1
    assert reached == pytest.approx(figures["best_f1"], abs=0.011)


def test_the_chosen_aggregation_ranks_best() -> None:
    """No other aggregation has a higher AUROC on the calibration answers."""
    found = calibrate(*_answers(300))
    assert set(found.choices) == {aggregation.value for aggregation in Aggregation}
    best = max(figures["auroc"] for figures in found.choices.values())
    assert found.choices[found.aggregation.value]["auroc"] == best


def test_noisy_or_flags_few_supported_answers_at_the_default_threshold() -> None:
    """The tempering length is the longest that keeps false alarms within their bound."""
    scored, examples = _answers(300)
    found = calibrate(scored, examples)
    values = np.array(_scores(scored, found, Aggregation.NOISY_OR))
    supported = np.array([not example.label for example in examples])
    assert (values[supported] >= DEFAULT_THRESHOLD).mean() <= MOST_FALSE_ALARMS


def test_silent_tokens_have_probability_zero() -> None:
    """What claims nothing scores nothing, whatever the shift."""
    answer = ScoredAnswer(np.array([-np.inf, 0.0]), OFFSETS[:2], TEXT)
    assert answer.probabilities(temperature=0.5, shift=100.0).tolist() == [0.0, 1.0]


def test_one_class_of_tokens_leaves_the_log_odds_alone() -> None:
    """Without any error there is nothing to fit: temperature 1, no shift."""
    scored, examples = _answers(12)
    clean = [Example(e.id, e.source, e.task, "", e.context, e.response, 0, (), e.group) for e in examples]
    found = calibrate(scored, clean)
    assert (found.temperature, found.shift) == (1.0, 0.0)

"""Tests of ``truthlens.hub.calibrate`` on made-up log-odds."""

from __future__ import annotations

import numpy as np
import pytest

from truthlens.core.records import Aggregation
from truthlens.hub.calibrate import OPERATING_POINT, Calibration, ScoredAnswer, calibrate, response_score
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
            exponent=found.exponent,
        )
        for answer in scored
    ]


def test_temperature_and_shift_are_found_again() -> None:
    """Log-odds that were stretched and moved come back to what they were."""
    found = calibrate(*_answers(800, temperature=2.5, shift=1.0))
    assert found.temperature == pytest.approx(2.5, rel=0.1)
    assert found.shift == pytest.approx(1.0, abs=0.5)


def test_the_threshold_is_an_operating_point_of_the_chosen_aggregation() -> None:
    """Scores at the threshold separate the answers as well as the figures say."""
    scored, examples = _answers(300)
    found = calibrate(scored, examples)
    values = _scores(scored, found, found.aggregation)
    reached = example_prf([example.label for example in examples], values, threshold=found.threshold).f1
    assert reached == pytest.approx(found.choices[found.aggregation.value]["best_f1"], abs=0.011)


def test_the_chosen_aggregation_ranks_best() -> None:
    """No other aggregation has a higher AUROC on the calibration answers."""
    found = calibrate(*_answers(300))
    assert set(found.choices) == {aggregation.value for aggregation in Aggregation}
    best = max(figures["auroc"] for figures in found.choices.values())
    assert found.choices[found.aggregation.value]["auroc"] == best


def test_noisy_or_stands_at_the_operating_point() -> None:
    """The exponent brings the Noisy-OR's best F1 to the operating point."""
    found = calibrate(*_answers(300))
    assert found.choices["noisy_or"]["threshold"] == pytest.approx(OPERATING_POINT, abs=1e-6)
    assert 0.0 < found.exponent <= 1.0


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

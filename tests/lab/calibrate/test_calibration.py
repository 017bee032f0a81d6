"""Tests of ``truthlens.lab.calibrate.calibration`` on made-up log-odds."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from truthlens.core.records.enums import Aggregation
from truthlens.detection.detectors.encoder.token_scores import Reading, sigmoid
from truthlens.detection.models.aggregation import spans_of
from truthlens.detection.models.response_score import Scoring
from truthlens.lab.calibrate.calibration import (
    BASE_RATE,
    FittedCalibration,
    calibrate,
    kind_weights,
    weighted_quantile,
)
from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.metrics import base_rate_weights, ece, prf

TOKENS = 20
TEXT = "ab " * TOKENS
OFFSETS = np.array([(3 * i, 3 * i + 2) for i in range(TOKENS)], dtype=np.int64)


def _answers(
    count: int, *, temperature: float = 1.0, shift: float = 0.0, seed: int = 0, apart: float = 6.5
) -> tuple[list[Reading], list[Example]]:
    """Answers whose true token probability is ``sigmoid((odds + shift) / temperature)``; errors come in runs."""
    dice = np.random.default_rng(seed)
    scored, examples = [], []
    for number in range(count):
        true = np.full(TOKENS, -6.0) + dice.normal(0, 0.7, TOKENS)
        if number % 3 == 0:
            start = int(dice.integers(0, TOKENS - 5))
            true[start : start + 5] += dice.normal(apart, 1.5)
        gold = dice.random(TOKENS) < sigmoid(true)
        spans = tuple((int(s), int(e)) for s, e in OFFSETS[gold])
        scored.append(_reading(true * temperature - shift))
        examples.append(
            Example(str(number), "made", "qa", "", ("c",), TEXT, int(gold.any()), spans, str(number))
        )
    return scored, examples


def _reading(odds: np.ndarray) -> Reading:
    scored = np.isfinite(odds)
    none = np.zeros_like(scored)
    return Reading(odds, scored, OFFSETS[: len(odds)], TEXT, words=~none, phrases=none, inserted=none)


@functools.cache
def _usual() -> FittedCalibration:
    """What 300 answers give."""
    return calibrate(*_answers(300), main="made")


def _scores(scored: list[Reading], found: FittedCalibration, aggregation: Aggregation) -> np.ndarray:
    scoring = Scoring(tau=found.responses.tau_token, calibrations=found.responses.response)
    values = []
    for reading in scored:
        p = reading.probabilities(temperature=found.temperature, shift=found.shift)
        values.append(scoring.score(aggregation, p=p, spans=spans_of(p, OFFSETS, found.tau_span, TEXT)))
    return np.array(values)


def test_temperature_and_shift_are_found_again() -> None:
    """Log-odds that were stretched and moved come back to what they were."""
    found = calibrate(*_answers(800, temperature=2.5, shift=1.0), main="made")
    assert found.temperature == pytest.approx(2.5, rel=0.1)
    assert found.shift == pytest.approx(1.0, abs=0.5)


def test_the_best_threshold_separates_as_well_as_the_figures_say() -> None:
    """Scores at the named threshold reach the named F1, answers weighted to the expected base rate."""
    scored, examples = _answers(300)
    found = calibrate(scored, examples, main="made")
    labels = np.array([example.label for example in examples], dtype=bool)
    weights = base_rate_weights(labels, base_rate=BASE_RATE)
    flagged = _scores(scored, found, found.responses.aggregation) >= found.responses.threshold
    reached = prf(weights[flagged & labels].sum(), weights[flagged].sum(), weights[labels].sum()).f1
    figures = found.responses.choices[found.responses.aggregation.value]
    assert found.responses.threshold == figures["threshold"]
    assert reached == pytest.approx(
        figures["f1_at_0.6" if found.responses.threshold == 0.6 else "best_f1"], abs=0.011
    )


@pytest.mark.parametrize(("apart", "usual"), [(6.5, True), (2.0, False)])
def test_the_usual_threshold_is_recommended_unless_it_loses(apart: float, usual: bool) -> None:
    """0.6 where its F1 is within 0.02 of the best one, else the threshold of the best F1."""
    found = calibrate(*_answers(400, apart=apart), main="made")
    figures = found.responses.choices[found.responses.aggregation.value]
    assert bool(figures["f1_at_0.6"] >= figures["best_f1"] - 0.02) is usual
    assert found.responses.threshold == (0.6 if usual else figures["best_threshold"])


def _kinds(example: Example) -> str:
    return example.source


def test_kinds_weigh_alike_and_each_at_even_odds() -> None:
    """Many answers of one kind count as much as the few of another, and each class in them one half."""
    labels = np.array([1] * 30 + [0] * 10 + [1] + [0] * 9, dtype=bool)
    kinds = np.array(["many"] * 40 + ["few"] * 10)
    weights = kind_weights(labels, kinds)
    assert weights.mean() == pytest.approx(1.0)
    for name in ("many", "few"):
        for side in (labels, ~labels):
            assert weights[(kinds == name) & side].sum() == pytest.approx(len(labels) / 4)


def test_a_kind_of_one_class_is_left_out_and_reported() -> None:
    """Supported answers alone have no odds: they change no calibration, and their figures say what is unknown."""
    scored, examples = _answers(300)
    more, others = _answers(60, temperature=3.0, seed=5)
    clean = [replace(row, source="clean", label=0, spans=()) for row in others]
    alone = calibrate(scored, examples, main="made", kind_of=_kinds)
    both = calibrate([*scored, *more], [*examples, *clean], main="made", kind_of=_kinds)
    assert both.responses.response == alone.responses.response
    figures = both.responses.kinds["clean"]
    assert (figures["rows"], figures["unsupported"], figures["auroc"], figures["ece"]) == (60, 0, None, None)
    assert figures["flagged"] is None
    assert figures["supported_flagged"] is not None
    assert both.responses.kinds["made"]["ece"] == pytest.approx(
        both.responses.choices[both.responses.aggregation.value]["ece"]
    )


def test_every_calibration_flags_one_sure_token() -> None:
    """Whatever is fitted, one token of 0.99 in 4,000 gives at least 0.6, and limits hide next to nothing."""
    found = calibrate(*_answers(300, seed=4), main="made")
    assert found.responses.tau_token in (0.0, 0.01)
    p = np.full(4_000, 0.001)
    p[2_000] = 0.99
    offsets = np.array([(2 * token, 2 * token + 1) for token in range(4_000)], dtype=np.int64)
    scoring = Scoring(tau=found.responses.tau_token, calibrations=found.responses.response)
    for aggregation in Aggregation:
        spans = spans_of(p, offsets, found.tau_span, "a " * 4_000)
        assert scoring.score(aggregation, p=p, spans=spans) >= 0.6


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_scores_are_probabilities_at_even_odds(aggregation: Aggregation) -> None:
    """On other answers of the same kind the score is about as high as unsupported answers are frequent."""
    found = calibrate(*_answers(900, seed=1), main="made")
    scored, examples = _answers(900, seed=2)
    labels = np.array([example.label for example in examples], dtype=bool)
    weights = base_rate_weights(labels, base_rate=BASE_RATE)
    values = _scores(scored, found, aggregation)
    assert np.average(values, weights=weights) == pytest.approx(0.5, abs=0.05)
    assert ece(labels, values, weights=weights) < 0.1
    assert found.responses.choices[aggregation.value]["ece"] < 0.06


def test_other_sources_leave_the_tokens_alone() -> None:
    """Rows of another source change the response calibration, but neither temperature nor the limit of spans."""
    scored, examples = _answers(300)
    more, others = _answers(60, temperature=3.0, seed=5)
    alone = _usual()
    both = calibrate(
        [*scored, *more], [*examples, *(replace(row, source="other") for row in others)], main="made"
    )
    assert both.temperature == pytest.approx(alone.temperature)
    assert both.tau_span == alone.tau_span
    assert both.responses.response != alone.responses.response
    assert all(found.slope >= 0.0 <= found.worst for found in both.responses.response.values())


def test_the_chosen_aggregation_ranks_best() -> None:
    """No other aggregation ranks clearly better on the calibration answers; of equal ones it is the Noisy-OR."""
    found = _usual()
    assert set(found.responses.choices) == {aggregation.value for aggregation in Aggregation}
    best = max(figures["auroc"] for figures in found.responses.choices.values())
    as_good = [name for name in Aggregation if found.responses.choices[name]["auroc"] >= best - 0.005]
    assert found.responses.aggregation is as_good[0]


def test_silent_tokens_have_probability_zero() -> None:
    """What claims nothing scores nothing, whatever the shift."""
    answer = _reading(np.array([-np.inf, 0.0]))
    assert answer.probabilities(temperature=0.5, shift=100.0).tolist() == [0.0, 1.0]


def test_one_class_of_tokens_leaves_the_log_odds_alone() -> None:
    """Without any error there is nothing to fit: temperature 1, no shift, the raw formulas."""
    scored, examples = _answers(12)
    clean = [Example(e.id, e.source, e.task, "", e.context, e.response, 0, (), e.group) for e in examples]
    found = calibrate(scored, clean, main="made")
    assert (found.temperature, found.shift, found.responses.response) == (1.0, 0.0, {})


@pytest.mark.parametrize(
    ("values", "weights", "expected"),
    [
        ([300], [1.0], 300),
        ([300, 20], [1.0, 1.0], 300),
        ([20, 300], [19.0, 1.0], 20),
        ([5, 1, 3, 2, 4], [1.0, 1.0, 1.0, 1.0, 1.0], 5),
        ([1, 2, 1000], [50.0, 50.0, 0.0], 2),
    ],
)
def test_a_weighted_quantile(values: list[int], weights: list[float], expected: int) -> None:
    """The smallest value below which, itself included, 95 % of the weight lies; of one value, that."""
    assert weighted_quantile(values, np.array(weights), share=0.95) == expected

"""Tests of ``truthlens.telemetry.drift`` with made distributions: shares of errors are no drift, other scores are."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import pytest

from truthlens.core.records.enums import Aggregation, Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import DetectorResult, Verdict
from truthlens.telemetry.drift import (
    DRIFT_LIMIT,
    LEAST_ANSWERS,
    WINDOW,
    ModelKey,
    Reference,
    ScoreDrift,
    distance,
)
from truthlens.telemetry.metrics import Metrics

OWN = Aggregation.NOISY_OR
FLOOR = 0.05
TINY = ModelKey("tiny")


def draw(count: int, *, share: float, sharp: float = 0.4, seed: int = 0) -> np.ndarray:
    """Scores that are probabilities at even odds: Beta(k + 1, k) of errors and Beta(k, k + 1) of others."""
    dice = np.random.default_rng(seed)
    wrong = dice.random(count) < share
    return np.where(wrong, dice.beta(sharp + 1, sharp, count), dice.beta(sharp, sharp + 1, count))


def deciles(scores: np.ndarray) -> tuple[float, ...]:
    return tuple(np.quantile(scores, np.arange(1, 10) / 10, method="inverted_cdf").round(4).tolist())


EVEN = deciles(draw(50_000, share=0.5, seed=9))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.2, 0.35, 0.5])
@pytest.mark.parametrize("sharp", [0.2, 0.4, 1.0])
def test_another_share_of_errors_is_no_drift(share: float, sharp: float) -> None:
    """Whatever share is unsupported, up to a half, the model reads as it was calibrated."""
    even = deciles(draw(50_000, share=0.5, sharp=sharp, seed=9))
    for seed in range(5):
        assert distance(draw(LEAST_ANSWERS, share=share, sharp=sharp, seed=seed).tolist(), even) < DRIFT_LIMIT
    assert distance(draw(20_000, share=share, sharp=sharp).tolist(), even) < 0.06


@pytest.mark.parametrize(
    "live",
    [
        np.random.default_rng(1).beta(6, 4, 1000),  # free wording: everything looks a little wrong
        np.full(1000, 0.62),
        np.random.default_rng(2).beta(20, 20, 1000),  # nothing is told apart any more
        np.random.default_rng(3).beta(8, 1, 1000),
    ],
)
def test_other_scores_are_drift(live: np.ndarray) -> None:
    """Scores that no share of errors explains."""
    assert distance(live.tolist(), EVEN) > DRIFT_LIMIT + 0.05


def test_a_floor_that_many_answers_share_is_no_drift() -> None:
    """Half of the answers tie at the score of no suspicious token; the same tie in traffic is as calibrated."""
    even = deciles(np.maximum(draw(50_000, share=0.5, seed=9).round(4), 0.4))
    assert even[0] == even[3] == 0.4
    for share in (0.1, 0.5):
        live = np.maximum(draw(2_000, share=share, seed=4), 0.4)
        assert distance(live.tolist(), even) < 0.06
    assert distance(np.full(1000, 0.4).tolist(), even) > 0.1
    assert distance(np.full(1000, 0.3).tolist(), even) > DRIFT_LIMIT


def test_rounding_of_the_deciles_moves_no_tie() -> None:
    """The manifest has four digits, live scores have all of them."""
    even = (0.0499,) * 6 + (0.3, 0.6, 0.9)
    live = [0.0499123] * 65 + [0.2] * 5 + [0.45] * 10 + [0.7] * 10 + [0.95] * 10
    assert distance(live, even) < 0.05


def test_the_window_is_bounded_and_nothing_is_said_too_early() -> None:
    """The last scores count, from a least number on, of models with a reference alone."""
    drift = ScoreDrift()
    drift.use({TINY: Reference(EVEN, OWN)})
    for score in np.full(LEAST_ANSWERS - 1, 0.62):
        drift.observe(TINY, None, float(score))
        drift.observe(ModelKey("another"), None, float(score))
    assert drift.figures() == []
    drift.observe(TINY, OWN, 0.62)
    (found,) = drift.figures()
    assert (found.model, found.answers, found.beyond) == (TINY, LEAST_ANSWERS, True)
    for score in draw(3 * WINDOW, share=0.1):
        drift.observe(TINY, None, float(score))
    (found,) = drift.figures()
    assert (found.answers, found.beyond) == (WINDOW, False)


def test_scores_of_another_aggregation_do_not_count() -> None:
    """They are distributed otherwise by themselves."""
    drift = ScoreDrift()
    drift.use({TINY: Reference(EVEN, OWN)})
    for _ in range(LEAST_ANSWERS):
        drift.observe(TINY, Aggregation.SPAN_MAX, 0.62)
    assert drift.figures() == []


def test_a_reload_keeps_scores_of_the_same_model_alone() -> None:
    """A model with other deciles begins anew, and one that left is forgotten."""
    drift = ScoreDrift()
    a, b = ModelKey("a"), ModelKey("b")
    drift.use({a: Reference(EVEN, OWN), b: Reference(EVEN, OWN)})
    for model in (a, b):
        for _ in range(LEAST_ANSWERS):
            drift.observe(model, None, 0.62)
    drift.use({a: Reference(EVEN, OWN), b: Reference((0.5,) * 9, OWN)})
    assert [each.model for each in drift.figures()] == [a]
    drift.use({ModelKey("a", "2"): Reference(EVEN, OWN)})
    assert drift.figures() == []
    drift.use({})
    assert drift.figures() == []


def test_the_gauge_follows_the_encoders_scores() -> None:
    """As the backend gave the answers, before correction; without enough of them there is no series."""
    signals = Metrics()
    signals.detectors.drift.use({ModelKey("m1", "r1"): Reference(EVEN, OWN)})
    results = (DetectorResult("encoder", 0.62, revision="r1"), DetectorResult("citations", 0.0))
    first = Verdict(Status.CHECKED, score=0.9, threshold=0.5, results=results)
    delivered = replace(first, score=0.1, results=(DetectorResult("encoder", 0.01),))
    outcome = Outcome(Plan("support"), delivered, (delivered,), model="m1", first=(first,))
    for _ in range(LEAST_ANSWERS):
        assert 'truthlens_score_drift{model="m1"' not in signals.exposition().decode()
        signals.observe(outcome, request_s=0.0, response_s=0.0)
    signals.exposition()
    found = signals.registry.get_sample_value("truthlens_score_drift", {"model": "m1", "revision": "r1"})
    assert found == pytest.approx(distance([0.62], EVEN), abs=1e-4)
    signals.detectors.drift.use({})
    assert 'truthlens_score_drift{model="m1"' not in signals.exposition().decode()


def test_two_revisions_of_one_name_share_no_window() -> None:
    """The scores of one are compared with its own calibration, by the revision that the results name."""
    signals = Metrics()
    old, new = ModelKey("m1", "r1"), ModelKey("m1", "r2")
    signals.detectors.drift.use({old: Reference(EVEN, OWN), new: Reference((0.62,) * 9, OWN)})
    for revision, score in (("r1", 0.5), ("r2", 0.62)):
        verdict = Verdict(
            Status.CHECKED, score=score, results=(DetectorResult("encoder", score, revision=revision),)
        )
        outcome = Outcome(Plan("support"), verdict, (verdict,), model="m1", first=(verdict,))
        for _ in range(LEAST_ANSWERS):
            signals.observe(outcome, request_s=0.0, response_s=0.0)
    found = {each.model: each for each in signals.detectors.drift.figures()}
    assert {model: each.answers for model, each in found.items()} == {old: LEAST_ANSWERS, new: LEAST_ANSWERS}
    assert found[old].distance == pytest.approx(distance([0.5], EVEN))
    assert found[new].distance == pytest.approx(distance([0.62], (0.62,) * 9))
    assert found[old].distance > found[new].distance
    signals.exposition()
    shown = [
        signals.registry.get_sample_value(
            "truthlens_score_drift", {"model": "m1", "revision": model.revision}
        )
        for model in (old, new)
    ]
    assert shown == [round(found[model].distance, 4) for model in (old, new)]


def test_references_may_change_on_another_thread() -> None:
    """Whatever line a reload has come to, counting an answer and reading the figures go on."""
    drift = ScoreDrift()
    first, second = ModelKey("m0"), ModelKey("m1")
    drift.use({first: Reference(EVEN, OWN)})
    for _ in range(LEAST_ANSWERS):
        drift.observe(first, None, 0.5)

    def between(_frame: FrameType, _event: str, _what: object) -> Any:
        sys.settrace(None)
        for model in (first, second):
            drift.observe(model, None, 0.5)
        drift.figures()
        sys.settrace(between)
        return between

    sys.settrace(between)
    try:
        drift.use({first: Reference(EVEN, OWN), second: Reference(EVEN, OWN)})
        drift.use({second: Reference(EVEN, OWN)})
    finally:
        sys.settrace(None)
    assert drift.figures() == []

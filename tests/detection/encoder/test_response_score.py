"""Tests of ``truthlens.detection.encoder.response_score``."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Aggregation
from truthlens.core.records.verdict import Span
from truthlens.detection.encoder.aggregation import aggregate
from truthlens.detection.encoder.response_score import Calibration, Scoring, measures

NOISY_OR = Calibration(slope=1.5, worst=0.5, length=-0.2, intercept=-1.0)
PLAIN = Calibration(slope=2.0, worst=0.0, length=0.0, intercept=0.5)
UNIT = st.floats(0.0, 1.0)


def _spans(*scores: float) -> tuple[Span, ...]:
    return tuple(Span(start=10 * n, end=10 * n + 5, score=score) for n, score in enumerate(scores))


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_without_a_calibration_the_score_is_the_formula(aggregation: Aggregation) -> None:
    """Models whose manifest carries none score as the white paper has it."""
    p, spans = np.array([0.2, 0.7, 0.1]), _spans(0.7, 0.4)
    raw = aggregate(aggregation, p=p, spans=spans, tau=0.15)
    assert Scoring(tau=0.15).score(aggregation, p=p, spans=spans) == raw


def test_a_calibrated_noisy_or_is_a_logistic_of_its_hazard() -> None:
    """By hand: hazard and worst tokens of two tokens above the limit, length of three."""
    p = np.array([0.5, 0.75, 0.1])
    hazard, worst = math.log(2.0) + math.log(4.0), 1.25 / 3
    odds = 1.5 * math.log(hazard) + 0.5 * math.log(worst / (1 - worst)) - 0.2 * math.log(4.0) - 1.0
    scoring = Scoring(tau=0.15, calibrations={Aggregation.NOISY_OR: NOISY_OR})
    assert scoring.score(Aggregation.NOISY_OR, p=p, spans=()) == pytest.approx(1 / (1 + math.exp(-odds)))


def test_a_plain_error_is_added_by_a_noisy_or() -> None:
    """Three tokens at 0.9 to the power of 2 are worth 0.81 by themselves."""
    p = np.array([0.9, 0.9, 0.9, *[0.01] * 300])
    base, plain = (
        Scoring(tau=0.0, calibrations={Aggregation.NOISY_OR: replace(NOISY_OR, plain=power)}).score(
            Aggregation.NOISY_OR, p=p, spans=()
        )
        for power in (0.0, 2.0)
    )
    assert plain == pytest.approx(1 - (1 - base) * (1 - 0.81))


def test_span_scores_are_calibrated_by_themselves() -> None:
    """The highest span by its log-odds, all spans by the log of their hazard."""
    scoring = Scoring(tau=0.0, calibrations=dict.fromkeys(Aggregation, PLAIN))
    spans, p = _spans(0.8, 0.5), np.array([0.8, 0.0, 0.5])
    odds = 2.0 * math.log(4.0) + 0.5
    assert scoring.score(Aggregation.SPAN_MAX, p=p, spans=spans) == pytest.approx(1 / (1 + math.exp(-odds)))
    odds = 2.0 * math.log(math.log(5.0) + math.log(2.0)) + 0.5
    assert scoring.score(Aggregation.SPAN_NOISY_OR, p=p, spans=spans) == pytest.approx(
        1 / (1 + math.exp(-odds))
    )


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_where_nothing_counts_the_score_is_zero(aggregation: Aggregation) -> None:
    """No token above the limit and no span: calibrated or not, nothing is suspicious."""
    scoring = Scoring(tau=0.3, calibrations=dict.fromkeys(Aggregation, PLAIN))
    assert scoring.score(aggregation, p=np.array([0.1, 0.3]), spans=()) == 0.0
    assert measures(aggregation, p=np.array([]), spans=(), tau=0.0) is None


@given(st.lists(UNIT, min_size=1, max_size=30), st.data())
def test_a_more_suspicious_token_never_lowers_the_score(p: list[float], data: st.DataObject) -> None:
    """Calibration keeps what the Noisy-OR promises, and stays within 0..1."""
    scoring = Scoring(tau=0.1, calibrations={Aggregation.NOISY_OR: replace(NOISY_OR, plain=2.0)})
    place = data.draw(st.integers(0, len(p) - 1))
    higher = [*p]
    higher[place] = data.draw(st.floats(p[place], 1.0))
    low, high = (scoring.score(Aggregation.NOISY_OR, p=values, spans=()) for values in (p, higher))
    assert 0.0 <= low <= high + 1e-12 <= 1.0 + 1e-12


def test_a_calibration_that_falls_is_refused() -> None:
    """A negative slope would score worse tokens lower."""
    with pytest.raises(ValueError, match="expected 0 or more"):
        Calibration(slope=-0.1, worst=0.0, length=0.0, intercept=0.0)

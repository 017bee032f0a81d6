"""Tests of ``truthlens.detection.models.response_score``."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Aggregation
from truthlens.core.records.verdict import Span
from truthlens.detection.models.aggregation import aggregate, spans_of
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.detection.models.response_score import MOST_SURE, Calibration, Scoring, measures
from truthlens.process.settings import models_folder

SURE = 6.0
NOISY_OR = Calibration(slope=1.5, worst=0.5, length=-0.2, intercept=-1.0, sure=SURE)
SPANS = Calibration(slope=2.0, worst=0.0, length=0.0, intercept=0.5, sure=SURE)
BUNDLED = load_manifest(models_folder() / "truthlens-minilm-en-v2")
UNIT = st.floats(0.0, 1.0)


def _spans(*scores: float) -> tuple[Span, ...]:
    return tuple(Span(start=10 * n, end=10 * n + 5, score=score) for n, score in enumerate(scores))


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_without_a_calibration_the_score_is_the_formula(aggregation: Aggregation) -> None:
    """Models whose manifest carries none score as the white paper has it."""
    p, spans = np.array([0.2, 0.7, 0.1]), _spans(0.7, 0.4)
    raw = aggregate(aggregation, p=p, spans=spans, tau=0.15)
    assert Scoring(tau=0.15).score(aggregation, p=p, spans=spans) == raw


def _fused(odds: float, highest: float) -> float:
    return 1 - (1 - 1 / (1 + math.exp(-odds))) * (1 - highest**SURE)


def test_a_calibrated_noisy_or_is_a_logistic_of_its_hazard_and_its_surest_token() -> None:
    """By hand: hazard of two tokens above the limit, the three highest, length of three, and 0.75 to the power."""
    p = np.array([0.5, 0.75, 0.1])
    hazard, worst = math.log(2.0) + math.log(4.0), 1.35 / 3
    odds = 1.5 * math.log(hazard) + 0.5 * math.log(worst / (1 - worst)) - 0.2 * math.log(4.0) - 1.0
    scoring = Scoring(tau=0.15, calibrations={Aggregation.NOISY_OR: NOISY_OR})
    assert scoring.score(Aggregation.NOISY_OR, p=p, spans=()) == pytest.approx(_fused(odds, 0.75))


def test_span_scores_are_calibrated_by_themselves() -> None:
    """The highest span by its log-odds, all spans by the log of their hazard."""
    scoring = Scoring(tau=0.0, calibrations=dict.fromkeys(Aggregation, SPANS))
    spans, p = _spans(0.8, 0.5), np.array([0.8, 0.0, 0.5])
    odds = 2.0 * math.log(4.0) + 0.5
    assert scoring.score(Aggregation.SPAN_MAX, p=p, spans=spans) == pytest.approx(_fused(odds, 0.8))
    odds = 2.0 * math.log(math.log(5.0) + math.log(2.0)) + 0.5
    assert scoring.score(Aggregation.SPAN_NOISY_OR, p=p, spans=spans) == pytest.approx(_fused(odds, 0.8))


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_where_nothing_counts_the_score_is_zero(aggregation: Aggregation) -> None:
    """An answer of which every part claims nothing is not suspicious, calibrated or not."""
    scoring = Scoring(tau=0.3, calibrations=dict.fromkeys(Aggregation, SPANS))
    assert scoring.score(aggregation, p=np.array([0.0, 0.0]), spans=()) == 0.0
    assert measures(aggregation, p=np.array([]), spans=(), tau=0.0) is None


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_answers_below_the_limit_are_told_apart(aggregation: Aggregation) -> None:
    """Without a token above the limit, and without a span, the highest token alone still ranks."""
    scoring = Scoring(tau=0.01, calibrations=dict.fromkeys(Aggregation, SPANS))
    scores = [
        scoring.score(aggregation, p=np.array([0.001, top]), spans=())
        for top in (0.002, 0.004, 0.0099, 0.011)
    ]
    assert all(low < high for low, high in itertools.pairwise(scores))


@given(st.lists(UNIT, min_size=1, max_size=30), st.data())
def test_a_more_suspicious_token_never_lowers_the_score(p: list[float], data: st.DataObject) -> None:
    """Calibration keeps what the Noisy-OR promises, and stays within 0..1."""
    scoring = Scoring(tau=0.1, calibrations={Aggregation.NOISY_OR: NOISY_OR})
    place = data.draw(st.integers(0, len(p) - 1))
    higher = [*p]
    higher[place] = data.draw(st.floats(p[place], 1.0))
    low, high = (scoring.score(Aggregation.NOISY_OR, p=values, spans=()) for values in (p, higher))
    assert 0.0 <= low <= high + 1e-12 <= 1.0 + 1e-12


def _answer(background: float, tokens: int, sure: float, at: int) -> tuple[np.ndarray, tuple[Span, ...]]:
    """Token probabilities with one that is ``sure``, and their spans."""
    p = np.full(tokens, background)
    p[at % tokens] = sure
    offsets = np.array([(2 * token, 2 * token + 1) for token in range(tokens)], dtype=np.int64)
    return p, spans_of(p, offsets, 0.5, "a " * tokens)


@pytest.mark.parametrize("aggregation", list(Aggregation))
@given(
    background=st.floats(0.0, 0.01, exclude_max=True),
    tokens=st.integers(1, 4_000),
    sure=st.floats(0.99, 1.0),
    at=st.integers(0, 3_999),
    slope=st.floats(0.0, 5.0),
    worst=st.floats(0.0, 5.0),
    length=st.floats(-5.0, 5.0),
    intercept=st.floats(-50.0, 50.0),
    power=st.sampled_from((2.0, 16.0, 48.0, MOST_SURE)),
)
def test_one_token_that_is_surely_wrong_flags_any_answer(  # noqa: PLR0917
    aggregation: Aggregation, background: float, tokens: int, sure: float, at: int, slope: float, worst: float,
    length: float, intercept: float, power: float,
) -> None:  # fmt: skip
    """At the white paper's 0.6, whatever the rest is, with every calibration that a manifest may hold."""
    p, spans = _answer(background, tokens, sure, at)
    fitted = Calibration(slope, worst, length, intercept, sure=power)
    scoring = Scoring(tau=0.01, calibrations=dict.fromkeys(Aggregation, fitted))
    assert scoring.score(aggregation, p=p, spans=spans) >= 0.6
    assert Scoring(tau=0.01).score(aggregation, p=p, spans=spans) >= 0.6
    assert BUNDLED.scoring.score(aggregation, p=p, spans=spans) >= 0.6


@given(st.lists(UNIT, min_size=1, max_size=30), st.data())
def test_under_the_bundled_model_no_token_lowers_the_score(p: list[float], data: st.DataObject) -> None:
    """Raising a token leaves the score or raises it, by tokens and by the highest span."""
    place = data.draw(st.integers(0, len(p) - 1))
    higher = [*p]
    higher[place] = data.draw(st.floats(p[place], 1.0))
    offsets = np.array([(2 * token, 2 * token + 1) for token in range(len(p))], dtype=np.int64)
    for aggregation in (Aggregation.NOISY_OR, Aggregation.SPAN_MAX):
        low, high = (
            BUNDLED.scoring.score(
                aggregation, p=values, spans=spans_of(values, offsets, BUNDLED.tau_span, "a " * len(p))
            )
            for values in (p, higher)
        )
        assert 0.0 <= low <= high + 1e-12 <= 1.0 + 1e-12


@pytest.mark.parametrize("sure", [0.0, -1.0, 51.0])
def test_a_calibration_that_may_miss_a_sure_token_is_refused(sure: float) -> None:
    """Powers beyond the bound give 0.99 less than 0.6."""
    with pytest.raises(ValueError, match="at most 50"):
        Calibration(slope=1.0, worst=0.0, length=0.0, intercept=0.0, sure=sure)


def test_a_calibration_that_falls_is_refused() -> None:
    """A negative slope would score worse tokens lower."""
    with pytest.raises(ValueError, match="expected 0 or more"):
        Calibration(slope=-0.1, worst=0.0, length=0.0, intercept=0.0, sure=SURE)


@pytest.mark.parametrize("aggregation", [Aggregation.NOISY_OR, Aggregation.SPAN_MAX])
@given(
    st.lists(st.floats(0.0, 0.99), min_size=1, max_size=12),
    st.integers(3, 40),
    st.floats(0.0, 3.0),
    st.floats(-2.0, 2.0),
)
def test_an_answer_said_again_and_again_scores_no_higher(
    aggregation: Aggregation, p: list[float], times: int, slope: float, length: float
) -> None:
    """Beyond the longest answers of the calibration, length alone raises no score, whatever was fitted."""
    fitted = Calibration(
        slope=slope, worst=0.5, length=length, intercept=0.2, sure=SURE, max_tokens=len(p) * 3
    )
    scoring = Scoring(tau=0.0, calibrations={aggregation: fitted})

    def score(times: int) -> float:
        values = np.tile(np.array(p), times)
        spans = tuple(span for _ in range(times) for span in _spans(*(each for each in p if each > 0.5)))
        return scoring.score(aggregation, p=values, spans=spans)

    assert score(times) <= score(3) + 1e-9


@given(st.lists(st.floats(0.0, 0.99), min_size=3, max_size=30), st.integers(0, 200), st.booleans())
def test_clean_text_hides_no_error(p: list[float], padding: int, before: bool) -> None:
    """What is appended to an answer of full length, or put before it, never lowers its score."""
    fitted = Calibration(slope=1.5, worst=0.5, length=0.2, intercept=-1.0, sure=SURE, max_tokens=len(p))
    scoring = Scoring(tau=0.0, calibrations={Aggregation.NOISY_OR: fitted})
    clean = [0.0] * padding
    padded = [*clean, *p] if before else [*p, *clean]
    alone, with_padding = (
        scoring.score(Aggregation.NOISY_OR, p=np.array(each), spans=()) for each in (p, padded)
    )
    assert with_padding >= alone - 1e-9


def test_short_answers_are_scored_as_without_the_bound() -> None:
    """The bound is that of the calibration's answers, so that it changes none of them."""
    bounded = Calibration(slope=1.5, worst=0.5, length=-0.2, intercept=-1.0, sure=SURE, max_tokens=3)
    p = np.array([0.5, 0.75, 0.1])
    one, other = (
        Scoring(tau=0.0, calibrations={Aggregation.NOISY_OR: each}).score(Aggregation.NOISY_OR, p=p, spans=())
        for each in (NOISY_OR, bounded)
    )
    assert one == other

"""Tests of ``truthlens.lab.evaluate.reliability``: samples by level, aggregation and length."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.fakes.scored_answers import made_tally
from truthlens.core.records.enums import Aggregation
from truthlens.lab.evaluate.reliability import SHORT_ANSWER_TOKENS, reliability, samples
from truthlens.lab.evaluate.served_encoder import TokenReading

NAMES = [
    ("token", None),
    ("span", None),
    ("response", "noisy_or"),
    ("response", "span_max"),
    ("response", "span_noisy_or"),
]


def _reading(tokens: int, score: float, *, marked: bool = True) -> TokenReading:
    p = np.full(tokens, 0.25, dtype=np.float32)
    gold = np.arange(tokens) % 4 == 0 if marked else None
    spans = np.array([[0.8, 1.0 if marked else np.nan]])
    return TokenReading(p, gold, spans, {name: score + place / 10 for place, name in enumerate(Aggregation)})


def test_there_is_a_row_for_each_level_aggregation_and_length() -> None:
    """Tokens and spans once, responses under each aggregation; all, short and long."""
    rows = reliability(made_tally())
    assert [(row["level"], row["aggregation"]) for row in rows] == NAMES * 3
    assert [row["length"] for row in rows] == ["all"] * 5 + ["short"] * 5 + ["long"] * 5
    for whole, short, long in zip(rows[:5], rows[5:10], rows[10:], strict=True):
        assert whole["n"] == short["n"] + long["n"]


def test_figures_by_hand() -> None:
    """A quarter of the tokens is gold and every token says a quarter: no error; each answer's score is its own."""
    tally = replace(
        made_tally(2),
        labels=np.array([True, False]),
        marked=np.array([True, False]),
        readings=(_reading(SHORT_ANSWER_TOKENS, 0.7), _reading(SHORT_ANSWER_TOKENS + 1, 0.3, marked=False)),
    )
    found = {(row["level"], row["aggregation"], row["length"]): row for row in reliability(tally)}
    token = found["token", None, "all"]
    assert (token["n"], token["ece"], token["base_rate"]) == (SHORT_ANSWER_TOKENS, 0.0, 0.25)
    assert found["span", None, "all"]["ece"] == pytest.approx(0.2)
    noisy = found["response", "noisy_or", "all"]
    assert (noisy["n"], noisy["ece"], noisy["brier"]) == (2, pytest.approx(0.3), pytest.approx(0.09))
    assert found["response", "span_max", "short"]["mean_score"] == pytest.approx(0.8)
    assert found["response", "span_max", "long"]["mean_score"] == pytest.approx(0.4)
    assert found["token", None, "long"] == {
        "level": "token", "aggregation": None, "length": "long", "n": 0, "base_rate": None, "mean_score": None,
        "auroc": None, "ece": None, "ece_equal_mass": None, "brier": None,
    }  # fmt: skip


def test_answers_without_token_scores_are_in_no_sample() -> None:
    """A detector that gives none has empty samples."""
    assert all(len(sample.scores) == 0 for sample in samples(made_tally(read=False)))


def test_tokens_carry_the_weight_of_their_answer() -> None:
    """With a base rate, the tokens of one answer weigh the same, and those of the rarer kind less."""
    tally = made_tally(12)
    sample = next(samples(tally, base_rate=0.1))
    marked = tally.take(tally.marked)
    expected = np.repeat(marked.weights(0.1), [len(one.p) for one in marked.readings if one is not None])
    assert sample.weights.tolist() == expected.tolist()
    assert len(set(sample.weights.tolist())) == 2

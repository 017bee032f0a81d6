"""Scored answers without a model: a tally of made rows whose scores go with their labels, more or less."""

from __future__ import annotations

import numpy as np

from truthlens.core.records.enums import Aggregation
from truthlens.lab.evaluate.score_table import EvaluationTally
from truthlens.lab.evaluate.served_encoder import TokenReading


def made_tally(
    rows: int = 60, *, seed: int = 0, marked: bool = True, read: bool = True, source: str = "made"
) -> EvaluationTally:
    """Answers of 20 to 200 tokens, a third of them unsupported, in pairs of one source text, of two generators.

    Args:
        rows: how many.
        seed: of everything random.
        marked: whether every second row has marked spans, or none.
        read: whether the token scores are known.
        source: the source of all rows.
    """
    dice = np.random.default_rng(seed)
    labels = np.arange(rows) % 3 == 0
    scores = np.clip(0.35 + 0.3 * labels + 0.2 * dice.standard_normal(rows), 0.0, 1.0)
    known = (np.arange(rows) % 2 == 0) & marked
    counts = dice.integers(1, 9, (rows, 4)).astype(np.float64)
    counts[:, 0] = np.minimum(counts[:, 0], counts[:, 1])
    counts[:, 2] = np.minimum(counts[:, 2], counts[:, 3])
    chars = counts[:, [0, 1, 1]] * known[:, None]
    readings = tuple(_reading(dice, float(score), bool(mark)) if read else None
                     for score, mark in zip(scores, known, strict=True))  # fmt: skip
    return EvaluationTally(
        labels=labels,
        scores=scores,
        scored=np.ones(rows, dtype=bool),
        marked=known,
        chars=chars,
        spans=counts * known[:, None],
        any_span=scores > 0.3,
        coverage=np.ones(rows),
        seconds=np.full(rows, 0.01),
        tokens=np.full(rows, 500.0),
        group=np.array([f"text-{row // 2}" for row in range(rows)], dtype=np.str_),
        task=np.array(["qa"] * rows, dtype=np.str_),
        source=np.array([source] * rows, dtype=np.str_),
        generator=np.array([f"model-{row % 2}" for row in range(rows)], dtype=np.str_),
        kind=np.array([f"kind-{row % 3}" for row in range(rows)], dtype=np.str_),
        style=np.array([""] * rows, dtype=np.str_),
        twin=np.array([f"answer-{row // 2}" for row in range(rows)], dtype=np.str_),
        sibling=np.array([f"evidence-{row // 6}" for row in range(rows)], dtype=np.str_),
        blind=np.full(rows, np.nan),
        parts=np.zeros((rows, 0, 2)),
        abstained=np.zeros((rows, 0), dtype=bool),
        readings=readings,
    )


def _reading(dice: np.random.Generator, score: float, marked: bool) -> TokenReading:
    p = (dice.random(int(dice.integers(20, 200))) * score).astype(np.float32)
    spans = np.array([[score, np.nan if not marked else float(dice.random() < score)]])
    scores = dict.fromkeys(Aggregation, score)
    return TokenReading(p, dice.random(len(p)) < p if marked else None, spans, scores)

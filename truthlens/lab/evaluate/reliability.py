"""Do scores mean what they say: token, span and response scores against what people marked.

For each kind of score, and for response scores under each aggregation, over all answers and over short and
long ones apart: a score that is calibrated on the whole can still be too high for every long answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truthlens.core.records.enums import Aggregation
from truthlens.lab.evaluate.metrics import Floats, Ranking, brier, ece, rounded
from truthlens.lab.evaluate.score_table import EvaluationTally
from truthlens.lab.evaluate.served_encoder import TokenReading

SHORT_ANSWER_TOKENS = 100
"""An answer of at most so many of the model's tokens is short, any other long."""

Level = Literal["token", "span", "response"]
Length = Literal["all", "short", "long"]
LENGTHS: tuple[Length, ...] = ("all", "short", "long")


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Scores of one kind with their labels, all of shape (scores,).

    ``labels``: of a token whether it overlaps a marked span, of a predicted span whether it does, of an
    answer its own. ``aggregation`` is ``None`` for tokens and spans, which come before it.
    """

    level: Level
    aggregation: Aggregation | None
    length: Length
    labels: NDArray[np.bool_]
    scores: Floats
    weights: Floats


def samples(tally: EvaluationTally, *, base_rate: float | None = None) -> Iterator[Sample]:
    """Yield the samples of ``tally``: tokens, spans, and responses per aggregation and length of answer.

    Tokens and spans come from answers whose spans people marked, and carry their answer's weight. Answers
    that were not scored are in none.
    """
    read = tally.take(np.array([reading is not None for reading in tally.readings], dtype=bool))
    sizes = np.array([len(reading.p) for reading in _readings(read)])
    for length in LENGTHS:
        within = np.ones(len(read), dtype=bool)
        if length != "all":
            within = (sizes <= SHORT_ANSWER_TOKENS) == (length == "short")
        rows = read.take(within)
        marked = rows.take(rows.marked)
        weights = marked.weights(base_rate)
        yield _pieces("token", length, [(r.p, r.gold) for r in _readings(marked)], weights)
        yield _pieces("span", length, [(r.spans[:, 0], r.spans[:, 1]) for r in _readings(marked)], weights)
        for aggregation in Aggregation:
            scores = np.array([reading.scores[aggregation] for reading in _readings(rows)], dtype=np.float64)
            yield Sample(
                "response", aggregation, length, rows.labels, scores, rows.weights(base_rate)
            )  # fmt: skip


def reliability(tally: EvaluationTally, *, base_rate: float | None = None) -> list[dict[str, Any]]:
    """Return one row of figures per sample: count, share of positives, mean score, AUROC, ECE, Brier."""
    return [
        {
            "level": sample.level,
            "aggregation": sample.aggregation,
            "length": sample.length,
            "n": len(sample.scores),
            **_figures(sample),
        }
        for sample in samples(tally, base_rate=base_rate)
    ]


def _figures(sample: Sample) -> dict[str, float | None]:
    labels, scores, weights = sample.labels, sample.scores, sample.weights
    if not len(scores):
        return dict.fromkeys(("base_rate", "mean_score", "auroc", "ece", "ece_equal_mass", "brier"))
    found = {
        "base_rate": float(weights @ labels / weights.sum()),
        "mean_score": float(weights @ scores / weights.sum()),
        "auroc": Ranking.of(labels, scores).auroc(weights),
        "ece": ece(labels, scores, weights=weights),
        "ece_equal_mass": ece(labels, scores, equal_mass=True, weights=weights),
        "brier": brier(labels, scores, weights=weights),
    }
    figures: dict[str, float | None] = rounded(found)
    return figures


def _pieces(
    level: Level, length: Length, parts: list[tuple[NDArray[Any], NDArray[Any] | None]], weights: Floats
) -> Sample:
    """Return the tokens or spans of all answers in one sample."""
    known = [
        (scores, labels, np.full(len(scores), weight))
        for (scores, labels), weight in zip(parts, weights.tolist(), strict=True)
        if labels is not None and len(scores)
    ]
    if not known:
        nothing = np.zeros(0)
        return Sample(level, None, length, nothing.astype(bool), nothing, nothing)
    scores, labels, mass = (np.concatenate(column) for column in zip(*known, strict=True))
    return Sample(level, None, length, labels.astype(bool), scores.astype(np.float64), mass)


def _readings(tally: EvaluationTally) -> list[TokenReading]:
    return [reading for reading in tally.readings if reading is not None]

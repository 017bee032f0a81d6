"""Compare the scores of live answers with those that a model was calibrated on; no text, a bounded window a model.

The distance is Kolmogorov and Smirnov's: the largest difference of the two cumulative distributions, 0..1. A population
stability index would need bins that are never empty, and grows without bound where one nearly is; this one reads
straight off nine deciles, says "so many of the answers are on another side", and does not depend on bins. The share of
unsupported answers is not known and must not count as drift: scores are probabilities at even odds, so the distribution
at any other share follows from the deciles, and the distance is the least over all shares up to a half.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from truthlens.core.records.enums import Aggregation

WINDOW = 1000
"""Scores that are kept of a model, the last ones."""
LEAST_ANSWERS = 200
"""Scores below which nothing is said: chance alone makes a distance of about .1 with so many."""
DRIFT_LIMIT = 0.2
"""Distance from which live scores count as distributed unlike the calibration's."""
_SHARES = tuple(step / 50 for step in range(26))
_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class Reference:
    """What a model was calibrated on: the nine deciles of its scores at even odds, under ``aggregation``."""

    deciles: tuple[float, ...]
    aggregation: Aggregation


class ModelKey(NamedTuple):
    """Which model scored: two of one name may be of different revisions (``""`` where the manifest gives none)."""

    name: str
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the last scores of a model are from its calibration's; ``distance`` 0..1 over ``answers`` scores."""

    model: ModelKey
    distance: float
    answers: int

    @property
    def beyond(self) -> bool:
        """Whether an operator should look at it."""
        return self.distance >= DRIFT_LIMIT


class ScoreDrift:
    """The last scores of each model that has a reference; ``use`` may be called on another thread than the rest."""

    def __init__(self) -> None:
        # Replaced as a whole, so that nobody sees references without their scores.
        self._models: dict[ModelKey, tuple[Reference, deque[float]]] = {}

    def use(self, references: Mapping[ModelKey, Reference]) -> None:
        """Compare with these from now on; scores of models whose reference stays the same are kept."""
        before = self._models
        found: dict[ModelKey, tuple[Reference, deque[float]]] = {}
        for model, reference in references.items():
            known, scores = before.get(model, (None, deque[float]()))
            found[model] = (reference, scores if known == reference else deque[float](maxlen=WINDOW))
        self._models = found

    def observe(self, model: ModelKey, aggregation: Aggregation | None, score: float) -> None:
        """Take in the encoder's score of one answer, 0..1 at even odds.

        It counts where ``model`` has a reference, and ``aggregation`` (``None``: the model's own) is that of it.
        """
        found = self._models.get(model)
        if found is not None and aggregation in (None, found[0].aggregation):
            found[1].append(score)

    def figures(self) -> list[Drift]:
        """Return the drift of every model with enough scores, by name and revision."""
        return [
            Drift(model, distance(scores, reference.deciles), len(scores))
            for model, (reference, scores) in sorted(self._models.items(), key=lambda each: each[0])
            if len(scores) >= LEAST_ANSWERS
        ]


def distance(scores: Sequence[float] | deque[float], deciles: Sequence[float]) -> float:
    """Return the least Kolmogorov–Smirnov distance of ``scores`` from what the deciles allow, 0..1.

    Many answers may have one score, that of no suspicious token, and then several deciles are equal: of the
    distribution below and at such a score only bounds are known, and only what lies outside of them counts.

    Args:
        scores: of live answers, 0..1; at least one.
        deciles: the nine deciles of the calibration's scores at even odds, ascending.
    """
    values = sorted(scores)
    points = sorted(set(deciles))
    below = [bisect_left(values, point - _TOLERANCE) / len(values) for point in points]
    up_to = [bisect_right(values, point + _TOLERANCE) / len(values) for point in points]
    first = [bisect_left(deciles, point) for point in points]
    last = [bisect_right(deciles, point) - 1 for point in points]

    def from_share(share: float) -> float:
        expected = _at_share(deciles, share)
        return max(
            max(expected[last[place]] - up_to[place], below[place] - expected[first[place]])
            for place in range(len(points))
        )

    return max(0.0, min(from_share(share) for share in _SHARES))


def _at_share(deciles: Sequence[float], share: float) -> list[float]:
    """Return the cumulative distribution at each decile if ``share`` of the answers were unsupported.

    An answer of score s at even odds is unsupported with probability s, so among answers of which ``share`` are, such
    scores are 2 · (share · s + (1 − share) · (1 − s)) times as frequent. The mean score between two deciles is taken
    to be in their middle.
    """
    edges = (0.0, *deciles, 1.0)
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    weights = [share * middle + (1.0 - share) * (1.0 - middle) for middle in middles]
    total = sum(weights)
    sums: list[float] = []
    so_far = 0.0
    for weight in weights[:-1]:
        so_far += weight
        sums.append(so_far / total)
    return sums

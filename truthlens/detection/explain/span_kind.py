"""Classify a flagged span into one of three kinds, from a few figures of how it relates to the evidence.

Pure.

Two logistic rules in a row: whether the span is contradicted, and if not, whether it is made up. Their
coefficients are fitted by ``bench/detection/explanations.py``, which also measures them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType

from truthlens.core.records.explanation import SpanKind


@dataclass(frozen=True, slots=True)
class Standing:
    """How a span relates to the evidence; shares are 0..1 and 0 where there is nothing to count.

    ``similarity`` of its sentence to the nearest one, ``rest`` the share of the sentence's other words that
    occur in it; ``absent``: share of the span's words that occur nowhere; ``together``: share of its words in
    the one sentence that holds most of them; ``pairs``: share of its word pairs that are adjacent somewhere;
    ``whole``: share of the sentence that is flagged; ``length``: log of the words. ``differs``: values set
    against another value; ``turned``: negations and opposites; ``invented``: values that occur nowhere, with
    ``invented_names`` among them (all three up to 1); ``denies``: it says that the evidence lacks something;
    ``refers``: it names a passage.
    """

    similarity: float = 0.0
    rest: float = 0.0
    absent: float = 0.0
    together: float = 0.0
    pairs: float = 0.0
    whole: float = 0.0
    length: float = 0.0
    differs: float = 0.0
    turned: float = 0.0
    invented: float = 0.0
    invented_names: float = 0.0
    denies: float = 0.0
    refers: float = 0.0


@dataclass(frozen=True, slots=True)
class Logistic:
    """``bias`` and a weight per field of ``Standing``; fields left out have no weight."""

    bias: float
    weights: Mapping[str, float]

    def probability(self, standing: Standing) -> float:
        """Return the probability, 0..1."""
        figures = asdict(standing)
        odds = self.bias + sum(weight * figures[name] for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))


# Fitted on people's marks (RAGTruth question answering, BUMP, WiCE) and on made errors, train side of the
# split, with a share of contradicted spans of 0.40: ``bench/detection/explanations.py --fit --limit 400``.
# Figures: docs/explanations.md.
CONTRADICTED = Logistic(
    0.17,
    MappingProxyType(
        {
            "similarity": 3.14,
            "rest": -0.36,
            "absent": -1.18,
            "pairs": 1.73,
            "whole": -1.49,
            "length": -1.76,
            "differs": 1.15,
            "turned": 0.86,
            "invented": -0.49,
            "invented_names": -1.18,
            "denies": 3.27,
            "refers": 2.13,
        }
    ),
)
FABRICATED = Logistic(
    -6.4,
    MappingProxyType(
        {
            "absent": 4.22,
            "together": -1.97,
            "pairs": -1.55,
            "whole": 2.61,
            "invented": 1.16,
            "invented_names": 2.81,
        }
    ),
)


def probabilities(standing: Standing) -> dict[SpanKind, float]:
    """Return the probability of each kind; they sum to 1."""
    contradicted = CONTRADICTED.probability(standing)
    fabricated = FABRICATED.probability(standing)
    return {
        SpanKind.CONTRADICTED: contradicted,
        SpanKind.UNSUPPORTED: (1.0 - contradicted) * (1.0 - fabricated),
        SpanKind.FABRICATED: (1.0 - contradicted) * fabricated,
    }

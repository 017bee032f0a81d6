"""Compute the response score from token probabilities and spans, by one of the white paper's aggregations.

A raw aggregation is no probability: the tokens of one error are near-copies, and the small background of a
long answer adds up. A model's manifest may therefore carry a calibration per aggregation, fitted on held-out
answers. It is monotone in what the aggregation measures, so that it never ranks two answers of one length the
other way round for more suspicious tokens. Without one the score is the white paper's formula to the letter.
Pure numerics in float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truthlens.core.records.enums import Aggregation
from truthlens.core.records.verdict import Span
from truthlens.detection.encoder.aggregation import CLIP, aggregate, span_max, worst_tokens

_LEAST = 1e-4
"""Hazards and means below this count as this: beyond it there is nothing to tell apart."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic from what an aggregation measures to the probability that an answer is unsupported.

    Log-odds = ``slope`` · evidence + ``worst`` · worst + ``length`` · ln(answer tokens) + ``intercept``; see
    ``measures`` for evidence and worst. ``slope`` and ``worst`` are not negative. ``plain`` above 0 adds, by
    a Noisy-OR, the mean of the three worst tokens to that power: annotated answers hold few plain errors, so
    that the logistic alone would trust even them only half.
    """

    slope: float
    worst: float
    length: float
    intercept: float
    plain: float = 0.0

    def __post_init__(self) -> None:
        if self.slope < 0.0 or self.worst < 0.0 or self.plain < 0.0:
            raise ValueError(
                f"slope is {self.slope}, worst {self.worst} and plain {self.plain}; expected 0 or more: the score must not "
                "fall where tokens become more suspicious"
            )


@dataclass(frozen=True, slots=True)
class Scoring:
    """How a model's token probabilities become a response score.

    ``tau`` is the limit of the Noisy-OR's indicator. ``exponent`` is 1/c of the tempered Noisy-OR (1.0: the
    raw formula). ``calibrations`` holds those that the model has; aggregations without one are used raw.
    """

    tau: float
    exponent: float = 1.0
    calibrations: Mapping[Aggregation, Calibration] = field(default_factory=dict)

    def score(self, aggregation: Aggregation, *, p: ArrayLike, spans: Sequence[Span]) -> float:
        """Return the response score, 0..1; 0.0 where no token or span counts.

        Args:
            aggregation: which formula.
            p: token probabilities, shape (tokens,), each 0..1.
            spans: the answer's spans.
        """
        calibration = self.calibrations.get(aggregation)
        if calibration is None:
            return aggregate(aggregation, p=p, spans=spans, tau=self.tau, exponent=self.exponent)
        found = measures(aggregation, p=p, spans=spans, tau=self.tau)
        if found is None:
            return 0.0
        evidence, worst, length = found
        odds = (
            calibration.slope * evidence
            + calibration.worst * worst
            + calibration.length * length
            + calibration.intercept
        )
        score = 1.0 / (1.0 + math.exp(-max(min(odds, 500.0), -500.0)))
        if not calibration.plain:
            return score
        return 1.0 - (1.0 - score) * float(1.0 - worst_tokens(p, self.tau) ** calibration.plain)


def measures(
    aggregation: Aggregation, *, p: ArrayLike, spans: Sequence[Span], tau: float
) -> tuple[float, float, float] | None:
    """Return the measures that calibration reads of one answer: (evidence, worst, ln of the answer's tokens).

    For ``noisy_or``, evidence is the log of the hazard Σ −ln(1 − p) over tokens above ``tau`` (the Noisy-OR
    is 1 − e^−hazard), and worst the log-odds of the mean of the three worst tokens. For ``span_noisy_or``
    evidence is the log of the spans' hazard, for ``span_max`` the log-odds of the highest span; worst is 0
    for both. ``None`` where no token or span counts.
    """
    values = np.asarray(p, dtype=np.float64)
    length = math.log(len(values) + 1.0)
    if aggregation is Aggregation.NOISY_OR:
        above = values[values > tau]
        if not len(above):
            return None
        return _log_hazard(above), _log_odds(worst_tokens(values, tau)), length
    if not spans:
        return None
    if aggregation is Aggregation.SPAN_MAX:
        return _log_odds(span_max(spans)), 0.0, length
    return _log_hazard(np.array([span.score for span in spans])), 0.0, length


def _log_hazard(scores: NDArray[np.float64]) -> float:
    return math.log(max(float(-np.log1p(-np.minimum(scores, 1.0 - CLIP)).sum()), _LEAST))


def _log_odds(p: float) -> float:
    held = min(max(p, _LEAST), 1.0 - _LEAST)
    return math.log(held / (1.0 - held))

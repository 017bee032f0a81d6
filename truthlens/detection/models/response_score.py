"""Compute the response score from token probabilities and spans, by one of the white paper's aggregations.

A raw aggregation is no probability: the tokens of one error are near-copies, and the small background of a
long answer adds up. A model's manifest may therefore carry a calibration per aggregation, fitted on held-out
answers, which makes it the probability that an answer is unsupported where half of the answers are. It is
monotone in what the aggregation measures, so that it never ranks two answers of one length the other way round
for more suspicious tokens. Without one the score is the white paper's formula to the letter. Pure numerics in
float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truthlens.core.records.enums import Aggregation
from truthlens.core.records.verdict import Span
from truthlens.detection.models.aggregation import CLIP, aggregate, span_max, worst_tokens

_LEAST_ODDS = 1e-4
"""Means of worst tokens, and span scores, below this count as this, and those near 1 likewise."""
_LEAST_HAZARD = 1e-6
MOST_SURE = 50.0
"""The highest ``sure`` there may be: 0.99 to this power is 0.605, so that one such token makes any score 0.6."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic from what an aggregation measures to the probability, at even odds, that an answer is unsupported.

    Log-odds = ``slope`` · evidence + ``worst`` · worst + ``length`` · ln(answer tokens) + ``intercept``; see
    ``measures`` for evidence and worst. ``slope`` and ``worst`` are not negative. ``sure`` (above 0, at most
    ``MOST_SURE``) adds, by a Noisy-OR, the highest token or span to that power: one part of an answer that is
    surely wrong makes the answer wrong, however long the rest is, and the logistic would dilute it. Of an
    answer of more than ``max_tokens`` tokens the worst stretch of so many counts: what was fitted on shorter answers would
    flag every long one, for the small background of their tokens adds up, and a mean would let clean text hide an error.
    """

    slope: float
    worst: float
    length: float
    intercept: float
    sure: float
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.slope < 0.0 or self.worst < 0.0:
            raise ValueError(
                f"slope is {self.slope} and worst {self.worst}; expected 0 or more: the score must not fall where tokens "
                "become more suspicious"
            )
        if not 0.0 < self.sure <= MOST_SURE:
            raise ValueError(
                f"sure is {self.sure}; expected above 0 and at most {MOST_SURE:g}: beyond it a token that is surely wrong "
                "would not flag a long answer"
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
        found = measures(aggregation, p=p, spans=spans, tau=self.tau, max_tokens=calibration.max_tokens)
        if found is None:
            return 0.0
        odds = (
            calibration.slope * found.evidence
            + calibration.worst * found.worst
            + calibration.length * found.length
            + calibration.intercept
        )
        score = 1.0 / (1.0 + math.exp(-max(min(odds, 500.0), -500.0)))
        return 1.0 - (1.0 - score) * (1.0 - math.pow(found.highest, calibration.sure))


class Measures(NamedTuple):
    """What calibration reads of one answer.

    ``evidence`` and ``worst`` are log-odds or logs, see ``measures``; ``length`` is the ln of the answer's
    tokens, ``highest`` the probability of its most suspicious token or span (below 1).
    """

    evidence: float
    worst: float
    length: float
    highest: float


def measures(
    aggregation: Aggregation,
    *,
    p: ArrayLike,
    spans: Sequence[Span],
    tau: float,
    max_tokens: int | None = None,
) -> Measures | None:
    """Return the measures that calibration reads of one answer; ``None`` where no token is suspicious at all.

    For ``noisy_or``, evidence is the log of the hazard Σ −ln(1 − p) over tokens above ``tau`` (the Noisy-OR
    is 1 − e^−hazard), and worst the log-odds of the mean of the three highest tokens. For ``span_noisy_or``
    evidence is the log of the spans' hazard, for ``span_max`` the log-odds of the highest span; worst is 0
    for both. Where no token is above ``tau``, or there is no span, the highest token alone is the evidence, so
    that answers below the limit are told apart as well. Each measure rises, or stays, with the probability of every
    token. Of more than ``max_tokens`` tokens, the hazard of noisy_or is that of the worst stretch of so many, and the length is
    bounded to it.
    """
    values = np.asarray(p, dtype=np.float64)
    top = float(values.max(initial=0.0))
    if aggregation is not Aggregation.NOISY_OR:
        top = max(top, span_max(spans))
    if top <= 0.0:
        return None
    highest = min(top, 1.0 - CLIP)
    size = len(values) if max_tokens is None else min(len(values), max_tokens)
    length = math.log(size + 1.0)
    if aggregation is Aggregation.SPAN_MAX:
        return Measures(_log_odds(top), 0.0, length, highest)
    if aggregation is Aggregation.NOISY_OR:
        counted, worst = np.where(values > tau, values, 0.0), _log_odds(worst_tokens(values, 0.0))
    else:
        counted, worst, size = np.array([span.score for span in spans], dtype=np.float64), 0.0, len(spans)
    if not counted.any():
        counted, size = np.array([top]), 1
    return Measures(_log_hazard(counted, size), worst, length, highest)


def _log_hazard(scores: NDArray[np.float64], size: int) -> float:
    """Return the log of the summed hazard, of the worst ``size`` neighbours where there are more."""
    summed = np.cumsum(-np.log1p(-np.minimum(scores, 1.0 - CLIP)))
    worst = (
        summed[-1]
        if len(summed) <= size
        else np.max(summed[size:] - summed[:-size], initial=summed[size - 1])
    )
    return math.log(max(float(worst), _LEAST_HAZARD))


def _log_odds(p: float) -> float:
    held = min(max(p, _LEAST_ODDS), 1.0 - _LEAST_ODDS)
    return math.log(held / (1.0 - held))

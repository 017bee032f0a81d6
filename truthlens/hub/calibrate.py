"""From raw log-odds on held-out answers to the manifest's figures: temperature, shift, limits, aggregation.

Works on the log-odds that the exported file gives and scores with the serving code's own functions, so what is
fitted is what is served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.records import Aggregation, Span
from truthlens.detection.claims import claimless_ranges
from truthlens.detection.fusion import aggregate, length_exponent, spans_of
from truthlens.detection.manifest import InputFormat
from truthlens.detection.merging import merge_windows, quiet_punctuation, tokens_within
from truthlens.detection.runtime import TokenModel
from truthlens.detection.windows import build_windows
from truthlens.hub.batches import IGNORED, token_labels
from truthlens.hub.data import Example
from truthlens.hub.figures import auroc, best_f1, char_prf, ece
from truthlens.hub.predict import sigmoid

TOKEN_TAUS = (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.0)
"""Limits of the Noisy-OR that are tried, the highest first: on a tie fewer tokens should count."""
SPAN_TAUS = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
DEFAULT_THRESHOLD = 0.6
"""The gateway's default, at which the Noisy-OR is to flag few supported answers."""
MOST_FALSE_ALARMS = 0.2
"""Share of supported calibration answers that the Noisy-OR may flag at the default threshold."""
LENGTHS = tuple(float(length) for length in np.geomspace(80.0, 1.0, 60))
_F1_SLACK = 0.01
_NEWTON_STEPS = 50


@dataclass(frozen=True, slots=True, eq=False)
class ScoredAnswer:
    """Raw log-odds of one answer's tokens, shape (tokens,); -inf where the sentence claims nothing."""

    odds: NDArray[np.float64]
    offsets: NDArray[np.int64]
    text: str

    def probabilities(self, *, temperature: float, shift: float) -> NDArray[np.float64]:
        """Shape (tokens,), 0..1."""
        return np.where(
            np.isneginf(self.odds), 0.0, sigmoid((np.maximum(self.odds, -1e6) + shift) / temperature)
        )


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the manifest gets.

    Token probability is ``sigmoid((log-odds + shift) / temperature)``. ``threshold`` is the response threshold
    with the best F1 on the calibration answers (of near equals, the one with the fewest false alarms). ``choices`` holds the figures of every aggregation.
    """

    temperature: float
    shift: float
    tau_token: float
    tau_span: float
    aggregation: Aggregation
    length: float
    threshold: float
    choices: dict[str, dict[str, float]]


def score_answers(
    model: TokenModel, tokenizer: Tokenizer, examples: Sequence[Example], *, fmt: InputFormat
) -> list[ScoredAnswer]:
    """Raw log-odds of every answer, merged over windows as in serving."""
    scored: list[ScoredAnswer] = []
    for example in examples:
        built = build_windows(
            tokenizer, fmt, query=example.query, passages=example.context, answer=example.response
        )
        odds = [values.astype(np.float64) for values in model.log_odds(built.windows)]
        merged = merge_windows(built.windows, odds, len(built.offsets))
        merged = quiet_punctuation(merged, built.offsets, example.response)
        silent = tokens_within(
            built.offsets, example.response, claimless_ranges(example.response, query=example.query)
        )
        scored.append(
            ScoredAnswer(
                np.where(silent | np.isnan(merged), -np.inf, merged), built.offsets, example.response
            )
        )
    return scored


def calibrate(scored: Sequence[ScoredAnswer], examples: Sequence[Example]) -> Calibration:
    """Fit on held-out answers, in this order: token probabilities, the two limits, aggregation, operating point.

    Args:
        scored: of ``score_answers``.
        examples: the same answers; some with marked spans, some of either label.
    """
    temperature, shift = _fit_tokens(scored, examples)
    p = [answer.probabilities(temperature=temperature, shift=shift) for answer in scored]
    labels = [example.label for example in examples]
    tau_token = max(TOKEN_TAUS, key=lambda limit: round(_noisy_or_auroc(p, labels, limit), 3))
    tau_span = max(SPAN_TAUS, key=lambda limit: _char_f1(scored, examples, p, limit))
    fitted = {
        aggregation: _fit_aggregation(aggregation, scored, labels, p, (tau_token, tau_span))
        for aggregation in Aggregation
    }
    choices = {name.value: figures for name, (_, figures) in fitted.items()}
    best = max(fitted, key=lambda name: (fitted[name][1]["auroc"], fitted[name][1]["best_f1"]))
    return Calibration(
        temperature=temperature,
        shift=shift,
        tau_token=tau_token,
        tau_span=tau_span,
        aggregation=best,
        length=fitted[Aggregation.NOISY_OR][0],
        threshold=DEFAULT_THRESHOLD if best is Aggregation.NOISY_OR else fitted[best][1]["threshold"],
        choices=choices,
    )


def _noisy_or_auroc(p: Sequence[NDArray[np.float64]], labels: Sequence[int], tau: float) -> float:
    """Ranking by Noisy-OR, in log space because the raw score saturates at 1."""
    return auroc(labels, [float(-np.log1p(-np.minimum(v[v > tau], 1.0 - 1e-6)).sum()) for v in p]) or 0.0


def response_score(
    answer: ScoredAnswer,
    p: NDArray[np.float64],
    *,
    aggregation: Aggregation,
    taus: tuple[float, float],
    length: float | None,
) -> float:
    """The response score as the encoder gives it; ``taus`` are the limits of tokens and of spans."""
    spans = spans_of(p, answer.offsets, taus[1], answer.text)
    exponent = length_exponent(len(p), length)
    return aggregate(aggregation, p=p, spans=spans, tau=taus[0], exponent=exponent)


def _fit_tokens(scored: Sequence[ScoredAnswer], examples: Sequence[Example]) -> tuple[float, float]:
    """Temperature and shift by maximum likelihood (Newton's method on a logistic with one input)."""
    odds, gold = [], []
    for answer, example in zip(scored, examples, strict=True):
        labels = token_labels(answer.offsets, example)
        known = (labels != IGNORED) & np.isfinite(answer.odds)
        odds.append(answer.odds[known])
        gold.append(labels[known])
    x, y = np.concatenate(odds), np.concatenate(gold).astype(np.float64)
    if not len(x) or y.min() == y.max():
        return 1.0, 0.0
    design = np.stack([x, np.ones_like(x)], axis=1)
    rate = float(y.mean())
    weights = np.array([0.0, np.log(rate / (1.0 - rate))])
    for _ in range(_NEWTON_STEPS):
        p = sigmoid(design @ weights)
        curvature = design.T @ (design * (p * (1 - p))[:, None]) + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, design.T @ (y - p))
        # Halved until it helps: far from the optimum a full step can overshoot for good.
        size = 1.0
        while size > 1e-3 and _loss(design @ (weights + size * step), y) > _loss(design @ weights, y):
            size /= 2.0
        weights = weights + size * step
        if np.abs(step).max() < 1e-9:
            break
    slope = max(float(weights[0]), 1e-2)
    return 1.0 / slope, float(weights[1]) / slope


def _loss(logits: NDArray[np.float64], gold: NDArray[np.float64]) -> float:
    return float((np.logaddexp(0.0, logits) - gold * logits).sum())


def _char_f1(
    scored: Sequence[ScoredAnswer], examples: Sequence[Example], p: Sequence[NDArray[np.float64]], tau: float
) -> float:
    rows = [place for place, example in enumerate(examples) if example.spans is not None]
    predicted = [_ranges(spans_of(p[row], scored[row].offsets, tau, scored[row].text)) for row in rows]
    return char_prf([examples[row].spans or () for row in rows], predicted).f1


def _ranges(spans: Sequence[Span]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


def _fit_aggregation(
    aggregation: Aggregation,
    scored: Sequence[ScoredAnswer],
    labels: Sequence[int],
    p: Sequence[NDArray[np.float64]],
    taus: tuple[float, float],
) -> tuple[float, dict[str, float]]:
    """The tempering length (only the Noisy-OR uses one) and the figures with it."""
    supported = np.array([not label for label in labels])

    def scores(length: float | None) -> NDArray[np.float64]:
        return np.array(
            [
                response_score(answer, values, aggregation=aggregation, taus=taus, length=length)
                for answer, values in zip(scored, p, strict=True)
            ]
        )

    length = LENGTHS[0]
    if aggregation is Aggregation.NOISY_OR:
        for length in LENGTHS:  # the longest that keeps the false alarms within bounds
            if (scores(length)[supported] >= DEFAULT_THRESHOLD).mean() <= MOST_FALSE_ALARMS:
                break
    values = scores(length)
    # A threshold of 0 would flag every answer, also those without one suspicious token.
    f1, threshold = best_f1(labels, values, slack=_F1_SLACK, above=0.0)
    return length, {
        "auroc": auroc(labels, values) or 0.0,
        "best_f1": f1,
        "threshold": threshold,
        "ece": ece(labels, values),
    }

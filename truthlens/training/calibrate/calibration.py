"""Fit the manifest's figures to raw log-odds on held-out answers: temperature, shift, limits, calibrations.

Works on the log-odds that the exported file gives and scores with the serving code's own functions, so what
is fitted is what is served. Answers are weighted so that unsupported ones are as frequent in every source as
they are expected to be in use: annotated data holds more of them, and a score that is right there would be
too high elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.records.enums import Aggregation
from truthlens.core.records.verdict import Span
from truthlens.detection.encoder import response_score
from truthlens.detection.encoder.aggregation import spans_of
from truthlens.detection.encoder.inputs.manifest import InputFormat
from truthlens.detection.encoder.inputs.windows import build_windows
from truthlens.detection.encoder.span_edges import evaluated_spans
from truthlens.detection.encoder.token_scores import Reading, read_answer
from truthlens.detection.models.runtime import TokenModel
from truthlens.training.calibrate.logistic import fit_logistic
from truthlens.training.data.dataset import Example
from truthlens.training.evaluate.metrics import auroc, base_rate_weights, best_f1, char_prf, ece
from truthlens.training.train.batches import IGNORED, token_labels

TOKEN_TAUS = (0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.0)
"""Limits of the Noisy-OR that are tried, the highest first: on a tie fewer tokens should count."""
SPAN_TAUS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
BASE_RATE = 0.18
"""Expected share of unsupported answers: that of a common benchmark's mix of weak and strong generators."""
MAIN_SHARE = 0.7
"""Weight of the main source among all; the others share the rest alike. They hold the short answers."""
PLAIN_POWERS = (2.0, 3.0, 4.0, 6.0)
"""Powers of the Noisy-OR's term for plain errors that are tried, the strongest first."""
MOST_ECE = 0.055
"""Calibration error that this term may bring on the calibration answers."""
_F1_SLACK = 0.01
_RIDGE = 0.02
"""Of the response calibrations, per unit of weight: their few inputs are correlated."""


@dataclass(frozen=True, slots=True)
class FittedCalibration:
    """What the manifest gets.

    Token probability is ``sigmoid((log-odds + shift) / temperature)``. ``response`` calibrates each
    aggregation. ``threshold`` is the response threshold with the best F1 on the calibration answers (of near
    equals, the one with the fewest false alarms). ``choices`` holds the figures of every aggregation,
    weighted to ``BASE_RATE``.
    """

    temperature: float
    shift: float
    tau_token: float
    tau_span: float
    aggregation: Aggregation
    response: dict[Aggregation, response_score.Calibration]
    threshold: float
    choices: dict[str, dict[str, float]]


def score_answers(
    model: TokenModel, tokenizer: Tokenizer, examples: Sequence[Example], *, fmt: InputFormat
) -> list[Reading]:
    """Return the raw log-odds of every answer, merged over windows as in serving."""
    readings: list[Reading] = []
    for example in examples:
        built = build_windows(
            tokenizer, fmt, query=example.query, passages=example.context, answer=example.response
        )
        odds = model.log_odds(built.windows)
        readings.append(
            read_answer(
                built.windows,
                odds,
                offsets=built.offsets,
                text=example.response,
                query=example.query,
                fmt=fmt,
                evidence=example.context,
            )
        )
    return readings


def calibrate(readings: Sequence[Reading], examples: Sequence[Example], *, main: str) -> FittedCalibration:
    """Fit on held-out answers, in order: token probabilities, limits, responses, operating point.

    Args:
        readings: of ``score_answers``.
        examples: the same answers; some with marked spans, some of either label.
        main: the source that tokens and limits are fitted on; without rows of it, all are.
    """
    labels = np.array([example.label for example in examples], dtype=bool)
    weights = _weights(examples, labels, main=main)
    mine = [row for row, example in enumerate(examples) if example.source == main] or list(
        range(len(examples))
    )
    own, own_examples = [readings[row] for row in mine], [examples[row] for row in mine]
    temperature, shift = _fit_tokens(own, own_examples, weights[mine])
    p = [reading.probabilities(temperature=temperature, shift=shift) for reading in readings]
    own_p = [p[row] for row in mine]
    tau_token = max(TOKEN_TAUS, key=lambda limit: round(_noisy_or_auroc(own_p, labels[mine], limit), 3))
    tau_span = max(SPAN_TAUS, key=lambda limit: _char_f1(own, own_examples, own_p, weights[mine], limit))
    spans = [spans_of(values, r.offsets, tau_span, r.text) for values, r in zip(p, readings, strict=True)]
    fitted = {
        name: _fit_response(name, list(zip(p, spans, strict=True)), labels, weights, tau=tau_token)
        for name in Aggregation
    }
    choices = {name.value: figures for name, (_, figures) in fitted.items()}
    best = max(fitted, key=lambda name: (fitted[name][1]["auroc"], -fitted[name][1]["ece"]))
    return FittedCalibration(
        temperature=temperature,
        shift=shift,
        tau_token=tau_token,
        tau_span=tau_span,
        aggregation=best,
        response={name: found for name, (found, _) in fitted.items() if found is not None},
        threshold=fitted[best][1]["threshold"],
        choices=choices,
    )


def _weights(examples: Sequence[Example], labels: NDArray[np.bool_], *, main: str) -> NDArray[np.float64]:
    """Return weights, shape (rows,), mean 1: sources at the expected base rate, the main one at its share."""
    sources = np.array([example.source for example in examples])
    names = list(np.unique(sources))
    others = len(names) - (main in names)
    weights = np.zeros(len(labels))
    for name in names:
        rows = sources == name
        whole = (1.0 - MAIN_SHARE * (main in names)) / max(others, 1)
        if name == main:
            whole = MAIN_SHARE if others else 1.0
        weights[rows] = base_rate_weights(labels[rows], base_rate=BASE_RATE) * whole / rows.sum()
    return weights * len(labels)


def _noisy_or_auroc(p: Sequence[NDArray[np.float64]], labels: NDArray[np.bool_], tau: float) -> float:
    """Return the AUROC of Noisy-OR, in log space because the raw score saturates at 1."""
    return auroc(labels, [float(-np.log1p(-np.minimum(v[v > tau], 1.0 - 1e-6)).sum()) for v in p]) or 0.0


def _fit_tokens(
    readings: Sequence[Reading], examples: Sequence[Example], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Fit temperature and shift by maximum likelihood; a token's weight is that of its answer."""
    odds, gold, mass = [], [], []
    for reading, example, weight in zip(readings, examples, weights, strict=True):
        labels = token_labels(reading.offsets, example)
        known = (labels != IGNORED) & np.isfinite(reading.odds)
        odds.append(reading.odds[known])
        gold.append(labels[known])
        mass.append(np.full(int(known.sum()), weight))
    x, y = np.concatenate(odds), np.concatenate(gold).astype(np.float64)
    if not len(x) or y.min() == y.max():
        return 1.0, 0.0
    slope, intercept = fit_logistic(x[:, None], y, np.concatenate(mass), ridge=0.0)
    slope = max(slope, 1e-2)
    return 1.0 / slope, intercept / slope


def _char_f1(
    readings: Sequence[Reading],
    examples: Sequence[Example],
    p: Sequence[NDArray[np.float64]],
    weights: NDArray[np.float64],
    tau: float,
) -> float:
    rows = [place for place, example in enumerate(examples) if example.spans is not None]
    predicted = []
    for row in rows:
        reading = readings[row]
        runs = spans_of(p[row], reading.offsets, tau, reading.text)
        predicted.append(_ranges(evaluated_spans(runs, p[row], reading.offsets, reading.text)))
    return char_prf([examples[row].spans or () for row in rows], predicted, weights=weights[rows]).f1


def _ranges(spans: Sequence[Span]) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in spans]


_Scored = tuple[NDArray[np.float64], tuple[Span, ...]]


def _fit_response(
    name: Aggregation,
    answers: Sequence[_Scored],
    labels: NDArray[np.bool_],
    weights: NDArray[np.float64],
    *,
    tau: float,
) -> tuple[response_score.Calibration | None, dict[str, float]]:
    """Fit the calibration of one aggregation (``None`` if only one class was seen), and its figures."""
    found = None
    measured = [response_score.measures(name, p=p, spans=spans, tau=tau) for p, spans in answers]
    rows = [row for row, measure in enumerate(measured) if measure is not None]
    if rows and 0 < labels[rows].sum() < len(rows):
        inputs = np.array([measured[row] for row in rows])
        gold, mass = labels[rows].astype(np.float64), weights[rows]
        found = _without_fall(inputs, gold, mass)

    def scores(calibration: response_score.Calibration | None) -> NDArray[np.float64]:
        scoring = response_score.Scoring(
            tau=tau, calibrations={} if calibration is None else {name: calibration}
        )
        return np.array([scoring.score(name, p=p, spans=spans) for p, spans in answers])

    if found is not None and name is Aggregation.NOISY_OR:
        for power in PLAIN_POWERS:
            candidate = replace(found, plain=power)
            if ece(labels, scores(candidate), weights=weights) <= MOST_ECE:
                found = candidate
                break
    values = scores(found)
    # A threshold of 0 would flag every answer, also those without one suspicious token.
    f1, threshold = best_f1(labels, values, slack=_F1_SLACK, above=0.0, weights=weights)
    return found, {
        "auroc": auroc(labels, values, weights=weights) or 0.0,
        "best_f1": f1,
        "threshold": threshold,
        "ece": ece(labels, values, weights=weights),
        "ece_raw": ece(labels, scores(None), weights=weights),
    }


def _without_fall(
    inputs: NDArray[np.float64], gold: NDArray[np.float64], weights: NDArray[np.float64]
) -> response_score.Calibration:
    """Return the logistic over all columns but evidence or worst where they would let the score fall."""
    columns = [column for column in range(inputs.shape[1]) if inputs[:, column].std() > 0.0]
    while True:
        fitted = fit_logistic(inputs[:, columns], gold, weights, ridge=_RIDGE)
        falling = [
            column for column, slope in zip(columns, fitted, strict=False) if column < 2 and slope < 0.0
        ]
        if not falling:
            break
        columns.remove(falling[0])
    slopes = np.zeros(3)
    slopes[columns] = fitted[:-1]
    return response_score.Calibration(*(round(float(value), 4) for value in (*slopes, fitted[-1])))

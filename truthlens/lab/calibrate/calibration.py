"""Fit the manifest's figures to raw log-odds on held-out answers: temperature, shift, limits, calibrations.

Works on the log-odds that the exported file gives and scores with the serving code's own functions, so what
is fitted is what is served. Answers come in kinds (summaries, long answers, tables, …) that all weigh alike, and
in each kind unsupported answers weigh as much as supported ones: a score is a probability at even odds, whatever
the data happen to hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tokenizers import Tokenizer

from truthlens.core.records.enums import Aggregation
from truthlens.core.records.verdict import Span
from truthlens.detection.detectors.encoder.span_edges import evaluated_spans
from truthlens.detection.detectors.encoder.token_scores import Reading, read_answer, sigmoid
from truthlens.detection.models import response_score
from truthlens.detection.models.aggregation import spans_of
from truthlens.detection.models.inputs.manifest import InputFormat, Manifest, ResponseCalibration
from truthlens.detection.models.inputs.windows import build_windows
from truthlens.detection.models.runtime import TokenModel
from truthlens.lab.calibrate.logistic import fit_logistic
from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.metrics import (
    auroc,
    base_rate_weights,
    best_f1,
    char_prf,
    ece,
    prf_of_flags,
    rounded,
)
from truthlens.lab.train.batches import IGNORED, token_labels

TOKEN_TAUS = (0.01, 0.0)
"""Limits of the Noisy-OR that are tried, the highest first: on a tie fewer tokens should count."""
SPAN_TAUS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
BASE_RATE = 0.5
"""Share of unsupported answers that scores are fitted to: even odds."""
SURE_POWERS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0)
"""Powers of the highest token that are tried, the strongest first; see ``response_score.Calibration``."""
_COVERED_LENGTHS = 0.95
"""Share of the answers that the bound on tokens leaves as they are; of longer ones too few tell what their evidence is worth."""
WHITE_PAPER_THRESHOLD = 0.6
"""Recommended wherever its F1 is nearly the best, so that thresholds mean the same under every model."""
OTHER = "other"
"""Kind of the answers of a source that no table names."""
_AUROC_SLACK = 0.005
_F1_LOSS = 0.02
_F1_SLACK = 0.01
_EM_STEPS = 12
_RIDGE = 0.02
"""Of the response calibrations, per unit of weight: their few inputs are correlated."""

KindOf = Callable[[Example], str]
"""From an answer to the name of its kind."""


@dataclass(frozen=True, slots=True)
class FittedResponses:
    """What the manifest gets of token probabilities that are known.

    ``response`` calibrates each aggregation. ``threshold`` is 0.6 where its F1 on the calibration answers is
    within 0.02 of the best, else the one with the best F1. ``choices`` holds the figures of every aggregation
    over the mixture of kinds, ``kinds`` those of the chosen one in each kind, at even odds; what needs both
    classes is ``None`` where one is missing.
    """

    tau_token: float
    aggregation: Aggregation
    response: dict[Aggregation, response_score.Calibration]
    threshold: float
    choices: dict[str, dict[str, float]]
    kinds: dict[str, dict[str, float | None]]

    def for_manifest(self) -> dict[str, Any]:
        """Return the fields of the manifest that rest on it."""
        return {
            "tau_token": self.tau_token,
            "aggregation": self.aggregation,
            "response": {name: ResponseCalibration(**asdict(each)) for name, each in self.response.items()},
            "recommended_threshold": round(self.threshold, 4),
        }


@dataclass(frozen=True, slots=True)
class FittedCalibration:
    """What the manifest gets: token probability is ``sigmoid((log-odds + shift) / temperature)``."""

    temperature: float
    shift: float
    tau_span: float
    responses: FittedResponses


def calibration_figures(found: FittedResponses, rows: int) -> dict[str, Any]:
    """Return what the manifest keeps of a calibration on ``rows`` answers: its base rate and figures."""
    figures = {"rows": rows, "base_rate": BASE_RATE, "aggregations": found.choices, "kinds": found.kinds}
    kept: dict[str, Any] = rounded(figures)
    return kept


def one_kind(_example: Example) -> str:
    """Return the same kind for every answer."""
    return OTHER


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
            )
        )
    return readings


def calibrate(
    readings: Sequence[Reading], examples: Sequence[Example], *, main: str, kind_of: KindOf = one_kind
) -> FittedCalibration:
    """Fit on held-out answers, in order: token probabilities, limits, responses, operating point.

    Args:
        readings: of ``score_answers``.
        examples: the same answers; some with marked spans, some of either label.
        main: the source that token probabilities and spans are fitted on; without rows of it, all are.
        kind_of: the kind of each answer; kinds weigh alike. One with answers of a single class has no odds, and
            is left out of the fit.
    """
    labels = np.array([example.label for example in examples], dtype=bool)
    mine = [row for row, example in enumerate(examples) if example.source == main] or list(
        range(len(examples))
    )
    own, own_examples = [readings[row] for row in mine], [examples[row] for row in mine]
    own_weights = base_rate_weights(labels[mine], base_rate=BASE_RATE)
    temperature, shift = _fit_tokens(own, own_examples, own_weights)
    p = [reading.probabilities(temperature=temperature, shift=shift) for reading in readings]
    own_p = [p[row] for row in mine]
    tau_span = max(SPAN_TAUS, key=lambda limit: _char_f1(own, own_examples, own_p, own_weights, limit))
    found = fit_responses(readings, p, examples, tau_span=tau_span, kind_of=kind_of)
    return FittedCalibration(temperature, shift, tau_span, found)


def fit_responses(
    readings: Sequence[Reading],
    p: Sequence[NDArray[np.float64]],
    examples: Sequence[Example],
    *,
    tau_span: float,
    kind_of: KindOf = one_kind,
) -> FittedResponses:
    """Fit what makes a response score of token probabilities ``p``; see ``calibrate``."""
    labels = np.array([example.label for example in examples], dtype=bool)
    kinds = np.array([kind_of(example) for example in examples])
    weights = kind_weights(labels, kinds)
    tau = max(TOKEN_TAUS, key=lambda limit: round(_noisy_or_auroc(p, labels, weights, limit), 3))
    spans = [spans_of(values, r.offsets, tau_span, r.text) for values, r in zip(p, readings, strict=True)]
    # What is served counts a short value of JSON more than once, and so is what is fitted.
    counted = [reading.counted(values) for reading, values in zip(readings, p, strict=True)]
    answers = list(zip(counted, spans, strict=True))
    fitted = {name: _fit_response(name, answers, labels, weights, tau=tau) for name in Aggregation}
    choices = {name.value: _choice_figures(labels, weights, *fitted[name]) for name in Aggregation}
    most = max(figures["auroc"] for figures in choices.values())
    # White paper, definition 4, is the first of those that rank as well as any.
    best = next(name for name in Aggregation if choices[name]["auroc"] >= most - _AUROC_SLACK)
    return FittedResponses(
        tau_token=tau,
        aggregation=best,
        response={name: found for name, (found, _, _) in fitted.items() if found is not None},
        threshold=choices[best]["threshold"],
        choices=choices,
        kinds=_kind_figures(labels, kinds, fitted[best][1], threshold=choices[best]["threshold"]),
    )


def calibration_scores(
    readings: Sequence[Reading], manifest: Manifest, *, shift: float
) -> NDArray[np.float64]:
    """Return the response scores of calibration answers under the manifest's own aggregation, shape (answers,).

    Args:
        readings: of ``score_answers``, from before the shift.
        manifest: with the fitted calibration.
        shift: what is added to the log-odds of the exported file.
    """
    scores = []
    for reading in readings:
        p = reading.probabilities(temperature=manifest.temperature, shift=shift)
        spans = spans_of(p, reading.offsets, manifest.tau_span, reading.text)
        scores.append(manifest.scoring.score(manifest.aggregation, p=reading.counted(p), spans=spans))
    return np.array(scores, dtype=np.float64)


def deciles_at_even_odds(scores: ArrayLike, examples: Sequence[Example]) -> tuple[float, ...] | None:
    """Return the nine deciles of ``scores``, ascending, with half of each source's weight on unsupported answers.

    The gateway compares those of live traffic with them. ``None`` where not both labels are there: then even odds cannot be made.
    """
    values = np.asarray(scores, dtype=np.float64)
    labels = np.array([example.label for example in examples], dtype=bool)
    sources = np.array([example.source for example in examples])
    weights = np.zeros(len(values))
    for source in np.unique(sources):
        rows = sources == source
        if 0 < labels[rows].sum() < rows.sum():
            weights[rows] = base_rate_weights(labels[rows], base_rate=BASE_RATE)
    if not weights.any():
        return None
    return tuple(round(weighted_quantile(values, weights, share=step / 10), 4) for step in range(1, 10))


def kind_weights(labels: NDArray[np.bool_], kinds: NDArray[np.str_]) -> NDArray[np.float64]:
    """Return weights, shape (rows,), mean 1: kinds alike, and in each both classes alike.

    A kind with one class only gets 0; where no kind has both, all answers are taken for one kind.
    """
    weights = np.zeros(len(labels))
    for name in np.unique(kinds):
        rows = kinds == name
        if 0 < labels[rows].sum() < rows.sum():
            weights[rows] = base_rate_weights(labels[rows], base_rate=BASE_RATE) / rows.sum()
    if not weights.any():
        return base_rate_weights(labels, base_rate=BASE_RATE)
    return weights * float(len(labels) / weights.sum())


def _noisy_or_auroc(
    p: Sequence[NDArray[np.float64]], labels: NDArray[np.bool_], weights: NDArray[np.float64], tau: float
) -> float:
    """Return the AUROC of Noisy-OR, in log space because the raw score saturates at 1."""
    hazards = [float(-np.log1p(-np.minimum(v[v > tau], 1.0 - 1e-6)).sum()) for v in p]
    return auroc(labels, hazards, weights=weights) or 0.0


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


_FittedResponse = tuple[response_score.Calibration | None, NDArray[np.float64], NDArray[np.float64]]


def _fit_response(
    name: Aggregation,
    answers: Sequence[_Scored],
    labels: NDArray[np.bool_],
    weights: NDArray[np.float64],
    *,
    tau: float,
) -> _FittedResponse:
    """Fit the calibration of one aggregation (``None`` if only one class was seen); its scores, and the raw ones."""
    fitted: list[response_score.Calibration] = []
    max_tokens = int(weighted_quantile([len(p) for p, _ in answers], weights, share=_COVERED_LENGTHS))
    measured = [
        response_score.measures(name, p=p, spans=spans, tau=tau, max_tokens=max_tokens)
        for p, spans in answers
    ]
    rows = [row for row, measure in enumerate(measured) if measure is not None and weights[row] > 0.0]
    if rows and 0 < labels[rows].sum() < len(rows):
        inputs = np.array([m for row in rows if (m := measured[row])])
        gold, mass = labels[rows].astype(np.float64), weights[rows]
        fitted = [
            _beside_sure(inputs, gold, mass, power=power, max_tokens=max_tokens) for power in SURE_POWERS
        ]

    def scores(calibration: response_score.Calibration | None) -> NDArray[np.float64]:
        scoring = response_score.Scoring(
            tau=tau, calibrations={} if calibration is None else {name: calibration}
        )
        return np.array([scoring.score(name, p=p, spans=spans) for p, spans in answers])

    if not fitted:
        return None, scores(None), scores(None)
    tried = [(each, scores(each)) for each in fitted]
    best, values = min(tried, key=lambda each: round(ece(labels, each[1], weights=weights), 3))
    return best, values, scores(None)


def _choice_figures(
    labels: NDArray[np.bool_],
    weights: NDArray[np.float64],
    _calibration: response_score.Calibration | None,
    values: NDArray[np.float64],
    raw: NDArray[np.float64],
) -> dict[str, float]:
    # A threshold of 0 would flag every answer, also those without one suspicious token.
    best, at = best_f1(labels, values, slack=_F1_SLACK, above=0.0, weights=weights)
    usual = prf_of_flags(labels, values >= WHITE_PAPER_THRESHOLD, weights=weights).f1
    return {
        "auroc": auroc(labels, values, weights=weights) or 0.0,
        "best_f1": best,
        "best_threshold": at,
        "f1_at_0.6": usual,
        "threshold": WHITE_PAPER_THRESHOLD if usual >= best - _F1_LOSS else at,
        "ece": ece(labels, values, weights=weights),
        "ece_raw": ece(labels, raw, weights=weights),
    }


def _kind_figures(
    labels: NDArray[np.bool_], kinds: NDArray[np.str_], values: NDArray[np.float64], *, threshold: float
) -> dict[str, dict[str, float | None]]:
    """Return the figures of each kind by itself, at even odds."""
    found: dict[str, dict[str, float | None]] = {}
    for name in np.unique(kinds):
        rows = kinds == name
        gold, own = labels[rows], values[rows]
        both = bool(0 < gold.sum() < len(gold))
        found[str(name)] = {
            "rows": int(rows.sum()),
            "unsupported": int(gold.sum()),
            "auroc": auroc(gold, own),
            "ece": ece(gold, own, weights=base_rate_weights(gold, base_rate=BASE_RATE)) if both else None,
            "flagged": float((own[gold] >= threshold).mean()) if gold.any() else None,
            "supported_flagged": float((own[~gold] >= threshold).mean()) if not gold.all() else None,
        }
    return found


def weighted_quantile(values: ArrayLike, weights: NDArray[np.float64], *, share: float) -> float:
    """Return the smallest value that, with all below it, has at least ``share`` of the weight.

    Args:
        values: at least one.
        weights: shape (values,), not negative, not all 0.
        share: 0..1.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(np.asarray(values)[order[int(np.searchsorted(reached, share - 1e-9))]])


def _beside_sure(
    inputs: NDArray[np.float64],
    gold: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    power: float,
    max_tokens: int,
) -> response_score.Calibration:
    """Fit the logistic beside the highest token to ``power``, by expectation maximisation.

    An unsupported answer is one for which the logistic, the token, or both speak. How likely the logistic did is
    what it is fitted to; fitted alone, the token would come on top of what already explains the answer.

    Args:
        inputs: the measures, shape (rows, 4).
        gold: shape (rows,), 1 for unsupported.
        weights: shape (rows,).
        power: of the highest token.
        max_tokens: what the measures are bounded to.
    """
    sure = inputs[:, 3] ** power
    soft = gold
    for _ in range(_EM_STEPS):
        found = _without_fall(inputs[:, :3], soft, weights)
        score = sigmoid(inputs[:, :3] @ found[:3] + found[3])
        soft = gold * score / (score + sure - score * sure)
    slope, worst, length, intercept = (round(float(value), 4) for value in found)
    return response_score.Calibration(slope, worst, length, intercept, sure=power, max_tokens=max_tokens)


def _without_fall(
    inputs: NDArray[np.float64], gold: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return three slopes and an intercept: of a logistic without evidence or worst where they would let the score fall."""
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
    return np.append(slopes, fitted[-1])

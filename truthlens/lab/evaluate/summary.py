"""The figures of scored answers as plain data, each for all rows or for a part of them, with 95 % intervals.

The keys are those of ``truthlens eval --json``; ``docs/evaluation.md`` says what each means. A figure that
the rows have no labels for is ``None``, never 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truthlens.lab.evaluate.curves import RiskCoverage, confidence_of, risk_coverage
from truthlens.lab.evaluate.metrics import (
    PRF,
    Floats,
    Ranking,
    base_rate_weights,
    best_f1,
    brier,
    ece,
    interval,
    prf_of_chars,
    prf_of_flags,
    prf_of_spans,
    resamples,
    rounded,
)
from truthlens.lab.evaluate.score_table import EvaluationTally

Figures = dict[str, Any]
BREAKDOWNS = {"tasks": "task", "sources": "source", "generators": "generator"}
"""Key of the JSON object, and the column of ``EvaluationTally`` that it goes by."""
_CURVE_STEPS = 20
_PRF = ("precision", "recall", "f1")


def describe(
    tally: EvaluationTally,
    *,
    threshold: float,
    token_limit: float | None = None,
    base_rate: float | None = None,
) -> Figures:
    """Return all figures of the rows of ``tally``.

    Args:
        tally: scored answers.
        threshold: response score from which an answer counts as flagged.
        token_limit: probability from which a token counts as flagged; left out, tokens have no precision and
            recall.
        base_rate: weigh the rows so that this share is unsupported; by default they count as they are.
    """
    point = _Figures(tally, threshold=threshold, base_rate=base_rate).at(np.ones(len(tally)))
    weights = tally.weights(base_rate)
    milliseconds = tally.seconds * 1000
    known = len(tally) > 0
    return {
        "rows": len(tally),
        "example": {**_group(point, "example", (*_PRF, "auroc", "auprc")), "threshold": threshold},
        "span": _group(point, "span", _PRF),
        "char": _group(point, "char", _PRF),
        "ece": rounded(point["ece"]),
        "coverage": rounded(float(tally.coverage.mean())) if known else None,
        "latency_ms": {
            "p50": round(float(np.percentile(milliseconds, 50)), 2) if known else None,
            "p99": round(float(np.percentile(milliseconds, 99)), 2) if known else None,
            "per_1000_tokens": _per_1000_tokens(tally),
        },
        "unsupported": int(tally.labels.sum()),
        "base_rate": rounded(float(weights @ tally.labels / weights.sum())) if known else None,
        "marked": int(tally.marked.sum()),
        "unscored": int((~tally.scored).sum()),
        "any_span": _group(point, "any_span", _PRF),
        "token": _token_figures(tally, limit=token_limit, base_rate=base_rate),
        "ece_equal_mass": rounded(ece(tally.labels, tally.scores, equal_mass=True, weights=weights)) if known else None,
        "brier": rounded(point["brier"]),
        "risk_coverage": _risk_coverage(tally, threshold=threshold, weights=weights),
        "best": _best(tally, weights),
    }  # fmt: skip


def intervals(
    tally: EvaluationTally, *, threshold: float, base_rate: float | None = None, rounds: int = 1000
) -> Figures:
    """Return the 95 % intervals ``[low, high]`` of most figures of ``describe``, in its shape.

    Whole groups of rows (those that share a source text) are drawn with replacement, ``rounds`` times; the
    interval is from the 2.5 % to the 97.5 % point. ``None`` where no resample has the figure, or ``rounds``
    is 0.
    """
    figures = _Figures(tally, threshold=threshold, base_rate=base_rate)
    drawn = [figures.at(mass) for mass in resamples(tally.group.tolist(), rounds=rounds)]
    nested: Figures = {}
    for name in figures.at(np.ones(len(tally))):
        outer, _, inner = name.partition(".")
        ends = rounded(interval(each[name] for each in drawn))
        if inner:
            nested.setdefault(outer, {})[inner] = ends
        else:
            nested[outer] = ends
    return nested


def breakdown(
    tally: EvaluationTally,
    *,
    threshold: float,
    token_limit: float | None = None,
    base_rate: float | None = None,
    rounds: int = 0,
) -> Figures:
    """Return ``describe`` with ``intervals``, for all rows and per task, source and generator."""

    def part(rows: EvaluationTally) -> Figures:
        return {
            **describe(rows, threshold=threshold, token_limit=token_limit, base_rate=base_rate),
            "intervals": intervals(rows, threshold=threshold, base_rate=base_rate, rounds=rounds),
        }

    whole = part(tally)
    result = dict(whole)
    for key, column in BREAKDOWNS.items():
        names: NDArray[np.str_] = getattr(tally, column)
        result[key] = {
            name: whole if (names == name).all() else part(tally.take(names == name))
            for name in sorted(set(names.tolist()) - {""})
        }
    return result


class _Figures:
    """The figures that a weighting of the rows changes, with everything prepared that it does not."""

    def __init__(self, tally: EvaluationTally, *, threshold: float, base_rate: float | None) -> None:
        self._tally = tally
        self._base_rate = base_rate
        self._ranking = Ranking.of(tally.labels, tally.scores)
        self._flagged = tally.scores >= threshold

    def at(self, mass: Floats) -> dict[str, float | None]:
        """Return the figures by name; the rows count ``mass`` times, times what the base rate asks for."""
        tally = self._tally
        weights = self._balanced(mass)
        known = bool(weights.sum() > 0.0)
        marked = self._balanced(mass * tally.marked)
        example = prf_of_flags(tally.labels, self._flagged, weights=weights) if known else None
        any_span = prf_of_flags(tally.labels, tally.any_span, weights=weights) if known else None
        with_spans = bool(marked.sum() > 0.0)
        return {
            **_named("example", example),
            "example.auroc": self._ranking.auroc(weights),
            "example.auprc": self._ranking.auprc(weights),
            **_named("any_span", any_span),
            **_named("span", prf_of_spans(tally.spans, marked) if with_spans else None),
            **_named("char", prf_of_chars(tally.chars, marked) if with_spans else None),
            "ece": ece(tally.labels, tally.scores, weights=weights) if known else None,
            "brier": brier(tally.labels, tally.scores, weights=weights) if known else None,
        }

    def _balanced(self, mass: Floats) -> Floats:
        if self._base_rate is None:
            return mass
        return base_rate_weights(self._tally.labels, base_rate=self._base_rate, weights=mass)


def _named(name: str, found: PRF | None) -> dict[str, float | None]:
    return {f"{name}.{figure}": None if found is None else getattr(found, figure) for figure in _PRF}


def _group(point: dict[str, float | None], name: str, figures: tuple[str, ...]) -> Figures:
    return {figure: rounded(point[f"{name}.{figure}"]) for figure in figures}


def _token_figures(tally: EvaluationTally, *, limit: float | None, base_rate: float | None) -> Figures:
    """Return the figures over the tokens of marked answers; every token carries its answer's weight."""
    nothing: Figures = dict.fromkeys((*_PRF, "auroc", "auprc", "base_rate"))
    rows = tally.take(tally.marked)
    parts = [
        (reading.p, reading.gold, np.full(len(reading.p), weight))
        for reading, weight in zip(rows.readings, rows.weights(base_rate).tolist(), strict=True)
        if reading is not None and reading.gold is not None and len(reading.p)
    ]
    if not parts:
        return {**nothing, "threshold": limit, "tokens": 0}
    p, gold, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    ranking = Ranking.of(gold, p)
    found = None
    if limit is not None:
        found = prf_of_flags(gold, p >= limit, weights=weights)
    return {
        **_group(_named("token", found), "token", _PRF),
        "auroc": rounded(ranking.auroc(weights)),
        "auprc": rounded(ranking.auprc(weights)),
        "base_rate": rounded(float(weights @ gold / weights.sum())),
        "threshold": limit,
        "tokens": len(p),
    }


def risk_coverage_of(tally: EvaluationTally, *, threshold: float, weights: Floats) -> RiskCoverage | None:
    """Return the risk–coverage curve of the decision "score >= threshold"."""
    return risk_coverage(
        confidence_of(tally.scores, tally.scored, threshold=threshold),
        (tally.scores >= threshold) != tally.labels,
        weights=weights,
    )


def _risk_coverage(tally: EvaluationTally, *, threshold: float, weights: Floats) -> Figures | None:
    found = risk_coverage_of(tally, threshold=threshold, weights=weights)
    if found is None:
        return None
    steps = np.arange(1, _CURVE_STEPS + 1) / _CURVE_STEPS
    # A rounding error must not put the last step behind the end.
    at = np.minimum(np.searchsorted(found.coverage, steps - 1e-9), len(found.coverage) - 1)
    return {
        "aurc": rounded(found.aurc),
        "oracle_aurc": rounded(found.oracle),
        "risk_at_full_coverage": rounded(found.risk_at_full),
        "curve": [
            [float(step), rounded(float(risk))] for step, risk in zip(steps, found.risk[at], strict=True)
        ],
    }


def _best(tally: EvaluationTally, weights: Floats) -> Figures | None:
    """Return what the best threshold would have given: chosen on the rows that it is measured on."""
    if not tally.labels.any():
        return None
    # A threshold of 0 would flag every answer, also those without one suspicious token.
    f1, threshold = best_f1(tally.labels, tally.scores, above=0.0, weights=weights)
    return {"f1": rounded(f1), "threshold": rounded(threshold), "optimistic": True}


def _per_1000_tokens(tally: EvaluationTally) -> float | None:
    tokens = float(tally.tokens.sum())
    # Only rows whose tokens are known: an answer that was not scored has none, and its time says nothing of
    # them.
    return round(float(tally.seconds[tally.tokens > 0].sum()) * 1e6 / tokens, 2) if tokens else None

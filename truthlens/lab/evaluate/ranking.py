"""Measure how often the wrong one of two answers, or of two evidences, gets the higher score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from truthlens.lab.data.dataset import Example
from truthlens.lab.evaluate.metrics import Floats, auroc


def twin_ranking(rows: Sequence[Example], scores: Sequence[float]) -> float | None:
    """Return how often an answer scores higher against the evidence that does not support it, 0..1.

    The same answer stands in both rows, so that its wording cancels; ties count half.

    Args:
        rows: labelled answers; those with one query and response are compared where their labels differ.
        scores: of the rows, higher for less supported.

    Returns:
        The share, or ``None`` where no answer has rows of both labels.
    """
    return _ranking(rows, scores, twin_key)


def pairwise_ranking(rows: Sequence[Example], scores: Sequence[float]) -> float | None:
    """Return how often an unsupported answer scores higher than a supported one to the same evidence, 0..1.

    Arguments and ties as of ``twin_ranking``; every unsupported answer counts alike.
    """
    return _ranking(rows, scores, sibling_key)


def outranked(
    labels: Sequence[bool] | NDArray[np.bool_], scores: Sequence[float] | Floats, keys: Sequence[Hashable]
) -> Floats:
    """Return, per row, the share of its supported siblings that score lower, ties counted half; shape (rows,).

    Siblings share a key. ``NaN`` for supported rows, and for unsupported ones without a supported sibling.
    """
    supported: dict[Hashable, list[float]] = defaultdict(list)
    for label, score, key in zip(labels, scores, keys, strict=True):
        if not label:
            supported[key].append(float(score))
    shares = np.full(len(keys), np.nan)
    for row, (label, score, key) in enumerate(zip(labels, scores, keys, strict=True)):
        if label and key in supported:
            others = np.array(supported[key])
            shares[row] = float(((score > others) + 0.5 * (score == others)).mean())
    return shares


def twin_key(row: Example) -> Hashable:
    """Return what the two rows of a twin share: the answer."""
    return row.group, row.query, row.response


def sibling_key(row: Example) -> Hashable:
    """Return what answers that are compared with each other share: the evidence."""
    return row.group, row.context


def _ranking(
    rows: Sequence[Example], scores: Sequence[float], key: Callable[[Example], Hashable]
) -> float | None:
    shares = outranked([bool(row.label) for row in rows], scores, [key(row) for row in rows])
    return None if np.isnan(shares).all() else float(np.nanmean(shares))


def twin_figures(rows: Sequence[Example], scores: Sequence[float]) -> dict[str, float | int | None]:
    """Return twin and pairwise ranking, AUROC, the share of errors found at 5 % false alarms, and twins by kind and style."""
    labels = [row.label for row in rows]
    figures: dict[str, float | int | None] = {
        "rows": len(rows),
        "twins": twin_ranking(rows, scores),
        "pairwise": pairwise_ranking(rows, scores),
        "auroc": auroc(labels, list(scores)),
        "found_at_5": found_at(labels, scores, 0.05),
    }
    for style in sorted({row.style for row in rows}):
        figures[f"style {style}"] = _ranking_of([row.style == style for row in rows], rows, scores)
    for kind in sorted({row.kind for row in rows}):
        figures[f"kind {kind}"] = _ranking_of([row.kind == kind for row in rows], rows, scores)
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in figures.items()}


def found_at(labels: Sequence[int], scores: Sequence[float], false_alarms: float) -> float | None:
    """Return the share of wrong answers above the threshold that ``false_alarms`` (0..1) of the right ones exceed."""
    right = sorted((score for label, score in zip(labels, scores, strict=True) if not label), reverse=True)
    wrong = [score for label, score in zip(labels, scores, strict=True) if label]
    if not right or not wrong:
        return None
    threshold = right[min(int(false_alarms * len(right)), len(right) - 1)]
    return sum(score > threshold for score in wrong) / len(wrong)


def _ranking_of(keep: Sequence[bool], rows: Sequence[Example], scores: Sequence[float]) -> float | None:
    kept = [place for place, kept in enumerate(keep) if kept]
    return twin_ranking([rows[place] for place in kept], [scores[place] for place in kept])

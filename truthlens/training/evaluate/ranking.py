"""Measure how often the wrong one of two answers, or of two evidences, gets the higher score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from truthlens.training.data.dataset import Example


def twin_ranking(rows: Sequence[Example], scores: Sequence[float]) -> float | None:
    """Return how often an answer scores higher against the evidence that does not support it, 0..1.

    The same answer stands in both rows, so that its wording cancels; ties count half.

    Args:
        rows: labelled answers; those with one query and response are compared where their labels differ.
        scores: of the rows, higher for less supported.

    Returns:
        The share, or ``None`` where no answer has rows of both labels.
    """
    return _ranking(rows, scores, lambda row: (row.group, row.query, row.response))


def pairwise_ranking(rows: Sequence[Example], scores: Sequence[float]) -> float | None:
    """Return how often an unsupported answer scores higher than a supported one to the same evidence, 0..1.

    Arguments and ties as of ``twin_ranking``; every unsupported answer counts alike.
    """
    return _ranking(rows, scores, lambda row: (row.group, row.context))


def _ranking(
    rows: Sequence[Example], scores: Sequence[float], key: Callable[[Example], Hashable]
) -> float | None:
    supported: dict[Hashable, list[float]] = defaultdict(list)
    for row, score in zip(rows, scores, strict=True):
        if not row.label:
            supported[key(row)].append(score)
    shares = [
        float(np.mean([(score > other) + 0.5 * (score == other) for other in supported[key(row)]]))
        for row, score in zip(rows, scores, strict=True)
        if row.label and key(row) in supported
    ]
    return float(np.mean(shares)) if shares else None

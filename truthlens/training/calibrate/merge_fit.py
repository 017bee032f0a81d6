"""The weights of the learned merge, from held-out answers whose chunks stand in several windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.encoder.inputs.manifest import MergeWeights
from truthlens.detection.encoder.token_scores import sigmoid
from truthlens.training.train.batches import IGNORED

_RIDGE = 1.0
_NEWTON_STEPS = 50


def fit_merge(
    statistics: Sequence[NDArray[np.float64]], labels: Sequence[NDArray[np.int16]], *, temperature: float
) -> MergeWeights:
    """A logistic over lowest, highest, mean and weighted log-odds, as the manifest's ``merge_weights``.

    Args:
        statistics: per chunk of ``merging.statistics``, shape (4, tokens), of raw log-odds.
        labels: per chunk, shape (tokens,): 1 unsupported, 0 supported, ``batches.IGNORED`` where nobody marked it.
        temperature: the model's; what the merge gives is divided by it afterwards, as other log-odds are.

    Raises:
        ValueError: the labels have one class only, so there is nothing to fit.
    """
    gold = np.concatenate([np.empty(0, dtype=np.int16), *labels])
    columns = np.concatenate([np.empty((4, 0)), *statistics], axis=1)[:, gold != IGNORED]
    y = gold[gold != IGNORED].astype(np.float64)
    if not len(y) or y.min() == y.max():
        raise ValueError(
            f"{len(y)} labelled tokens of one class; expected supported and unsupported tokens in answers that "
            "stand in several windows"
        )
    design = np.concatenate([np.ones((1, len(y))), columns]).T
    # The plain mean is where the weights start and what the ridge draws them to: the columns are near-copies.
    start = np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    penalty = _RIDGE * np.diag([0.0, 1.0, 1.0, 1.0, 1.0])
    weights = start.copy()
    for _ in range(_NEWTON_STEPS):
        p = sigmoid(design @ weights)
        gradient = design.T @ (y - p) - penalty @ (weights - start)
        curvature = design.T @ (design * (p * (1 - p))[:, None]) + penalty
        step = np.linalg.solve(curvature + 1e-9 * np.eye(5), gradient)
        size = 1.0
        # Halved until it helps: far from the optimum a full step can overshoot for good.
        while size > 1e-3 and _loss(design, y, weights + size * step, start) > _loss(
            design, y, weights, start
        ):
            size /= 2.0
        weights = weights + size * step
        if np.abs(step).max() < 1e-8:
            break
    constant, lowest, highest, mean, weighted = (round(float(value), 6) for value in weights * temperature)
    return constant, lowest, highest, mean, weighted


def _loss(
    design: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    start: NDArray[np.float64],
) -> float:
    logits = design @ weights
    likelihood = float((np.logaddexp(0.0, logits) - y * logits).sum())
    return likelihood + 0.5 * _RIDGE * float(((weights - start)[1:] ** 2).sum())

"""A weighted logistic with a ridge, by Newton's method: what calibrations are fitted with. Pure numerics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.detectors.encoder.token_scores import sigmoid

_NEWTON_STEPS = 100


def fit_logistic(
    inputs: NDArray[np.float64],
    gold: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    ridge: float = 0.0,
    penalty: NDArray[np.float64] | None = None,
    toward: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Fit a weighted logistic with a ridge by Newton's method.

    Args:
        inputs: shape (rows, inputs).
        gold: shape (rows,), 0..1.
        weights: shape (rows,), of the rows.
        ridge: strength of the ridge relative to the weights and to each input's variance.
        penalty: shape (inputs,), the ridge of each slope, unscaled, in place of ``ridge``.
        toward: shape (inputs,), where the ridge draws the slopes to and the fit starts; 0 by default.

    Returns:
        Slopes and intercept, shape (inputs + 1,).
    """
    design = np.column_stack([inputs, np.ones(len(inputs))])
    own = ridge * float(weights.sum()) * inputs.var(axis=0) if penalty is None else penalty
    strength = np.r_[own, 0.0]
    found = target = np.r_[np.zeros(inputs.shape[1]) if toward is None else toward, 0.0]
    if toward is None:
        rate = float(np.average(gold, weights=weights))
        found = np.r_[target[:-1], np.log(rate / (1.0 - rate))]

    def loss(at: NDArray[np.float64]) -> float:
        logits = design @ at
        return float(
            (weights * (np.logaddexp(0.0, logits) - gold * logits)).sum()
            + (strength * (at - target) ** 2).sum() / 2
        )

    for _ in range(_NEWTON_STEPS):
        p = sigmoid(design @ found)
        curvature = design.T @ (design * (weights * p * (1 - p))[:, None]) + np.diag(strength + 1e-9)
        gradient = design.T @ (weights * (gold - p)) - strength * (found - target)
        step = np.linalg.solve(curvature, gradient)
        # Halved until it helps: far from the optimum a full step can overshoot for good.
        size = 1.0
        while size > 1e-3 and loss(found + size * step) > loss(found):
            size /= 2.0
        found = found + size * step
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(found, dtype=np.float64)

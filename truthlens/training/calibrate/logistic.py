"""A weighted logistic with a ridge, by Newton's method: what calibrations are fitted with. Pure numerics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.encoder.token_scores import sigmoid

_NEWTON_STEPS = 100


def fit_logistic(
    inputs: NDArray[np.float64], gold: NDArray[np.float64], weights: NDArray[np.float64], *, ridge: float
) -> NDArray[np.float64]:
    """Slopes and intercept, shape (inputs + 1,), of a weighted logistic, by Newton's method."""
    design = np.column_stack([inputs, np.ones(len(inputs))])
    penalty = ridge * float(weights.sum()) * np.r_[inputs.var(axis=0), 0.0]
    rate = float(np.average(gold, weights=weights))
    found = np.zeros(design.shape[1])
    found[-1] = np.log(rate / (1.0 - rate))

    def loss(at: NDArray[np.float64]) -> float:
        logits = design @ at
        return float(
            (weights * (np.logaddexp(0.0, logits) - gold * logits)).sum() + (penalty * at**2).sum() / 2
        )

    for _ in range(_NEWTON_STEPS):
        p = sigmoid(design @ found)
        curvature = design.T @ (design * (weights * p * (1 - p))[:, None]) + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curvature, design.T @ (weights * (gold - p)) - penalty * found)
        # Halved until it helps: far from the optimum a full step can overshoot for good.
        size = 1.0
        while size > 1e-3 and loss(found + size * step) > loss(found):
            size /= 2.0
        found = found + size * step
        if np.abs(step).max() < 1e-9:
            break
    return found

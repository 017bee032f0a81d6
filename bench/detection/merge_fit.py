"""Fit the weights of the learned merge, from held-out answers whose chunks are in several windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.models.inputs.manifest import MergeWeights
from truthlens.lab.calibrate.logistic import fit_logistic
from truthlens.lab.train.batches import IGNORED

_RIDGE = 1.0


def fit_merge(
    statistics: Sequence[NDArray[np.float64]], labels: Sequence[NDArray[np.int16]], *, temperature: float
) -> MergeWeights:
    """Fit a logistic over lowest, highest, mean and weighted log-odds, as the manifest's ``merge_weights``.

    Args:
        statistics: per chunk of ``merging.statistics``, shape (4, tokens), of raw log-odds.
        labels: per chunk, shape (tokens,): 1 unsupported, 0 supported, ``batches.IGNORED`` where it was not
            marked.
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
    # The plain mean is where the weights start and what the ridge draws them to: the columns are near-copies.
    *slopes, intercept = fit_logistic(
        columns.T,
        y,
        np.ones(len(y)),
        penalty=np.full(4, _RIDGE),
        toward=np.array([0.0, 0.0, 1.0, 0.0]),
    )
    constant, lowest, highest, mean, weighted = (
        round(float(value) * temperature, 6) for value in (intercept, *slopes)
    )
    return constant, lowest, highest, mean, weighted

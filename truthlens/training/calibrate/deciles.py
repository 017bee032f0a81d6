"""The deciles of the scores that a model was calibrated on, with which the gateway compares those of live traffic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from truthlens.detection.encoder.aggregation import spans_of
from truthlens.detection.encoder.inputs.manifest import Manifest
from truthlens.detection.encoder.token_scores import Reading
from truthlens.training.data.dataset import Example
from truthlens.training.evaluate.metrics import Floats, base_rate_weights

_EVEN = 0.5
_DIGITS = 4


def calibration_scores(readings: Sequence[Reading], manifest: Manifest, *, shift: float) -> Floats:
    """Return the response scores of calibration answers under the manifest's own aggregation, shape (answers,).

    Args:
        readings: of ``calibration.score_answers``, from before the shift.
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

    ``None`` where not both labels are there: then even odds cannot be made.
    """
    values = np.asarray(scores, dtype=np.float64)
    labels = np.array([example.label for example in examples], dtype=bool)
    sources = np.array([example.source for example in examples])
    weights = np.zeros(len(values))
    for source in np.unique(sources):
        rows = sources == source
        if 0 < labels[rows].sum() < rows.sum():
            weights[rows] = base_rate_weights(labels[rows], base_rate=_EVEN)
    if not weights.any():
        return None
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    places = [int(np.searchsorted(reached, step / 10 - 1e-9)) for step in range(1, 10)]
    return tuple(round(float(values[order[place]]), _DIGITS) for place in places)

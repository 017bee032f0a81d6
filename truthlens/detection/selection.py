"""Choose the evidence that stands beside an answer chunk where not all of it fits.

Idf-weighted word overlap; every answer sentence gets its best match before any gets its second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.lexical import EvidenceIndex

_MOST_ROUNDS = 48
_SMALLEST_FILL = 4


def select_units(
    index: EvidenceIndex, *, sizes: NDArray[np.int64], claims: Sequence[Sequence[str]], budget: int
) -> NDArray[np.int64]:
    """The units to read, ascending (document order), whose sizes sum to at most ``budget``.

    Args:
        index: the evidence, by unit.
        sizes: shape (units,), tokens that each unit costs.
        claims: per answer sentence, the keys of its content words.
        budget: tokens that may be used.
    """
    chosen: dict[int, None] = {}
    left = budget
    # The neighbours are those of what was chosen by then, so the parts must stay lazy.
    for unit in chain(
        _best_matches(index, claims), _neighbours(chosen, index.units), iter(range(index.units))
    ):
        if unit in chosen or sizes[unit] > left:
            continue
        chosen[unit] = None
        left -= int(sizes[unit])
        if left < _SMALLEST_FILL:
            break
    return np.array(sorted(chosen), dtype=np.int64)


def _best_matches(index: EvidenceIndex, claims: Sequence[Sequence[str]]) -> Iterator[int]:
    if not claims or not index.units:
        return
    scores = np.stack([index.overlap(keys) for keys in claims])
    typical = max(float(index.lengths.mean()), 1.0)
    scores /= 0.5 + 0.5 * index.lengths / typical
    rounds = min(_MOST_ROUNDS, index.units)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :rounds]
    ranked = np.take_along_axis(scores, order, axis=1)
    for place in range(rounds):
        for claim in np.argsort(-ranked[:, place], kind="stable"):
            if ranked[claim, place] > 0.0:
                yield int(order[claim, place])


def _neighbours(chosen: dict[int, None], units: int) -> Iterator[int]:
    for unit in list(chosen):
        for near in (unit - 1, unit + 1):
            if 0 <= near < units:
                yield near

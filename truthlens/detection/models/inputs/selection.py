"""Choose the evidence that goes with an answer chunk when not all of it fits.

Pure.

A unit (sentence) is ranked for each answer sentence by the rare words they share; every answer sentence gets
its best match before any gets its second. Nothing here knows windows or tokens, only units and what each
costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from truthlens.detection.models.inputs.lexical import EvidenceIndex

Floats = NDArray[np.float64]
Units = NDArray[np.int64]

_MOST_ROUNDS = 48
_SMALLEST_FILL = 4
# Measured (docs/long-evidence.md): surroundings of 4 units either side, each counting up to fourfold.
_SURROUNDINGS = 4
_CONTEXT_WEIGHT = 4.0


def overlap_scores(index: EvidenceIndex, claims: Sequence[Sequence[str]]) -> Floats:
    """Return an array (claims, units), 0..: summed idf of shared words, less for long units.

    Args:
        index: the evidence, by unit.
        claims: per answer sentence, the keys of its content words.
    """
    if not claims or not index.units:
        return np.zeros((len(claims), index.units))
    scores = np.stack([index.overlap(keys) for keys in claims])
    typical = max(float(index.lengths.mean()), 1.0)
    scores /= 0.5 + 0.5 * index.lengths / typical
    return scores


def context_scores(
    index: EvidenceIndex, claims: Sequence[Sequence[str]], *, query: Sequence[str], owners: Units
) -> Floats:
    """Return ``overlap_scores``, raised for units whose surroundings mention the claim and the query.

    One sentence of an unrelated passage may share a claim's words by chance; that its neighbours share the
    claim's other words and the question's is much rarer.

    Args:
        index: the evidence, by unit.
        claims: per answer sentence, the keys of its content words.
        query: keys of the query's content words; may be empty.
        owners: shape (units,), ascending: the passage of each unit. Surroundings end where the passage does.
    """
    scores = overlap_scores(index, claims)
    if not scores.size:
        return scores
    nearby = _shares_nearby(index, [*claims, query], owners)
    raised: Floats = scores * (1.0 + _CONTEXT_WEIGHT * nearby[:-1]) * (1.0 + _CONTEXT_WEIGHT * nearby[-1])
    return raised


def select_units(
    scores: Floats, *, sizes: Units, budget: int, taken: NDArray[np.bool_] | None = None
) -> Units:
    """Return the units to read, ascending (document order), whose sizes sum to at most ``budget``.

    Room that the matches leave is filled with neighbours of what was chosen, then from the evidence's
    beginning.

    Args:
        scores: shape (claims, units); 0 where a unit has nothing to do with a claim.
        sizes: shape (units,), tokens that each unit costs.
        budget: tokens that may be used.
        taken: shape (units,): units that are not to be chosen, because another window holds them.
    """
    units = len(sizes)
    chosen: dict[int, None] = {}
    left = budget
    # The neighbours are those of what was chosen by then, so the parts must stay lazy.
    for unit in chain(_best_matches(scores), _neighbours(chosen, units), iter(range(units))):
        if unit in chosen or sizes[unit] > left or (taken is not None and taken[unit]):
            continue
        chosen[unit] = None
        left -= int(sizes[unit])
        if left < _SMALLEST_FILL:
            break
    return np.array(sorted(chosen), dtype=np.int64)


def held_shares(index: EvidenceIndex, claims: Sequence[Sequence[str]], units: Units) -> Floats:
    """Return an array (claims,), 0..1: share of each claim's rare words that occur in any of ``units``."""
    read = np.zeros(index.units, dtype=bool)
    read[units] = True
    shares = np.zeros(len(claims))
    for number, keys in enumerate(claims):
        weights = {key: index.idf(key) for key in keys}
        held = sum(weight for key, weight in weights.items() if read[index.postings.get(key, [])].any())
        shares[number] = held / sum(weights.values()) if weights else 0.0
    return shares


def _best_matches(scores: Floats) -> Iterator[int]:
    if not scores.size:
        return
    rounds = min(_MOST_ROUNDS, scores.shape[1])
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


def _shares_nearby(index: EvidenceIndex, lists: Sequence[Sequence[str]], owners: Units) -> Floats:
    """Return an array (lists, units), 0..1: share of a list's idf in a unit or its surroundings."""
    units = index.units
    known = sorted({key for keys in lists for key in keys if key in index.postings})
    rows = {key: row for row, key in enumerate(known)}
    counts = np.zeros((len(known), units + 1), dtype=np.int32)
    for key, row in rows.items():
        counts[row, np.asarray(index.postings[key]) + 1] = 1
    np.cumsum(counts, axis=1, out=counts)
    places = np.arange(units)
    first = np.maximum(places - _SURROUNDINGS, np.searchsorted(owners, owners, side="left"))
    end = np.minimum(places + _SURROUNDINGS + 1, np.searchsorted(owners, owners, side="right"))
    near = counts[:, end] > counts[:, first]
    weights = np.zeros((len(lists), len(known)))
    for number, keys in enumerate(lists):
        rarity = {key: index.idf(key) for key in keys}
        whole = sum(rarity.values())
        for key in rarity.keys() & rows.keys():
            weights[number, rows[key]] = rarity[key] / whole
    shares: Floats = weights @ near
    return shares

"""Align each sentence of an answer with the evidence sentence nearest to it: the columns that ``lexical-v2`` adds.

Lexical support says which words of an answer are somewhere in the evidence. The alignment says what stands in the
place of a word: another number, weekday or name, its opposite, or the same words in another order.

FROZEN for ``lexical-v2``, as ``text.words`` is, faults included: words of five equal first letters are alike, also names
("Austria", "Australia") and opposites ("employer", "employee"); a negation is looked for in the whole sentence of the answer,
but only near the aligned part of the evidence's; Han text has no negations and no opposites. The weights of the alignment were
set by hand, so that a substitution costs less than leaving a word out on both sides.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truthlens.core.cancellation import checkpoint
from truthlens.text.opposites import OPPOSITES
from truthlens.text.words import Word, stem

ALIGNMENT_NAMES: tuple[str, ...] = (
    "aligned", "replaced", "replaced_by_kind", "replaced_by_opposite", "moved", "clash", "neighbours_aligned",
    "sentence_aligned", "unit_aligned", "sentence_clash", "negation_near_differs", "order_differs", "gap", "gap_of_kind",
)  # fmt: skip
_COLUMN = {name: index for index, name in enumerate(ALIGNMENT_NAMES)}
# Words that carry no topic and yet decide whether a statement is true.
_DECIDING = """
above after all any before below between both by can could down during each either every few from in into may might
more most must neither no none nor not off on only or out over same should some than through to under until up within
without
"""
_DAYS_AND_MONTHS = """
monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
october november december
"""
_ALIGNED_STOP_WORDS = frozenset(map(stem, _DECIDING.split()))
_CALENDAR = frozenset(map(stem, _DAYS_AND_MONTHS.split()))
_OTHER, _NUMBER, _DATE, _NAME = range(4)
_PREFIX = 5
_LONGEST = 160  # words of a sentence or unit that are aligned; a longer one is a list or a table
_STOP_WEIGHT = 0.5
_ALIKE = 0.8
_SAME_KIND, _OTHER_KIND, _INSERTED, _SKIPPED = -0.1, -0.25, -0.3, -0.1
_LONG_GAP = 6
_NEAR = 2


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Holds the words of a text that are aligned, with their place among all words of it."""

    places: tuple[int, ...]
    listed: tuple[Word, ...]
    kinds: tuple[int, ...]


def _aligned_words(listed: Sequence[Word], names: set[str]) -> _Aligned:
    kept = [
        (place, word)
        for place, word in enumerate(listed)
        if not word.stop or word.negation or word.stem in _ALIGNED_STOP_WORDS
    ]
    kept = kept[:_LONGEST]
    return _Aligned(
        places=tuple(place for place, _ in kept),
        listed=tuple(word for _, word in kept),
        kinds=tuple(_kind(word, names) for _, word in kept),
    )


def _kind(word: Word, names: set[str]) -> int:
    if word.numbers:
        return _NUMBER
    if word.stem in _CALENDAR:
        return _DATE
    return _NAME if word.stem in names else _OTHER


def alignment_features(sentence: Sequence[Word], unit: Sequence[Word]) -> NDArray[np.float32]:
    """Return features of shape (words of ``sentence``, ``len(ALIGNMENT_NAMES)``), each 0..1.

    Args:
        sentence: the words of a sentence of the answer.
        unit: the words of the evidence unit that shares most with it.
    """
    table = np.zeros((len(sentence), len(ALIGNMENT_NAMES)), dtype=np.float32)
    # The first word of a sentence is a name where the other text has it as one.
    names = {word.stem for text in (sentence, unit) for word in text if word.entity}
    own, other = _aligned_words(sentence, names), _aligned_words(unit, names)
    if not own.listed or not other.listed:
        return table
    checkpoint()
    alike = _similarity(own, other)
    partner = _align(own, other, alike)
    aligned = np.array(
        [alike[row, column] > 0.0 if column >= 0 else False for row, column in enumerate(partner)]
    )
    taken = {column for row, column in enumerate(partner) if aligned[row]}
    free = [column for column in range(len(other.listed)) if column not in taken]
    weights = np.array([_weight(word) for word in own.listed])
    rows = np.array(own.places)
    anywhere = alike.max(axis=1) > 0.0
    table[rows, _COLUMN["aligned"]] = aligned
    table[rows, _COLUMN["moved"]] = anywhere & ~aligned
    # Values that the alignment passed over may be the ones that belong here.
    partners = {column for column in partner if column >= 0}
    inner = range(min(partners, default=0), max(partners, default=-1) + 1)
    passed = {other.kinds[column] for column in inner if column not in partners} - {_OTHER}
    last = -1
    for row, word in enumerate(own.listed):
        line = table[rows[row]]
        column = partner[row]
        kind = own.kinds[row]
        if column >= 0:
            skipped = other.kinds[last + 1 : column] if last >= 0 else ()
            line[_COLUMN["gap"]] = min(len(skipped) / _LONG_GAP, 1.0)
            last = column
        line[_COLUMN["gap_of_kind"]] = kind in passed
        if aligned[row]:
            continue
        line[_COLUMN["replaced"]] = column >= 0
        line[_COLUMN["replaced_by_kind"]] = column >= 0 and kind != _OTHER and kind == other.kinds[column]
        line[_COLUMN["clash"]] = (
            kind != _OTHER and not anywhere[row] and any(other.kinds[column] == kind for column in free)
        )
        against = OPPOSITES.get(word.stem, frozenset())
        line[_COLUMN["replaced_by_opposite"]] = any(other.listed[column].stem in against for column in free)
    table[rows, _COLUMN["neighbours_aligned"]] = _nearby(aligned * weights) / np.maximum(
        _nearby(weights), 1e-6
    )
    table[:, _COLUMN["sentence_aligned"]] = (aligned * weights).sum() / weights.sum()
    if taken:
        first, last = min(taken), max(taken)
        table[:, _COLUMN["unit_aligned"]] = len(taken) / (last - first + 1)
        told = any(word.negation for word in sentence)
        held = any(word.negation for word in other.listed[max(0, first - _NEAR) : last + 1 + _NEAR])
        table[:, _COLUMN["negation_near_differs"]] = told != held
    marked = table[:, _COLUMN["replaced_by_kind"]] + table[:, _COLUMN["replaced_by_opposite"]]
    table[:, _COLUMN["sentence_clash"]] = bool((marked + table[:, _COLUMN["clash"]]).any())
    table[:, _COLUMN["order_differs"]] = _order_differs(own, alike)
    return table


def _nearby(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each place the sum of the values around it, shape (values,)."""
    summed: NDArray[np.float64] = np.convolve(values, np.ones(2 * _NEAR + 1))[_NEAR:-_NEAR]
    return summed - values


def _weight(word: Word) -> float:
    return _STOP_WEIGHT if word.stop else 1.0


def _similarity(own: _Aligned, other: _Aligned) -> NDArray[np.float64]:
    """Return how well the words match, shape (own words, other words): 0 for not at all."""
    alike = np.zeros((len(own.listed), len(other.listed)))
    places: dict[str, list[int]] = {}
    prefixes: dict[str, list[int]] = {}
    for column, word in enumerate(other.listed):
        for key in word.numbers or (word.stem,):
            places.setdefault(key, []).append(column)
        if not word.numbers and len(word.stem) >= _PREFIX:
            prefixes.setdefault(word.stem[:_PREFIX], []).append(column)
    for row, word in enumerate(own.listed):
        weight = _weight(word)
        if not word.numbers and len(word.stem) >= _PREFIX:
            for column in prefixes.get(word.stem[:_PREFIX], ()):
                alike[row, column] = weight * _ALIKE
        for key in word.numbers or (word.stem,):
            for column in places.get(key, ()):
                alike[row, column] = weight
    return alike


def _align(own: _Aligned, other: _Aligned, alike: NDArray[np.float64]) -> list[int]:
    """Return for each own word the word of the other that stands in its place, or -1.

    The best alignment in order (Needleman and Wunsch), free at both ends of the other text.
    """
    height, width = alike.shape
    own_kinds, other_kinds = np.array(own.kinds), np.array(other.kinds)
    same = (own_kinds[:, None] == other_kinds[None, :]) & (own_kinds[:, None] != _OTHER)
    gains = np.where(alike > 0.0, alike, np.where(same, _SAME_KIND, _OTHER_KIND))
    best = np.zeros((height + 1, width + 1))
    skips = np.arange(width + 1) * -_SKIPPED
    for row in range(height):
        above = best[row]
        reached = above + _INSERTED
        np.maximum(reached[1:], above[:-1] + gains[row], out=reached[1:])
        best[row + 1] = np.maximum.accumulate(reached + skips) - skips
    partner = [-1] * height
    row, column = height, int(best[height].argmax())
    while row > 0:
        value = best[row, column]
        if column > 0 and abs(best[row - 1, column - 1] + gains[row - 1, column - 1] - value) < 1e-9:
            partner[row - 1] = column - 1
            row, column = row - 1, column - 1
        elif abs(best[row - 1, column] + _INSERTED - value) < 1e-9:
            row -= 1
        else:
            column -= 1
    return partner


def _order_differs(own: _Aligned, alike: NDArray[np.float64]) -> bool:
    """Return whether two names or values of the sentence stand in the other order in the unit."""
    places = [
        int(found[0])
        for row, kind in enumerate(own.kinds)
        if kind != _OTHER and len(found := np.flatnonzero(alike[row])) == 1
    ]
    return any(later < earlier for earlier, later in itertools.pairwise(places))

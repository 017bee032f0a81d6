"""Compare marks of one scale: quantifiers, modality, frequency and bounds. Pure.

"May" for "must" is compared in ``text.claims.hedges``.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType

from truthlens.detection.detectors.contradictions.alignment import Alignment
from truthlens.detection.detectors.contradictions.reading import Token
from truthlens.detection.detectors.contradictions.tables import Mark

MODALS = frozenset((Mark.MUST, Mark.NEED_NOT, Mark.MAY, Mark.MAY_NOT, Mark.SHOULD))
QUANTIFIERS = frozenset((Mark.ALL, Mark.NOT_ALL, Mark.MOST, Mark.SOME))
FREQUENCIES = frozenset((Mark.ALWAYS, Mark.NOT_ALWAYS, Mark.USUALLY, Mark.SOMETIMES, Mark.RARELY))
BOUNDS = frozenset((Mark.AT_LEAST, Mark.AT_MOST, Mark.MORE_THAN, Mark.LESS_THAN, Mark.EXACTLY))
SCALES = (MODALS, QUANTIFIERS, FREQUENCIES, BOUNDS)

# What a claim says, and what of its evidence contradicts it.
_AGAINST: Mapping[Mark, frozenset[Mark]] = MappingProxyType(
    {
        Mark.MUST: frozenset((Mark.NEED_NOT, Mark.SHOULD, Mark.MAY_NOT)),
        Mark.NEED_NOT: frozenset((Mark.MUST,)),
        Mark.MAY_NOT: frozenset((Mark.MUST, Mark.NEED_NOT)),
        Mark.ALL: frozenset((Mark.SOME, Mark.MOST, Mark.NOT_ALL)),
        Mark.NOT_ALL: frozenset((Mark.ALL,)),
        Mark.ALWAYS: frozenset((Mark.SOMETIMES, Mark.USUALLY, Mark.RARELY, Mark.NOT_ALWAYS)),
        Mark.USUALLY: frozenset((Mark.RARELY,)),
        Mark.RARELY: frozenset((Mark.USUALLY, Mark.ALWAYS)),
        Mark.SOMETIMES: frozenset((Mark.ALWAYS,)),
        Mark.NOT_ALWAYS: frozenset((Mark.ALWAYS,)),
        Mark.AT_LEAST: frozenset((Mark.AT_MOST, Mark.LESS_THAN)),
        Mark.AT_MOST: frozenset((Mark.AT_LEAST, Mark.MORE_THAN)),
        Mark.MORE_THAN: frozenset((Mark.AT_MOST, Mark.LESS_THAN)),
        Mark.LESS_THAN: frozenset((Mark.AT_LEAST, Mark.MORE_THAN)),
        Mark.EXACTLY: frozenset((Mark.AT_LEAST, Mark.AT_MOST)),
    }
)


def of_scale(marks: tuple[Token, ...], scale: frozenset[Mark]) -> list[Token]:
    """Return the marks of one scale."""
    return [mark for mark in marks if mark.mark in scale]


def conflict(found: Alignment) -> tuple[Token, Token] | None:
    """Return the first marks, one of each side, that contradict each other beside the same words."""
    for scale in SCALES:
        mine, theirs = of_scale(found.mine, scale), of_scale(found.theirs, scale)
        if len(mine) != 1 or not theirs or len(theirs) > 2:
            continue
        if any(one.mark is other.mark for one, other in product(mine, theirs)):
            continue
        for one, other in product(mine, theirs):
            if one.mark is None or other.mark not in _AGAINST.get(one.mark, ()):
                continue
            if scale is MODALS or _beside_the_same(found, one, other):
                return one, other
    return None


def _beside_the_same(found: Alignment, one: Token, other: Token) -> bool:
    """Return whether the words behind two marks, or those before them, are counterparts."""
    behind = next((pair for pair in found.pairs if pair.mine.start >= one.end), None)
    if behind is not None:
        after = [token.start for token in _theirs(found) if token.start >= other.end]
        if after and min(after) == behind.theirs.start:
            return True
        if one.mark in BOUNDS:
            return False
    before = next((pair for pair in reversed(found.pairs) if pair.mine.end <= one.start), None)
    if before is None or one.mark in QUANTIFIERS:
        return False
    ahead = [token.start for token in _theirs(found) if token.end <= other.start]
    return bool(ahead) and max(ahead) == before.theirs.start


def _theirs(found: Alignment) -> list[Token]:
    return [pair.theirs for pair in found.pairs] + list(found.extra)

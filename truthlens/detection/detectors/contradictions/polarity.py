"""Tell whether a claim and its evidence differ by an odd number of negations and opposites. Pure."""

from __future__ import annotations

from truthlens.detection.detectors.contradictions.alignment import Alignment, Pair
from truthlens.detection.detectors.contradictions.reading import Token
from truthlens.detection.detectors.contradictions.tables import Mark

NEGATIVE = frozenset((Mark.NOT, Mark.MAY_NOT))


def negations(marks: tuple[Token, ...]) -> list[Token]:
    """Return the marks that deny."""
    return [mark for mark in marks if mark.mark in NEGATIVE]


def turned(pairs: tuple[Pair, ...], mine: tuple[Token, ...], theirs: tuple[Token, ...]) -> bool:
    """Return whether negations and opposites together turn the statement round."""
    return (sum(pair.opposite for pair in pairs) + len(negations(mine)) + len(negations(theirs))) % 2 == 1


def is_plain(found: Alignment) -> bool:
    """Return whether the negation of the evidence is of the whole statement, and not of a detail that the claim leaves out.

    "It is not open on Mondays" denies nothing of "it is open".
    """
    denied = negations(found.theirs)
    if not denied or negations(found.mine):
        return True
    at = denied[0].start
    return all(token.start < at for token in found.extra)

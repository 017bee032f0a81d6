"""Which claims of two answers are about one matter, and what each answer says of the other's claims. Pure.

Claims are aligned one to one by semantic similarity, greedily from the most similar pair down. A best assignment
would give a claim a worse partner to help another one; here the nearest pair is wanted, and a pair below the floor is
none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truthlens.mitigation.claims import Claim
from truthlens.mitigation.comparison import ClaimView, Comparison, Stance, Voice
from truthlens.mitigation.conflicts import conflicting

ALIGNED = 0.4
"""Similarity from which two claims are taken to be about one matter; sentences of answers to one question have about 0.2."""

Table = Sequence[Sequence[float]]
"""Similarity of each claim of one answer to each claim of another."""


@dataclass(frozen=True, slots=True)
class Figures:
    """All that was measured of several answers.

    Attributes:
        claims: per voice the factual claims that are compared.
        groundings: per voice, per claim, 0..1.
        similar: by pair of voices, the lower index first, shape (claims of the one, claims of the other).
        support: by ordered pair (one, other), how far the other's text supports each claim of the one, 0..1.
    """

    claims: Sequence[Sequence[Claim]]
    groundings: Sequence[Sequence[float]]
    similar: Mapping[tuple[int, int], Table]
    support: Mapping[tuple[int, int], Sequence[float]]


def assembled(voices: Sequence[Voice], figures: Figures, *, notes: Sequence[str] = ()) -> Comparison:
    """The comparison that the figures make; ``notes`` are codes of what was left out."""
    partners = {pair: aligned(table) for pair, table in figures.similar.items()}
    for one, other in list(partners):
        partners[other, one] = {right: left for left, right in partners[one, other].items()}
    views = tuple(
        tuple(
            ClaimView(
                claim,
                figures.groundings[one][place],
                tuple(
                    _stance(figures, (one, place), other, partners[one, other].get(place))
                    for other in range(len(voices))
                    if other != one
                ),
            )
            for place, claim in enumerate(own)
        )
        for one, own in enumerate(figures.claims)
    )
    return Comparison(tuple(voices), views, tuple(notes))


def aligned(table: Table) -> dict[int, int]:
    """Partners by claim of the left side: the most similar pair first, each claim once, none below ``ALIGNED``."""
    ranked = sorted(
        (-value, left, right)
        for left, row in enumerate(table)
        for right, value in enumerate(row)
        if value >= ALIGNED
    )
    chosen: dict[int, int] = {}
    taken: set[int] = set()
    for _, left, right in ranked:
        if left not in chosen and right not in taken:
            chosen[left] = right
            taken.add(right)
    return chosen


def _stance(figures: Figures, of: tuple[int, int], other: int, partner: int | None) -> Stance:
    one, place = of
    text = figures.claims[one][place].text
    theirs = figures.claims[other]
    if any(_normal(text) == _normal(claim.text) for claim in theirs):
        # A detector is no oracle: who says the very same holds it.
        return Stance(other, partner, 1.0, 1.0)
    support = figures.support[one, other][place]
    if partner is None:
        nearest = max((_similar(figures, of, other, number) for number in range(len(theirs))), default=0.0)
        return Stance(other, None, nearest, support)
    conflict = conflicting(text, theirs[partner].text)
    return Stance(other, partner, _similar(figures, of, other, partner), support, conflict)


def _similar(figures: Figures, of: tuple[int, int], other: int, number: int) -> float:
    one, place = of
    if one < other:
        return figures.similar[one, other][place][number]
    return figures.similar[other, one][number][place]


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".。")

"""Align the claims of two answers by subject, and tell what each answer says of the other's claims.

Pure.

Claims are aligned one to one by semantic similarity, greedily from the most similar pair down. A best
assignment would give a claim a worse partner to help another one; here the nearest pair is wanted, and a pair
below the floor is none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from truthlens.mitigation.premium.consensus.comparison import ClaimView, Comparison, Stance, Voice
from truthlens.text.claims.claims import Claim
from truthlens.text.values.conflicts import Content, conflicting, content

ALIGNED = 0.4
"""Similarity from which two claims are taken to be about one matter; sentences of answers to one question have about 0.2."""

Table = Sequence[Sequence[float]]
"""Similarity of each claim of one answer to each claim of another."""


INCOMPLETE = "comparison-incomplete"
"""The note of a comparison where a claim of the first answer could not be scored or compared."""

_UNKNOWN_GROUNDING = 0.5


@dataclass(frozen=True, slots=True)
class Measured:
    """All that was measured of several answers.

    Attributes:
        claims: per voice the factual claims that are compared.
        groundings: per voice, per claim, 0..1; ``None`` for one that could not be scored.
        similar: by pair of voices, the lower index first, shape (claims of the one, claims of the other).
        support: by ordered pair (one, other), how far the other's text supports each claim of the one, 0..1;
            ``None`` for one that could not be scored.
    """

    claims: Sequence[Sequence[Claim]]
    groundings: Sequence[Sequence[float | None]]
    similar: Mapping[tuple[int, int], Table]
    support: Mapping[tuple[int, int], Sequence[float | None]]


def assembled(voices: Sequence[Voice], figures: Measured, *, notes: Sequence[str] = ()) -> Comparison:
    """Assemble the comparison from these figures.

    ``notes`` are codes of what was left out, plus ``INCOMPLETE``.
    """
    sides = [_Side.of(own) for own in figures.claims]
    stances: dict[tuple[int, int], list[Stance]] = {}
    for (one, other), table in figures.similar.items():
        pair = _Pair.of(sides[one], sides[other], table)
        stances[one, other] = pair.stances(other, figures.support[one, other])
        stances[other, one] = pair.turned().stances(one, figures.support[other, one])
    views = tuple(
        tuple(
            _view(
                claim,
                figures.groundings[one][place],
                tuple(stances[one, other][place] for other in range(len(voices)) if other != one),
            )
            for place, claim in enumerate(own)
        )
        for one, own in enumerate(figures.claims)
    )
    incomplete = [] if all(view.known for view in views[0]) else [INCOMPLETE]
    return Comparison(tuple(voices), views, (*notes, *incomplete))


def aligned(table: Table) -> dict[int, int]:
    """Return the partners by claim of the left side: most similar pair first, each claim only once."""
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


@dataclass(frozen=True, slots=True)
class _Side:
    """One voice's claims, each read once: its wording without what does not count, and what can conflict."""

    wordings: Sequence[str]
    contents: Sequence[Content]

    @staticmethod
    def of(claims: Sequence[Claim]) -> _Side:
        return _Side([_normal(claim.text) for claim in claims], [content(claim.text) for claim in claims])


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two voices: ``table`` has a row for each claim of ``one``, ``partners`` the aligned claim of ``other``.

    ``conflicts`` are the claims of ``one`` whose partner gives another figure, date or polarity.
    """

    one: _Side
    other: _Side
    table: Table
    partners: Mapping[int, int]
    conflicts: Collection[int]

    @staticmethod
    def of(one: _Side, other: _Side, table: Table) -> _Pair:
        partners = aligned(table)
        conflicts = {
            left for left, right in partners.items() if conflicting(one.contents[left], other.contents[right])
        }
        return _Pair(one, other, table, partners, conflicts)

    def turned(self) -> _Pair:
        """Return the same pair from the other side."""
        return _Pair(
            self.other,
            self.one,
            list(zip(*self.table, strict=True)) or [() for _ in self.other.wordings],
            {right: left for left, right in self.partners.items()},
            {self.partners[left] for left in self.conflicts},
        )

    def stances(self, voice: int, support: Sequence[float | None]) -> list[Stance]:
        """Return what the other voice, whose index is ``voice``, says of each of these claims."""
        said = set(self.other.wordings)
        found: list[Stance] = []
        for place, wording in enumerate(self.one.wordings):
            partner, row = self.partners.get(place), self.table[place]
            if wording in said:
                # A detector is no oracle: who says the very same holds it.
                found.append(Stance(voice, partner, 1.0, 1.0))
            elif partner is None:
                found.append(Stance(voice, None, max(row, default=0.0), support[place]))
            else:
                found.append(
                    Stance(voice, partner, row[partner], support[place], conflict=place in self.conflicts)
                )
        return found


def _view(claim: Claim, grounding: float | None, stances: tuple[Stance, ...]) -> ClaimView:
    if grounding is None:
        return ClaimView(claim, _UNKNOWN_GROUNDING, stances, scored=False)
    return ClaimView(claim, grounding, stances)


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".。")

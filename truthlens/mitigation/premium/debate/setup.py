"""Set up a debate: the claims of all answers as arguments, and which of them attack each other.

Nobody is asked and no text is read: everything is in the comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from truthlens.mitigation.premium.consensus.comparison import Comparison, Stance
from truthlens.mitigation.premium.debate.argumentation import ArgumentGraph

MOST_CLAIMS = 60
"""Claims that a debate can deal with; those of the first answer come first."""

CLEARLY = 0.2
"""By how much a claim must be better grounded to defeat another one that does not get to answer."""

GROUNDED = 0.5
"""Grounding from which the evidence rather bears a claim."""

Place = tuple[int, int]
"""A claim of a comparison: the index of its voice, and of its view there."""


@dataclass(frozen=True, slots=True)
class Position:
    """A claim that one or several voices make in words of their own.

    ``text`` is the wording of the first of ``holders``, ``grounding`` (0..1) the mean of all wordings that
    were scored, 0.5 and ``scored`` false where none was.
    """

    text: str
    grounding: float
    holders: tuple[Place, ...]
    scored: bool = True

    @property
    def is_grounded(self) -> bool:
        """Whether the evidence supports the claim more than not; false where that is unknown."""
        return self.scored and self.grounding >= GROUNDED

    @property
    def own(self) -> Place | None:
        """Where the first answer makes the claim, ``None`` where only others do."""
        return self.holders[0] if self.holders[0][0] == 0 else None


@dataclass(frozen=True, slots=True)
class Opening:
    """The positions, and the graph in which they are the arguments with the same indices."""

    positions: tuple[Position, ...]
    graph: ArgumentGraph


def opening(comparison: Comparison) -> Opening:
    """Return the positions of all voices with their conflicts.

    Voices that hold each other's claim, where these are aligned, hold one position: else an attack would hit
    one wording and leave the other. Two positions conflict where each voice disputes the other's claim; one
    that merely says more than the other is no conflict. The clearly better grounded one attacks, else both
    do.
    """
    groups = _groups(comparison)[:MOST_CLAIMS]
    positions = tuple(_position(comparison, group) for group in groups)
    of = {place: index for index, group in enumerate(groups) for place in group}
    attacks = frozenset(
        (one, other)
        for left, right in _conflicts(comparison, of)
        for one, other in ((left, right), (right, left))
        if positions[other].grounding < positions[one].grounding + CLEARLY
    )
    return Opening(positions, ArgumentGraph(tuple(position.text for position in positions), attacks))


def _position(comparison: Comparison, group: Sequence[Place]) -> Position:
    views = [comparison.views[voice][number] for voice, number in group]
    scored = [view for view in views if view.scored]
    grounding = fmean(view.grounding for view in scored or views)
    return Position(views[0].claim.text, grounding, tuple(group), scored=bool(scored))


def _groups(comparison: Comparison) -> list[list[Place]]:
    groups: list[list[Place]] = []
    of: dict[Place, list[Place]] = {}
    for voice, views in enumerate(comparison.views):
        for number, view in enumerate(views):
            place = (voice, number)
            for stance in view.stances:
                if (
                    stance.voice < voice
                    and stance.agrees
                    and _answered(comparison, place, stance) == "agrees"
                ):
                    group = of[stance.voice, stance.partner or 0]
                    if all(holder[0] != voice for holder in group):
                        group.append(place)
                        of[place] = group
                        break
            else:
                of[place] = [place]
                groups.append(of[place])
    return groups


def _conflicts(comparison: Comparison, of: Mapping[Place, int]) -> Iterator[tuple[int, int]]:
    for (voice, number), index in of.items():
        for stance in comparison.views[voice][number].stances:
            partner = of.get((stance.voice, stance.partner)) if stance.partner is not None else None
            if (
                partner is not None
                and partner != index
                and stance.disputes
                and _answered(comparison, (voice, number), stance) == "disputes"
            ):
                yield index, partner


def _answered(comparison: Comparison, place: Place, stance: Stance) -> str:
    """Return what the claim that a stance points at says in return: ``agrees``, ``disputes`` or nothing."""
    if stance.partner is None:
        return ""
    for back in comparison.views[stance.voice][stance.partner].stances:
        if back.voice == place[0] and back.partner == place[1]:
            return "agrees" if back.agrees else "disputes" if back.disputes else ""
    return ""

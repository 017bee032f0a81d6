"""Replace disputed claims by the same claim of a model that is more to be trusted on it.

Source: white paper 3.3.3 and 5.5.4, mechanism 3 (Finch-Zk). Pure.
"""

from __future__ import annotations

from truthlens.mitigation.premium.consensus.comparison import ClaimView, Comparison
from truthlens.mitigation.premium.consensus.result import Agreement, Pick, mixed, variants

TIE = 0.05
"""Trusts closer than this are no decision."""


def replacement(comparison: Comparison) -> Agreement:
    """Replace disputed claims of the first answer where another voice is more to be trusted on them.

    Trust is reliability × grounding. The variant must be grounded: one ungrounded claim is no better than
    another. A claim that is ungrounded and that no voice holds is removed; all others stay, those of which
    too little is known among them. Undecided are disputed claims that no majority holds and whose best
    variant is level with them.
    """
    choices: dict[int, Pick | None] = {}
    undecided: list[int] = []
    for place, view in enumerate(comparison.views[0]):
        own = trust(comparison, 0, view)
        rated = [
            (trust(comparison, pick.voice, comparison.views[pick.voice][pick.view]), pick)
            for pick in variants(comparison, view)
            if comparison.is_grounded(comparison.views[pick.voice][pick.view])
        ]
        best, pick = max(rated, key=lambda each: each[0], default=(0.0, None))
        if pick is not None and best > own + TIE:
            choices[place] = pick
        elif (
            view.stances
            and view.known
            and comparison.is_ungrounded(view)
            and not any(s.agrees for s in view.stances)
        ):
            choices[place] = None
        elif pick is not None and best >= own - TIE and comparison.votes(view) <= 0.5:
            undecided.append(place)
    return mixed(comparison, choices, undecided=undecided)


def trust(comparison: Comparison, voice: int, view: ClaimView) -> float:
    """Return how far a claim of a voice can be trusted, 0..1."""
    return comparison.voices[voice].weight * view.grounding

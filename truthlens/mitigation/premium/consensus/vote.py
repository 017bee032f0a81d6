"""Decide claims by segment majority vote: a claim stays if the voices and the evidence together support it.

Source: white paper 3.3.3 and 5.5.4, mechanism 1; product.md 9: the lone dissenter is not dropped by vote
alone. Pure.
"""

from __future__ import annotations

import math

from truthlens.mitigation.gain import logit
from truthlens.mitigation.premium.consensus.comparison import ClaimView, Comparison
from truthlens.mitigation.premium.consensus.result import Agreement, Pick, mixed, variants

VOTE_WEIGHT = 0.25
"""How much the log-odds of the vote count beside those of the evidence."""

TIE = 0.5
"""Beliefs closer than this are no decision."""

DOUBT = -1.0
"""Belief below which a claim that nobody has a better variant of is removed."""

TOPICAL = 0.3
"""Similarity to the nearest claim of the first answer from which a claim may be added to it."""

MOST_ADDITIONS = 3
_LEAST = 0.02


def segment_vote(comparison: Comparison, *, threshold: float) -> Agreement:
    """Decide the claims of the first answer one by one, and return the result.

    A claim is replaced by the variant of another voice that more speaks for; removed where little speaks for
    it and there is no such variant; undecided where it has a variant and both are level. What most voices
    hold and the first answer lacks is added if the evidence supports it and it stands beside a claim that
    both have.

    Args:
        comparison: the voices.
        threshold: the plan's: the response score (0..1) from which an answer is flagged.
    """
    choices: dict[int, Pick | None] = {}
    undecided: list[int] = []
    for place, view in enumerate(comparison.views[0]):
        own = belief(comparison, view, threshold=threshold)
        if own > 0.0 and comparison.votes(view) > 0.5:
            continue
        rated = [
            (belief(comparison, comparison.views[pick.voice][pick.view], threshold=threshold), pick)
            for pick in variants(comparison, view)
        ]
        best, pick = max(rated, key=lambda each: each[0], default=(-math.inf, None))
        if pick is not None and best > max(own + TIE, 0.0):
            choices[place] = pick
        elif own <= DOUBT:
            choices[place] = None
        elif abs(own - best) <= TIE:
            undecided.append(place)
    additions = _additions(comparison, threshold=threshold)
    return mixed(comparison, choices, additions=additions, undecided=undecided)


def belief(comparison: Comparison, view: ClaimView, *, threshold: float) -> float:
    """Return the belief in a claim, in log-odds: above 0 more for it than against it.

    ``logit(grounding) − logit(1 − threshold) + VOTE_WEIGHT · logit(vote)``, where ``vote`` is the share of
    voices that hold the claim, drawn half a vote towards a tie. A grounding that is unknown counts as one at
    the threshold, a voice of which it is unknown as half a vote. The three parts:

    * The evidence counts from the plan's own threshold: a claim that scores just there speaks neither way.
    * A vote of one half adds nothing, so that two voices that differ leave the decision to the evidence, and
      more than half speaks for the claim: the white paper's ``vote > 0.5`` where the evidence is level.
    * Models err together (white paper, theorem 2: what an ensemble gains vanishes as errors correlate), hence
      the small weight: a lone claim with good grounding outweighs any majority, and no majority saves a claim
      that the evidence clearly lacks.
    """
    unknown = sum(not stance.known for stance in view.stances)
    holders = comparison.votes(view) * len(comparison.voices) + 0.5 * unknown
    vote = (holders + 0.5) / (len(comparison.voices) + 1)
    evidence = (
        logit(view.grounding, least=_LEAST) - logit(1.0 - threshold, least=_LEAST) if view.scored else 0.0
    )
    return evidence + VOTE_WEIGHT * logit(vote, least=_LEAST)


def _additions(comparison: Comparison, *, threshold: float) -> list[tuple[int, Pick]]:
    found: list[tuple[int, Pick]] = []
    for voice in range(1, len(comparison.voices)):
        for place, view in enumerate(comparison.views[voice]):
            of = {stance.voice: stance for stance in view.stances}
            anchor = _anchor(comparison, voice, place)
            if (
                anchor is not None
                and of[0].silent
                and of[0].similarity >= TOPICAL
                and not view.claim.row
                and comparison.votes(view) > 0.5
                and belief(comparison, view, threshold=threshold) > -DOUBT
                and not any(pick.voice in of and of[pick.voice].agrees for _, pick in found)
            ):
                found.append((anchor, Pick(voice, place)))
    return found[:MOST_ADDITIONS]


def _anchor(comparison: Comparison, voice: int, place: int) -> int | None:
    """Return the first answer's view that the claim before this one is aligned with."""
    if place == 0:
        return None
    before = comparison.views[voice][place - 1]
    partner = next(stance.partner for stance in before.stances if stance.voice == 0)
    if partner is None or comparison.views[0][partner].claim.row:
        return None
    return partner

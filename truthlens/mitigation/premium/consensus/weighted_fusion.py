"""Weighted confidence fusion: the one answer that the others, weighed by their reliability, come nearest to.

It takes a whole answer as it is and mixes nothing. Source: white paper 3.3.3 and 5.5.4, mechanism 2. Pure.
"""

from __future__ import annotations

from truthlens.mitigation.premium.consensus.comparison import Comparison, Stance, Voice
from truthlens.mitigation.premium.consensus.result import Agreement

TIE = 1e-9
UNKNOWN_SCORE = 0.5
"""Response score of an answer that was not scored."""


def weighted_fusion(comparison: Comparison) -> Agreement:
    """Return the answer R with the greatest Σ wₘ · sim(R, Rₘ), unchanged; the first answer in case of ties.

    ``wₘ`` is reliability × (1 − response score), and the sum takes in R itself, so that of two answers that
    differ the more trusted one wins. Where another answer is level with the first, its contested claims are
    undecided.
    """
    weights = [confidence(voice) for voice in comparison.voices]
    count = len(weights)
    worth = [
        sum(weights[other] * similarity(comparison, one, other) for other in range(count))
        for one in range(count)
    ]
    best = max(range(count), key=lambda one: (worth[one] > worth[0] + TIE, worth[one]))
    best = best if worth[best] > worth[0] + TIE else 0
    level = best == 0 and any(abs(value - worth[0]) <= TIE for value in worth[1:])
    undecided = tuple(comparison.contested()) if level else ()
    reached = all(comparison.is_held(best, view) for view in comparison.views[best])
    text = comparison.voices[best].text
    return Agreement(text, reached and not undecided, undecided, replaced=text != comparison.voices[0].text)


def confidence(voice: Voice) -> float:
    """Return a voice's weight, 0..1: the model's reliability times the evidence's support of its answer."""
    score = voice.verdict.score
    return voice.weight * (1.0 - (UNKNOWN_SCORE if score is None else score))


def similarity(comparison: Comparison, one: int, other: int) -> float:
    """Return how far two answers say the same, 0..1: F1 of the shares of claims that the other holds.

    Claims that are held in part count in part; a disputed one counts nothing, and one whose support is
    unknown is left out. 1.0 where neither claims anything, 0.0 where nothing is known.
    """
    if one == other:
        return 1.0
    if not comparison.views[one] and not comparison.views[other]:
        return 1.0
    precision, recall = _share(comparison, one, other), _share(comparison, other, one)
    return 2.0 * precision * recall / (precision + recall) if precision + recall > 0.0 else 0.0


def _share(comparison: Comparison, one: int, other: int) -> float:
    stances = (stance for view in comparison.views[one] for stance in view.stances if stance.voice == other)
    held = [_credit(stance) for stance in stances if stance.known]
    return sum(held) / len(held) if held else 0.0


def _credit(stance: Stance) -> float:
    if stance.disputes or stance.support is None:
        return 0.0
    return stance.support if stance.agrees else stance.support * stance.similarity

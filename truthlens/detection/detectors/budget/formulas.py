"""Decide from two probabilities whether a claim is grounded, and from all claims what the answer's risk is. Pure.

``p1`` is how likely the claim is entailed with all evidence in sight, ``p0`` without the passages that it cites.
Source: evidence-budget, "Core Algorithm", and what was decided on it (``docs/budget.md``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.detection.detectors.budget.options import Method, Options

SURELY_NOT = 0.2
"""A claim whose ``p1`` is surely below this is contradicted or made up."""

FLAGGED = 0.6
"""The lowest score of an answer that is not grounded, and the threshold that is usual for flagging one."""

_SUPPORTED = 0.7
_EPSILON = 1e-12
_GROUNDED_MOST = 0.55
_CONTRADICTED_LEAST = 0.8
_ABOVE = 0.001
_UNLISTED = 0.5


def kl_bernoulli(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of two Bernoulli distributions in nats, both clamped to [1e-12, 1 - 1e-12]."""
    p, q = (max(_EPSILON, min(1.0 - _EPSILON, each)) for each in (p, q))
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))


def bits(nats: float) -> float:
    """Return the same amount of information in bits."""
    return nats / math.log(2.0)


@dataclass(frozen=True, slots=True)
class Grounding:
    """What a method says of one claim; the three figures of information are in nats.

    ``independent`` says that the claim is as good without the evidence.
    """

    grounded: bool
    confidence: float
    observed: float
    required: float
    independent: bool = False

    @property
    def gap(self) -> float:
        """What was observed beyond what is required."""
        return self.observed - self.required


def decide(p1: float, p0: float, *, cited: bool, options: Options, listed: bool = True) -> Grounding:
    """Return what the options' method says.

    Args:
        p1: with all evidence.
        p0: without the cited passages.
        cited: whether the claim cites a passage.
        options: the method and its limits.
        listed: whether both probabilities of YES were among those that the model gave.
    """
    match options.method:
        case Method.SEED:
            return seed(p1, p0, cited=cited, options=options)
        case Method.ORIGIN:
            return origin(p1, p0, options=options)
        case Method.DIRECTED:
            return directed(p1, p0, options=options, listed=listed)


def seed(p1: float, p0: float, *, cited: bool, options: Options) -> Grounding:
    """Return the source's own rule to the letter; its budget gap is reported and decides nothing."""
    use = max(0.0, _plain(p1 - p0))
    supported = p1 > _SUPPORTED
    if cited:
        confidence = min(1.0, _plain(use * 1.5 + (0.3 if supported else 0.0)))
    else:
        confidence = _plain(p1 * 0.7 if supported else p1 * 0.4)
    used = use > options.evidence_use if cited else True
    return Grounding(
        confidence > options.confidence and used, confidence, kl_bernoulli(p1, 0.5), kl_bernoulli(p1, p0)
    )


def origin(p1: float, p0: float, *, options: Options) -> Grounding:
    """Return the rule that the source goes back to: the evidence must give as many bits as the target needs.

    It has no direction: a claim that the evidence speaks against gets many bits as well.
    """
    observed, required = kl_bernoulli(p1, p0), kl_bernoulli(options.target, p0)
    return Grounding(observed >= required, p1, observed, required)


def directed(p1: float, p0: float, *, options: Options, listed: bool = True) -> Grounding:
    """Return the default rule: a claim has to be likely, and the evidence has to have made it so, or it needs none.

    A gain that points down is negative; it is enough where it reaches the target or is more than ``evidence_use``.
    """
    observed = math.copysign(kl_bernoulli(p1, p0), p1 - p0)
    independent = p0 >= options.target
    required = 0.0 if independent else kl_bernoulli(options.target, p0)
    enough = independent or observed >= required or _plain(p1 - p0) > options.evidence_use
    confidence = p1 if listed else p1 * _UNLISTED
    return Grounding(p1 > _SUPPORTED and enough, confidence, observed, required, independent)


def _plain(value: float) -> float:
    """Return a figure as it would be in decimals: 0.80 - 0.65 is 0.15 and not more."""
    return round(value, 12)


@dataclass(frozen=True, slots=True)
class Overall:
    """What the claims of an answer come to: the share of grounded ones, and the risk, 0..1."""

    grounded: bool
    ratio: float
    score: float


def overall(grounded: Sequence[bool], highest_p1: Sequence[float], *, grounded_ratio: float) -> Overall:
    """Return what the claims of an answer come to; there is at least one.

    The score is 0.6 or more exactly where too few claims are grounded or one is surely not entailed: below, it grows with the
    share of ungrounded claims up to 0.55, above from just over 0.6 to 1. One claim that is surely not entailed makes it 0.8 at
    least, for one wrong statement among many right ones is what a share would hide.

    Args:
        grounded: for each claim whether it is grounded.
        highest_p1: for each claim the most that its probability with all evidence can be.
        grounded_ratio: the share of grounded claims from which on the answer is grounded.
    """
    ratio = sum(grounded) / len(grounded)
    missing = 1.0 - ratio
    # 7 of 10 are 0.7 and not less.
    is_grounded = ratio >= grounded_ratio - 1e-9
    room = 1.0 - grounded_ratio
    if is_grounded:
        score = _GROUNDED_MOST * min(1.0, missing / room) if room > 0.0 else 0.0
    else:
        beyond = min(1.0, max(0.0, (missing - room) / (1.0 - room)))
        score = FLAGGED + _ABOVE + (1.0 - FLAGGED - _ABOVE) * beyond
    worst = min(highest_p1)
    if worst < SURELY_NOT:
        score = max(score, contradicted_score(worst))
    return Overall(is_grounded, ratio, min(1.0, score))


def contradicted_score(p1: float) -> float:
    """Return the score of a claim that is surely not entailed, from 0.8 at 0.2 to 1 at 0."""
    return _CONTRADICTED_LEAST + (1.0 - _CONTRADICTED_LEAST) * (1.0 - max(0.0, p1) / SURELY_NOT)

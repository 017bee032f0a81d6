"""Learn which mode to run per decision: Thompson sampling over Beta posteriors.

Each mode of a plan is an arm with a Beta distribution over its mean reward. ``choose`` draws once from every
feasible arm and takes the highest draw; ``learn`` adds the reward ``r`` as ``r`` of a success and ``1 - r``
of a failure. What was learned loses half of its weight every half-life, so an arm drifts back to its prior
and is tried again; and a store lets an arm add up to some hundred rewards only, so that under much traffic,
too, a change is soon noticed.

A store keeps only what was learned, never the priors: a changed price or half-life takes effect at once. This
module does no I/O, runs no mode and does not say what a result is worth (``reward``).

Source: white paper, section 3.4.3; Thompson 1933; Chapelle and Li 2011, *An Empirical Evaluation of Thompson
Sampling*.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import AutoSettings
from truthlens.mitigation.auto.reward import expected_reward

PRIOR_STRENGTH = 10.0
"""Rewards that a prior taken from the mode table counts as."""

# Both parameters of a Beta prior have to be above 0, however dear a mode is priced.
_LEAST_MEAN = 0.02


class ArmCounts(Protocol):
    """What was learned of one arm: decayed sums of rewards and of their complements, both at least 0."""

    @property
    def successes(self) -> float:
        """Sum of ``r``."""

    @property
    def failures(self) -> float:
        """Sum of ``1 - r``."""

    def decayed(self, at: float, half_life_s: float) -> ArmCounts:
        """Return the same arm at the later moment ``at``, in seconds of the bandit's clock."""


class ArmStore(Protocol):
    """Keeps what was learned, by decision and mode.

    No method raises, however the store fares, save cancellation.
    """

    async def counts(self, decision: str) -> Mapping[Mode, ArmCounts]:
        """Return what was learned for a decision, as fresh as possible; modes never tried are left out."""

    def known(self, decision: str) -> Mapping[Mode, ArmCounts]:
        """Return what this process already knows for a decision, without waiting."""

    async def add(self, decision: str, mode: Mode, reward: float, *, at: float, half_life_s: float) -> None:
        """Add a reward (0..1) that came at ``at``, after decaying what is there."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A mode's Beta distribution over its mean reward; both are above 0."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """The reward to expect, 0..1."""
        return self.alpha / (self.alpha + self.beta)


class Bandit:
    """Chooses a mode for a flagged answer, and learns from what came of it.

    An answer that was not flagged needs no mode: nothing is to be chosen or learned for it. Nor is anything
    to be learned where the client went away or the delivered answer was not scored.

    Args:
        store: where what was learned is kept.
        clock: seconds since the epoch.
        rng: source of the draws.
    """

    def __init__(
        self, store: ArmStore, *, clock: Callable[[], float] = time.time, rng: random.Random | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311 - chance, not secrecy
        self._settings: dict[str, AutoSettings] = {}

    async def choose(self, plan: Plan) -> Mode:
        """Choose the mode to run for one flagged answer of a plan of mode auto.

        Raises:
            ValueError: none of the plan's modes is feasible.
        """
        self._settings[plan.decision] = plan.auto
        modes = feasible_modes(plan)
        if not modes:
            raise ValueError(f"decision {plan.decision!r} has no feasible mode to choose from")
        if len(modes) == 1:
            return modes[0]
        learned = await self._store.counts(plan.decision)
        return choose(self._arms(modes, plan.auto, learned), self._rng)

    async def learn(self, plan: Plan, mode: Mode, reward: float) -> None:
        """Record the value of the mode's result, or a reviewer's value of it (``reward.review_reward``).

        Raises:
            ValueError: the reward is not in 0..1.
        """
        if not 0.0 <= reward <= 1.0:
            raise ValueError(f"reward is {reward}, expected 0 to 1")
        self._settings[plan.decision] = plan.auto
        await self._store.add(
            plan.decision, mode, reward, at=self._clock(), half_life_s=plan.auto.half_life_s
        )

    def snapshot(self) -> Mapping[str, Mapping[Mode, Arm]]:
        """Return the arms of every decision seen so far, as of now, by decision and mode; for metrics."""
        return {
            decision: self._arms(settings.modes, settings, self._store.known(decision))
            for decision, settings in self._settings.items()
        }

    def keep(self, decisions: Collection[str]) -> None:
        """Leave all other decisions out of ``snapshot``, for those that a reloaded policy no longer has."""
        self._settings = {name: each for name, each in self._settings.items() if name in decisions}

    def _arms(
        self, modes: Collection[Mode], settings: AutoSettings, learned: Mapping[Mode, ArmCounts]
    ) -> dict[Mode, Arm]:
        now = self._clock()
        return {mode: posterior(mode, settings, learned.get(mode), now=now) for mode in modes}


def choose(arms: Mapping[Mode, Arm], rng: random.Random) -> Mode:
    """Choose the mode with the highest of one draw per arm; ``arms`` is not empty."""
    draws = {mode: rng.betavariate(arm.alpha, arm.beta) for mode, arm in arms.items()}
    return max(draws, key=draws.__getitem__)


def posterior(mode: Mode, settings: AutoSettings, learned: ArmCounts | None, *, now: float) -> Arm:
    """Return the arm of a mode: its prior, and what remains by ``now`` of what was learned."""
    before = prior(mode, settings)
    if learned is None:
        return before
    left = learned.decayed(now, settings.half_life_s)
    return Arm(before.alpha + left.successes, before.beta + left.failures)


def prior(mode: Mode, settings: AutoSettings) -> Arm:
    """Return the arm of a mode of which only the mode table is known, at the plan's prices.

    A mode that is not in the table starts uniform.
    """
    mean = expected_reward(mode, settings)
    if mean is None:
        return Arm(1.0, 1.0)
    mean = min(1.0 - _LEAST_MEAN, max(_LEAST_MEAN, mean))
    return Arm(PRIOR_STRENGTH * mean, PRIOR_STRENGTH * (1.0 - mean))


def feasible_modes(plan: Plan) -> tuple[Mode, ...]:
    """Return the plan's modes that its configuration allows: premium needs a verification model."""
    return tuple(
        mode for mode in plan.auto.modes if mode is not Mode.PREMIUM or plan.premium.verification_models
    )

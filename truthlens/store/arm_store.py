"""Keep what mode auto has learned in the memory of one process.

Knows nothing of priors, choices or what a reward means: it adds up and lets fade. Nothing survives the
process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from truthlens.core.records.enums import Mode

MOST_DECISIONS = 1000
"""Decisions that are remembered; the ones unused for longest are forgotten, for instance after renames."""

MOST_REWARDS = 200.0
"""What an arm's counts add up to at most, so that under much traffic, too, a change is noticed within some hundred."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Decayed sums of rewards (``successes``) and of complements (``failures``), as of ``at`` (seconds)."""

    successes: float = 0.0
    failures: float = 0.0
    at: float = 0.0

    def decayed(self, at: float, half_life_s: float) -> Counts:
        """Return the arm decayed to the later moment ``at``; an earlier one changes nothing."""
        left = 0.5 ** (max(0.0, at - self.at) / half_life_s)
        return Counts(self.successes * left, self.failures * left, max(at, self.at))

    def plus(self, reward: float, *, at: float, half_life_s: float, most: float = MOST_REWARDS) -> Counts:
        """Return the arm with one more reward (0..1) that came at ``at``, before or after ``self.at``.

        Up to ``most`` rewards their order does not matter; beyond it, each pushes a share of the older ones
        out.
        """
        before = self.decayed(at, half_life_s)
        weight = 0.5 ** ((before.at - at) / half_life_s)
        successes = before.successes + weight * reward
        failures = before.failures + weight * (1.0 - reward)
        total = successes + failures
        kept = most / total if total > most else 1.0
        return Counts(kept * successes, kept * failures, before.at)


class MemoryArms:
    """The arm store of a single process.

    Args:
        most_decisions: decisions that are remembered.
        most_rewards: what an arm adds up to at most; infinite for no bound.
    """

    def __init__(self, *, most_decisions: int = MOST_DECISIONS, most_rewards: float = MOST_REWARDS) -> None:
        self._most_decisions = most_decisions
        self._most_rewards = most_rewards
        self._learned: OrderedDict[str, dict[Mode, Counts]] = OrderedDict()

    async def counts(self, decision: str) -> Mapping[Mode, Counts]:
        """Return what was learned for a decision; modes never tried are left out."""
        return self.known(decision)

    def known(self, decision: str) -> Mapping[Mode, Counts]:
        """Return the same, without waiting."""
        return MappingProxyType(dict(self._learned.get(decision, {})))

    async def add(self, decision: str, mode: Mode, reward: float, *, at: float, half_life_s: float) -> None:
        """Add a reward (0..1) that came at ``at``, after decaying what is there."""
        learned = self._learned.setdefault(decision, {})
        learned[mode] = learned.get(mode, Counts()).plus(
            reward, at=at, half_life_s=half_life_s, most=self._most_rewards
        )
        self._learned.move_to_end(decision)
        if len(self._learned) > self._most_decisions:
            self._learned.popitem(last=False)

"""Count the scores of the last 24 hours, decision by decision, for the console; bounded, figures and names alone.

Prometheus keeps these figures for longer; the console must show them without it, as they are needed to choose a threshold.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from truthlens.core.records.enums import Status
from truthlens.core.records.outcome import Outcome

BINS = 50
"""Equal parts of 0..1 in which scores are counted; the tenths are borders of them."""
HOURS = 24
_HOUR_S = 3600.0
_MOST_DECISIONS = 1000
# A score that was computed as 0.3 may be a little less.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ScoreFigures:
    """Answers of one decision in the last 24 hours, as the backend gave them, each choice by itself.

    ``bins`` counts scores, by fiftieths. ``flagged`` is how many of them reached the threshold that was in force then.
    ``unchecked`` counts answers without a score, ``partial`` those with one that were not wholly checked, by reason.
    """

    bins: tuple[int, ...] = (0,) * BINS
    flagged: int = 0
    unchecked: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    partial: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def scored(self) -> int:
        """Answers that have a score."""
        return sum(self.bins)

    def reaching(self, threshold: float) -> int:
        """Return how many scores are at ``threshold`` or above, to the fiftieth below it."""
        return sum(self.bins[_bin(threshold) :]) if threshold <= 1.0 else 0


class _Hour:
    """The counts of one hour."""

    __slots__ = ("bins", "flagged", "partial", "unchecked")

    def __init__(self) -> None:
        self.bins = [0] * BINS
        self.flagged = 0
        self.unchecked: Counter[str] = Counter()
        self.partial: Counter[str] = Counter()


class _Decision:
    """The hours of one decision by their number; ``rate`` is the one that its scores are at."""

    __slots__ = ("hours", "rate")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.hours: dict[int, _Hour] = {}


class ScoreHistory:
    """The scores of each decision; not safe in several threads.

    Args:
        clock: seconds of the day's time.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._decisions: dict[str, _Decision] = {}

    def observe(self, outcome: Outcome) -> None:
        """Count the answers of one ended exchange. What was counted at another ``expected_rate`` is forgotten."""
        plan, now = outcome.plan, self._now()
        found = self._decisions.get(plan.decision)
        if found is None or found.rate != plan.expected_rate:
            if found is None and len(self._decisions) >= _MOST_DECISIONS:
                return
            found = self._decisions[plan.decision] = _Decision(plan.expected_rate)
        hour = found.hours.get(now)
        if hour is None:
            found.hours = {number: each for number, each in found.hours.items() if number > now - HOURS}
            hour = found.hours[now] = _Hour()
        for verdict in outcome.first or (outcome.verdict,):
            reason = verdict.reason.value if verdict.reason is not None else ""
            if verdict.score is None:
                hour.unchecked[reason] += 1
                continue
            hour.bins[_bin(verdict.score)] += 1
            hour.flagged += verdict.flagged
            if verdict.status is Status.PARTIAL:
                hour.partial[reason] += 1

    def keep(self, decisions: Iterable[str]) -> None:
        """Forget every decision but these: those of the policy that is in force from now on."""
        known = frozenset(decisions)
        self._decisions = {name: each for name, each in self._decisions.items() if name in known}

    def figures(self, decision: str) -> ScoreFigures:
        """Return the figures of the last 24 hours, the current one included; zeros for a decision without answers."""
        found, now = self._decisions.get(decision), self._now()
        hours = [each for number, each in found.hours.items() if number > now - HOURS] if found else []
        return ScoreFigures(
            bins=tuple(sum(counts) for counts in zip(*(hour.bins for hour in hours), strict=True))
            or (0,) * BINS,
            flagged=sum(hour.flagged for hour in hours),
            unchecked=dict(sum((hour.unchecked for hour in hours), Counter()).most_common()),
            partial=dict(sum((hour.partial for hour in hours), Counter()).most_common()),
        )

    def _now(self) -> int:
        return int(self._clock() // _HOUR_S)


def _bin(score: float) -> int:
    return max(0, min(BINS - 1, int(score * BINS + _ROUNDING)))

"""Count what the exchanges of the last 60 minutes came to, for the console's first page; bounded, figures alone."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from truthlens.core.records.enums import Action
from truthlens.core.records.outcome import Outcome

_MINUTES = 60
# Latencies are counted in steps of 10 %, from half a millisecond on.
_SHORTEST_S, _STEP, _MOST_STEPS = 0.0005, 1.1, 150


@dataclass(frozen=True, slots=True)
class HourFigures:
    """Exchanges of the last 60 minutes.

    ``checked`` have a score, ``flagged`` of them reached the threshold as the backend answered; ``corrected`` and ``blocked`` are
    actions. ``unchecked`` counts those without a score by reason. ``calls`` and ``tokens`` are those of models that were asked,
    ``cost_usd`` is what those with a price cost and ``unpriced`` how many calls had none. ``p50_s`` and ``p95_s`` are added latency
    to 5 %, ``None`` where there was no exchange.
    """

    exchanges: int = 0
    checked: int = 0
    flagged: int = 0
    corrected: int = 0
    blocked: int = 0
    unchecked: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    calls: int = 0
    unpriced: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    p50_s: float | None = None
    p95_s: float | None = None


class _Minute:
    """The counts of one minute; ``counts`` has names of ``HourFigures``."""

    __slots__ = ("cost_usd", "counts", "latencies", "number", "unchecked")

    def __init__(self, number: int) -> None:
        self.number = number
        self.counts: Counter[str] = Counter()
        self.unchecked: Counter[str] = Counter()
        self.latencies: Counter[int] = Counter()
        self.cost_usd = 0.0


class LastHour:
    """The minutes of the last hour; not safe in several threads.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minutes: deque[_Minute] = deque(maxlen=_MINUTES)

    def observe(self, outcome: Outcome) -> None:
        """Count one ended exchange."""
        now = int(self._clock() // 60)
        if not self._minutes or self._minutes[-1].number != now:
            self._minutes.append(_Minute(now))
        minute, counts = self._minutes[-1], self._minutes[-1].counts
        first = outcome.first or (outcome.verdict,)
        counts["exchanges"] += 1
        if any(each.score is not None for each in first):
            counts["checked"] += 1
        else:
            reason = outcome.verdict.reason
            minute.unchecked[reason.value if reason else ""] += 1
        counts["flagged"] += any(each.flagged for each in first)
        counts["corrected"] += outcome.action in (Action.REFINE, Action.REPLACE)
        counts["blocked"] += outcome.action is Action.BLOCK
        minute.latencies[_step(outcome.latency_s)] += 1
        for call in outcome.calls_made:
            counts["calls"] += 1
            counts["tokens"] += call.usage.total_tokens
            counts["unpriced"] += call.cost_usd is None
            minute.cost_usd += call.cost_usd or 0.0

    def figures(self) -> HourFigures:
        """Return the figures of the last 60 minutes, the current one included."""
        now = int(self._clock() // 60)
        minutes = [each for each in self._minutes if each.number > now - _MINUTES]
        latencies = sum((each.latencies for each in minutes), Counter[int]())
        return HourFigures(
            **sum((each.counts for each in minutes), Counter[str]()),
            unchecked=dict(sum((each.unchecked for each in minutes), Counter[str]()).most_common()),
            cost_usd=math.fsum(each.cost_usd for each in minutes),
            p50_s=_quantile(latencies, 0.5),
            p95_s=_quantile(latencies, 0.95),
        )


def _step(seconds: float) -> int:
    if seconds <= _SHORTEST_S:
        return 0
    return min(_MOST_STEPS, 1 + int(math.log(seconds / _SHORTEST_S, _STEP)))


def _quantile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the middle of the step that holds the quantile; half of the shortest time for what is below it."""
    wanted, so_far = share * sum(counts.values()), 0
    for step in sorted(counts):
        so_far += counts[step]
        if so_far >= wanted:
            return float(_SHORTEST_S * _STEP ** (step - 0.5)) if step else _SHORTEST_S / 2
    return None

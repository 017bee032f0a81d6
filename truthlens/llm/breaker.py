"""A circuit breaker: a model that fails again and again is left alone for a while, then tried with one call.

It only counts. What is a failure, and that nothing is sent while it is open, is the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure


class Result(Enum):
    """What an attempt shows about its model: it works, it does not, or nothing."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave for one attempt. ``era`` identifies the state of the breaker that gave it."""

    era: int
    probe: bool = False


class Breaker:
    """Closed until ``most_failures`` attempts in a row failed.

    Then open for ``cooldown_s``, then one probe at a time.

    A probe that fails opens it again for twice as long, up to ``longest_cooldown_s``; one that succeeds
    closes it.

    Args:
        clock: seconds, monotonic.
        most_failures: in a row, 1 or more.
        cooldown_s: the first one.
        longest_cooldown_s: bound of the doubling.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        most_failures: int = 5,
        cooldown_s: float = 10.0,
        longest_cooldown_s: float = 60.0,
    ) -> None:
        self._clock = clock
        self._most_failures = most_failures
        self._first_cooldown_s = cooldown_s
        self._longest_cooldown_s = longest_cooldown_s
        self._cooldown_s = cooldown_s
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False
        self._era = 0

    def admit(self) -> Permit:
        """Leave for one attempt, to be settled when it has ended.

        Raises:
            CallError: ``circuit-open``.
        """
        if self._open_until is None:
            return Permit(self._era)
        if self._probing or self._clock() < self._open_until:
            raise CallError(CallFailure.CIRCUIT_OPEN)
        self._probing = True
        return Permit(self._era, probe=True)

    def settle(self, permit: Permit, result: Result) -> None:
        """Count how the attempt ended. One that began before the state last changed does not count."""
        if permit.era != self._era:
            return
        if permit.probe:
            self._settle_probe(result)
        elif result is Result.GOOD:
            self._failures = 0
        elif result is Result.BAD:
            self._failures += 1
            if self._failures >= self._most_failures:
                self._open(self._first_cooldown_s)

    def _settle_probe(self, result: Result) -> None:
        if result is Result.UNKNOWN:
            self._probing = False
        elif result is Result.GOOD:
            self._era += 1
            self._open_until, self._probing, self._failures = None, False, 0
        else:
            self._open(min(self._cooldown_s * 2, self._longest_cooldown_s))

    def _open(self, cooldown_s: float) -> None:
        self._era += 1
        self._cooldown_s = cooldown_s
        self._open_until = self._clock() + cooldown_s
        self._probing = False

"""One deadline that is carried through an exchange."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on a monotonic clock, in seconds."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """The moment ``seconds`` from now."""
        return cls(clock() + seconds, clock)

    @property
    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.clock())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.remaining_s <= 0.0

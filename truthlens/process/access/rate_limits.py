"""How often a client or a user may ask: token buckets in memory."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from truthlens.process.access.rules import AccessError

FAILED_LOGINS_PER_MINUTE = 10
WRITES_PER_MINUTE = 120
READS_PER_MINUTE = 1200
_MOST_KEYS = 10_000


class RateLimit:
    """Allows each key ``per_minute`` events a minute, and as many at once.

    The 10,000 keys that were used last are remembered; one that is forgotten starts anew.

    Args:
        per_minute: how many events, more than 0.
        clock: seconds that only grow.
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self._most, self._per_s, self._clock = float(per_minute), per_minute / 60, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, key: str) -> None:
        """Refuse a key that has none left.

        Raises:
            AccessError: 429, with the seconds to wait in ``Retry-After``.
        """
        missing = 1 - self._left(key)
        if missing > 0:
            wait_s = math.ceil(missing / self._per_s)
            message = f"too many requests; try again in {wait_s} s"
            raise AccessError(429, message, "rate_limit", {"retry-after": str(wait_s)})

    def count(self, key: str) -> None:
        """Take one event off what ``key`` has left."""
        self._buckets[key] = (max(0.0, self._left(key) - 1), self._clock())
        self._buckets.move_to_end(key)
        if len(self._buckets) > _MOST_KEYS:
            self._buckets.popitem(last=False)

    def take(self, *keys: str) -> None:
        """Check and count one event of each key.

        Raises:
            AccessError: 429; nothing was counted.
        """
        for key in keys:
            self.check(key)
        for key in keys:
            self.count(key)

    def _left(self, key: str) -> float:
        left, at = self._buckets.get(key, (self._most, 0.0))
        return min(self._most, left + (self._clock() - at) * self._per_s)

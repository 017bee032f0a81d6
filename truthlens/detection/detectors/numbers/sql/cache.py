"""Remember values for a while: bounded, the least recently used go first. Safe in several threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class TtlCache(Generic[_T]):
    """The cache.

    Args:
        entries: how many there may be; 0 for none.
        ttl_s: for how long one is good.
        clock: seconds, monotonic.
    """

    def __init__(self, entries: int, ttl_s: float, clock: Callable[[], float]) -> None:
        self._entries = entries if ttl_s > 0 else 0
        self._ttl_s = ttl_s
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[float, _T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> _T | None:
        """Return what was put under ``key``, ``None`` where there is nothing or it is too old."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            if self._clock() >= found[0]:
                del self._kept[key]
                return None
            self._kept.move_to_end(key)
            return found[1]

    def put(self, key: Hashable, value: _T) -> None:
        """Keep ``value`` under ``key``."""
        if self._entries == 0:
            return
        with self._lock:
            self._kept[key] = (self._clock() + self._ttl_s, value)
            self._kept.move_to_end(key)
            while len(self._kept) > self._entries:
                self._kept.popitem(last=False)

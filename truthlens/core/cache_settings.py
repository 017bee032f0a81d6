"""How results of models are kept; a policy's ``cache`` sets it, ``store.result_cache`` keeps to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Bounds of the kept results of models.

    Args:
        enabled: false keeps nothing, and forgets what this process has kept.
        max_entries: results in the memory of one process.
        max_bytes: what they take there together, about.
        ttl_s: for how many seconds a result is good.
        redis: whether the server's Redis, where it has one, keeps them too, for all processes.
    """

    enabled: bool = True
    max_entries: int = 10_000
    max_bytes: int = 64 * 1024 * 1024
    ttl_s: float = 3600.0
    redis: bool = True

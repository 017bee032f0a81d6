"""How results of models are kept; a policy's ``cache`` sets it, ``store.result_cache`` keeps to it."""

from __future__ import annotations

from pydantic import Field

from truthlens.core.records.settings import Section


class CacheSettings(Section):
    """How the results of detectors that ask models are kept, so that what was asked before is not asked again."""

    enabled: bool = Field(default=True, description="false: nothing is kept, every result is asked for.")
    max_entries: int = Field(
        default=10_000, ge=1, le=1_000_000, description="Results in the memory of one process."
    )
    max_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=64 * 1024,
        le=16 * 1024 * 1024 * 1024,
        description="Memory that they may take together; the least recently used go first.",
    )
    ttl_s: float = Field(
        default=3600.0,
        ge=1,
        le=30 * 86_400,
        allow_inf_nan=False,
        description="Seconds that a result is good for.",
    )
    redis: bool = Field(
        default=True,
        description="false: the server's Redis (--redis), where it has one, keeps no results; they may quote texts of users "
        "and models.",
    )

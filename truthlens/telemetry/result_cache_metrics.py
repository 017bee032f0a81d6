"""Bring ``truthlens_result_cache_*`` up to date whenever somebody reads the metrics."""

from __future__ import annotations

from collections.abc import Callable

from truthlens.store.result_cache import CachedResults, Event
from truthlens.telemetry.metrics import Metrics

_SHOWN = (
    *(Event(result, "memory") for result in ("hit", "miss", "shared", "unkept")),
    *(Event(result, "redis") for result in ("hit", "miss", "error")),
)


def result_cache_metrics(cache: CachedResults, signals: Metrics) -> Callable[[], None]:
    """Return what ``Metrics.on_scrape`` calls to count what ``cache`` did since the last time."""
    told = dict.fromkeys(_SHOWN, 0)
    for event in _SHOWN:
        signals.result_cache.labels(event.tier, event.result)

    def collect() -> None:
        for event, count in cache.events().items():
            signals.result_cache.labels(event.tier, event.result).inc(count - told[event])
            told[event] = count
        signals.result_cache_entries.set(cache.entries)
        signals.result_cache_bytes.set(cache.size)

    return collect

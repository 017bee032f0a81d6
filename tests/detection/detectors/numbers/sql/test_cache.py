"""The cache forgets by age and by use."""

from __future__ import annotations

from truthlens.detection.detectors.numbers.sql.cache import TtlCache


def test_entries_age() -> None:
    """An entry is good until its time is over."""
    now = [0.0]
    cache: TtlCache[int] = TtlCache(2, 10.0, lambda: now[0])
    cache.put("a", 1)
    now[0] = 9.9
    assert cache.get("a") == 1
    now[0] = 10.0
    assert cache.get("a") is None
    assert len(cache) == 0


def test_the_least_recently_used_entry_goes_first() -> None:
    """There are never more entries than allowed."""
    cache: TtlCache[int] = TtlCache(2, 10.0, lambda: 0.0)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_a_cache_may_be_switched_off() -> None:
    """No entries, or no time: nothing is kept."""
    for entries, ttl_s in ((0, 10.0), (5, 0.0)):
        cache: TtlCache[int] = TtlCache(entries, ttl_s, lambda: 0.0)
        cache.put("a", 1)
        assert cache.get("a") is None

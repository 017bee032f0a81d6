"""Results that models gave, in memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.cache_settings import CacheSettings
from truthlens.detection.interfaces import ResultCache
from truthlens.store.result_cache import ENTRY_BYTES, CachedResults, CacheEvent, Found, key_of
from truthlens.telemetry.metrics import Metrics, result_cache_metrics

PREFIX = b"truthlens-result/1\n"
PARTS = st.lists(st.text(alphabet=st.characters()), max_size=5)


class Model:
    """Gives a value, and counts how often it is asked."""

    def __init__(self, value: object = "yes", *, fails: int = 0) -> None:
        self.value = value
        self.fails = fails
        self.asked = 0
        self.free = asyncio.Event()
        self.free.set()

    async def __call__(self) -> object:
        self.asked += 1
        number = self.asked
        await self.free.wait()
        if number <= self.fails:
            raise OSError(f"attempt {number}")
        return self.value


class Shelf:
    """A shared tier in a dictionary."""

    def __init__(self, kept: dict[str, Found] | None = None) -> None:
        self.kept = kept or {}
        self.errors = 0
        self.put_keys: list[str] = []

    async def get(self, key: str) -> Found | None:
        await asyncio.sleep(0)
        return self.kept.get(key)

    def put(self, key: str, value: bytes, *, ttl_s: float) -> None:
        self.put_keys.append(key)
        self.kept[key] = Found(value, ttl_s)


def figures(cache: CachedResults) -> dict[str, int]:
    return {f"{tier} {result}": count for (result, tier), count in cache.events().items() if count}


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def asking(
    cache: CachedResults, count: int, model: Callable[[], Awaitable[object]]
) -> list[asyncio.Task[object]]:
    return [asyncio.create_task(cache.of(["a"], model)) for _ in range(count)]


async def test_what_was_asked_before_is_not_asked_again() -> None:
    cache, model = CachedResults(), Model({"verdict": ["no", 0.5, None, True, "\ud800 中"]})
    as_protocol: ResultCache = cache
    first = await as_protocol.of(["m", "v1", "claim"], model)
    assert first == await cache.of(("m", "v1", "claim"), model) == model.value
    assert model.asked == 1
    await cache.of(["m", "v2", "claim"], model)
    assert model.asked == 2
    assert figures(cache) == {"memory miss": 2, "memory hit": 1}


async def test_every_caller_has_a_copy_of_its_own_and_all_have_the_same() -> None:
    cache, model = CachedResults(), Model({"spans": (1, 2)})
    for _ in range(3):
        found = await cache.of(["a"], model)
        assert found == {"spans": [1, 2]}
        found["spans"].append(3)  # type: ignore[index]


async def test_none_is_a_result() -> None:
    cache, model = CachedResults(), Model(None)
    assert [await cache.of(["a"], model) for _ in range(2)] == [None, None]
    assert model.asked == 1


async def test_the_least_recently_used_result_goes_first() -> None:
    cache, model = CachedResults(CacheSettings(max_entries=2)), Model()
    for part in ("a", "b", "a", "c", "a", "c"):
        await cache.of([part], model)
    assert (model.asked, cache.entries) == (3, 2)
    await cache.of(["b"], model)
    assert model.asked == 4


async def test_results_take_no_more_memory_than_they_may() -> None:
    size = len(PREFIX) + len('"xxxxxxxxxx"') + ENTRY_BYTES
    cache, model = CachedResults(CacheSettings.model_construct(max_bytes=3 * size + 1)), Model("x" * 10)
    for number in range(10):
        await cache.of([str(number)], model)
        assert cache.size == cache.entries * size <= 3 * size
    assert cache.entries == 3


async def test_a_result_is_good_for_a_time_only() -> None:
    now = [100.0]
    cache, model = CachedResults(CacheSettings(ttl_s=10.0), clock=lambda: now[0]), Model()
    await cache.of(["a"], model)
    now[0] = 109.9
    await cache.of(["a"], model)
    assert model.asked == 1
    now[0] = 110.0
    await cache.of(["a"], model)
    assert (model.asked, cache.entries) == (2, 1)


@pytest.mark.parametrize(
    "value", ["x" * 101, float("nan"), {1j}, 10**5000], ids=["large", "nan", "set", "digits"]
)
async def test_what_is_too_large_or_no_json_is_given_and_not_kept(value: object) -> None:
    cache, model = CachedResults(shared=Shelf(), most_value_bytes=100), Model(value)
    for _ in range(2):
        found = await cache.of(["a"], model)
        assert found is value or found == value
    assert (model.asked, cache.entries, cache.size) == (2, 0, 0)
    assert figures(cache) == {"memory miss": 2, "memory unkept": 2, "redis miss": 2}


async def test_a_result_nested_without_end_is_given_and_not_kept() -> None:
    endless: list[object] = []
    endless.append(endless)
    cache = CachedResults()
    assert await cache.of(["a"], Model(endless)) is endless
    assert cache.entries == 0


async def test_those_who_ask_at_the_same_time_share_one_computation() -> None:
    cache, model = CachedResults(), Model(["yes"])
    model.free.clear()
    tasks = asking(cache, 5, model)
    await settle()
    model.free.set()
    found = await asyncio.gather(*tasks)
    assert found == [["yes"]] * 5
    assert len({id(each) for each in found}) == 5
    assert model.asked == 1
    assert figures(cache) == {"memory miss": 1, "memory shared": 4}


async def test_those_who_wait_for_a_result_that_is_not_kept_get_it_too() -> None:
    cache, model = CachedResults(most_value_bytes=3), Model("long enough")
    model.free.clear()
    tasks = asking(cache, 3, model)
    await settle()
    model.free.set()
    assert await asyncio.gather(*tasks) == ["long enough"] * 3
    assert model.asked == 1


async def test_if_the_one_that_computes_is_cancelled_another_one_computes() -> None:
    cache, model = CachedResults(), Model()
    model.free.clear()
    first, second, *others = asking(cache, 5, model)
    await settle()
    first.cancel()
    await settle()
    assert (first.cancelled(), model.asked) == (True, 2)
    second.cancel()
    await settle()
    assert (second.cancelled(), model.asked) == (True, 3)
    model.free.set()
    assert await asyncio.gather(*others) == ["yes"] * 3
    assert model.asked == 3


async def test_one_that_waits_may_be_cancelled_and_nobody_else_notices() -> None:
    cache, model = CachedResults(), Model()
    model.free.clear()
    first, waiting, other = asking(cache, 3, model)
    await settle()
    waiting.cancel()
    await settle()
    model.free.set()
    assert await asyncio.gather(first, other) == ["yes"] * 2
    assert waiting.cancelled()
    assert model.asked == 1


async def test_one_whose_time_is_up_leaves_the_others_theirs() -> None:
    cache, model = CachedResults(), Model()
    model.free.clear()

    async def hurried() -> object:
        async with asyncio.timeout(0.02):
            return await cache.of(["a"], model)

    first = asyncio.create_task(hurried())
    await settle()
    (second,) = asking(cache, 1, model)
    with pytest.raises(TimeoutError):
        await first
    await settle()
    model.free.set()
    assert await second == "yes"
    assert model.asked == 2


async def test_an_exception_is_the_callers_own_and_the_others_compute_at_once() -> None:
    cache, model = CachedResults(), Model(fails=1)
    model.free.clear()
    tasks = asking(cache, 4, model)
    await settle()
    model.free.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found[0], OSError)
    assert found[1:] == ["yes"] * 3
    assert model.asked == 4
    assert await cache.of(["a"], model) == "yes"
    assert model.asked == 4


async def test_nobody_waits_for_more_than_one_failure_of_another() -> None:
    cache, model = CachedResults(), Model(fails=100)
    model.free.clear()
    tasks = asking(cache, 4, model)
    await settle()
    model.free.set()
    await settle()
    model.free.clear()
    assert model.asked == 4
    model.free.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(str(each) for each in found) == [f"attempt {number}" for number in range(1, 5)]
    assert cache.entries == 0
    model.fails = 0
    assert await cache.of(["a"], model) == "yes"


async def test_nothing_is_left_of_computations_that_ended() -> None:
    cache = CachedResults()
    await cache.of(["a"], Model())
    with pytest.raises(OSError, match="attempt 1"):
        await cache.of(["b"], Model(fails=1))
    assert cache._flights == {}


async def test_settings_that_change_count_at_once() -> None:
    now = [0.0]
    cache, model = CachedResults(clock=lambda: now[0]), Model()
    for number in range(6):
        await cache.of([str(number)], model)
    cache.use(CacheSettings(max_entries=4))
    assert cache.entries == 4
    cache.use(CacheSettings.model_construct(max_bytes=2 * (cache.size // 4)))
    assert cache.entries == 2
    cache.use(CacheSettings(ttl_s=5.0))
    now[0] = 5.0
    await cache.of(["5"], model)
    assert model.asked == 7
    cache.use(CacheSettings(enabled=False))
    assert (cache.entries, cache.size) == (0, 0)
    for _ in range(2):
        await cache.of(["5"], model)
    assert (model.asked, cache.entries) == (9, 0)


async def test_a_result_that_comes_after_the_cache_was_disabled_is_not_kept() -> None:
    shelf, model = Shelf(), Model()
    cache = CachedResults(shared=shelf)
    model.free.clear()
    (task,) = asking(cache, 1, model)
    await settle()
    cache.use(CacheSettings(enabled=False))
    model.free.set()
    assert await task == "yes"
    assert (cache.entries, shelf.put_keys) == (0, [])


async def test_the_shared_tier_is_asked_once_and_then_memory() -> None:
    shelf, model = Shelf(), Model()
    await CachedResults(shared=shelf).of(["a"], model)
    other = CachedResults(shared=shelf)
    assert [await other.of(["a"], model) for _ in range(2)] == ["yes", "yes"]
    assert model.asked == 1
    assert figures(other) == {"memory miss": 1, "redis hit": 1, "memory hit": 1}


async def test_what_comes_from_the_shared_tier_is_good_for_what_is_left_of_its_time() -> None:
    now = [0.0]
    shelf, model = Shelf({key_of(["a"]): Found(PREFIX + b'"old"', 2.0)}), Model("new")
    cache = CachedResults(shared=shelf, clock=lambda: now[0])
    assert await cache.of(["a"], model) == "old"
    now[0] = 2.0
    shelf.kept.clear()
    assert await cache.of(["a"], model) == "new"


async def test_the_shared_tier_can_be_left_out() -> None:
    shelf = Shelf()
    cache = CachedResults(CacheSettings(redis=False), shared=shelf)
    await cache.of(["a"], Model())
    assert shelf.put_keys == []
    assert figures(cache) == {"memory miss": 1}


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b'"other"',
        b'truthlens-result/2\n"other"',
        PREFIX,
        PREFIX + b"{",
        PREFIX + b"NaN",
        PREFIX + b"\xff\xfe",
        PREFIX + b"9" * 10_000,
        PREFIX + b"[" * 200_000,
        PREFIX + b'"' + b"x" * 300_000 + b'"',
    ],
    ids=lambda kept: str(kept[:24]),
)
async def test_a_corrupt_value_of_the_shared_tier_is_a_miss_and_is_replaced(kept: bytes) -> None:
    shelf = Shelf({key_of(["a"]): Found(kept, 60.0)})
    cache = CachedResults(shared=shelf)
    assert await cache.of(["a"], Model()) == "yes"
    assert shelf.kept[key_of(["a"])].value == PREFIX + b'"yes"'
    assert figures(cache) == {"memory miss": 1, "redis miss": 1}


@given(one=PARTS, other=PARTS)
def test_parts_that_differ_have_keys_that_differ(one: Sequence[str], other: Sequence[str]) -> None:
    assert (key_of(one) == key_of(other)) == (one == other)


@given(parts=PARTS.filter(lambda parts: len(parts) > 1), at=st.integers(0, 3))
def test_borders_of_parts_count(parts: list[str], at: int) -> None:
    at = min(at, len(parts) - 2)
    joined = [*parts[:at], parts[at] + parts[at + 1], *parts[at + 2 :]]
    assert key_of(joined) != key_of(parts)
    assert key_of([*parts, ""]) != key_of(parts)


def test_keys_are_digests_of_a_domain_of_their_own() -> None:
    assert key_of(["ab", "c"]) != key_of(["a", "bc"])
    assert len(key_of([])) == 64
    assert key_of(["a"]) not in (hashlib.sha256(data).hexdigest() for data in (b"a", b"\0" * 7 + b"\1a"))


async def test_metrics_count_what_was_looked_up_since_the_last_scrape() -> None:
    signals, shelf = Metrics(), Shelf()
    cache = CachedResults(shared=shelf)
    signals.on_scrape(result_cache_metrics(cache, signals))
    value = signals.registry.get_sample_value
    for scrape in (1, 2):
        for _ in range(2):
            await cache.of([str(scrape)], Model())
        shelf.errors += 3
        signals.exposition()
        counts = {
            event: value("truthlens_cache_requests_total", {"tier": event.tier, "result": event.result})
            for event in (
                CacheEvent("hit", "memory"),
                CacheEvent("miss", "memory"),
                CacheEvent("miss", "redis"),
                CacheEvent("error", "redis"),
            )
        }
        assert list(counts.values()) == [scrape, scrape, scrape, 3 * scrape]
        assert value("truthlens_cache_entries") == scrape
        assert value("truthlens_cache_bytes") == cache.size > 0


async def test_another_scope_is_another_result() -> None:
    """A model's name that now means another server is asked again; the old place finds what was kept."""
    cache, answers = CachedResults(), iter([1, 2])

    async def compute() -> object:
        return next(answers)

    found = []
    for scope in (["strong http://a"], ["strong http://b"], ["strong http://a"]):
        cache.use(CacheSettings(), scope=scope)
        found.append(await cache.of(["claim"], compute))
    assert found == [1, 2, 1]

"""Results that models gave, shared through a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import pytest
from redis import Redis

from tests.fakes.auto_redis_server import RedisServer
from truthlens.core.cache_settings import CacheSettings
from truthlens.core.errors import StartError
from truthlens.store.redis_result_cache import RedisResults
from truthlens.store.result_cache import CachedResults, key_of

PATIENT_S = 30.0  # where a test is about what is stored, not about waiting
KEY = f"truthlens:result:{key_of(['a'])}"


@contextlib.asynccontextmanager
async def opened(url: str, **settings: float) -> AsyncIterator[RedisResults]:
    tier = RedisResults(url, **{"timeout_s": PATIENT_S, "patience_s": PATIENT_S, **settings})  # type: ignore[arg-type]
    try:
        yield tier
    finally:
        await tier.aclose()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other tasks bring about."""
    async with asyncio.timeout(30.0):
        while not condition():
            await asyncio.sleep(0.01)


async def yes() -> object:
    return {"verdict": "yes"}


async def never() -> object:
    raise AssertionError("computed")


async def written(tier: RedisResults) -> None:
    await until(lambda: not tier._writes)


async def test_what_one_process_asked_another_one_need_not_ask(redis_server: RedisServer) -> None:
    async with opened(redis_server.url) as one, opened(redis_server.url) as other:
        await CachedResults(CacheSettings(ttl_s=100.0), shared=one).of(["a"], yes)
        await written(one)
        assert await CachedResults(shared=other).of(["a"], never) == {"verdict": "yes"}
        assert (one.errors, other.errors, one.up, one.last_error) == (0, 0, True, "")
    with Redis(port=redis_server.port) as client:
        assert client.keys() == [KEY.encode()]
        assert client.get(KEY) == b'truthlens-result/1\n{"verdict":"yes"}'
        assert 90 < client.ttl(KEY) <= 100


async def test_what_expires_in_redis_expires_in_memory_too(redis_server: RedisServer) -> None:
    async with opened(redis_server.url) as tier:
        with Redis(port=redis_server.port) as client:
            client.set(KEY, b'truthlens-result/1\n"old"', px=20_000)
            found = await tier.get(key_of(["a"]))
            assert found is not None
            assert found.left_s is not None
            assert 0 < found.left_s <= 20.0
            client.persist(KEY)
            found = await tier.get(key_of(["a"]))
            assert found is not None
            assert found.left_s is None
        assert await tier.get("nothing") is None


@pytest.mark.parametrize("kept", [b"", b"junk", b"truthlens-result/1\n{", b"\xff\x00"])
async def test_a_corrupt_value_is_a_miss_and_is_replaced(redis_server: RedisServer, kept: bytes) -> None:
    with Redis(port=redis_server.port) as client:
        client.set(KEY, kept)
        async with opened(redis_server.url) as tier:
            assert await CachedResults(shared=tier).of(["a"], yes) == {"verdict": "yes"}
            await written(tier)
            assert tier.errors == 0
        assert client.get(KEY) == b'truthlens-result/1\n{"verdict":"yes"}'


async def test_a_key_of_another_type_costs_the_hit_alone(redis_server: RedisServer) -> None:
    with Redis(port=redis_server.port) as client:
        client.hset(KEY, "field", "value")
    async with opened(redis_server.url) as tier:
        assert await CachedResults(shared=tier).of(["a"], yes) == {"verdict": "yes"}
        assert (tier.errors, tier.last_error) == (1, "ResponseError")


async def test_a_dead_redis_costs_hits_alone_and_is_left_alone_for_a_while() -> None:
    now = [0.0]
    tier = RedisResults("redis://127.0.0.1:1", first_pause_s=2.0, longest_pause_s=3.0, clock=lambda: now[0])
    cache = CachedResults(shared=tier)
    try:
        for number in range(5):
            assert await cache.of([str(number)], yes) == {"verdict": "yes"}
        assert (tier.errors, tier.up) == (1, False)
        for moment, errors in ((2.0, 2), (4.9, 2), (5.0, 3), (7.9, 3), (8.0, 4)):
            now[0] = moment
            await cache.of([f"at {moment}"], yes)
            assert tier.errors == errors
        assert not tier._writes
    finally:
        await tier.aclose()


async def test_a_redis_that_comes_back_is_used_again(redis_server: RedisServer) -> None:
    now = [0.0]
    async with opened(redis_server.url, clock=lambda: now[0]) as tier:  # type: ignore[arg-type]
        cache = CachedResults(shared=tier)
        await cache.of(["a"], yes)
        redis_server.kill()
        await cache.of(["b"], yes)
        assert not tier.up
        redis_server.start()
        now[0] = 2.0
        await cache.of(["c"], yes)
        assert tier.up
        await written(tier)
    with Redis(port=redis_server.port) as client:
        assert client.keys() == [f"truthlens:result:{key_of(['c'])}".encode()]


async def test_a_slow_redis_is_waited_for_once_and_only_so_long(redis_server: RedisServer) -> None:
    with Redis(port=redis_server.port) as client:
        client.client_pause(3000, all=True)
    async with opened(redis_server.url, timeout_s=0.05, first_pause_s=60.0) as tier:
        cache = CachedResults(shared=tier)
        began = time.monotonic()
        for number in range(50):
            assert await cache.of([str(number)], yes) == {"verdict": "yes"}
        assert time.monotonic() - began < 2.0
        assert (tier.errors, tier.last_error, tier.up) == (1, "TimeoutError", False)


async def test_after_a_pause_one_reader_alone_tries_and_the_others_do_not_wait() -> None:
    lines = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal lines
        lines += 1
        await reader.read()
        writer.close()

    now = [0.0]
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with opened(url, timeout_s=0.2, clock=lambda: now[0]) as tier:  # type: ignore[arg-type]
            assert await tier.get("a") is None
            assert (tier.errors, lines) == (1, 1)
            now[0] = 100.0
            trying = asyncio.create_task(tier.get("a"))
            await asyncio.sleep(0)
            began = time.monotonic()
            for _ in range(20):
                assert await tier.get("b") is None
            assert time.monotonic() - began < 0.15
            assert not trying.done()
            trying.cancel()
            await asyncio.gather(trying, return_exceptions=True)
            assert await tier.get("c") is None  # the next one may try
            assert tier.errors == 2


async def test_too_many_writes_at_a_time_are_left_out(redis_server: RedisServer) -> None:
    async with opened(redis_server.url, most_writes=2) as tier:
        for number in range(5):
            tier.put(str(number), b"x", ttl_s=10.0)
        assert len(tier._writes) == 2
        await written(tier)
    with Redis(port=redis_server.port) as client:
        assert client.dbsize() == 2


async def test_closing_finishes_what_is_being_written(redis_server: RedisServer) -> None:
    tier = RedisResults(redis_server.url, patience_s=PATIENT_S)
    for number in range(30):
        tier.put(str(number), b"x", ttl_s=10.0)
    await tier.aclose(timeout_s=PATIENT_S)
    with Redis(port=redis_server.port) as client:
        assert client.dbsize() == 30


def test_a_url_that_cannot_be_used_is_told_at_the_start_without_its_password() -> None:
    with pytest.raises(StartError, match="--redis") as caught:
        RedisResults("http://user:secret@host")
    assert "secret" not in str(caught.value)

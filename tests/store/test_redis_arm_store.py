"""What mode auto has learned, shared through a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from redis import Redis

from tests.fakes.auto_redis_server import LossyLine, RedisServer
from truthlens.core.errors import StartError
from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import Plan
from truthlens.mitigation.auto.bandit import Bandit, prior
from truthlens.store.arm_store import MOST_REWARDS, Counts, MemoryArms
from truthlens.store.redis_arm_store import RedisArms

DAY = 86400.0
PATIENT_S = 30.0  # where a test is about what is stored, not about waiting


@contextlib.asynccontextmanager
async def opened(url: str, **settings: object) -> AsyncIterator[RedisArms]:
    store = RedisArms(url, **{"timeout_s": PATIENT_S, "patience_s": PATIENT_S, **settings})  # type: ignore[arg-type]
    try:
        yield store
    finally:
        await store.aclose()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other tasks bring about."""
    async with asyncio.timeout(30.0):
        while not condition():
            await asyncio.sleep(0.01)


async def add(store: RedisArms, reward: float, *, decision: str = "medical", age_s: float = 0.0) -> None:
    await store.add(decision, Mode.STANDARD, reward, at=time.time() - age_s, half_life_s=DAY)


def figures(counts: Counts) -> tuple[float, float]:
    return counts.successes, counts.failures


def stored(server: RedisServer, decision: str = "medical") -> dict[str, float]:
    with Redis(port=server.port, decode_responses=True) as client:
        return {field: float(value) for field, value in client.hgetall(f"truthlens:arms:{decision}").items()}


async def test_what_one_process_learns_another_one_knows(redis_server: RedisServer) -> None:
    async with opened(redis_server.url) as one, opened(redis_server.url) as other:
        assert await other.counts("medical") == {}
        await add(one, 0.75)
        await add(one, 0.25)
        await until(lambda: not one.pending)
        found = await other.counts("medical")
        assert set(found) == {Mode.STANDARD}
        assert figures(found[Mode.STANDARD]) == pytest.approx((1.0, 1.0), rel=1e-3)
        assert found[Mode.STANDARD].at == pytest.approx(time.time(), abs=60.0)
        assert await other.counts("legal") == {}
        assert (one.errors, one.dropped, one.up, one.last_error) == (0, 0, True, "")


async def test_what_is_stored_decays_before_a_reward_is_added(redis_server: RedisServer) -> None:
    async with opened(redis_server.url) as store:
        await add(store, 1.0, age_s=2 * DAY)
        await until(lambda: not store.pending)
        assert stored(redis_server)["standard:successes"] == pytest.approx(1.0)
        await add(store, 0.0)
        await until(lambda: not store.pending)
        assert figures((await store.counts("medical"))[Mode.STANDARD]) == pytest.approx((0.25, 1.0), rel=1e-3)


async def test_a_reward_that_comes_late_weighs_what_it_would_weigh_by_now(redis_server: RedisServer) -> None:
    async with opened(redis_server.url) as store:
        await add(store, 1.0)
        await add(store, 1.0, age_s=DAY)
        await until(lambda: not store.pending)
        assert stored(redis_server)["standard:successes"] == pytest.approx(1.5, rel=1e-3)


async def test_a_process_whose_clock_is_wrong_spoils_nothing(redis_server: RedisServer) -> None:
    def wrong() -> float:
        return time.time() + 100 * 365 * DAY

    async with opened(redis_server.url, clock=wrong) as ahead, opened(redis_server.url) as right:
        await ahead.add("medical", Mode.STANDARD, 1.0, at=wrong(), half_life_s=DAY)
        await until(lambda: not ahead.pending)
        await add(right, 1.0)
        await until(lambda: not right.pending)
        for store, clock in ((ahead, wrong), (right, time.time)):
            counts = (await store.counts("medical"))[Mode.STANDARD]
            assert counts.successes == pytest.approx(2.0, rel=1e-3)
            assert counts.at == pytest.approx(clock(), abs=60.0)


_ADDING = """
import asyncio, sys, time
from truthlens.core.records.enums import Mode
from truthlens.store.redis_arm_store import RedisArms

async def main():
    store = RedisArms(sys.argv[1], patience_s=30.0)
    for number in range(300):
        await store.add(f"decision {number % 5}", Mode.STANDARD, number // 5 % 2, at=time.time(), half_life_s=1e9)
        await asyncio.sleep(0)
    await store.aclose(timeout_s=60.0)
    assert store.dropped == 0 and store.errors == 0

asyncio.run(main())
"""


async def test_processes_that_add_at_the_same_time_lose_nothing(redis_server: RedisServer) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _ADDING,
            redis_server.url,
            cwd=Path(__file__).parents[2],
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for process in processes:
        _, complaint = await process.communicate()
        assert process.returncode == 0, complaint.decode()
    for number in range(5):
        found = stored(redis_server, f"decision {number}")
        assert found["standard:successes"] == pytest.approx(90.0, rel=1e-4)
        assert found["standard:failures"] == pytest.approx(90.0, rel=1e-4)


async def test_redis_and_memory_add_up_to_the_same_and_never_to_more_than_the_bound(
    redis_server: RedisServer,
) -> None:
    memory = MemoryArms()
    async with opened(redis_server.url) as store:
        for number in range(300):
            reward, age_s = number % 7 / 6, (300 - number) * 600.0
            for each in (store, memory):
                await each.add("medical", Mode.STANDARD, reward, at=time.time() - age_s, half_life_s=DAY)
        await until(lambda: not store.pending)
        found = (await store.counts("medical"))[Mode.STANDARD]
        expected = memory.known("medical")[Mode.STANDARD]
        assert figures(found) == pytest.approx(figures(expected), rel=1e-3)
        for _ in range(200):
            await add(store, 1.0)
        await until(lambda: not store.pending)
        found = (await store.counts("medical"))[Mode.STANDARD]
        assert found.successes + found.failures == pytest.approx(MOST_REWARDS, rel=1e-3)


async def test_a_reward_whose_reply_was_lost_is_not_counted_twice(redis_server: RedisServer) -> None:
    async with LossyLine(redis_server.port) as line, opened(line.url) as store:
        await add(store, 1.0)
        await until(lambda: not store.pending)
        line.lose = 1
        await add(store, 1.0)
        await until(lambda: not store.pending)
        assert line.lost == 1
        assert stored(redis_server)["standard:successes"] == pytest.approx(2.0, rel=1e-3)
        await add(store, 1.0)
        await until(lambda: not store.pending)
        assert stored(redis_server)["standard:successes"] == pytest.approx(3.0, rel=1e-3)


async def test_while_redis_is_away_choices_rest_on_what_is_known_and_it_is_caught_up_later(
    redis_server: RedisServer,
) -> None:
    async with opened(redis_server.url) as store:
        await add(store, 1.0)
        await until(lambda: not store.pending)
        assert figures((await store.counts("medical"))[Mode.STANDARD]) == pytest.approx((1.0, 0.0), rel=1e-3)
        redis_server.kill()
        for _ in range(4):
            await add(store, 0.5)
            await store.counts("medical")
        await until(lambda: store.errors > 0 and not store.up)
        assert store.pending == 4
        assert store.last_error
        # 1.0 of before, and four halves that only this process knows of.
        assert figures((await store.counts("medical"))[Mode.STANDARD]) == pytest.approx((3.0, 2.0), rel=1e-3)
        redis_server.start()  # empty
        await until(lambda: store.pending == 0)
        assert store.up
        assert store.dropped == 0
        assert stored(redis_server)["standard:successes"] == pytest.approx(2.0, rel=1e-3)
        assert figures((await store.counts("medical"))[Mode.STANDARD]) == pytest.approx((2.0, 2.0), rel=1e-3)


async def test_a_redis_that_restarted_between_two_uses_costs_no_error(redis_server: RedisServer) -> None:
    async with opened(redis_server.url) as store:
        assert await store.counts("medical") == {}
        redis_server.kill()
        redis_server.start()
        await add(store, 1.0)
        await until(lambda: not store.pending)
        assert figures((await store.counts("medical"))[Mode.STANDARD]) == pytest.approx((1.0, 0.0), rel=1e-3)
        assert (store.errors, store.dropped) == (0, 0)


async def test_a_slow_redis_is_waited_for_only_so_long_and_heard_in_the_end(
    redis_server: RedisServer,
) -> None:
    async with opened(redis_server.url) as writer:
        await add(writer, 1.0)
        await until(lambda: not writer.pending)
    with Redis(port=redis_server.port) as client:
        client.client_pause(600, all=True)
    async with opened(redis_server.url, timeout_s=0.01) as store:
        assert await store.counts("medical") == {}
        assert (store.errors, store.last_error) == (1, "TimeoutError")
        await until(lambda: Mode.STANDARD in store.known("medical"))


async def test_a_redis_that_accepts_and_never_answers_is_given_up_and_left_alone_for_a_while() -> None:
    opened_lines = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened_lines
        opened_lines += 1
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with opened(
            f"redis://127.0.0.1:{port}", timeout_s=0.01, patience_s=1.0, first_pause_s=60.0
        ) as store:
            for _ in range(5):
                assert await store.counts("medical") == {}
            assert opened_lines <= 1  # the five waited for one attempt
            await until(lambda: not store.up)
            lines = opened_lines
            assert await store.counts("medical") == {}
            assert opened_lines == lines


async def test_an_unreachable_redis_means_priors_and_a_bounded_backlog() -> None:
    async with opened("redis://127.0.0.1:1", most_pending=3) as store:
        bandit = Bandit(store, rng=random.Random(1))
        plan = Plan(decision="medical", mode=Mode.AUTO)
        assert await bandit.choose(plan) in plan.auto.modes
        arm = bandit.snapshot()["medical"][Mode.STANDARD]
        assert arm.mean == prior(Mode.STANDARD, plan.auto).mean
        for _ in range(5):
            await bandit.learn(plan, Mode.STANDARD, 1.0)
        assert (store.pending, store.dropped) == (3, 2)
        assert bandit.snapshot()["medical"][Mode.STANDARD].mean > arm.mean
        await until(lambda: store.errors > 0)
        await store.aclose(timeout_s=0.05)
        assert (store.pending, store.dropped) == (0, 5)


async def test_closing_writes_what_waits(redis_server: RedisServer) -> None:
    store = RedisArms(redis_server.url, patience_s=PATIENT_S)
    for _ in range(50):
        await add(store, 1.0)
    await store.aclose(timeout_s=PATIENT_S)
    assert stored(redis_server)["standard:successes"] == pytest.approx(50.0, rel=1e-3)
    assert store.dropped == 0


async def test_a_choice_that_is_cancelled_leaves_the_store_usable(redis_server: RedisServer) -> None:
    async with opened(redis_server.url) as store:
        with Redis(port=redis_server.port) as client:
            client.client_pause(300, all=True)
        choosing = asyncio.create_task(store.counts("medical"))
        await asyncio.sleep(0.05)
        choosing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await choosing
        await add(store, 1.0)
        await until(lambda: not store.pending)
        assert figures((await store.counts("medical"))[Mode.STANDARD]) == pytest.approx((1.0, 0.0), rel=1e-3)


async def test_a_state_that_holds_no_figures_is_left_out_and_written_anew(redis_server: RedisServer) -> None:
    with Redis(port=redis_server.port) as client:
        client.hset("truthlens:arms:medical", mapping={"standard:successes": "many", "premium:at": "nan"})
        client.hset("truthlens:arms:medical", mapping={"unheard-of:successes": "1"})
    async with opened(redis_server.url) as store:
        assert await store.counts("medical") == {}
        assert store.errors == 2
        assert store.up
        await add(store, 1.0)
        await until(lambda: not store.pending)
        assert figures((await store.counts("medical"))[Mode.STANDARD]) == pytest.approx((1.0, 0.0), rel=1e-3)


async def test_a_foreign_key_under_one_decision_holds_up_no_other(redis_server: RedisServer) -> None:
    with Redis(port=redis_server.port) as client:
        client.set("truthlens:arms:medical", "something else")
    async with opened(redis_server.url) as store:
        await add(store, 1.0)
        await add(store, 1.0, decision="legal")
        await until(lambda: not store.pending)
        assert store.dropped == 1
        assert stored(redis_server, "legal")["standard:successes"] == pytest.approx(1.0, rel=1e-3)


async def test_deleting_the_key_resets_a_decision(redis_server: RedisServer) -> None:
    async with opened(redis_server.url) as store:
        await add(store, 1.0)
        await until(lambda: not store.pending)
        with Redis(port=redis_server.port) as client:
            client.delete("truthlens:arms:medical")
        assert await store.counts("medical") == {}


async def test_keys_expire_once_next_to_nothing_is_left_of_what_was_learned(
    redis_server: RedisServer,
) -> None:
    async with opened(redis_server.url, prefix="other") as store:
        await add(store, 1.0)
        await until(lambda: not store.pending)
    with Redis(port=redis_server.port, decode_responses=True) as client:
        keys = sorted(client.keys())
        assert [key.rpartition(":")[0] for key in keys] == ["other:arms", "other:writers"]
        assert 19 * DAY < client.ttl(keys[0]) <= 20 * DAY
        assert 0 < client.ttl(keys[1]) <= 3600


async def test_only_so_many_decisions_are_remembered(redis_server: RedisServer) -> None:
    async with opened(redis_server.url, most_decisions=2) as store:
        for decision in ("a", "b", "c"):
            await add(store, 1.0, decision=decision)
        await until(lambda: not store.pending)
        assert [bool(store.known(decision)) for decision in ("a", "b", "c")] == [False, True, True]


@pytest.mark.parametrize("url", ["http://127.0.0.1", "redis://:secret@host:port", "127.0.0.1:6379"])
async def test_a_url_that_cannot_be_used_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(StartError, match="expected redis://") as refused:
        RedisArms(url)
    assert url not in str(refused.value)
    assert refused.value.__cause__ is None

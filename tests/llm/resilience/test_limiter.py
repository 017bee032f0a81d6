"""The bound on calls in flight."""

from __future__ import annotations

import asyncio

import pytest

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure
from truthlens.llm.resilience.limiter import Limiter


async def test_no_more_than_the_limit_hold_a_slot_and_all_get_one_in_turn() -> None:
    limiter, holding, most, order = Limiter(2), 0, 0, []

    async def hold(number: int) -> None:
        nonlocal holding, most
        async with limiter.slot(10.0):
            holding += 1
            most = max(most, holding)
            order.append(number)
            await asyncio.sleep(0)
            holding -= 1

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(hold(number))
    assert (most, order) == (2, list(range(8)))


async def test_who_finds_no_slot_in_time_is_told_busy() -> None:
    limiter = Limiter(1)
    async with limiter.slot(0.0):
        for wait_s in (0.0, 0.001):
            with pytest.raises(CallError) as caught:
                async with limiter.slot(wait_s):
                    pass
            assert caught.value.failure is CallFailure.BUSY
    async with limiter.slot(0.0):
        pass


async def test_a_full_queue_refuses_at_once() -> None:
    limiter = Limiter(1)
    done = asyncio.Event()

    async def hold() -> None:
        async with limiter.slot(10.0):
            await done.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(hold())
        await asyncio.sleep(0)
        with pytest.raises(CallError) as caught:
            async with limiter.slot(10.0):
                pass
        done.set()
    assert caught.value.failure is CallFailure.BUSY


async def test_a_cancelled_holder_and_a_cancelled_waiter_give_their_slots_back() -> None:
    limiter = Limiter(1)

    async def hold() -> None:
        async with limiter.slot(10.0):
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(hold()) for _ in range(3)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with limiter.slot(0.0):
        pass

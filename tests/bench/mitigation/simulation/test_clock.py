"""Simulated time passes only where tasks wait for it."""

from __future__ import annotations

import asyncio

import pytest

from bench.mitigation.simulation.clock import simulate


def test_side_by_side_takes_as_long_as_the_longest() -> None:
    """Tasks that wait at the same time share their seconds; one after the other adds up."""

    async def work() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        await asyncio.gather(asyncio.sleep(3000.0), asyncio.sleep(1000.0))
        together = loop.time()
        await asyncio.sleep(500.0)
        return together, loop.time()

    assert simulate(work()) == (3000.0, 3500.0)


def test_timeouts_are_of_simulated_seconds() -> None:
    """A timeout ends what would take longer."""

    async def work() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60.0):
                await asyncio.sleep(3600.0)
        return asyncio.get_running_loop().time()

    assert simulate(work()) == 60.0


def test_work_for_threads_takes_no_time() -> None:
    """What is handed to a thread is done at once, and its errors reach the caller."""

    async def work() -> tuple[int, float]:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(lambda: 6 * 7), asyncio.get_running_loop().time()

    assert simulate(work()) == (42, 0.0)


def test_waiting_for_nothing_is_an_error() -> None:
    """A simulation that can never go on says so instead of hanging."""

    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="nothing will ever happen"):
        simulate(work())

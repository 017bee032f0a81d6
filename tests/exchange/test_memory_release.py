"""Memory is given back after large exchanges, and only then."""

from __future__ import annotations

import asyncio

from truthlens.exchange.memory_release import WORTH_BYTES, GiveBack


async def test_memory_is_given_back_once_after_large_exchanges() -> None:
    """Several that end together share a round; the next one has a round of its own."""
    rounds: list[int] = []
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def trim() -> None:
        rounds.append(1)
        loop.call_soon_threadsafe(done.set)

    give_back = GiveBack(trim, delay_s=0.0)
    give_back.after(WORTH_BYTES)
    give_back.after(WORTH_BYTES * 2)
    await done.wait()
    assert len(rounds) == 1
    await asyncio.sleep(0.05)
    done.clear()
    give_back.after(WORTH_BYTES)
    await done.wait()
    assert len(rounds) == 2


async def test_small_exchanges_give_nothing_back() -> None:
    """Most exchanges are small, and cost nothing here."""
    rounds: list[int] = []
    give_back = GiveBack(lambda: rounds.append(1), delay_s=0.0)
    give_back.after(WORTH_BYTES - 1)
    await asyncio.sleep(0.05)
    assert rounds == []


async def test_the_system_takes_it() -> None:
    """The way of this system's C library can be called, whatever library that is."""
    give_back = GiveBack(delay_s=0.0)
    give_back.after(WORTH_BYTES)
    assert give_back._task is not None
    await give_back._task

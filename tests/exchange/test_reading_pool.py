"""Work on bodies: bounded in number and time, ended when nobody waits, and large apart from small."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from truthlens.core.cancellation import checkpoint
from truthlens.core.errors import OverloadedError, StoppedError
from truthlens.exchange.reading_pool import LARGE_BYTES, Pool


class Held:
    """Work that asks at checkpoints, until it is told to stop or let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.release = threading.Event()
        self.ended = threading.Event()
        self.stopped = False

    def __call__(self) -> str:
        self.began.set()
        try:
            while not self.release.wait(0.001):
                checkpoint()
        except StoppedError:
            self.stopped = True
            raise
        finally:
            self.ended.set()
        return "done"


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 30)


async def test_late_work_is_given_up_and_ends() -> None:
    """Who waits is told at its time, and the thread stops working."""
    work = Held()
    with pytest.raises(TimeoutError):
        await Pool().run(work, size=1, timeout_s=0.01)
    await until(work.ended)
    assert work.stopped


async def test_work_ends_when_its_client_goes() -> None:
    """Cancelling whoever waits stops the thread."""
    pool, work = Pool(), Held()
    waiting = asyncio.create_task(pool.run(work, size=1, timeout_s=60))
    await until(work.began)
    waiting.cancel()
    await until(work.ended)
    assert work.stopped
    await pool.aclose()


async def test_work_that_was_given_up_while_it_waited_is_not_begun() -> None:
    """A queue of abandoned work costs nothing when its turn comes."""
    pool, first, second = Pool(workers=1), Held(), Held()
    running = asyncio.create_task(pool.run(first, size=1, timeout_s=60))
    await until(first.began)
    with pytest.raises(TimeoutError):
        await pool.run(second, size=1, timeout_s=0.01)
    first.release.set()
    assert await running == "done"
    await pool.aclose()
    assert not second.began.is_set()


async def test_more_work_than_may_wait_is_refused() -> None:
    """Refused at once; there is room again when work has ended."""
    pool, work = Pool(workers=1, queue_limit=1), Held()
    running = asyncio.create_task(pool.run(work, size=1, timeout_s=60))
    await until(work.began)
    with pytest.raises(OverloadedError):
        await pool.run(lambda: "more", size=1, timeout_s=60)
    work.release.set()
    await running
    assert await pool.run(lambda: "more", size=1, timeout_s=60) == "more"


async def test_large_work_does_not_stand_before_small() -> None:
    """One large piece at a time; small ones pass it."""
    pool, large, other = Pool(workers=1), Held(), Held()
    running = asyncio.create_task(pool.run(large, size=LARGE_BYTES + 1, timeout_s=60))
    await until(large.began)
    waiting = asyncio.create_task(pool.run(other, size=LARGE_BYTES + 1, timeout_s=60))
    assert await pool.run(lambda: "small", size=1, timeout_s=60) == "small"
    assert not other.began.is_set()
    large.release.set()
    other.release.set()
    assert [await running, await waiting] == ["done", "done"]


async def test_an_error_of_the_work_is_its_own() -> None:
    """What the work raises reaches whoever waits."""

    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Pool().run(fails, size=1, timeout_s=60)


class Read:
    """What some work has read."""


async def test_what_failed_work_held_is_let_go_at_once() -> None:
    """Not only at the next collection: refused bodies come faster than that."""
    held: list[weakref.ref[Read]] = []

    def fails() -> None:
        read = Read()
        held.append(weakref.ref(read))
        raise ValueError("no")

    pool = Pool()
    gc.disable()
    try:
        with pytest.raises(ValueError, match="no") as raised:
            await pool.run(fails, size=1, timeout_s=60)
        del raised
        await pool.aclose()
        assert held[0]() is None
    finally:
        gc.enable()

"""Limit the calls to one model in flight in this process, with a short bounded queue before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure

_WAITING_PER_SLOT = 4


class Limiter:
    """Admits at most ``limit`` holders at a time, in order of arrival; a full queue refuses at once.

    Args:
        limit: 1 or more.
    """

    def __init__(self, limit: int) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._most_waiting = limit * _WAITING_PER_SLOT
        self._waiting = 0
        self.limit = limit

    @asynccontextmanager
    async def slot(self, wait_s: float) -> AsyncIterator[None]:
        """Hold a slot for the body of the ``async with``; wait for it ``wait_s`` seconds at most.

        Raises:
            CallError: ``busy``: none came free in time, or too many wait already.
        """
        if self._slots.locked():
            await self._wait(wait_s)
        else:
            await self._slots.acquire()  # does not wait
        try:
            yield
        finally:
            self._slots.release()

    async def _wait(self, wait_s: float) -> None:
        if wait_s <= 0 or self._waiting >= self._most_waiting:
            raise CallError(CallFailure.BUSY)
        self._waiting += 1
        try:
            async with asyncio.timeout(wait_s):
                await self._slots.acquire()
        except TimeoutError:
            raise CallError(CallFailure.BUSY) from None
        finally:
            self._waiting -= 1

"""Keep results that models gave in Redis, shared by all processes of a fleet.

One string per result, ``{prefix}:result:{key}``, that expires. Redis never costs an answer, only hits: reading waits for
``timeout_s`` at most, writing waits for nothing, and after a failure Redis is left alone for seconds, after which one
reader alone tries it again. Redis Cluster is not supported.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from truthlens.store.redis_client import connect
from truthlens.store.result_cache import Found

_MOST_WRITES = 64
_T = TypeVar("_T")


class RedisResults:
    """The tier of kept results that several processes share.

    ``errors`` counts reads and writes that failed or came too late, ``up`` says whether the last one succeeded in time, and
    ``last_error`` names the type of the last exception, ``""`` if there was none.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``; it may contain user and password.
        prefix: what the keys begin with; deployments that share a Redis take different ones.
        timeout_s: the longest that a reader waits.
        patience_s: the longest that an attempt may take in the background, connecting included.
        first_pause_s: for how long Redis is left alone after a failure; doubles with each further one.
        longest_pause_s: up to this.
        most_writes: writes at the same time; beyond them results are not written.
        clock: seconds, monotonic.

    Raises:
        StartError: the URL cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "truthlens",
        timeout_s: float = 0.25,
        patience_s: float = 1.0,
        first_pause_s: float = 2.0,
        longest_pause_s: float = 30.0,
        most_writes: int = _MOST_WRITES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = connect(url, patience_s, text=False)
        self._prefix = prefix
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._first_pause_s = first_pause_s
        self._longest_pause_s = longest_pause_s
        self._most_writes = most_writes
        self._clock = clock
        self._reads: set[asyncio.Task[Found | None]] = set()
        self._writes: set[asyncio.Task[None]] = set()
        self._pause_s = first_pause_s
        self._resume_at = 0.0
        self._trying = False
        self.errors = 0
        self.up = True
        self.last_error = ""

    async def get(self, key: str) -> Found | None:
        """Return what is kept under ``key``, ``None`` where there is nothing or Redis does not say so in time."""
        if self.up:
            return await self._ask(key)
        if self._trying or self._clock() < self._resume_at:
            return None
        self._trying = True
        try:
            return await self._ask(key)
        finally:
            self._trying = False

    def put(self, key: str, value: bytes, *, ttl_s: float) -> None:
        """Keep ``value`` for ``ttl_s``; not where Redis is down or too much waits to be written."""
        if self.up and len(self._writes) < self._most_writes:
            self._start(self._write(key, value, max(1, math.ceil(1000 * ttl_s))), self._writes)

    async def aclose(self, *, timeout_s: float = 1.0) -> None:
        """Finish what is being written, for as long as ``timeout_s``, and close."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=timeout_s)
        running = [*self._writes, *self._reads]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._client.aclose()

    async def _ask(self, key: str) -> Found | None:
        reading = self._start(self._read(key), self._reads)
        # Not cancelled when late: a far Redis would else never get its first connection.
        done, _ = await asyncio.wait({reading}, timeout=self._timeout_s)
        if not done:
            self._failed(TimeoutError())
            return None
        if reading.cancelled():  # by closing
            return None
        error = reading.exception()
        if error is not None:
            self._failed(error)
            return None
        self.up = True
        self._pause_s = self._first_pause_s
        return reading.result()

    async def _read(self, key: str) -> Found | None:
        async with asyncio.timeout(self._patience_s):
            commands = self._client.pipeline(transaction=False)
            name = f"{self._prefix}:result:{key}"
            commands.get(name)
            commands.pttl(name)
            value, left_ms = await commands.execute()
        if value is None:
            return None
        return Found(value, None if left_ms == -1 else max(0.0, left_ms / 1000))

    async def _write(self, key: str, value: bytes, ttl_ms: int) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._client.set(f"{self._prefix}:result:{key}", value, px=ttl_ms)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the store, it never costs an answer
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self.errors += 1
        self.last_error = type(error).__name__
        if not self.up and self._clock() < self._resume_at:
            return  # one of several that were under way when it went down
        self.up = False
        self._resume_at = self._clock() + self._pause_s
        self._pause_s = min(self._longest_pause_s, 2 * self._pause_s)

    def _start(self, work: Coroutine[Any, Any, _T], running: set[asyncio.Task[_T]]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        running.add(task)
        task.add_done_callback(running.discard)
        task.add_done_callback(_note)
        return task


def _note(task: asyncio.Task[Any]) -> None:
    """Take note of how a task ended whose end nobody waits for any more."""
    if not task.cancelled():
        task.exception()

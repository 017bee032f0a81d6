"""Run work whose size a client decides: on few threads, with a bounded queue, for a bounded time.

Large work has a thread of its own, so that it neither delays small work nor adds up in memory.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from truthlens.core.cancellation import stopping
from truthlens.core.errors import OverloadedError, StoppedError

LARGE_BYTES = 256 << 10
"""Work on more than this is large."""

_T = TypeVar("_T")


class Pool:
    """Threads for reading and rewriting bodies.

    Args:
        workers: pieces of work on small bodies that run at once.
        queue_limit: pieces of work of either size that may run or wait; one more is refused.
    """

    def __init__(self, *, workers: int = 2, queue_limit: int = 64) -> None:
        self._small = _Lane(workers, queue_limit, name="truthlens-read")
        self._large = _Lane(1, queue_limit, name="truthlens-read-large")

    async def run(self, work: Callable[[], _T], *, size: int, timeout_s: float) -> _T:
        """Run ``work`` and return its result.

        If it is late, or the caller is cancelled, it ends at its next checkpoint.

        Args:
            work: asks ``cancellation.checkpoint`` in loops whose length a client decides.
            size: bytes that it works on.
            timeout_s: seconds that it may wait and run.

        Raises:
            OverloadedError: too much is waiting.
            TimeoutError: the time is over.
        """
        lane = self._large if size > LARGE_BYTES else self._small
        stop = threading.Event()

        def job() -> _T:
            if stop.is_set():
                raise StoppedError("the work was given up before it began")
            with stopping(stop.is_set):
                return work()

        future = lane.submit(job)
        ended = asyncio.wrap_future(future)
        ended.add_done_callback(_look)
        try:
            await asyncio.wait({ended}, timeout=timeout_s)
            if not ended.done():
                raise TimeoutError
            return ended.result()
        finally:
            stop.set()
            future.cancel()
            # An exception holds this frame by its traceback, and both futures hold the exception: such a circle
            # would keep the bytes that the work had read until a collection of every generation.
            del future, ended

    async def aclose(self) -> None:
        """Wait until all work has ended."""
        for lane in (self._small, self._large):
            await asyncio.to_thread(lane.executor.shutdown)


class _Lane:
    def __init__(self, workers: int, limit: int, *, name: str) -> None:
        self.executor = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._limit = limit
        self._taken = 0
        self._lock = threading.Lock()

    def submit(self, job: Callable[[], _T]) -> Future[_T]:
        with self._lock:
            if self._taken >= self._limit:
                raise OverloadedError("too many bodies wait to be read")
            self._taken += 1
        future = self.executor.submit(job)
        # A job that was given up while it ran keeps its place until it has really ended.
        future.add_done_callback(self._leave)
        return future

    def _leave(self, _future: Future[_T]) -> None:
        with self._lock:
            self._taken -= 1


def _look(future: asyncio.Future[_T]) -> None:
    """Read the exception of abandoned work, so that asyncio does not report it as never retrieved."""
    if not future.cancelled():
        future.exception()

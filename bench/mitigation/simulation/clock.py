"""An event loop with a simulated clock.

Waiting takes no time; concurrent work takes as long as its longest part.

Deadlines, timeouts and task groups of the modes see simulated seconds. Nothing here waits for sockets.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Runs tasks; where all of them wait, the clock jumps to the next moment that one waits for.

    Work for other threads is done at once, in no time.
    """

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        """Return the simulated seconds since the loop was made."""
        return self.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Ts]], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        """Return the result of ``func``, in a future that is done."""
        future: asyncio.Future[_T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits for the future
            future.set_exception(error)
        return future


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("every task waits for another; nothing will ever happen in this simulation")
        self._loop.now += max(0.0, timeout)
        return super().select(0)


def simulate(work: Coroutine[Any, Any, _T]) -> _T:
    """Run ``work`` on a simulated clock that begins at 0, and return its result."""
    loop = SimulatedLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()

"""Memory that a large exchange took, given back to the system.

The C library keeps freed memory for the next large body; in a process that meets few of them that is held for
nothing.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable

WORTH_BYTES = 1 << 20
"""Bodies below this leave nothing behind that is worth giving back."""

_DELAY_S = 1.0


class GiveBack:
    """Gives memory back, a moment after large exchanges and off the event loop.

    Args:
        trim: does it; by default the C library's way, where it has one.
        delay_s: how long after an exchange, when its last references are gone; further ones in that time
            share a round.
    """

    def __init__(self, trim: Callable[[], None] | None = None, *, delay_s: float = _DELAY_S) -> None:
        self._trim = trim or _trim
        self._delay_s = delay_s
        self._task: asyncio.Task[None] | None = None

    def after(self, size: int) -> None:
        """Note that an exchange of so many bytes has ended."""
        if size >= WORTH_BYTES and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._later())

    async def _later(self) -> None:
        await asyncio.sleep(self._delay_s)
        await asyncio.to_thread(self._trim)


def _trim() -> None:
    # Tracebacks of work that was given up hold its texts in cycles.
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

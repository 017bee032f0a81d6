"""Giving up work that runs on a thread: the thread asks at its checkpoints whether anybody still waits.

Python cannot end a thread from outside. Whoever runs work on one says how it learns that it is to stop (``stopping``), and
loops whose length a client decides ask for that (``checkpoint``). On threads that nobody can stop a checkpoint does nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from truthlens.core.errors import StoppedError

StopCheck = Callable[[], bool]
"""Asked between steps of work; true once nobody waits for the result."""


def never() -> bool:
    """Return false: the ``StopCheck`` of work that is always wanted."""
    return False


class _Thread(threading.local):
    stop: StopCheck | None = None


_thread = _Thread()


@contextmanager
def stopping(stop: StopCheck) -> Iterator[None]:
    """Let the checkpoints of this thread end the work in the block once ``stop`` says true."""
    before, _thread.stop = _thread.stop, stop
    try:
        yield
    finally:
        _thread.stop = before


def checkpoint() -> None:
    """Raise ``StoppedError`` where nobody waits any more for what this thread is doing."""
    stop = _thread.stop
    if stop is not None and stop():
        raise StoppedError("the work was given up: its time is over or its client is gone")

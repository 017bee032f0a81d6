"""Reads what has come of a stream in steps, so that much of it does not hold up other streams."""

from __future__ import annotations

from collections.abc import Callable

from truthlens.streaming.types import StreamEntry

# Read in one step: a millisecond or two where every frame holds one token.
STEP_BYTES = 4 << 10


class SteppedReading:
    """Gives the entries that each step completes.

    Args:
        data: what has come.
        step: reads so much of it, and is told whether it is the last step; there is one at least.
    """

    def __init__(self, data: bytes, step: Callable[[bytes, bool], list[StreamEntry]]) -> None:
        self._data = data
        self._step = step
        self._place = 0
        self._begun = False

    @property
    def next_bytes(self) -> int:
        """Bytes that the next step reads."""
        return min(STEP_BYTES, len(self._data) - self._place)

    def __iter__(self) -> SteppedReading:
        return self

    def __next__(self) -> list[StreamEntry]:
        """Read on.

        Raises:
            StopIteration: all is read.
        """
        data, start = self._data, self._place
        if self._begun and start == len(data):
            raise StopIteration
        self._begun, self._place = True, start + self.next_bytes
        part = data if len(data) <= STEP_BYTES else data[start : self._place]
        return self._step(part, self._place == len(data))

"""What all streams of a process share: turns at reading, and room for what waits; each has a fair part of both.

A stream that has its part of the room is not read on: Envoy keeps what follows, and in the end the backend waits. One is
refused where even that does not keep all of them within the bounds, and none is begun while the process is late with those that
it has. No clock here, and no I/O.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import StrEnum

from truthlens.core.limits import Limits

# Read in one round of the event loop, of all streams together: some 5 ms. Between two rounds everybody else has a turn.
_ROUND_BYTES = 32 << 10
# A stream that brings no more is taken first: it writes as a model does, and does not empty a buffer.
_FEW_BYTES = 1 << 10
# What reading a message costs at least, in bytes.
_MESSAGE_BYTES = 256
# A part is never less: two long frames.
_LEAST_BYTES, _LEAST_FRAMES = 16 << 10, 64


# No stream is begun while the event loop comes so much later than it was to, on the average of a second or so: an exchange takes
# some twenty rounds of the loop, and must end before Envoy gives it up.
_MOST_LAG_S = 0.2
_LAG_WEIGHT = 0.3
# One pause, however long, is no overload: the process was stopped, or its machine was.
_LONGEST_LAG_S = 0.5
# Nor while a scoring waits for longer than that: what streams hold would reach its bound unchecked.
_MOST_BEHIND_S = 2.0


class Refusal(StrEnum):
    """Which bound refuses a stream."""

    STREAMS = "streams"
    BYTES = "bytes"
    FRAMES = "frames"
    LAG = "lag"


class Turns:
    """Lets streams read in turn, so that all of them together leave the event loop to others between two rounds."""

    def __init__(self) -> None:
        self._left = _ROUND_BYTES
        self._few: deque[tuple[asyncio.Future[None], int]] = deque()
        self._many: deque[tuple[asyncio.Future[None], int]] = deque()
        self._renewing = False

    async def take(self, size: int) -> None:
        """Wait for a turn to read ``size`` bytes."""
        cost = max(size, _MESSAGE_BYTES)
        if self._left > 0 and not (self._few or self._many):
            self._left -= cost
            self._renew()
            return
        turn = asyncio.get_running_loop().create_future()
        (self._few if size <= _FEW_BYTES else self._many).append((turn, cost))
        self._renew()
        await turn

    def _renew(self) -> None:
        if not self._renewing:
            self._renewing = True
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        self._renewing = False
        self._left = _ROUND_BYTES
        # One of those with much in every round: they are late, and not forgotten.
        self._give(self._many)
        while self._left > 0 and (waiting := self._few or self._many):
            self._give(waiting)
        if self._few or self._many:
            self._renew()

    def _give(self, waiting: deque[tuple[asyncio.Future[None], int]]) -> None:
        """Give a turn to the first that has not left."""
        while waiting:
            turn, cost = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= cost
                return


class Streams:
    """All streams that are followed.

    Args:
        refused: told which bound has refused a stream, each time.
    """

    def __init__(self, *, refused: Callable[[Refusal], None] = lambda _why: None) -> None:
        self.turns = Turns()
        self.count = 0
        self.bytes = 0
        self.frames = 0
        self._refused = refused
        self._lag_s = 0.0

    def note_lag(self, late_s: float) -> None:
        """Note how much later than it was to the event loop has come just now; called some times a second."""
        self._lag_s += _LAG_WEIGHT * (min(late_s, _LONGEST_LAG_S) - self._lag_s)

    def admits(self, limits: Limits, *, behind_s: float = 0.0) -> bool:
        """Whether one more may be followed; ``behind_s``: how long scorings wait."""
        why = self._full(limits, count=self.count + 1)
        if why is None and (self._lag_s > _MOST_LAG_S or behind_s > _MOST_BEHIND_S):
            why = Refusal.LAG
        if why is not None:
            self._refused(why)
        return why is None

    def join(self, limits: Limits) -> Share:
        """Return the part of one more."""
        self.count += 1
        return Share(self, limits)

    def waits(self, grown_bytes: int, grown_frames: int) -> None:
        """Note that so much more waits, or less."""
        self.bytes += grown_bytes
        self.frames += grown_frames

    def refuses(self, share: Share, limits: Limits) -> bool:
        """Whether a stream has to go: a bound is broken, and it has more than its part."""
        why = self._full(limits, count=self.count)
        if why is None or not share.has_its_part:
            return False
        self._refused(why)
        return True

    def _full(self, limits: Limits, *, count: int) -> Refusal | None:
        if count > limits.max_streams:
            return Refusal.STREAMS
        if self.bytes > limits.max_stream_bytes:
            return Refusal.BYTES
        return Refusal.FRAMES if self.frames > limits.max_stream_frames else None


class Share:
    """One stream's part of what all share."""

    def __init__(self, streams: Streams, limits: Limits) -> None:
        self._streams = streams
        self._limits = limits
        self._bytes = 0
        self._frames = 0
        self._open = True

    @property
    def has_its_part(self) -> bool:
        """Whether it has no more room than it uses."""
        return not self.has_room(self._bytes, self._frames)

    def has_room(self, size: int, frames: int) -> bool:
        """Whether a stream of which so much waits may be read on."""
        count, limits = max(1, self._streams.count), self._limits
        return size < max(_LEAST_BYTES, limits.max_stream_bytes // count) and frames < max(
            _LEAST_FRAMES, limits.max_stream_frames // count
        )

    async def turn(self, size: int) -> None:
        """Wait for a turn to read ``size`` bytes."""
        await self._streams.turns.take(size)

    def waits(self, size: int, frames: int) -> bool:
        """Note what waits of the stream; false where that is too much, and the stream has to go."""
        if self._open:
            self._streams.waits(size - self._bytes, frames - self._frames)
            self._bytes, self._frames = size, frames
        return not self._streams.refuses(self, self._limits)

    def leave(self) -> None:
        """Give the part back; once."""
        if self._open:
            self.waits(0, 0)
            self._open = False
            self._streams.count -= 1

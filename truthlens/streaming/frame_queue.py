"""The frames of a streamed body that have not left yet, each with its place, its fate and what is put in beside it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from truthlens.api.sse.chunks import ChunkKind, end_of
from truthlens.streaming.types import StreamEntry

_DONE_LINES = (b"data: [DONE]", b"data:[DONE]")
# As much of a frame that has begun is looked at, to tell comments and the marker from data.
_LONGEST_TAIL = 256


@dataclass(slots=True)
class Placed:
    """An entry with its place in the stream, in bytes, and what is put in before and behind it.

    ``waits``: it belongs to the end of the answer, which leaves once the verdict is known. ``carried``: what had come of
    it was kept back when the message that it began in left, and leaves with the rest.
    """

    start: int
    end: int
    entry: StreamEntry
    waits: bool = False
    carried: bool = False
    before: bytes = b""
    after: bytes = b""

    @property
    def output(self) -> bytes | None:
        """What leaves in the entry's place as a whole; ``None`` where each message keeps its own bytes of it."""
        return self.entry.frame.raw if self.carried and self.entry.output is None else self.entry.output

    def drop(self) -> None:
        """Let nothing of it leave, nor of what was put in beside it."""
        self.entry.output, self.before, self.after = b"", b"", b""


class Frames:
    """The frames that have not left, in order. Places are bytes of the stream."""

    def __init__(self) -> None:
        self._frames: deque[Placed] = deque()
        self._settled = 0  # index of the first that was not found to be free to leave
        self._released = 0

    def __iter__(self) -> Iterator[Placed]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, placed: Placed) -> None:
        """Take in the next."""
        self._frames.append(placed)

    def first_held(self, *, end_may_go: bool) -> int | None:
        """Where the first frame begins that must not leave yet, ``None`` where all may."""
        while self._settled < len(self._frames):
            placed = self._frames[self._settled]
            if not placed.entry.decided or (placed.waits and not end_may_go):
                return placed.start
            self._settled += 1
        return None

    def undecided(self) -> list[Placed]:
        """Those whose fate is open, or that wait for the verdict."""
        return [placed for placed in self._frames if not placed.entry.decided or placed.waits]

    def crossing(self, place: int) -> Placed | None:
        """The one that begins before ``place`` and ends behind it."""
        for placed in self._frames:
            if placed.start >= place:
                return None
            if placed.end > place:
                return placed
        return None

    def last_of(self, choice: int) -> Placed | None:
        """The last one that adds text to the choice or finishes it, if none of it has left."""
        for placed in reversed(self._frames):
            if self._has_left(placed):
                return None
            for delta in placed.entry.chunk.deltas:
                if delta.index == choice and (delta.finish_reason is not None or delta.text):
                    return placed
        return None

    def end(self, *, over: bool) -> Placed | None:
        """Where the end of the stream begins, if none of it has left: the marker, or the count of tokens before it.

        Without a marker a count is the end only where the stream is ``over``.
        """
        frames = [placed for placed in self._frames if not self._has_left(placed)]
        kinds = [placed.entry.chunk.kind for placed in frames]
        place = end_of(kinds)
        known = over or ChunkKind.DONE in kinds
        return frames[place] if known and place < len(frames) else None

    def decide_all(self) -> None:
        """Let all of them leave as they are."""
        for placed in self._frames:
            placed.entry.decided = True

    def let_finish_go(self) -> None:
        """Let what belongs to the end of the answer leave before the verdict, but for the marker."""
        for placed in self._frames:
            placed.waits = placed.waits and placed.entry.chunk.kind is ChunkKind.DONE

    def _has_left(self, placed: Placed) -> bool:
        """Whether its beginning has."""
        return placed.start < self._released and not placed.carried

    def released(self, place: int) -> None:
        """All bytes before ``place`` have left."""
        self._released = place
        while self._frames and self._frames[0].end <= place:
            self._frames.popleft()
            self._settled = max(0, self._settled - 1)


class Tail:
    """The beginning of a frame that has not come to its end: what it may turn out to be."""

    def __init__(self) -> None:
        self._bytes = b""

    def follow(self, data: bytes, *, held: int) -> None:
        """``data`` has come, and ``held`` bytes in all belong to a frame that is not whole."""
        self._bytes = (self._bytes + data)[-held:] if 0 < held <= _LONGEST_TAIL else b""

    @property
    def may_be_done(self) -> bool:
        """Whether it may turn out to be the marker, before which the verdict has to go."""
        return bool(self._bytes) and any(
            self._bytes.startswith(line) or line.startswith(self._bytes) for line in _DONE_LINES
        )

    @property
    def is_comment(self) -> bool:
        """Whether all that has come are whole lines of comment: a sign of life, not data."""
        return are_comments(self._bytes)


def are_comments(data: bytes) -> bool:
    """Whether these are whole lines of comment, and nothing else."""
    return data.endswith((b"\n", b"\r")) and all(line.startswith(b":") for line in data.splitlines())

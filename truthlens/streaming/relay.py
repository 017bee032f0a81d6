"""The messages of one streamed body: cut into frames, held until what they carry is decided, acknowledged in order.

Pure: no clock, no I/O. What is decided, and when, is for ``gate`` and ``flow``. No byte of a message leaves with the
acknowledgement of an earlier one, except for what is put in beside frames: whatever is not acknowledged when this process
dies, Envoy lets pass as it came, so that nothing is lost or doubled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from truthlens.core.records import Endpoint
from truthlens.exchange.chunks import ChunkKind, Transcript, parse_chunk
from truthlens.exchange.edits import content_chunk, edit_content
from truthlens.exchange.sse import Decoder, Frame, encode
from truthlens.streaming.contract import Ack, Entry

_DONE_LINES = (b"data: [DONE]", b"data:[DONE]")
_LONGEST_DONE = len(_DONE_LINES[0]) + 3


@dataclass(slots=True)
class _Placed:
    """An entry with its place in the stream, in bytes, and what is put in before and behind it.

    ``waits``: it belongs to the end of the answer, which leaves once the verdict is known.
    """

    start: int
    end: int
    entry: Entry
    waits: bool = False
    before: bytes = b""
    after: bytes = b""


@dataclass(slots=True)
class _Message:
    """A message that is not acknowledged yet; ``start`` is its place in the stream, in bytes."""

    start: int
    data: bytes
    last: bool
    extra: bytes = b""

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Relay:
    """One streamed body on its way to the client.

    The end of the answer (the frame with which the last choice finishes, and all behind it) waits for ``close``, ``open``
    or ``stop``. What comes before it leaves at once, or under a gate when it is decided.

    Args:
        endpoint: the API of the stream.
        choices: how many answers were asked for; the answer has ended once that many have finished.
        gated: entries wait until somebody decides them.
        max_bytes: of the stream, beyond which its text is no longer collected.
    """

    def __init__(self, endpoint: Endpoint, *, choices: int, gated: bool, max_bytes: int) -> None:
        self.transcript = Transcript(endpoint)
        self.total_bytes = 0
        self.ended = False
        """Whether the whole answer has come: every choice has finished, or the marker or the end of the body was seen."""
        self.overflowed = False
        """Whether the stream went beyond ``max_bytes``: the transcript lacks what came after."""
        self._decoder = Decoder()
        self._choices = choices
        self._max_bytes = max_bytes
        self._gated = gated
        self._open = False
        self._stopped = False
        self._truncated = False
        self._newline = b"\n"
        self._closing = b""  # what is still to be said where a cut found no frame to say it in
        self._messages: deque[_Message] = deque()
        self._frames: deque[_Placed] = deque()
        self._settled = 0  # index in _frames of the first that was not found to be free to leave
        self._ready: list[Ack] = []
        self._released = 0  # bytes of the stream whose messages were acknowledged
        self._tail = b""

    @property
    def held_bytes(self) -> int:
        """Bytes of messages that are not acknowledged yet."""
        return self.total_bytes - self._released

    @property
    def newline(self) -> bytes:
        """The line end of the stream's frames, for frames that are put in."""
        return self._newline

    def feed(self, data: bytes, *, end: bool) -> list[Entry]:
        """Take in the next message; the entries that it completes, in order. ``end`` says that it is the last one."""
        message = _Message(self.total_bytes, data, end)
        self.total_bytes += len(data)
        frames = self._decoder.feed(data)
        place = self.total_bytes - self._decoder.held_bytes - sum(len(frame.raw) for frame in frames)
        if end and (rest := self._decoder.finish()) is not None:
            frames.append(rest)
            self._truncated = not rest.whole
        self._remember_tail(data)
        entries = []
        for frame in frames:
            entry, ended = self._read(frame), self.ended
            self.ended = ended or self._has_ended(entry)
            entries.append(entry)
            if self._stopped:
                entry.output, self._closing = self._closing, b""
            entry.decided = not self._gated or self._open
            placed = _Placed(place, place + len(frame.raw), entry, waits=self.ended)
            place = placed.end
            self._frames.append(placed)
        if end:
            self.ended = True
            message.extra, self._closing = self._closing, b""
        self._messages.append(message)
        if frames:
            self._newline = frames[-1].newline
        return entries

    def acks(self) -> list[Ack]:
        """The acknowledgements that may be sent now, in order; each is given out once."""
        limit = self._limit()
        while count := self._leaving(limit):
            for _ in range(count):
                message = self._messages.popleft()
                self._ready.append(self._ack(message))
                self._released = message.end
                self._forget()
        ready, self._ready = self._ready, []
        return ready

    def open(self) -> None:
        """Let everything pass that is held and that follows."""
        self._open = True
        for placed in self._frames:
            placed.entry.decided = True

    def close(self, closing: Mapping[int, str], final: bytes) -> None:
        """Put in what is to be said at the end of the answer, and let everything pass.

        Args:
            closing: per choice the text that goes behind its own: before its finish, or where that has left, before the
                marker.
            final: the frames that go before the marker, or at the end of the body where there is none. They are left
                out behind a frame that was cut off, which they would make whole.
        """
        for choice, text in closing.items():
            self._append(choice, text)
        self._put(self._done(), final)
        self.open()

    def hold(self, entry: Entry) -> None:
        """Let ``entry`` and what follows it wait for ``stop``: the answer has ended there."""
        self.ended = True
        found = False
        for placed in self._frames:
            found = found or placed.entry is entry
            placed.waits = placed.waits or found

    def stop(self, entry: Entry, final: bytes) -> None:
        """End the stream behind ``entry`` with the frames ``final``; nothing that follows leaves."""
        self._stopped = True
        left = all(placed.entry is not entry for placed in self._frames)
        found = left
        for placed in self._frames:
            if found:
                placed.entry.output, placed.before, placed.after = b"", b"", b""
            elif placed.entry is entry:
                found = True
                placed.after += final
        if left:
            self._close_next(final)
        self.open()

    def cut(self, final: bytes) -> None:
        """End the stream with the frames ``final`` before whatever is not decided yet; nothing else leaves."""
        self._stopped = True
        undecided = [placed for placed in self._frames if not placed.entry.decided or placed.waits]
        for placed in undecided:
            placed.entry.output, placed.before, placed.after = b"", b"", b""
        if undecided:
            undecided[0].entry.output = final
        else:
            self._close_next(final)
        self.open()

    def _close_next(self, final: bytes) -> None:
        """Let ``final`` leave in the place of the next frame, or at the end of the body."""
        if self._messages and self._messages[-1].last:
            self._messages[-1].extra += final
        else:
            self._closing = final

    def _read(self, frame: Frame) -> Entry:
        self.overflowed = self.overflowed or self.total_bytes > self._max_bytes
        chunk = parse_chunk(frame, self.transcript.endpoint)
        if self.overflowed:
            return Entry(frame, chunk)
        before = {delta.index: self._length(delta.index) for delta in chunk.deltas}
        self.transcript.add(chunk)
        texts = {
            index: (start, length)
            for index, start in before.items()
            if (length := self.transcript.choices[index].length) > start
        }
        return Entry(frame, chunk, texts)

    def _length(self, index: int) -> int:
        choice = self.transcript.choices.get(index)
        return choice.length if choice is not None else 0

    def _has_ended(self, entry: Entry) -> bool:
        if entry.chunk.kind is ChunkKind.DONE:
            return True
        if not any(delta.finish_reason is not None for delta in entry.chunk.deltas):
            return False
        found = self.transcript.choices
        return len(found) >= self._choices and all(choice.finished for choice in found.values())

    def _remember_tail(self, data: bytes) -> None:
        held = self._decoder.held_bytes
        self._tail = (self._tail + data)[-held:] if 0 < held <= _LONGEST_DONE else b""

    def _may_be_done(self) -> bool:
        """Whether the frame that has begun may turn out to be the marker, before which the verdict has to go."""
        return bool(self._tail) and any(
            self._tail.startswith(line) or line.startswith(self._tail) for line in _DONE_LINES
        )

    def _limit(self) -> int:
        """Bytes of the stream that are free to leave."""
        while self._settled < len(self._frames):
            placed = self._frames[self._settled]
            if not placed.entry.decided or (placed.waits and not self._open):
                return placed.start
            self._settled += 1
        begun = self._decoder.held_bytes
        free = self._open or not (self._gated or self.ended or self._may_be_done())
        return self.total_bytes if free else self.total_bytes - begun

    def _leaving(self, limit: int) -> int:
        """How many messages, from the first on, leave now and cannot leave without each other; 0 for none."""
        for count, message in enumerate(self._messages, start=1):
            if message.end > limit or (message.last and not self._open):
                return 0
            crossing = self._crossing(message.end)
            if crossing is None or crossing.entry.output is None:
                return count
        return 0

    def _crossing(self, place: int) -> _Placed | None:
        """The frame that begins before ``place`` and ends behind it."""
        for placed in self._frames:
            if placed.start >= place:
                return None
            if placed.end > place:
                return placed
        return None

    def _ack(self, message: _Message) -> Ack:
        pieces: list[bytes] = []
        start, end = message.start, message.end
        place = start
        for placed in self._frames:
            if placed.start >= end:
                break
            if placed.start >= start:
                pieces.append(placed.before)
            if placed.entry.output is None:
                pieces.append(message.data[max(placed.start, start) - start : placed.end - start])
            elif placed.end <= end:
                pieces.append(placed.entry.output)
            if placed.end <= end:
                pieces.append(placed.after)
            place = min(placed.end, end)
        if not self._stopped:
            pieces.append(message.data[place - start :])
        pieces.append(message.extra)
        body = b"".join(pieces)
        return Ack(None if body == message.data else body, end=message.last)

    def _forget(self) -> None:
        """Let go of frames that have left."""
        while self._frames and self._frames[0].end <= self._released:
            self._frames.popleft()
            self._settled = max(0, self._settled - 1)

    def _append(self, choice: int, text: str) -> None:
        target = self._finish_of(choice)
        if target is not None and choice in target.entry.texts and self._lengthen(target.entry, choice, text):
            return
        self._put(
            target or self._done(),
            encode(content_chunk(self.transcript, choice, text), newline=self._newline),
        )

    def _lengthen(self, entry: Entry, choice: int, text: str) -> bool:
        """Put ``text`` behind the choice's own in the frame that finishes it; false where none holds any."""
        endpoint = self.transcript.endpoint
        frames = [entry.frame] if entry.output is None else Decoder().feed(entry.output)
        for place, frame in enumerate(frames):
            deltas = [delta for delta in parse_chunk(frame, endpoint).deltas if delta.index == choice]
            own = "".join(delta.text for delta in deltas)
            if own and any(delta.finish_reason is not None for delta in deltas):
                raws = [each.raw for each in frames]
                raws[place] = edit_content(frame, choice, own + text, endpoint=endpoint)
                entry.output = b"".join(raws)
                return True
        return False

    def _finish_of(self, choice: int) -> _Placed | None:
        for placed in self._frames:
            for delta in placed.entry.chunk.deltas:
                if (
                    delta.index == choice
                    and delta.finish_reason is not None
                    and placed.start >= self._released
                ):
                    return placed
        return None

    def _done(self) -> _Placed | None:
        for placed in self._frames:
            if placed.entry.chunk.kind is ChunkKind.DONE and placed.start >= self._released:
                return placed
        return None

    def _put(self, target: _Placed | None, frames: bytes) -> None:
        if target is not None:
            target.before += frames
        elif self._messages and self._messages[-1].last and not self._truncated:
            self._messages[-1].extra += frames

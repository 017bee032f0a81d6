"""The messages of one streamed body: cut into frames, held until what they carry is decided, acknowledged in order.

Pure: no clock, no I/O. What is decided, and when, is for ``gate`` and ``driver``. No byte of a message leaves with the
acknowledgement of an earlier one, except for what is put in beside frames: whatever is not acknowledged when this process
dies, Envoy lets pass as it came, so that nothing is lost or doubled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto

from truthlens.api.sse.chunk_edits import content_chunk
from truthlens.api.sse.chunks import MOST_CHOICES, Chunk, ChunkKind, Transcript, is_torn, skimmed
from truthlens.api.sse.frames import MAX_FRAME_BYTES, Decoder, Frame, encode, reread
from truthlens.api.sse.skeletons import ChunkReader
from truthlens.core.records.enums import Endpoint
from truthlens.streaming.frame_edits import lengthen, owned
from truthlens.streaming.frame_queue import Frames, Placed, Tail, are_comments
from truthlens.streaming.reading import SteppedReading
from truthlens.streaming.types import Ack, StreamEntry

# What is checked while it streams; more than any model writes, and little enough to be read before others notice.
MOST_FRAME_BYTES = 4 * MAX_FRAME_BYTES
MOST_TEXT_CHARS = 1 << 20
# Of what is not read any more: how much of it is text, nobody knows.
_BYTES_PER_TOKEN = 4


class _Phase(IntEnum):
    """How far the answer has come, as far as the stream tells."""

    TEXT = auto()
    FINISHED = auto()
    """Every choice has finished, as far as it could be told: more may follow all the same."""
    ENDED = auto()
    """The body has ended, or ``hold`` was told that nothing else counts."""
    DONE = auto()
    """The marker was seen."""


class _Leave(IntEnum):
    """What may leave, from the least on."""

    HELD = auto()
    """What a gate has decided, and without one all but the end of the answer."""
    END = auto()
    """The end as well."""
    ALL = auto()
    """Whatever comes, undecided."""
    NOTHING = auto()
    """What was put in last, and nothing that comes behind it: the stream was cut."""


@dataclass(slots=True)
class _Message:
    """A message that is not acknowledged yet; ``start`` is its place in the stream, in bytes.

    ``last``: the body ends with it, and it was read to its end.
    """

    start: int
    data: bytes
    last: bool = False
    extra: bytes = b""

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Relay:
    """One streamed body on its way to the client.

    The end of the answer waits for ``close``, ``stop``, ``cut`` or ``open``: the frame with which the last choice finishes,
    unless more text follows it, the marker, the end of the body. What comes before it leaves at once, or under a gate
    when it is decided.

    Args:
        endpoint: the API of the stream.
        choices: how many answers were asked for.
        gated: entries wait until somebody decides them.
        max_bytes: of the stream, beyond which its text is no longer collected.
        cites: evidence may come with the answer.
    """

    def __init__(
        self, endpoint: Endpoint, *, choices: int, gated: bool, max_bytes: int, cites: bool = False
    ) -> None:
        self.transcript = Transcript(endpoint)
        self.total_bytes = 0
        self.text_length = 0
        """Characters of all choices."""
        self.reasoning_length = 0
        """Characters of reasoning in fields of its own."""
        self.overflowed = False
        """Whether the stream went beyond its bounds: the transcript lacks what came after."""
        self._decoder = Decoder(max_frame_bytes=MOST_FRAME_BYTES, merge_silent=True)
        self._choices = choices
        self._max_bytes = max_bytes
        self._reader = ChunkReader(endpoint, cites=cites)
        self._has_gate = gated
        self._leave = _Leave.HELD
        self._phase = _Phase.TEXT
        self._waiting = False  # the end of the answer seems to have come
        self._truncated = False
        self._unended = b""  # the line ends that a last frame lacks which says all that it has to say
        self._newline = b"\n"
        self._closing = b""  # what is still to be said where a cut found no frame to say it in
        self._pending = (
            b""  # what belongs before the marker or at the end of the body, and came before either
        )
        self._messages: deque[_Message] = deque()
        self._frames = Frames()
        self._ready: list[Ack] = []
        self._read_bytes = 0
        self._released = 0  # bytes of the stream whose messages were acknowledged
        self._carried_to = 0
        self._tail = Tail()

    @property
    def finished(self) -> bool:
        """Whether the answer has come to its end, as far as it could be told: more may follow all the same."""
        return self._phase >= _Phase.FINISHED

    @property
    def ended(self) -> bool:
        """Whether the marker or the end of the body was seen, or ``hold`` was told that nothing else counts."""
        return self._phase >= _Phase.ENDED

    @property
    def _gated(self) -> bool:
        """Whether somebody decides what leaves."""
        return self._has_gate and self._leave < _Leave.ALL

    @property
    def _open(self) -> bool:
        """Whether the end may go."""
        return self._leave is not _Leave.HELD

    @property
    def _passing(self) -> bool:
        """Whether all leaves as it comes, and nothing of it is scored."""
        return self._open and not self._gated

    @property
    def _cut(self) -> bool:
        return self._leave is _Leave.NOTHING

    @property
    def held_bytes(self) -> int:
        """Bytes of messages that are not acknowledged yet."""
        return self.total_bytes - self._released

    @property
    def held_frames(self) -> int:
        """Frames that have not left."""
        return len(self._frames)

    @property
    def unread(self) -> bool:
        """Whether a message has come that is not read to its end."""
        return self._read_bytes < self.total_bytes

    @property
    def begun_bytes(self) -> int:
        """Bytes of a frame that has not come to its end."""
        return self._decoder.held_bytes

    @property
    def newline(self) -> bytes:
        """The line end of the stream's frames, for frames that are put in."""
        return self._newline

    def feed(
        self, *messages: bytes, end: bool, take: Callable[[StreamEntry], None] | None = None
    ) -> list[StreamEntry]:
        """Take in the next messages at once; see ``reading``.

        Returns:
            The entries that they complete, in order.
        """
        return [entry for entries in self.reading(messages, end=end, take=take) for entry in entries]

    def reading(
        self, messages: Sequence[bytes], *, end: bool, take: Callable[[StreamEntry], None] | None = None
    ) -> SteppedReading:
        """Take in the next messages, in steps, so that much of it does not hold up other streams.

        What was read may leave between two steps; a message as a whole leaves after its last.

        Args:
            messages: their bodies; they are read as one.
            end: whether the last of them ends the body.
            take: given each entry that is completed as soon as the transcript has it, while the stream is open.

        Returns:
            The entries that each step completes, in order.
        """
        for data in messages:
            self._messages.append(_Message(self.total_bytes, data))
            self.total_bytes += len(data)
        final = self._messages[-1] if end else None
        return SteppedReading(
            messages[0] if len(messages) == 1 else b"".join(messages),
            lambda data, last: self._read_step(data, message=final if last else None, take=take),
        )

    def _read_step(
        self, data: bytes, *, message: _Message | None, take: Callable[[StreamEntry], None] | None
    ) -> list[StreamEntry]:
        """Read on; ``message`` is the last one, where its last bytes are read."""
        self._read_bytes += len(data)
        frames = self._decoder.feed(data)
        place = self._read_bytes - self._decoder.held_bytes - sum(len(frame.raw) for frame in frames)
        rest = self._decoder.finish() if message is not None else None
        if rest is not None:
            frames.append(rest)
        self._tail.follow(data, held=self._decoder.held_bytes)
        entries = []
        for frame in frames:
            placed = self._place(frame, place)
            place = placed.end
            entries.append(placed.entry)
            if take is not None and self._gated and not placed.entry.decided:
                take(placed.entry)
                placed.entry.decided |= not self._gated
        self._newline = next((frame.newline for frame in reversed(frames) if frame.whole), self._newline)
        if rest is not None and not rest.whole:
            self._truncated = is_torn(rest, entries[-1].chunk)
            self._unended = self._newline * (1 if rest.raw.endswith((b"\r", b"\n")) else 2)
        if message is not None:
            self._phase, message.last = max(self._phase, _Phase.ENDED), True
            message.extra, self._closing = self._closing, b""
            if not self._truncated and not self._cut:
                message.extra += self._pending
        return entries

    def acks(self) -> list[Ack]:
        """The acknowledgements that may be sent now, in order; each is given out once."""
        limit = self._limit()
        while count := self._leaving(limit):
            for _ in range(count):
                message = self._messages.popleft()
                self._ready.append(self._ack(message))
                self._released = message.end
                self._frames.released(message.end)
        ready, self._ready = self._ready, []
        return ready

    def unwait(self) -> None:
        """Let the finish of the answer go before the verdict is known; the marker goes on waiting."""
        self._waiting = False
        self._frames.let_finish_go()

    def carry(self) -> None:
        """Let messages go that only wait for the rest of a frame; what has come of it leaves with the rest.

        If this process dies before that, the beginning of the frame is lost. So this is for a backend that has fallen
        silent in the middle of a frame, and no other.
        """
        if self._read_bytes - self._decoder.held_bytes >= self._released:
            self._carried_to = self._read_bytes

    def open(self) -> None:
        """Let everything pass that is held and that follows, unless the stream was cut."""
        self._leave = max(self._leave, _Leave.ALL)
        self._frames.decide_all()

    def close(self, closing: Mapping[int, str], final: bytes) -> None:
        """Put in what is to be said at the end of the answer, and let the end go.

        Args:
            closing: per choice the text that goes behind its own: before its finish, or where that has left, before the
                marker.
            final: the frames that go before the marker and the count of tokens before it, or at the end of the body
                where there is neither. They are left out behind a frame that was cut in its middle, which they would
                make whole; one that lacks nothing but its blank line gets that.
        """
        for choice, text in closing.items():
            self._append(choice, text)
        self._put(self._frames.end(over=self.ended), final)
        self.let_end_go()

    def let_end_go(self) -> None:
        """Let the end of the answer go as it is; a gate goes on deciding what comes."""
        self._leave = max(self._leave, _Leave.END)

    def hold(self, entry: StreamEntry) -> None:
        """Let ``entry`` and what follows it wait for ``stop``: the answer has ended there."""
        self._phase, self._waiting = max(self._phase, _Phase.ENDED), True
        found = False
        for placed in self._frames:
            found = found or placed.entry is entry
            placed.waits = placed.waits or found

    def stop(self, entry: StreamEntry, final: bytes) -> None:
        """End the stream behind ``entry`` with the frames ``final``; nothing that follows leaves."""
        self._leave = _Leave.NOTHING
        left = all(placed.entry is not entry for placed in self._frames)
        found = left
        for placed in self._frames:
            if found:
                placed.drop()
            elif placed.entry is entry:
                found = True
                placed.after += final
        if left:
            self._close_next(final)
        self.open()

    def unfinished(self) -> list[int]:
        """The choices whose finish the client does not get where the stream is ``cut``; the first where none has begun."""
        choices = self.transcript.choices
        gone = {
            delta.index
            for placed in self._frames.undecided()
            for delta in placed.entry.chunk.deltas
            if delta.finish_reason is not None
        }
        left = [index for index, choice in choices.items() if not choice.finished or index in gone]
        return left if choices else [0]

    def cut(self, final: bytes) -> None:
        """End the stream with the frames ``final`` before whatever is not decided yet; nothing else leaves."""
        self._leave = _Leave.NOTHING
        undecided = self._frames.undecided()
        for placed in undecided:
            placed.drop()
        if undecided:
            undecided[0].entry.output = final
        else:
            self._close_next(final)
        self.open()

    def _place(self, frame: Frame, start: int) -> Placed:
        end = start + len(frame.raw)
        carried = start < self._carried_to
        left = 0 if carried else max(0, self._released - start)
        if left and are_comments(frame.raw[:left]):
            # Whole lines: what follows them is a frame of its own.
            frame, start, left = reread(frame, frame.raw[left:]), self._released, 0
        entry = self._read(frame, end)
        if entry.frame is not frame and not left:
            # Of what has begun to leave nothing can be taken back.
            entry.output = entry.frame.raw
        placed = Placed(start, end, entry, carried=carried)
        self._frames.add(placed)
        if self._cut:
            entry.output, self._closing = self._closing, b""
            entry.decided = True
            return placed
        entry.decided = not self._gated
        if self._phase is _Phase.DONE:
            self._place_behind(entry)
        elif entry.chunk.kind is ChunkKind.DONE:
            self._phase = _Phase.DONE
            if not left:
                placed.before, self._pending = self._pending, b""
            placed.waits = not self._open
        else:
            self._watch_end(entry)
            placed.waits = self._waiting
        return placed

    def _place_behind(self, entry: StreamEntry) -> None:
        """What stands behind the marker: no client reads it, and under a gate no data leaves that nobody has scored."""
        if self._gated and entry.chunk.kind not in (ChunkKind.BLANK, ChunkKind.DONE):
            entry.output = b""
        entry.decided = True

    def _watch_end(self, entry: StreamEntry) -> None:
        if self._open or self.ended:
            return
        if self.finished:
            if entry.texts:
                # What looked like the end was not: choices that were not counted, or a finish in between.
                self.unwait()
        elif any(delta.finish_reason is not None for delta in entry.chunk.deltas):
            found = self.transcript.choices
            done = len(found) >= self._choices and all(choice.finished for choice in found.values())
            self._waiting = done
            if done:
                self._phase = _Phase.FINISHED

    def _read(self, frame: Frame, end: int) -> StreamEntry:
        if self._cut:
            return StreamEntry(frame, _NOTHING)
        too_many = len(self.transcript.choices) > MOST_CHOICES
        self.overflowed |= too_many or end > self._max_bytes or frame.oversize
        if self._passing:
            # Nobody scores it any more: only what a backend says in our name, and the marker, are of interest.
            return owned(frame, skimmed(frame, self.transcript.endpoint))
        chunk, skeleton = self._reader.read(frame)
        grown = self.text_length + sum(len(delta.text) for delta in chunk.deltas)
        self.overflowed |= grown > MOST_TEXT_CHARS
        entry = owned(frame, chunk, skeleton)
        chunk = entry.chunk
        if self._phase is _Phase.DONE:
            if not self._gated and (
                chunk.unread_tokens or chunk.kind not in (ChunkKind.BLANK, ChunkKind.DONE)
            ):
                # Behind the marker, where nobody scores it.
                self.transcript.unread_tokens += len(frame.raw) // _BYTES_PER_TOKEN + 1
            return entry
        if self.overflowed:
            self.transcript.unread_tokens += len(frame.raw) // _BYTES_PER_TOKEN
            return entry
        before = {delta.index: self._length(delta.index) for delta in chunk.deltas}
        self.transcript.add(chunk)
        entry.texts = {
            index: (start, length)
            for index, start in before.items()
            if (length := self.transcript.choices[index].length) > start
        }
        self.text_length += sum(end - start for start, end in entry.texts.values())
        self.reasoning_length += sum(len(delta.reasoning) for delta in chunk.deltas)
        return entry

    def _length(self, index: int) -> int:
        choice = self.transcript.choices.get(index)
        return choice.length if choice is not None else 0

    def _limit(self) -> int:
        """Bytes of the stream that are free to leave."""
        held = self._frames.first_held(end_may_go=self._open)
        if held is not None:
            return held
        whole = self._read_bytes - self._decoder.held_bytes
        if self._cut:
            return self._read_bytes
        if whole < self._carried_to:
            # What had come of this frame was kept back: what follows of it waits with it.
            return self._carried_to
        if self._tail.is_comment or (self._passing and not (self._pending and self._tail.may_be_done)):
            return self._read_bytes
        if not (self._gated or self._waiting or self.ended or self._tail.may_be_done):
            return self._read_bytes
        return max(whole, self._carried_to)

    def _leaving(self, limit: int) -> int:
        """How many messages, from the first on, leave now and cannot leave without each other; 0 for none."""
        for count, message in enumerate(self._messages, start=1):
            if message.end > limit or (message.last and not self._open):
                return 0
            crossing = self._frames.crossing(message.end)
            if crossing is None or crossing.output is None:
                return count
        return 0

    def _ack(self, message: _Message) -> Ack:
        pieces: list[bytes] = []
        start, end = message.start, message.end
        place = start
        for placed in self._frames:
            if placed.start >= end:
                break
            output = placed.output
            if placed.start >= start or (placed.carried and placed.end <= end):
                pieces.append(placed.before)
                placed.before = b""
            if output is None:
                pieces.append(message.data[max(placed.start, start) - start : placed.end - start])
            elif placed.end <= end:
                pieces.append(output)
            if placed.end <= end:
                pieces.append(placed.after)
            place = min(placed.end, end)
        if not self._cut and end > self._carried_to:
            pieces.append(message.data[place - start :])
        if message.extra:
            pieces += (self._unended, message.extra)
        body = b"".join(pieces)
        return Ack(None if body == message.data else body, end=message.last)

    def _append(self, choice: int, text: str) -> None:
        target = self._frames.last_of(choice)
        chunk = encode(content_chunk(self.transcript, choice, text), newline=self._newline)
        if target is None:
            self._put(self._frames.end(over=self.ended), chunk)
        elif all(d.finish_reason is None for d in target.entry.chunk.deltas if d.index == choice):
            if target.entry.frame.whole:
                target.after += chunk
            else:
                target.after += self._unended + chunk
        elif choice not in target.entry.texts:
            target.before += chunk
        elif not lengthen(target.entry, choice, text, self.transcript.endpoint):
            target.after += chunk

    def _put(self, target: Placed | None, frames: bytes) -> None:
        """Put ``frames`` before ``target``, or where there is none before what comes last."""
        if target is not None:
            target.before += frames
        elif not (self._messages and self._messages[-1].last):
            self._pending += frames
        elif not self._truncated:
            self._messages[-1].extra += frames

    def _close_next(self, final: bytes) -> None:
        """Let ``final`` leave in the place of the next frame, or at the end of the body."""
        if self._messages and self._messages[-1].last:
            self._messages[-1].extra += final
        else:
            self._closing = final


_NOTHING = Chunk(ChunkKind.BLANK)

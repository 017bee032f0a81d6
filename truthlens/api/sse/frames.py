"""Server-sent events cut into frames and put together again, byte for byte.

Deliberately not here: what the frames say (``chunks``), reconnection (``id`` and ``retry`` are kept, not
acted on). Source: WHATWG HTML Living Standard, section 9.2.5 and 9.2.6 (event stream format and
interpretation).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from truthlens.text.json_edit import show

MAX_FRAME_BYTES = 1_048_576

_PLAIN = b"data: "
# Frames without a field, one after the other: comments and blank lines.
_SILENT = re.compile(rb"(?:(?::[^\r\n]*+\r?\n)*+\r?\n)++")
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"[\r\n]")
_TEXT_LINE_END = re.compile(r"\r\n|\r|\n")
_OTHER_FIELDS = (b"id", b"retry", b"")
_CR, _LF = b"\r"[0], b"\n"[0]


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream with the blank line that ends it.

    ``raw`` is all its bytes. ``data`` is its data lines, joined by line feeds; ``None`` where it has none, or
    where they cannot be read (``invalid``: not UTF-8; ``oversize``: a piece of a frame beyond the limit).
    ``comment`` says that at least one line is a comment. ``whole`` is false where the blank line is not in
    ``raw``: nothing may be put between this frame and the bytes that follow it. ``lead`` counts the bytes
    before the first line: a byte order mark. ``foreign`` says that a line has a field which the format does
    not know, such as ``data`` behind a byte order mark in the middle of the stream.
    """

    raw: bytes = field(repr=False)
    data: str | None = field(default=None, repr=False)
    event: str = ""
    comment: bool = False
    whole: bool = True
    invalid: bool = False
    oversize: bool = False
    lead: int = 0
    foreign: bool = False

    @property
    def newline(self) -> bytes:
        """The line end of the frame, for frames added next to it; LF if it has none."""
        for end in (b"\r\n", b"\r"):
            if self.raw.endswith(end):
                return end
        return b"\n"


class Decoder:
    """Frames of a stream that arrives in pieces cut anywhere; how it was cut does not change the frames.

    A CR may be half a line end. One that ends a frame is waited on for one byte, except after a line that
    ended with a CR alone: there the frame is given out at once, and an LF that follows is a blank frame.
    """

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES, merge_silent: bool = False) -> None:
        """Hold at most ``max_frame_bytes`` of an unfinished frame.

        A longer frame is given out in pieces of that size, each marked ``oversize``. With ``merge_silent``
        several frames that are comments and blank lines alone may come as one: there are backends that send
        thousands at once.

        Raises:
            ValueError: The limit is below 4 bytes, where not even a byte order mark and a line end fit.
        """
        if max_frame_bytes < 4:
            raise ValueError(f"max_frame_bytes is {max_frame_bytes}; expected 4 or more")
        self._limit = max_frame_bytes
        self._buffer = bytearray()
        # Positions in the buffer. A line whose beginning was given out already starts before it, below 0.
        self._start = 0
        self._line = 0
        self._scan = 0
        self._first = True
        self._line_ended_by_cr = False
        self._oversize = False
        self._merge_silent = merge_silent

    @property
    def held_bytes(self) -> int:
        """Bytes fed and not yet given out; never more than the limit."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that ``data`` completes, in order."""
        frames: list[Frame] = []
        if self._buffer:
            self._buffer += data
            end = self._next_frame_end()
            if end is not None:
                frames += self._take(end)
                self._drop_taken()
                data = bytes(self._buffer)
                self._buffer.clear()
        if not self._buffer:
            self._buffer += data[self._feed_plain(data, frames) :]
        while (end := self._next_frame_end()) is not None:
            frames += self._take(end)
        while len(self._buffer) - self._start > self._limit:
            self._oversize = True
            frames.append(self._piece(self._start + self._limit, whole=False))
        self._drop_taken()
        return frames

    def _feed_plain(self, data: bytes, frames: list[Frame]) -> int:
        """Read the frames at the front of ``data`` that are one data line each, ended by LF; where they end.

        Nearly all frames of nearly all streams are such. Nothing may be held, so that ``data`` begins with a
        frame.
        """
        start = 0
        while True:
            if not data.startswith(_PLAIN, start):
                silent = _SILENT.match(data, start) if self._merge_silent else None
                if silent is None or silent.end() - start > self._limit:
                    break
                frames.append(Frame(silent[0], comment=b":" in silent[0]))
                start = silent.end()
                self._first = False
                continue
            end = data.find(b"\n", start)
            if end < 0 or data[end + 1 : end + 2] != b"\n" or end + 2 - start > self._limit:
                break
            value = data[start + len(_PLAIN) : end]
            if b"\r" in value:
                break
            try:
                frames.append(Frame(data[start : end + 2], value.decode()))
            except UnicodeDecodeError:
                break
            start = end + 2
            self._first = False
        return start

    def finish(self) -> Frame | None:
        """Return what is left at the end of the stream, or ``None``; the decoder cannot be used afterwards.

        The frame is not ``whole`` where its blank line never came. Browsers drop such a frame.
        """
        buffer = self._buffer
        if not buffer:
            return None
        # A last CR was waited on.
        blank = self._scan < len(buffer) and self._scan == self._line_start(self._scan)
        if self._oversize:
            frame = self._piece(len(buffer), whole=blank)
        else:
            frame = _read(bytes(buffer), self._lead(), whole=blank)
        buffer.clear()
        return frame

    def _next_frame_end(self) -> int | None:
        """Return the position after the next blank line, or ``None`` if it has not come."""
        buffer = self._buffer
        while match := _LINE_END.search(buffer, self._scan):
            place = match.start()
            blank = place == self._line_start(place)
            is_cr = buffer[place] == _CR
            after = place + 1
            if is_cr and not (blank and self._line_ended_by_cr):
                if after == len(buffer):
                    self._scan = place
                    return None
                if buffer[after] == _LF:
                    after += 1
                    is_cr = False
            if blank:
                return after
            self._line_ended_by_cr = is_cr
            self._line = self._scan = after
        self._scan = len(buffer)
        return None

    def _take(self, end: int) -> Iterator[Frame]:
        """Yield the frame that ends at ``end``, or its pieces."""
        if self._oversize or end - self._start > self._limit:
            self._oversize = True
            while end - self._start > self._limit:
                yield self._piece(self._start + self._limit, whole=False)
            yield self._piece(end, whole=True)
        else:
            yield _read(bytes(self._buffer[self._start : end]), self._lead(), whole=True)
        self._start = self._line = self._scan = end
        self._first = self._line_ended_by_cr = self._oversize = False

    def _piece(self, end: int, *, whole: bool) -> Frame:
        raw = bytes(self._buffer[self._start : end])
        self._start = end
        # What follows in the buffer is not the start of the stream any more.
        self._first = False
        return Frame(raw=raw, oversize=True, whole=whole)

    def _line_start(self, end: int) -> int:
        """Return where the line that ends at ``end`` starts, after the byte order mark of the stream."""
        if self._first and self._line == 0 and end >= len(_BOM) and self._buffer.startswith(_BOM):
            self._line = len(_BOM)
        return self._line

    def _lead(self) -> int:
        return len(_BOM) if self._first and self._buffer.startswith(_BOM) else 0

    def _drop_taken(self) -> None:
        taken = self._start
        del self._buffer[:taken]
        self._start = 0
        self._line -= taken
        self._scan -= taken


def encode(data: str, *, event: str = "", newline: bytes = b"\n") -> bytes:
    r"""Encode one frame that carries ``data``; its line breaks (CR too) arrive as line feeds.

    Args:
        data: Text; a lone surrogate becomes U+FFFD.
        event: The event's type, ``""`` for none.
        newline: ``b"\n"``, ``b"\r\n"`` or ``b"\r"``.

    Raises:
        ValueError: ``event`` holds a line break, or ``newline`` is no line end.
    """
    if _TEXT_LINE_END.search(event):
        raise ValueError("event holds a line break; expected one line")
    if newline not in (b"\n", b"\r\n", b"\r"):
        raise ValueError(f"newline is {newline!r}; expected LF, CRLF or CR")
    lines = [f"event: {event}"] if event else []
    lines += [f"data: {line}" for line in _TEXT_LINE_END.split(data)]
    return b"".join(show(line).encode() + newline for line in lines) + newline


def set_data(frame: Frame, data: str) -> bytes:
    """Return the frame's bytes with other data; comments, other fields, spacing and line ends stay.

    The lines of ``data`` take the places of the frame's data lines in order. Data lines left over go; lines
    for which there is no place follow the last.

    Raises:
        ValueError: The frame has no data that can be read.
    """
    if frame.data is None:
        raise ValueError("the frame has no data; expected a frame with a data line")
    values = [show(line).encode() for line in _TEXT_LINE_END.split(data)]
    lines = frame.raw[frame.lead :].splitlines(keepends=True)
    places = [place for place, line in enumerate(lines) if _field(line)[0] == b"data"]
    for place, line in enumerate(lines):
        if place in places:
            taken = len(values) if place == places[-1] else 1
            between = b"" if line.endswith((b"\r", b"\n")) else frame.newline
            lines[place] = between.join(_data_line(line, value) for value in values[:taken])
            values = values[taken:]
    return frame.raw[: frame.lead] + b"".join(lines)


def reread(frame: Frame, raw: bytes) -> Frame:
    """Parse ``frame`` again after its bytes were changed to ``raw``, by ``set_data`` for example."""
    return _read(raw, frame.lead, whole=frame.whole)


def _data_line(line: bytes, value: bytes) -> bytes:
    """Return ``line``, a data line, with another value."""
    body = line.rstrip(b"\r\n")
    old = _field(line)[1]
    name = body[: len(body) - len(old)]
    if value == old:
        return line
    if b":" not in name or (value.startswith(b" ") and not name.endswith(b" ")):
        name = b"data: "
    return name + value + line[len(body) :]


def _read(raw: bytes, lead: int, *, whole: bool) -> Frame:
    data: list[bytes] = []
    event = b""
    comment = foreign = False
    for line in raw[lead:].splitlines():
        name, value = _field(line)
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value
        elif not name and line:
            comment = True
        elif name not in _OTHER_FIELDS and line.strip():
            foreign = True
    text: str | None = None
    kind = ""
    invalid = False
    try:
        kind = event.decode()
        text = b"\n".join(data).decode() if data else None
    except UnicodeDecodeError:
        invalid = True
    return Frame(
        raw=raw,
        data=text,
        event=kind,
        comment=comment,
        whole=whole,
        invalid=invalid,
        lead=lead,
        foreign=foreign,
    )


def _field(line: bytes) -> tuple[bytes, bytes]:
    """Return the name and value of one line, with or without its line end; a comment's name is empty."""
    name, _colon, value = line.rstrip(b"\r\n").partition(b":")
    return name, value.removeprefix(b" ")

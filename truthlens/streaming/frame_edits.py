"""The bytes of a streamed frame: other texts, choices that have ended taken out, the finish of those that end with it.

Deliberately not here: which text is changed, and why (``gate``, ``gated_choice``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from truthlens.api.members.filter import Level, Members
from truthlens.api.responses import OWN_MEMBER, edit_choices
from truthlens.api.sse.chunk_edits import content_chunk, edit_content, edit_texts, strip
from truthlens.api.sse.chunks import Chunk, ChunkKind, Delta, Transcript, parse_chunk
from truthlens.api.sse.frames import Decoder, Frame, encode, reread, set_data
from truthlens.api.sse.skeletons import Skeleton
from truthlens.core.errors import DialectError
from truthlens.core.records.enums import Endpoint
from truthlens.streaming.types import StreamEntry
from truthlens.text import json_edit

STOP_REASON = "content_filter"
"""The finish reason of a choice that was stopped. Source: OpenAI API, chat completion chunk, ``finish_reason``."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What becomes of the choices of one frame, by index.

    ``texts`` are new texts of choices that have text in it; of those in ``withheld`` the old text must not leave.
    ``dropped`` choices are taken out; ``stopped`` ones finish behind the frame, with ``STOP_REASON`` instead of a reason
    of their own.
    """

    texts: Mapping[int, str] = field(default_factory=dict)
    dropped: Collection[int] = ()
    stopped: Collection[int] = ()
    withheld: Collection[int] = ()

    def level(self, index: int) -> Level:
        """How much of the choice leaves beside its text."""
        taken = index in self.withheld or index in self.dropped or index in self.stopped
        return Level.CHANGED if taken else Level.SCORED

    def takes(self, index: int) -> bool:
        """Whether the choice loses its text."""
        return index in self.texts or index in self.dropped

    def __bool__(self) -> bool:
        return bool(self.texts or self.dropped or self.stopped)


def rewrite(
    entry: StreamEntry, changes: Changes, transcript: Transcript, members: Members | None = None
) -> bytes:
    """What leaves in the place of an entry with choices; ``b""`` where nothing is left in it.

    A chunk that nests too deeply to be edited is replaced by new chunks, one for each choice, with its text, role and
    finish reason alone.

    Args:
        entry: the frame.
        changes: what becomes of its choices.
        transcript: of the stream.
        members: what takes copies of text out; ``None`` where all other members stay.
    """
    chunk, newline = entry.chunk, entry.frame.newline
    kept = b""
    more = chunk.kind is not ChunkKind.CHOICES or chunk.usage
    if more or any(_says(delta, changes, members) for delta in chunk.deltas):
        try:
            kept = _edited(entry.frame, chunk.deltas, changes, transcript, members)
        except (DialectError, ValueError):
            # The second where not even its reading succeeds again, with a few more calls on the stack.
            kept = rebuilt(entry, changes, transcript)
    if kept and changes.stopped and not entry.frame.whole:
        kept += 2 * newline
    return kept + b"".join(
        encode(content_chunk(transcript, index, "", finish_reason=STOP_REASON), newline=newline)
        for index in sorted(changes.stopped)
    )


def _says(delta: Delta, changes: Changes, members: Members | None) -> bool:
    """Whether the delta still adds anything to the answer."""
    index = delta.index
    if index in changes.dropped:
        return False
    if delta.role or delta.tool_call:
        return True
    all_else = members is None or changes.level(index) is not Level.CHANGED
    if all_else and (delta.reasoning or delta.refusal):
        return True
    if delta.finish_reason is not None and index not in changes.stopped:
        return True
    if index in changes.texts:
        return bool(changes.texts[index])
    return bool(delta.text) or (all_else and delta.logprobs)


def cleaned(entry: StreamEntry, members: Members, transcript: Transcript) -> bytes | None:
    """What leaves of an entry whose texts stay, without text that nobody scored; ``None`` where all of it may."""
    try:
        frame = _cleaned(entry.frame, entry.chunk.deltas, Changes(), members)
    except (DialectError, ValueError):
        members.dropped = True
        return rebuilt(entry, Changes(), transcript)
    return None if frame is entry.frame else frame.raw


def unread(entry: StreamEntry, members: Members, transcript: Transcript) -> bytes | None:
    """What leaves of a frame that could not be read, in a stream of which other frames could; ``None`` for all of it.

    Of a chunk without an answer in its place, what is no text. Of other data, whatever does not repeat withheld text.
    """
    frame, data = entry.frame, entry.frame.data
    if data is None:
        # What is no UTF-8 is read by clients that put a sign for what they cannot read.
        if not frame.invalid or not members.forbids(frame.raw.decode(errors="replace")):
            return None
        members.dropped = True
        return b""
    try:
        body = json_edit.load_object(data)
    except DialectError:
        if not members.forbids(data):
            return None
        members.dropped = True
        return b""
    if "choices" not in body and not transcript.choices:
        return None
    try:
        text = members.cleaned(data, lambda _place: Level.UNREAD, top=Level.UNREAD)
    except RecursionError:
        members.dropped = True
        return b""
    return None if text == data else set_data(frame, text)


def _cleaned(frame: Frame, deltas: Sequence[Delta], changes: Changes, members: Members) -> Frame:
    data = frame.data
    assert data is not None
    levels = [changes.level(delta.index) for delta in deltas]
    top = Level.CHANGED if Level.CHANGED in levels else Level.SCORED
    try:
        text = members.cleaned(
            data, lambda place: levels[place] if place < len(levels) else Level.CHANGED, top=top
        )
    except RecursionError:
        raise DialectError("chunk nests too deeply to be edited") from None
    return frame if text == data else reread(frame, set_data(frame, text))


def _edited(
    frame: Frame,
    deltas: Sequence[Delta],
    changes: Changes,
    transcript: Transcript,
    members: Members | None,
) -> bytes:
    if any(delta.elsewhere and delta.index in changes.texts for delta in deltas):
        raise DialectError("a text stands where none can be put in")
    if changes.texts:
        frame = reread(frame, edit_texts(frame, changes.texts, endpoint=transcript.endpoint))
    if members is not None:
        frame = _cleaned(frame, deltas, changes, members)
    if not changes.dropped and not changes.stopped:
        return frame.raw

    def edit_choice(place: int, raw: str) -> str | None:
        index = deltas[place].index if place < len(deltas) else None
        if index in changes.dropped:
            return None
        if index not in changes.stopped or not raw.startswith("{"):
            return raw
        return json_edit.edit_object(raw, lambda key, value: "null" if key == "finish_reason" else value)

    assert frame.data is not None
    try:
        return set_data(
            frame, json_edit.edit_object(frame.data, lambda key, raw: edit_choices(key, raw, edit_choice))
        )
    except RecursionError:
        raise DialectError("chunk nests too deeply to be edited") from None


def rebuilt(entry: StreamEntry, changes: Changes, transcript: Transcript) -> bytes:
    """New chunks in the place of one that nests too deeply to be edited: its texts, roles and finish reasons."""
    left = dict(changes.texts)
    frames = []
    for delta in entry.chunk.deltas:
        index = delta.index
        if index in changes.dropped:
            continue
        # A choice that is repeated has its whole text in the first.
        text = left.pop(index, "") if index in changes.texts else delta.text
        finish_reason = None if index in changes.stopped else delta.finish_reason
        chunk = content_chunk(transcript, index, text, role=delta.role, finish_reason=finish_reason)
        frames.append(encode(chunk, newline=entry.frame.newline))
    return b"".join(frames)


def lengthen(entry: StreamEntry, choice: int, text: str, endpoint: Endpoint) -> bool:
    """Put ``text`` behind the choice's own in the frame that finishes it; false where that cannot be done."""
    frames = [entry.frame] if entry.output is None else Decoder().feed(entry.output)
    for place, frame in enumerate(frames):
        deltas = [delta for delta in parse_chunk(frame, endpoint).deltas if delta.index == choice]
        own = "".join(delta.text for delta in deltas)
        if own and any(delta.finish_reason is not None for delta in deltas):
            raws = [each.raw for each in frames]
            try:
                raws[place] = edit_content(frame, choice, own + text, endpoint=endpoint)
            except (DialectError, ValueError):
                return False
            entry.output = b"".join(raws)
            return True
    return False


def owned(frame: Frame, chunk: Chunk, skeleton: Skeleton | None = None) -> StreamEntry:
    """The frame without what a backend says in our name; a comment in its place where it cannot be edited."""
    if not chunk.forged:
        return StreamEntry(frame, chunk, skeleton=skeleton)
    try:
        return StreamEntry(strip(frame, members=(OWN_MEMBER,)), chunk)
    except DialectError as error:
        return StreamEntry(
            reread(frame, b":" + 2 * frame.newline), Chunk(ChunkKind.OPAQUE, problem=str(error))
        )

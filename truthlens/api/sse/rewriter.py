"""Rewrite a stream: what its frames will say, which of them go, and what is inserted between them.

Frames that nothing is said of leave as their own bytes. Deliberately not here: which text an answer gets, and
which frames it goes into (``text_replace``).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

from truthlens.api.content import text_of_part
from truthlens.api.members.copies import repeats
from truthlens.api.members.filter import LOGPROBS_DROPPED, Level, Members, said_aside
from truthlens.api.responses import OWN_MEMBER
from truthlens.api.sse.chunk_edits import content_chunk, edit_texts, final_chunk, strip
from truthlens.api.sse.chunks import Chunk, ChunkKind, Delta, Transcript, end_of, index_of, is_object, is_torn
from truthlens.api.sse.fields import without_asides
from truthlens.api.sse.frames import Frame, encode, reread, set_data
from truthlens.core.errors import DialectError

# What every chunk of a stream repeats, and padding: nothing is lost with it.
_ENVELOPE = frozenset(
    ("id", "object", "created", "model", "choices", "system_fingerprint", "service_tier", "obfuscation")
)
_CHOICE = frozenset(("index", "delta", "text", "logprobs"))
_DELTA = frozenset(("content", "role"))


class StreamRewriter:
    """A stream that is being rewritten. A *place* is the number of a frame, from 0."""

    def __init__(self, frames: Sequence[Frame], chunks: Sequence[Chunk], transcript: Transcript) -> None:
        """Begin with nothing changed but the backend's ``truthlens`` members, which go.

        Args:
            frames: All frames of the stream, one at least.
            chunks: What each of them says.
            transcript: The transcript of all of them.

        Raises:
            DialectError: A chunk that is to be changed nests too deeply.
        """
        self.chunks = chunks
        self.transcript = transcript
        self._logprobs_dropped = False
        self._members = Members(transcript.endpoint, streamed=True)
        self._frames = [strip(frame, members=(OWN_MEMBER,)) for frame in frames]
        self._texts: defaultdict[int, dict[int, str | None]] = defaultdict(dict)
        self._gone: set[int] = set()
        self._before: defaultdict[int, list[str]] = defaultdict(list)
        self._after: defaultdict[int, list[str]] = defaultdict(list)
        # Where each choice says its role first.
        self._role_at = {
            delta.index: place
            for place, chunk in reversed(list(enumerate(chunks)))
            for delta in chunk.deltas
            if delta.role
        }
        self._newline = next((frame.newline for frame in frames if frame.whole), b"\n")

    @property
    def notes(self) -> set[str]:
        """What a verdict says of members that were taken out."""
        return self._members.notes | ({LOGPROBS_DROPPED} if self._logprobs_dropped else set())

    def deltas(self, place: int, index: int) -> list[Delta]:
        """Return what frame ``place`` adds to choice ``index``."""
        return [delta for delta in self.chunks[place].deltas if delta.index == index]

    def say(self, place: int, index: int, text: str) -> None:
        """Make frame ``place``, which carries text of the choice, carry ``text`` instead."""
        self._texts[place][index] = text
        self._note_logprobs(place, index)

    def silence(self, place: int, index: int) -> None:
        """Remove the choice's text from frame ``place``; a frame that carries nothing else goes."""
        if self._carries_only_text(place, index):
            self._gone.add(place)
        else:
            self._texts[place][index] = None
        self._note_logprobs(place, index)

    def put_before(self, place: int, index: int, text: str) -> None:
        """Put a chunk that adds ``text`` to the choice before frame ``place``.

        It says no role, which the frame behind it may say: clients that add deltas up would have it twice.
        """
        self._before[place].append(content_chunk(self.transcript, index, text))

    def put_after(self, place: int, index: int, text: str) -> None:
        """Put a chunk that adds ``text`` to the choice behind frame ``place``."""
        self._after[place].append(content_chunk(self.transcript, index, text))

    def put_verdict(self, truthlens: Mapping[str, object]) -> None:
        """Insert the chunk with the ``truthlens`` object before the end of the stream, or last."""
        verdict = final_chunk(self.transcript, truthlens)
        kinds = [chunk.kind for chunk in self.chunks]
        # Nothing can stand behind a frame that was cut off in its middle.
        last, chunk = self._frames[-1], self.chunks[-1]
        torn = is_torn(last, chunk) or (chunk.kind is ChunkKind.BLANK and not last.whole)
        end = end_of(kinds[:-1] if torn else kinds)
        if end < len(kinds):
            self._before[end].append(verdict)
        else:
            self._after[end - 1].append(verdict)

    def drop_copies(self, index: int, text: str) -> None:
        """Remove from all frames what may repeat ``text``, which the choice said.

        Raises:
            DialectError: A chunk nests too deeply to be edited.
        """
        self._members.forbid(text)
        aside = "".join(self._said_aside(place, index) for place in range(len(self._frames)))
        level = Level.CHANGED if repeats(text, aside) else Level.REPLACED
        for place, own in enumerate(self._frames):
            chunk = self.chunks[place]
            frame = reread(own, without_asides(own.raw, self._members, lead=own.lead))
            self._frames[place] = frame
            if frame.data is None or chunk.kind in (ChunkKind.BLANK, ChunkKind.DONE):
                continue
            if chunk.kind is ChunkKind.OPAQUE:
                if not is_object(frame.data):
                    continue
                # Whose text it holds, and where, nobody knows.
                level_of, top = (lambda _place: Level.UNREAD), Level.UNREAD
            else:
                levels = [level if delta.index == index else Level.ALL for delta in chunk.deltas]
                level_of, top = levels.__getitem__, Level.REPLACED
            try:
                cleaned = self._members.cleaned(frame.data, level_of, top=top)
            except RecursionError:
                raise DialectError("chunk nests too deeply to be edited") from None
            if cleaned != frame.data:
                self._frames[place] = reread(frame, set_data(frame, cleaned))

    def _said_aside(self, place: int, index: int) -> str:
        if not any(delta.reasoning or delta.refusal for delta in self.deltas(place, index)):
            return ""
        choices = json.loads(self._frames[place].data or "")["choices"]
        holders = [choice.get("delta") for at, choice in enumerate(choices) if index_of(choice, at) == index]
        return "".join(said_aside(holder) for holder in holders if isinstance(holder, dict))

    def written(self) -> bytes:
        """Return the bytes of the stream.

        Raises:
            DialectError: A chunk that is to be changed nests too deeply.
        """
        pieces: list[bytes] = []
        for place, frame in enumerate(self._frames):
            texts = self._texts.get(place)
            own = edit_texts(frame, texts, endpoint=self.transcript.endpoint) if texts else frame.raw
            pieces.append(own[: frame.lead])
            pieces += self._encoded(self._before[place])
            if place not in self._gone:
                pieces.append(own[frame.lead :])
                if not frame.whole and self._after[place]:
                    pieces.append(self._newline * (1 if own.endswith((b"\r", b"\n")) else 2))
            pieces += self._encoded(self._after[place])
        return b"".join(pieces)

    def _encoded(self, chunks: Sequence[str]) -> list[bytes]:
        return [encode(chunk, newline=self._newline) for chunk in chunks]

    def _note_logprobs(self, place: int, index: int) -> None:
        found = any(delta.logprobs for delta in self.deltas(place, index))
        self._logprobs_dropped = self._logprobs_dropped or found

    def _carries_only_text(self, place: int, index: int) -> bool:
        frame, chunk = self._frames[place], self.chunks[place]
        if chunk.kind is not ChunkKind.CHOICES or len(chunk.deltas) != 1:
            return False
        lines = frame.raw[frame.lead :].splitlines()
        if self._role_at.get(index) == place or any(
            line and line.partition(b":")[0] != b"data" for line in lines
        ):
            return False
        body = json.loads(frame.data or "")
        (choice,) = body["choices"]
        holder = choice.get("delta") or {}
        content = holder.get("content")
        parts = content if isinstance(content, list) else []
        return (
            _holds_only(body, _ENVELOPE)
            and _holds_only(choice, _CHOICE)
            and _holds_only(holder, _DELTA)
            and all(text_of_part(part) is not None for part in parts)
        )


def _holds_only(members: Mapping[str, object], names: frozenset[str]) -> bool:
    """Return whether every member is one of ``names`` or empty."""
    return all(key in names or value in (None, "", [], {}) for key, value in members.items())

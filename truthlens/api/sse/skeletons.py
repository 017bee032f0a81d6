"""Read the chunks of one stream; of a chunk that differs from one before it in its answer text alone, only that text.

Nearly all chunks of a stream are such: id, model and time are the same in each. What is around the text, its *skeleton*, is
compared byte for byte, so the result is the one that parsing all of it gives.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder

from truthlens.api.sse.chunks import Chunk, ChunkKind, Delta, parse_chunk
from truthlens.api.sse.frames import Frame
from truthlens.core.records.enums import Endpoint

# Streams of several choices have a skeleton for each.
_MOST = 4
_LONGEST = 4096
_OTHER_TEXT = "1. Other text, as a model writes it: [7]"
_DECODER = JSONDecoder()
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """What stands before and behind the text of a chunk's one choice, and what the chunk says beside it."""

    prefix: str
    suffix: str
    chunk: Chunk

    def text_of(self, data: str) -> str | None:
        """Return the text of ``data``, ``None`` where it has another skeleton or its text needs a closer look."""
        if not (data.startswith(self.prefix) and data.endswith(self.suffix)):
            return None
        try:
            text, end = _DECODER.raw_decode(data, len(self.prefix) - 1)
        except JSONDecodeError:
            return None
        return text if end - 1 + len(self.suffix) == len(data) and _is_usual(text) else None

    def with_text(self, text: str) -> Chunk:
        """Return the chunk with another text."""
        chunk = self.chunk
        (delta,) = chunk.deltas
        return Chunk(
            ChunkKind.CHOICES,
            (Delta(delta.index, text, delta.role),),
            chunk.id,
            chunk.object,
            chunk.created,
            chunk.model,
            chunk.usage,
        )


class ChunkReader:
    """Parses one stream's frames.

    Args:
        endpoint: its API.
        cites: evidence may come with the answer.
    """

    def __init__(self, endpoint: Endpoint, *, cites: bool = False) -> None:
        self._endpoint = endpoint
        self._cites = cites
        self._known: deque[Skeleton] = deque(maxlen=_MOST)
        self._seen: deque[Skeleton] = deque(maxlen=_MOST)

    def read(self, frame: Frame) -> tuple[Chunk, Skeleton | None]:
        """Return what ``frame`` says, as ``parse_chunk`` does, and the skeleton that it shares with frames before it."""
        data = frame.data
        plain = data is not None and frame.raw == b"data: %b\n\n" % data.encode("utf-8", "replace")
        if data is None or not plain or len(data) > _LONGEST:
            return parse_chunk(frame, self._endpoint, cites=self._cites), None
        for skeleton in self._known:
            if (text := skeleton.text_of(data)) is not None:
                return skeleton.with_text(text), skeleton
        chunk = parse_chunk(frame, self._endpoint, cites=self._cites)
        self._learn(data, chunk)
        return chunk, None

    def _learn(self, data: str, chunk: Chunk) -> None:
        """Keep the skeleton of a chunk once two have it, and a third text would make the chunk that it should."""
        found = self._skeleton(data, chunk)
        if found is None:
            return
        if all((each.prefix, each.suffix) != (found.prefix, found.suffix) for each in self._seen):
            self._seen.append(found)
        elif self._parsed(found, _OTHER_TEXT) == found.with_text(_OTHER_TEXT):
            self._known.appendleft(found)

    def _parsed(self, skeleton: Skeleton, text: str) -> Chunk:
        data = skeleton.prefix + text + skeleton.suffix
        return parse_chunk(Frame(b"data: %b\n\n" % data.encode(), data), self._endpoint, cites=self._cites)

    def _skeleton(self, data: str, chunk: Chunk) -> Skeleton | None:
        """Return what of a chunk is not its text, where it says nothing but a text that needs no closer look."""
        if chunk.kind is not ChunkKind.CHOICES or len(chunk.deltas) != 1:
            return None
        name = '"text":' if self._endpoint is Endpoint.COMPLETIONS else '"content":'
        place = data.find(name)
        if place < 0 or data.find(name, place + 1) >= 0:
            return None
        place += len(name)
        start = place + 1 + (data[place] == " ")
        if data[start - 1] != '"':
            return None
        text, end = _DECODER.raw_decode(data, start - 1)
        skeleton = Skeleton(data[:start], data[end - 1 :], chunk)
        return skeleton if _is_usual(text) and skeleton.with_text(text) == chunk else None


def _is_usual(text: str) -> bool:
    """Whether a text says something by itself: it is not blank, and no half of a character may be in it."""
    return not text.isspace() and text != "" and (text.isascii() or not _SURROGATE.search(text))

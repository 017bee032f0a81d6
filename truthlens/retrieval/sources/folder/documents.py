"""Cut a document into pieces that can be understood by themselves: by headings, then by paragraphs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from truthlens.text.sentences import sentences

# A table or a block of code is kept whole up to so many times the length of a piece.
_WHOLE = 4
_MOST_HEADING_CHARS = 200
_MOST_PIECES = 20_000


class UnreadableError(Exception):
    """A file gives no document; the message is the reason, a sentence of ours without any of its text."""


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """A part of a document in reading order: a heading of ``level`` 1 to 6, or text (0).

    A ``table`` has its names in its first line, and a line between them and its rows.
    """

    text: str
    level: int = 0
    kind: Literal["prose", "table", "code"] = "prose"


@dataclass(frozen=True, slots=True)
class DocumentPiece:
    """``headings`` are those that ``text`` stands below, the outermost first."""

    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class TitledDocument:
    """A document as it is indexed; ``title`` is empty where the file tells none."""

    title: str
    pieces: tuple[DocumentPiece, ...]


def cut_document(blocks: Sequence[DocumentBlock], title: str, piece_chars: int) -> TitledDocument:
    """Return the pieces of a document, of about ``piece_chars`` characters at most.

    Args:
        blocks: all of it, in order.
        title: what the file says of itself, used where it has no heading.
        piece_chars: characters of a piece; tables and code may have four times as many.

    Raises:
        UnreadableError: there is no text, or too much of it.
    """
    first = next((_short(block.text) for block in blocks if block.level), "")
    title = first or _short(title)
    pieces: list[DocumentPiece] = []
    for headings, parts in _sections(blocks, piece_chars):
        pieces.append(DocumentPiece(headings or ((title,) if title else ()), "\n\n".join(parts)))
        if len(pieces) > _MOST_PIECES:
            raise UnreadableError("it holds too much text")
    if not pieces:
        raise UnreadableError("there is no text in it")
    return TitledDocument(title, tuple(pieces))


def _sections(
    blocks: Iterable[DocumentBlock], piece_chars: int
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield what becomes one piece: its headings and its parts."""
    path: list[tuple[int, str]] = []
    parts: list[str] = []
    for block in blocks:
        if block.level:
            if parts:
                yield tuple(text for _, text in path), parts
                parts = []
            while path and path[-1][0] >= block.level:
                path.pop()
            path.append((block.level, _short(block.text)))
            continue
        for part in _parts(block, piece_chars):
            if parts and sum(map(len, parts)) + len(part) > piece_chars:
                yield tuple(text for _, text in path), parts
                parts = []
            parts.append(part)
    if parts:
        yield tuple(text for _, text in path), parts


def _parts(block: DocumentBlock, piece_chars: int) -> list[str]:
    """Return the text of a block in parts of similar length, whole where it is short enough."""
    text = block.text.strip("\n").rstrip()
    if len(text) <= piece_chars * (1 if block.kind == "prose" else _WHOLE):
        return [text] if text.strip() else []
    names = ""
    if block.kind == "prose":
        starts = [start for start, _ in sentences(text)]
        units = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    else:
        units = text.splitlines(keepends=True)
        if block.kind == "table" and len(head := "".join(units[:2])) < piece_chars // 2:
            names, units = head, units[2:]
    length = math.ceil(len(text) / math.ceil(len(text) / piece_chars))
    return [names + part for part in _packed(units, length, piece_chars)]


def _packed(units: Iterable[str], length: int, most: int) -> Iterator[str]:
    """Yield the units joined to about ``length`` characters; one that has more than ``most`` is cut."""
    part = ""
    for unit in units:
        for start in range(0, len(unit), most):
            more = unit[start : start + most]
            if part and len(part) + len(more) > most:
                yield part.rstrip()
                part = ""
            part += more
            if len(part) >= length:
                yield part.rstrip()
                part = ""
    if part.strip():
        yield part.rstrip()


def _short(heading: str) -> str:
    return " ".join(heading.split())[:_MOST_HEADING_CHARS]

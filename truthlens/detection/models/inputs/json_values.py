"""Write JSON in an answer as text that a model of prose can read: values with their keys as context.

Pure.

A classifier trained on prose takes braces, keys and ``48000`` for things that the evidence does not say. So
JSON is scored as lines of "key: value", its values written as the evidence writes them where they are equal
(``48000`` as "48,000", ``0.05`` as "5%", ``2024-03-05`` as "5 March 2024"); every character of that text
knows where in the answer it comes from. Every member is scored at every depth: keys, flags and nulls too, for each of
them can say something. Works on tokens, not on trees, so that JSON which is broken, cut off or still being written is
read as far as it goes, in time linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from truthlens.core.records.verdict import Span
from truthlens.detection.models.inputs.value_wordings import ValueWordings
from truthlens.text.json_ranges import BEGINS, ESCAPE, TOKEN, character, unescaped
from truthlens.text.spans import merge_ranges

_NUMBER = re.compile(r"-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?")
# Any other word behind a fence may be content.
_OPENS = re.compile(r"\s*(?:```|~~~)(?:json[5cl]?|jsonlines)?", re.IGNORECASE)
_CLOSES = re.compile(r"\s*(?:```|~~~)[ \t]*(?=\n|$)")
_FLAGS = {"true": "{}", "false": "not {}", "null": "{}: none"}
_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z](?=[a-z])")
_APART = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./\s]+")


class _Role(Enum):
    """What a part of the rendered text is: scored, or only context."""

    VALUE = auto()
    SILENT = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Rendering:
    """An answer as text to be scored.

    ``starts`` and ``ends`` have shape (characters of ``text``,): the characters of the answer that each comes
    from. ``silent`` are ranges of ``text`` that are not the answer's: what was inserted. ``values``
    are those of the values of JSON, each a claim of its own.
    """

    text: str
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    silent: tuple[tuple[int, int], ...]
    values: tuple[tuple[int, int], ...]

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return the characters of the answer behind ``start`` to ``end`` of the text."""
        return int(self.starts[start]), int(self.ends[end - 1])

    def sourced(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Return spans of the text as spans of the answer."""
        places = (self.source(span.start, span.end) for span in spans)
        return tuple(
            replace(span, start=start, end=end) for span, (start, end) in zip(spans, places, strict=True)
        )

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return the characters of the text that come from ``start`` to ``end`` of the answer."""
        first = int(np.searchsorted(self.ends, start, side="right"))
        last = int(np.searchsorted(self.starts, end, side="left"))
        return first, max(first, last)


class _Writer:
    """Puts the text together, piece by piece, with the place of each in the answer."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.length = 0
        self.values: list[tuple[int, int]] = []
        self._parts: list[str] = []
        self._silent: list[tuple[int, int]] = []
        # Of each piece: its characters, where it comes from, and whether these are the same characters.
        self._pieces: list[tuple[int, int, int, bool]] = []

    def copy(self, start: int, end: int, role: _Role = _Role.VALUE) -> None:
        """Append characters of the answer as they are."""
        self._append(self.source[start:end], start, end, role, same=True)

    def write(self, text: str, start: int, end: int, role: _Role = _Role.VALUE) -> None:
        """Append ``text``, all of which comes from characters ``start`` to ``end`` of the answer."""
        self._append(text, start, end, role, same=False)

    def _append(self, text: str, start: int, end: int, role: _Role, *, same: bool) -> None:
        if not text:
            return
        if role is _Role.SILENT:
            self._silent.append((self.length, self.length + len(text)))
        self._parts.append(text)
        self._pieces.append((len(text), start, end, same))
        self.length += len(text)

    def rendering(self) -> Rendering:
        """Return what was written."""
        pieces = np.array(self._pieces, dtype=np.int64).reshape(-1, 4)
        counts = pieces[:, 0]
        begun = np.repeat(np.cumsum(counts) - counts, counts)
        same = np.repeat(pieces[:, 3], counts) == 1
        copied = np.repeat(pieces[:, 1], counts) + np.arange(self.length) - begun
        return Rendering(
            "".join(self._parts),
            np.where(same, copied, np.repeat(pieces[:, 1], counts)),
            np.where(same, copied + 1, np.repeat(pieces[:, 2], counts)),
            tuple(merge_ranges(self._silent)),
            tuple(self.values),
        )


def render(text: str, wordings: ValueWordings) -> Rendering | None:
    """Return ``text`` with the JSON in it written as lines of keys and values.

    It is ``None`` where it holds no JSON.

    Args:
        text: an answer, whole or so far.
        wordings: how the evidence writes values.
    """
    match = BEGINS.search(text)
    if match is None:
        return None
    writer = _Writer(text)
    done = 0
    while match is not None:
        prose = _without_fence(text, done, match.start())
        if text[done:prose].strip():
            writer.copy(done, prose)
            writer.write("\n", prose, match.start(), _Role.SILENT)
        done = _Block(writer, wordings).read(match.start())
        done = _behind_fence(text, done)
        match = BEGINS.search(text, done)
    writer.copy(done, len(text))
    rendering = writer.rendering()
    # Of signs alone there is nothing to write.
    return rendering if rendering.text.strip() else None


def _without_fence(text: str, start: int, end: int) -> int:
    """Return where the prose before a block of JSON ends: before the line that opens its code fence."""
    bare = text[start:end].rstrip()
    line = bare.rfind("\n") + 1
    return start + line if _OPENS.fullmatch(bare[line:]) else end


def _behind_fence(text: str, end: int) -> int:
    """Return where the prose after a block of JSON begins: after the line that closes its code fence."""
    match = _CLOSES.match(text, end)
    return match.end() if match else end


class _Block:
    """One JSON value in an answer, read token by token.

    A key is written once, before its first value, with the characters of the answer that it stands in; before the
    further values of a list it is repeated as context.
    """

    def __init__(self, writer: _Writer, wordings: ValueWordings) -> None:
        self._writer = writer
        self._text = writer.source
        self._wordings = wordings
        # Of each open object or list: what opened it, the key that its values have, and whether that is written.
        self._open: list[str] = []
        self._keys: list[tuple[int, int]] = []
        self._told: list[bool] = []
        self._is_key = False
        self._written = False  # something is on the line that is being written

    def read(self, start: int) -> int:
        """Write the value that begins at ``start``; returns where it ends."""
        place = start
        while place < len(self._text):
            token = TOKEN.match(self._text, place)
            if token is None or token.lastgroup == "fence":
                break
            place = token.end()
            match token.lastgroup:
                case "open" | "close" | "other" if not token[0].isspace():
                    self._mark(token[0], token.start())
                    if not self._open:
                        break
                case "string":
                    end = place - (token[0].endswith('"') and len(token[0]) > 1)
                    self._string(token.start() + 1, end)
                case "word":
                    self._word(token.start(), place)
        if self._open:
            self._key(place)
        if self._written:
            self._writer.write("\n", place, place, _Role.SILENT)
        return place

    def _mark(self, mark: str, place: int) -> None:
        if mark in "{[":
            if mark == "{" and self._open:
                self._key(place)
            in_list = mark == "[" and self._open
            self._is_key = mark == "{"
            self._keys.append(self._keys[-1] if in_list else (0, 0))
            self._told.append(self._told[-1] if in_list else True)
            self._open.append(mark)
        elif mark in "}]":
            self._key(place)
            self._open.pop()
            self._keys.pop()
            told = self._told.pop()
            if self._open and mark == "]":
                self._told[-1] = told
            self._is_key = False
        elif mark == ",":
            self._key(place)
            self._is_key = self._open[-1] == "{"
        else:
            self._is_key = False

    def _string(self, start: int, end: int) -> None:
        if self._is_key:
            self._open_key(start, end)
        elif end > start:
            self._label(start)
            self._value(start, end)

    def _word(self, start: int, end: int) -> None:
        word = self._text[start:end]
        if self._is_key:
            # Without quotes; one of several words goes on.
            self._open_key(start if self._told[-1] else self._keys[-1][0], end)
        elif word in {"true", "false", "null"}:
            self._flag(word, start, end)
        else:
            self._label(start)
            if _NUMBER.fullmatch(word):
                self._write_value(self._wordings.number(word), start, end)
            else:
                self._value(start, end)

    def _open_key(self, start: int, end: int) -> None:
        self._keys[-1], self._told[-1] = (start, end), False

    def _flag(self, word: str, start: int, end: int) -> None:
        """Write the key as claimed, denied or left open; it is the claim."""
        first, last = self._keys[-1]
        label = self._name(first, last)
        if not label:
            self._label(start)
            self._value(start, end)
            return
        if self._told[-1]:
            first = last = start
        self._told[-1] = True
        self._separate(first)
        self._write_value(_FLAGS[word].format(label), first, end)

    def _value(self, start: int, end: int) -> None:
        """Write a string's text without its escapes, equal values as the evidence writes them."""
        writer = self._writer
        begun = writer.length
        for first, last, written in self._wordings.values(self._text, start, end):
            self._plain(start, first)
            writer.write(written, first, last)
            start = last
        self._plain(start, end)
        writer.values.append((begun, writer.length))

    def _write_value(self, written: str, start: int, end: int) -> None:
        begun = self._writer.length
        self._writer.write(written, start, end)
        self._writer.values.append((begun, self._writer.length))

    def _plain(self, start: int, end: int) -> None:
        for escape in ESCAPE.finditer(self._text, start, end):
            self._writer.copy(start, escape.start())
            self._writer.write(character(escape[0]), *escape.span())
            start = escape.end()
        self._writer.copy(start, end)

    def _name(self, first: int, last: int) -> str:
        key = unescaped(self._text, first, last).text
        return _spaced(key) or key

    def _key(self, place: int) -> None:
        """Write a key that stands by itself: before an object, or without a value."""
        if not self._told[-1]:
            self._label(place)

    def _label(self, place: int) -> None:
        """Write the key before a value that begins at ``place``."""
        first, last = self._keys[-1] if self._keys else (0, 0)
        label = self._name(first, last)
        if label and not self._told[-1]:
            self._told[-1] = True
            self._separate(first)
            self._writer.write(label, first, last)
            self._writer.write(": ", first, last, _Role.SILENT)
            return
        self._separate(place)
        if label:
            self._writer.write(f"{label}: ", place, place, _Role.SILENT)

    def _separate(self, place: int) -> None:
        if self._written:
            self._writer.write("\n", place, place, _Role.SILENT)
        self._written = True


@lru_cache(maxsize=4096)
def _spaced(key: str) -> str:
    """Return a key as words: "unitPrice" and "unit_price" become "unit price"."""
    return " ".join(_APART.sub(" ", _HUMP.sub(lambda hump: f" {hump[0].lower()}", key)).split())

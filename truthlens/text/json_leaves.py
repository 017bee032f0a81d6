"""Cut JSON into its leaves: each from its key to its value, with its path; also JSON that is broken or cut off. Pure.

Works on tokens, not on trees, in time linear in the length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from truthlens.core.cancellation import checkpoint
from truthlens.text.json_ranges import TOKEN, unescaped

_LITERAL = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_LONGEST_PATH = 200


@dataclass(frozen=True, slots=True)
class JsonLeaf:
    """Characters ``start`` to ``end`` of a text: a key with its value, an element of a list, or a key alone.

    ``path`` is its JSON Pointer, of 200 characters at most: what is deeper ends in "…". ``value`` is the inside of a string value,
    ``context`` the key under which it stands. ``is_key`` marks the key of an object that is not empty.
    """

    start: int
    end: int
    path: str
    value: tuple[int, int] | None = None
    context: tuple[int, int] | None = None
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """An object or list up to character ``end``; ``is_plain`` where it holds numbers and words without quotes only."""

    end: int
    leaves: tuple[JsonLeaf, ...]
    is_closed: bool
    is_plain: bool


@dataclass(slots=True)
class _Frame:
    """An open object or list: where it stands, and the key or the number that its next value has.

    ``context`` is the key that it stands under, ``outer`` the one around that.
    """

    is_object: bool
    path: str
    context: tuple[int, int] | None
    outer: tuple[int, int] | None
    begins: int  # leaves before it
    key: tuple[int, int] = (0, 0)
    index: int = 0
    expects_key: bool = False


def json_block(text: str, start: int, limit: int | None = None) -> JsonBlock:
    """Return the leaves of the object or list that begins at ``start``, behind white space, and goes on to ``limit`` at most.

    It ends where its closing mark stands, at a code fence, and before a line that begins with a word where only a comma or a
    closing mark may stand: broken JSON that goes on as prose.
    """
    return _Reader(text).read(start, len(text) if limit is None else limit)


@dataclass(slots=True)
class _Reader:
    text: str
    leaves: list[JsonLeaf] = field(default_factory=list)
    frames: list[_Frame] = field(default_factory=list)
    # The leaf that is being read: where it begins, or -1, and ends, the inside of its string, and whether its value was seen.
    begun: int = -1
    until: int = 0
    value: tuple[int, int] | None = None
    has_value: bool = False

    def read(self, start: int, limit: int) -> JsonBlock:
        place, is_plain = start, True
        while token := TOKEN.match(self.text, place, limit):
            checkpoint()
            kind = token.lastgroup
            if kind == "fence":
                break
            if kind in {"string", "word"} and not self._scalar(token.start(), token.end(), kind == "word"):
                return self._ended(max(self.until, start + 1), is_plain)
            place = token.end()
            is_plain = is_plain and kind != "string"
            if kind == "open":
                self._open(token[0] == "{")
            elif kind == "close":
                self._close(place)
                if not self.frames:
                    return JsonBlock(place, tuple(self.leaves), is_closed=True, is_plain=is_plain)
            elif token[0] == "," and self.frames:
                self._flush()
                self.frames[-1].index += 1
                self.frames[-1].expects_key = self.frames[-1].is_object
            elif token[0] == ":" and self.frames:
                self.frames[-1].expects_key = False
        return self._ended(place, is_plain)

    def _ended(self, place: int, is_plain: bool) -> JsonBlock:
        self._flush()
        return JsonBlock(place, tuple(self.leaves), is_closed=False, is_plain=is_plain)

    def _scalar(self, start: int, end: int, is_word: bool) -> bool:
        """Take a string or word; returns whether it may stand here."""
        frame = self.frames[-1]
        complete = self.begun >= 0 and (self.has_value or frame.expects_key)
        if complete and self.text.find("\n", self.until, start) >= 0:
            if is_word and not _LITERAL.fullmatch(self.text, start, end):
                return False
            # A comma is missing.
            self._flush()
            frame.index += 1
            frame.expects_key = frame.is_object
        inside = (start, end) if is_word else (start + 1, end - self.text.endswith('"', start + 1, end))
        if frame.expects_key:
            frame.key = (frame.key[0] if self.begun >= 0 else inside[0], inside[1])
        else:
            self.value = None if self.has_value or is_word else inside
            self.has_value = True
        if self.begun < 0:
            self.begun = start
        self.until = end
        return True

    def _open(self, is_object: bool) -> None:
        context, outer, path = None, None, ""
        if self.frames:
            parent = self.frames[-1]
            context, outer, path = parent.context, parent.outer, self._path(parent)
            if self.has_value:
                self._flush()
            elif self.begun >= 0:
                key = (self.begun, self.until)
                if context != key:
                    context, outer = key, context
                if is_object:
                    there = path if parent.is_object else parent.path
                    self.leaves.append(JsonLeaf(*key, there, context=outer, is_key=True))
                    self.begun = -1
        self.frames.append(_Frame(is_object, path, context, outer, len(self.leaves), expects_key=is_object))

    def _close(self, end: int) -> None:
        frame = self.frames[-1]
        if frame.is_object and self.begun < 0 and len(self.leaves) == frame.begins:
            if self.leaves and self.leaves[-1].is_key:
                self.leaves[-1] = replace(self.leaves[-1], end=end, is_key=False)
        elif not frame.is_object and self.begun >= 0 and not self.has_value:
            # An empty list behind its key.
            self.until, self.has_value = end, True
            self._flush(frame.path)
        self._flush()
        self.frames.pop()

    def _flush(self, path: str | None = None) -> None:
        if self.begun >= 0:
            frame = self.frames[-1]
            there = self._path(frame) if path is None else path
            is_own = frame.context is not None and frame.context[0] >= self.begun
            context = frame.outer if is_own else frame.context
            self.leaves.append(JsonLeaf(self.begun, self.until, there, self.value, context))
        self.begun, self.value, self.has_value = -1, None, False

    def _path(self, frame: _Frame) -> str:
        """Return the JSON Pointer of the value that ``frame`` is at."""
        if frame.path.endswith("…"):
            return frame.path
        last = unescaped(self.text, *frame.key).text if frame.is_object else str(frame.index)
        path = f"{frame.path}/{last.replace('~', '~0').replace('/', '~1')}"
        return path if len(path) <= _LONGEST_PATH else path[: _LONGEST_PATH - 1] + "…"

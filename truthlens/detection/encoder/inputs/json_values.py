"""Write JSON in an answer as text that a model of prose can read: values with their keys as context.

Pure.

A classifier trained on prose takes braces, keys and ``48000`` for things that the evidence does not say. So
JSON is scored as lines of "key: value", its values written as the evidence writes them where they are equal
(``48000`` as "48,000", ``0.05`` as "5%", ``2024-03-05`` as "5 March 2024"); every character of that text
knows where in the answer it comes from. Keys, punctuation, ``null`` and bookkeeping are not scored. Works on
tokens, not on trees, so that JSON which is broken, cut off or still being written is read as far as it goes,
in time linear in its length.
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
from truthlens.detection.encoder.inputs.value_wordings import ValueWordings
from truthlens.text.spans import merge_ranges
from truthlens.text.words import words

# Where JSON begins: at the start of a line, with an object's key, a list of objects or strings, or two
# numbers.
_BEGINS = re.compile(
    r"^[ \t]*(?:[{]\s*+(?:[\"}]|$)|\[\s*+(?:[\[{\"]|-?\d[\d.eE+-]*+\s*+,|(?:true|false|null)\s*+[,\]]))",
    re.MULTILINE,
)
_TOKEN = re.compile(
    r"(?P<string>\"(?:[^\"\\\n]|\\.)*+\"?)|(?P<mark>[{}\[\],:])|(?P<fence>```)|(?P<space>\s++)"
    r"|(?P<word>[^\s\"{}\[\],:`]++|`)",
)
_NUMBER = re.compile(r"-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?")
_OPENS = re.compile(r"\s*(?:```|~~~)\w{0,12}")
_CLOSES = re.compile(r"\s*(?:```|~~~)[ \t]*(?=\n|$)")
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL
)
_ESCAPED = {"n": "\n", "t": " ", "r": " ", "b": " ", "f": " "}
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./\s]+")
_LONGEST_KEY = 5  # words; more of them may tell something

_MARKER = re.compile(r"[\w.:/#@+-]{1,80}")
_COUNTER = re.compile(r"\d{1,4}")
_SHARE = re.compile(r"(?:0|1)?(?:\.\d+)?|1\.0+|\d{1,3}\s?%")
_LEVEL = re.compile(r"(?:very[ _-])?(?:high|medium|moderate|low)", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?")
_STATE = re.compile(
    r"ok|success|successful|done|complete|completed|answered|unanswered|found|not[ _]found|partial|error|failed|final|stop|n/?a"
    r"|none|unknown|yes|no",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"text|string|str|number|integer|int|float|boolean|bool|object|array|list|table|null|date|answer|response|message|summary"
    r"|paragraph|heading|json|markdown|function|result|item|entity|fact|quote|citation|document|passage",
    re.IGNORECASE,
)
_BOOKKEEPING: tuple[tuple[frozenset[str], re.Pattern[str]], ...] = (
    (frozenset({"id", "uuid", "guid", "ids"}), _MARKER),
    (
        frozenset(
            f"{of} {name}"
            for of in ("chunk", "passage", "doc", "document", "source", "message", "request", "response", "trace", "session",
                       "question", "entity", "node", "item", "citation", "reference", "context", "page", "conversation")
            for name in ("id", "ids")
        ),
        _MARKER,
    ),
    (frozenset({"index", "idx", "rank", "position", "ordinal", "seq", "sequence"}), _COUNTER),
    (frozenset({"source", "sources", "citation", "citations", "reference", "references", "evidence", "passages", "documents",
                "context"}), re.compile(r"\[?(?:doc|document|passage|source|chunk|s|p|ref)?[ _:#-]?\d{1,4}\]?", re.IGNORECASE)),
    (frozenset({"confidence", "certainty", "probability", "score", "relevance", "similarity", "confidence score",
                "relevance score", "confidence level"}), re.compile(f"(?:{_SHARE.pattern})|(?:{_LEVEL.pattern})", re.IGNORECASE)),
    (frozenset({"language", "lang", "locale"}), _LANGUAGE),
    (frozenset({"status", "state", "finish reason", "outcome"}), _STATE),
    (frozenset({"type", "kind", "format", "datatype", "data type", "content type", "schema"}), _KIND),
    # As in a list of entities: "PERSON", "ORG".
    (frozenset({"type", "kind", "label", "tag", "category", "entity type", "role"}), re.compile(r"[A-Z][A-Z_]{1,24}")),
    (
        frozenset({"tokens", "total tokens", "prompt tokens", "completion tokens", "tokens used", "latency ms", "duration ms",
                   "elapsed ms", "processing time ms", "page number", "token count", "word count", "seed", "temperature"}),
        re.compile(r"\d+(?:\.\d+)?"),
    ),
    (frozenset({"version", "schema version", "timestamp", "created at", "generated at", "model name"}),
     re.compile(r"v?\d+(?:\.\d+){1,3}")),
)  # fmt: skip

_META = frozenset({"meta", "metadata", "usage", "debug", "trace"})
"""Objects under these keys tell of the answer; a figure or a word in them is bookkeeping, a sentence is not."""
# One of the words that the user offered to choose from is no statement of the evidence.
_CLASSES = frozenset(
    "category class label intent sentiment tone topic tag tags priority urgency severity classification".split()  # noqa: SIM905
)


class _Role(Enum):
    """What a part of the rendered text is: scored, or only context."""

    VALUE = auto()
    SILENT = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Rendering:
    """An answer as text to be scored.

    ``starts`` and ``ends`` have shape (characters of ``text``,): the characters of the answer that each comes
    from. ``silent`` are ranges of ``text`` that claim nothing: keys, inserted text, bookkeeping. ``values``
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
    match = _BEGINS.search(text)
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
        match = _BEGINS.search(text, done)
    writer.copy(done, len(text))
    rendering = writer.rendering()
    if rendering.text.strip():
        return rendering
    # Nothing but keys and bookkeeping: there is a text, and nothing in it can be false.
    silent = _Writer(text)
    silent.copy(0, len(text), _Role.SILENT)
    return silent.rendering()


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
    """One JSON value in an answer, read token by token."""

    def __init__(self, writer: _Writer, wordings: ValueWordings) -> None:
        self._writer = writer
        self._text = writer.source
        self._wordings = wordings
        # Of each open object or list: what opened it, and the key that its values have.
        self._open: list[str] = []
        self._keys: list[tuple[int, int]] = []
        self._is_meta: list[bool] = []
        self._is_key = False
        self._written = False  # something is on the line that is being written

    def read(self, start: int) -> int:
        """Write the value that begins at ``start``; returns where it ends."""
        place = start
        while place < len(self._text):
            token = _TOKEN.match(self._text, place)
            if token is None or token.lastgroup == "fence":
                break
            place = token.end()
            match token.lastgroup:
                case "mark":
                    self._mark(token[0], token.start())
                    if not self._open:
                        break
                case "string":
                    self._string(token.start() + 1, place - (token[0].endswith('"') and len(token[0]) > 1))
                case "word":
                    self._word(token.start(), place)
        if self._written:
            self._writer.write("\n", place, place, _Role.SILENT)
        return place

    def _mark(self, mark: str, place: int) -> None:
        if mark in "{[":
            self._is_key = mark == "{"
            first, last = self._keys[-1] if self._keys else (0, 0)
            within = bool(self._is_meta) and self._is_meta[-1]
            self._is_meta.append(within or _spaced(self._text[first:last]) in _META)
            self._open.append(mark)
            self._keys.append(self._keys[-1] if mark == "[" and self._keys else (0, 0))
        elif mark in "}]":
            self._open.pop()
            self._is_meta.pop()
            self._keys.pop()
            self._is_key = False
        elif mark == ",":
            self._is_key = self._open[-1] == "{"
        else:
            self._is_key = False
            self._claimed_key()

    def _string(self, start: int, end: int) -> None:
        if self._is_key:
            self._keys[-1] = (start, end)
        elif not self._is_bookkeeping(self._text[start:end]) and end > start:
            self._label(start)
            self._value(start, end)

    def _word(self, start: int, end: int) -> None:
        word = self._text[start:end]
        if self._is_key or word == "null" or self._is_bookkeeping(word):
            return
        if word in {"true", "false"}:
            self._boolean(word == "true", start, end)
            return
        self._label(start)
        if _NUMBER.fullmatch(word):
            self._write_value(self._wordings.number(word), start, end)
        else:
            self._value(start, end)

    def _boolean(self, value: bool, start: int, end: int) -> None:
        """Write the key as claimed or denied, if the evidence mentions such a thing at all."""
        first, last = self._keys[-1] if self._keys else (0, 0)
        label = _spaced(self._text[first:last])
        if not self._wordings.knows(label):
            return
        self._separate(start)
        self._write_value(label if value else f"not {label}", start, end)

    def _is_bookkeeping(self, value: str) -> bool:
        first, last = self._keys[-1] if self._keys else (0, 0)
        key = _spaced(self._text[first:last])
        if self._is_meta and self._is_meta[-1] and _MARKER.fullmatch(value.strip()):
            return True
        if key in _CLASSES and self._wordings.was_asked(_spaced(value)):
            return True
        return any(key in keys and form.fullmatch(value.strip()) for keys, form in _BOOKKEEPING)

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
        for escape in _ESCAPE.finditer(self._text, start, end):
            self._writer.copy(start, escape.start())
            self._writer.write(_unescaped(escape[0]), *escape.span())
            start = escape.end()
        self._writer.copy(start, end)

    def _claimed_key(self) -> None:
        """Write a key that is more than a name: of many words, or with a number that the evidence has not."""
        first, last = self._keys[-1] if self._keys else (0, 0)
        listed = words(_spaced(self._text[first:last]))
        if len(listed) > _LONGEST_KEY or self._wordings.adds_number(listed):
            self._separate(first)
            self._plain(first, last)

    def _label(self, place: int) -> None:
        """Write the key before a value, as context."""
        self._separate(place)
        first, last = self._keys[-1] if self._keys else (0, 0)
        if label := _spaced(self._text[first:last]):
            self._writer.write(f"{label}: ", place, place, _Role.SILENT)

    def _separate(self, place: int) -> None:
        if self._written:
            self._writer.write("\n", place, place, _Role.SILENT)
        self._written = True


@lru_cache(maxsize=4096)
def _spaced(key: str) -> str:
    """Return a key as words: "unitPrice" and "unit_price" become "unit price"."""
    return " ".join(_CASE.sub(" ", key).lower().split())


def _unescaped(escape: str) -> str:
    if escape[1] != "u":
        return _ESCAPED.get(escape[1], escape[1])
    codes = [int(code, 16) for code in escape[2:].split("\\u") if code]
    if len(codes) == 2:
        return chr(0x10000 + ((codes[0] - 0xD800) << 10) + (codes[1] - 0xDC00))
    return " " if not codes or 0xD800 <= codes[0] < 0xE000 else chr(codes[0])

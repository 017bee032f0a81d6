"""Where JSON stands in a text, and where its values and keys do; also JSON that is broken or cut off. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.core.cancellation import checkpoint

BEGINS = re.compile(
    r"^[ \t]*(?:[{]\s*+(?:[\"}]|$)|\[\s*+(?:[\[{\"]|-?\d[\d.eE+-]*+\s*+,|(?:true|false|null)\s*+[,\]]))",
    re.MULTILINE,
)
"""Where JSON begins: at the start of a line, with an object's key, a list of objects or strings, or two values."""

TOKEN = re.compile(
    r"(?P<string>\"(?:[^\"\\\n]|\\.)*+\"?)|(?P<open>[{\[])|(?P<close>[}\]])|(?P<other>[,:]|\s++)"
    r"|(?P<fence>```)|(?P<word>[^\s\"{}\[\],:`]++|`)"
)
"""One token of JSON, or of what is near it."""

ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL
)
_ESCAPED = {"n": "\n", "t": " ", "r": " ", "b": " ", "f": " "}


@dataclass(frozen=True, slots=True)
class Unescaped:
    """The inside of a string without its escapes; ``places`` has, for each character and for the end, where it stands in the text."""

    text: str
    places: Sequence[int]


@dataclass(frozen=True, slots=True)
class JsonRanges:
    """Character ranges of one text, each list in order and not overlapping.

    ``blocks`` are objects and lists with all that is in them. ``strings`` are values and keys, without their quotation
    marks; ``words`` numbers, ``true``, ``false`` and ``null``.
    """

    blocks: tuple[tuple[int, int], ...]
    strings: tuple[tuple[int, int], ...]
    words: tuple[tuple[int, int], ...]


def json_ranges(text: str) -> JsonRanges:
    """Return where JSON stands in ``text``: at the start of a line, up to the mark that closes it, or as far as it goes."""
    blocks: list[tuple[int, int]] = []
    strings: list[tuple[int, int]] = []
    words: list[tuple[int, int]] = []
    match = BEGINS.search(text)
    while match is not None:
        start = place = match.start()
        depth = 0
        while token := TOKEN.match(text, place):
            checkpoint()
            if token.lastgroup == "fence":
                break
            place = token.end()
            if token.lastgroup == "string":
                closed = len(token[0]) > 1 and token[0].endswith('"')
                strings.append((token.start() + 1, place - closed))
            elif token.lastgroup == "word":
                words.append(token.span())
            depth += (token.lastgroup == "open") - (token.lastgroup == "close")
            if token.lastgroup == "close" and depth <= 0:
                break
        blocks.append((start, place))
        match = BEGINS.search(text, max(place, start + 1))
    return JsonRanges(tuple(blocks), tuple(strings), tuple(words))


def unescaped(text: str, start: int, end: int) -> Unescaped:
    """Return characters ``start`` to ``end`` of ``text``, the inside of a string of JSON, without escapes."""
    if text.find("\\", start, end) < 0:
        return Unescaped(text[start:end], range(start, end + 1))
    parts: list[str] = []
    places: list[int] = []
    for escape in ESCAPE.finditer(text, start, end):
        parts.append(text[start : escape.start()])
        places.extend(range(start, escape.start()))
        parts.append(character(escape[0]))
        places.append(escape.start())
        start = escape.end()
    parts.append(text[start:end])
    return Unescaped("".join(parts), [*places, *range(start, end + 1)])


def character(escape: str) -> str:
    """Return the character that an escape stands for; a space for half a pair."""
    if escape[1] != "u":
        return _ESCAPED.get(escape[1], escape[1])
    codes = [int(code, 16) for code in escape[2:].split("\\u") if code]
    if len(codes) == 2:
        return chr(0x10000 + ((codes[0] - 0xD800) << 10) + (codes[1] - 0xDC00))
    return " " if not codes or 0xD800 <= codes[0] < 0xE000 else chr(codes[0])

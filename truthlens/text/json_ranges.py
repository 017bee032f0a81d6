"""Where JSON stands in a text, and where its values and keys do; also JSON that is broken or cut off. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from truthlens.core.cancellation import checkpoint

_BEGINS = re.compile(
    r"^[ \t]*(?:[{]\s*+(?:[\"}]|$)|\[\s*+(?:[\[{\"]|-?\d[\d.eE+-]*+\s*+,|(?:true|false|null)\s*+[,\]]))",
    re.MULTILINE,
)
_TOKEN = re.compile(
    r"(?P<string>\"(?:[^\"\\\n]|\\.)*+\"?)|(?P<open>[{\[])|(?P<close>[}\]])|(?P<other>[,:]|\s++)"
    r"|(?P<fence>```)|(?P<word>[^\s\"{}\[\],:`]++|`)"
)


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
    match = _BEGINS.search(text)
    while match is not None:
        start = place = match.start()
        depth = 0
        while token := _TOKEN.match(text, place):
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
        match = _BEGINS.search(text, max(place, start + 1))
    return JsonRanges(tuple(blocks), tuple(strings), tuple(words))

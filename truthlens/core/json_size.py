"""How many values a JSON text holds, found without making them.

Parsing makes an object of every value: a few bytes of text become a hundred of memory, in one call during which no other
thread runs. Counting costs neither: it looks at pieces of the text, with other threads in between.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truthlens.core.cancellation import checkpoint
from truthlens.core.errors import check

_PIECE_CHARS = 1 << 17
_QUOTE, _BACKSLASH, _COMMA = ord('"'), ord("\\"), ord(",")
_OPENING, _SAME_CASE = ord("{"), 0x20  # "[" is "{" without that bit


def check_values(text: str, most: int) -> None:
    """Raise ``BodyTooLargeError`` where the JSON ``text`` holds more than ``most`` values."""
    # What can part or open values is counted inside of strings, too: far cheaper, and enough for most texts.
    if 1 + text.count(",") + text.count("[") + text.count("{") > most:
        check(count_values(text), most, key="max_json_values")


def count_values(text: str) -> int:
    """The values of the JSON ``text``, containers included; of text that is no JSON at least those before its error."""
    count, inside, escaped = 1, False, False
    for start in range(0, len(text), _PIECE_CHARS):
        checkpoint()
        piece = text[start : start + _PIECE_CHARS].encode("utf-8", "surrogatepass")
        data = np.frombuffer(piece, dtype=np.uint8)
        quotes = data == _QUOTE
        escapes, escaped = _escaped(data, escaped)
        quotes &= ~escapes
        within = np.bitwise_xor.accumulate(quotes) ^ inside
        inside = bool(within[-1])
        parts = (data == _COMMA) | ((data | _SAME_CASE) == _OPENING)
        count += int(np.count_nonzero(parts & ~within))
    return count


def _escaped(data: NDArray[np.uint8], first: bool) -> tuple[NDArray[np.bool_], bool]:
    """Which characters follow a backslash that is not itself escaped, and whether the one behind the last does.

    Args:
        data: a piece of the text.
        first: whether its first character does.
    """
    escaped = np.zeros(len(data) + 1, dtype=np.bool_)
    escaped[0] = first
    places = np.flatnonzero(data == _BACKSLASH)
    if first and len(places) and places[0] == 0:
        places = places[1:]
    if len(places):
        # Of a run of backslashes every other one escapes what follows it, beginning with the first.
        begins = np.diff(places, prepend=-2) != 1
        place_in_run = np.arange(len(places)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
        escaped[places[place_in_run % 2 == 0] + 1] = True
    return escaped[:-1], bool(escaped[-1])

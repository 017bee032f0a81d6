"""Text functions that several stages need: sentences with offsets, the script of a text, span merging.

No natural-language library: the rules cover Latin and CJK punctuation and are pure functions of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from truthlens.core.cancellation import checkpoint

# A sentence ends at CJK end punctuation, at Latin end punctuation that is followed by white space (with
# closing quotes or brackets in between), or at a line break.
# A run of marks is tried once and whole: from within, or in part, it cannot match where it did not as a whole.
_END = re.compile(r"[。！？；]+[”’」』）)\"']*|(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|cf|No|Fig|Inc|Ltd|Co|Corp|approx|Jan|Feb|Mar"
    r"|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)|(?:^|[\s(])(?:[A-Z]|\d{1,2}))\.$"
)
# Characters before a full stop that decide whether it abbreviates: more than the longest abbreviation.
_ABBREVIATION_CHARS = 12
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LETTER = re.compile(r"[^\W\d_]")


def sentences(text: str) -> list[tuple[int, int]]:
    """Character ranges of the sentences of ``text``, in order, without surrounding white space.

    Every character that is not white space belongs to exactly one range.
    """
    ranges: list[tuple[int, int]] = []
    start = 0
    for match in _END.finditer(text):
        checkpoint()
        dot = match.start()
        if text[dot] == "." and _ABBREVIATION.search(text[max(start, dot - _ABBREVIATION_CHARS) : dot + 1]):
            continue
        _append_trimmed(ranges, text, start, match.end())
        start = match.end()
    _append_trimmed(ranges, text, start, len(text))
    return ranges


def _append_trimmed(ranges: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        ranges.append((start, end))


def is_chinese(text: str) -> bool:
    """Whether ``text`` reads as Chinese: at least a fifth of its letters are Han characters.

    A Latin word is many letters where a Chinese one is two, hence a fifth and not a half.
    """
    han = len(_HAN.findall(text))
    return han > 0 and han * 5 >= len(_LETTER.findall(text))


def is_json(text: str) -> bool:
    """Whether ``text`` is a JSON object or list, with nothing but white space around it."""
    bare = text.strip()
    if not bare.startswith(("{", "[")):
        return False
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return True

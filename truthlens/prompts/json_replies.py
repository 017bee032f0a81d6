"""Find the JSON in a model's reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NoReturn

_START = re.compile(r"[\[{]")
_MOST_STARTS = 20
_MOST_CHARS = 200_000


def json_values(text: str) -> Iterator[object]:
    """Yield the JSON objects and lists in ``text``, whatever surrounds them; the first 20 brackets are tried."""
    decoder = json.JSONDecoder()
    done = 0
    for match in list(_START.finditer(text))[:_MOST_STARTS]:
        if match.start() < done:
            continue
        try:
            value, done = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield value


def one_object(text: str) -> object:
    """Return the one JSON object in ``text``; prose or a fence may stand around it.

    Raises:
        ValueError: there is none, are several, or it is damaged or holds a key twice; the message holds nothing of ``text``.
    """
    start = text.find("{")
    if len(text) > _MOST_CHARS or start < 0:
        raise ValueError("is too long" if start >= 0 else "holds no object")
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        raise ValueError("holds a damaged object") from None
    if "{" in text[end:]:
        raise ValueError("holds more than one object")
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _constant(_: str) -> NoReturn:
    raise ValueError("not a number of JSON")

"""Find the JSON in a model's reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_START = re.compile(r"[\[{]")
_MOST_STARTS = 20


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

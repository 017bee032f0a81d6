"""Whether the sentences of a text can be told: in scripts whose marks ``text.sentences`` knows. Pure."""

from __future__ import annotations

import re

from truthlens.text.language import script_weights

_KNOWN_ENDS = (
    "latin",
    "greek",
    "cyrillic",
    "hebrew",
    "arabic",
    "hangul",
    "kana",
    "han",
    "ARMENIAN",
    "GEORGIAN",
)
_UNKNOWN_ENDS = re.compile("[\u06d4\u0589]")


def has_known_sentences(text: str) -> bool:
    """Return whether ``text.sentences`` can tell the sentences of ``text``: not in Hindi, Urdu or Thai, for one."""
    if text.isascii():
        return True
    weights = script_weights(text)
    known = sum(weights[script] for script in _KNOWN_ENDS)
    return 2 * known >= weights.total() and not _UNKNOWN_ENDS.search(text)

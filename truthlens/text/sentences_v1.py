"""Sentences as the bundled encoder was trained on them: FROZEN for ``lexical-v1`` and ``-v2``, do not mend anything here.

The windows, the choice of evidence and the lexical features of the model rest on these cuts, with their faults: "U.S."
ends a sentence, "12." never does. ``tests/text/test_sentences_v1.py`` pins them. Everything else reads
``truthlens.text.sentences``.
"""

from __future__ import annotations

import re

from truthlens.core.cancellation import checkpoint
from truthlens.text.spans import trimmed

# A run of marks is tried once and whole: from within, or in part, it cannot match where it did not as a whole.
_END = re.compile(r"[。！？；]+[”’」』）)\"']*|(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|cf|No|Fig|Inc|Ltd|Co|Corp|approx|Jan|Feb|Mar"
    r"|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec)|(?:^|[\s(])(?:[A-Z]|\d{1,2}))\.$"
)
# Characters before a full stop that decide whether it abbreviates: more than the longest abbreviation.
_ABBREVIATION_CHARS = 12


def sentences_v1(text: str) -> list[tuple[int, int]]:
    """Return the character ranges of the sentences of ``text``, in order, without surrounding white space."""
    ranges: list[tuple[int, int]] = []
    start = 0
    for match in _END.finditer(text):
        checkpoint()
        dot = match.start()
        if text[dot] == "." and _ABBREVIATION.search(text[max(start, dot - _ABBREVIATION_CHARS) : dot + 1]):
            continue
        ranges.append(trimmed(text, start, match.end()))
        start = match.end()
    ranges.append(trimmed(text, start, len(text)))
    return [(start, end) for start, end in ranges if start < end]

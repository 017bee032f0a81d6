"""Paragraphs of a text that marks no documents, each a passage of its own."""

from __future__ import annotations

import re

from truthlens.core.cancellation import checkpoint
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage

_BREAK = re.compile(r"\n[ \t]*\n\s*")
_HEADING_CHARS = 60
_FULL_STOPS = tuple(".!?:;。！？：；\"'”’)）|")


def paragraphs(text: str) -> list[str]:
    """Return the parts of ``text`` between blank lines; a heading stays with the next paragraph."""
    found: list[str] = []
    heading = ""
    for piece in _BREAK.split(text):
        checkpoint()
        body = piece.strip()
        if not body:
            continue
        part = f"{heading}\n{body}" if heading else body
        heading = ""
        if len(part) <= _HEADING_CHARS and "\n" not in part and not part.endswith(_FULL_STOPS):
            heading = part
        else:
            found.append(part)
    return [*found, heading] if heading else found


def paragraph_passages(text: str, provenance: Provenance) -> list[Passage]:
    """Return one passage per paragraph of ``text``, without those that hold no letter or digit."""
    return [
        Passage(text=part, provenance=provenance)
        for part in paragraphs(text)
        if any(character.isalnum() for character in part)
    ]

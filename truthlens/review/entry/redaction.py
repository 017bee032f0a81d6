"""Take personal data out of kept texts, each character by a mark, so that positions stay right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import regex

from truthlens.core.review_settings import Redaction

MARK = "█"
TIME_S = 0.2
"""Seconds that one pattern may take on one text; a text on which it takes longer is not kept."""

# Wide on purpose: what is taken out by mistake costs a reviewer a word, what stays is personal data in a database.
_PATTERNS = {
    Redaction.EMAIL: r"[\w.!#$%&'*+/=?^`{|}~-]+@[\w-]+(?:\.[\w-]+)+",
    # A date is none: 2024-12-01, 01.12.2024.
    Redaction.PHONE: r"(?<![\w.])(?!\d{4}-\d\d-\d\d(?!\d)|\d\d?[./-]\d\d?[./-]\d{4}(?!\d))(?:\+|00)?\(?\d(?:[ \-./()]{0,2}\d){7,14}(?!\w)",
    Redaction.CARD: r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)",
    Redaction.IBAN: r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b",
    Redaction.IP: r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])",
}


def redactor(kinds: Sequence[Redaction], patterns: Sequence[str] = ()) -> Callable[[str], str]:
    """Return what takes personal data of these kinds, and what ``patterns`` match, out of a text.

    The returned function raises ``TimeoutError`` for a text on which a pattern takes longer than ``TIME_S``.

    Raises:
        regex.error: a pattern cannot be read.
    """
    compiled = [regex.compile(pattern) for pattern in (*(_PATTERNS[kind] for kind in kinds), *patterns)]

    def redact(text: str) -> str:
        for pattern in compiled:
            text = pattern.sub(lambda found: MARK * len(found[0]), text, timeout=TIME_S)
        return text

    return redact

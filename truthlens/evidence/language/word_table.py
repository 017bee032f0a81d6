"""Tables of words, written as text."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that is a table of words."""
    return frozenset(text.split())


def word_list(text: str) -> tuple[str, ...]:
    """Return the words of a text that is a table of words, in its order."""
    return tuple(text.split())

"""Find the words of a text that carry content, in a form that ignores endings."""

from __future__ import annotations

import re
from functools import lru_cache

from truthlens.text.scripts import UNSPACED
from truthlens.text.word_forms import STOP_WORDS, form

_STEM_LETTERS = 6
_WORD = re.compile(r"[^\W_]+(?:[.,:/-]\d+)*")
_UNSPACED = re.compile(f"[{UNSPACED}]+")


def content_words(text: str) -> list[str]:
    """Return the content words, cut to their first letters to ignore endings; Chinese by character pairs."""
    found: list[str] = []
    for run in _UNSPACED.findall(text):
        found += [run[place : place + 2] for place in range(max(len(run) - 1, 1))]
    found += filter(None, map(_stem, _WORD.findall(_UNSPACED.sub(" ", text.casefold()))))
    return found


def has_content(text: str) -> bool:
    """Return whether there is any content word."""
    if _UNSPACED.search(text):
        return True
    return any(_stem(match[0]) for match in _WORD.finditer(text.casefold()))


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """Return what counts of a word: nothing of a function word, all of one with a digit."""
    return "" if word in STOP_WORDS else form(word, letters=_STEM_LETTERS)

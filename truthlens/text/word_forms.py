"""Function words, and what the forms of one word have in common, in any language: crude, and by spelling alone.

For comparing two texts by the words they share. What feeds the bundled encoder has its own words and stems, which are
frozen (``text.words``).
"""

from __future__ import annotations

import re
from functools import lru_cache

from truthlens.text.function_words import FUNCTION_WORDS
from truthlens.text.negations import OTHER_NEGATION_WORDS
from truthlens.text.scripts import UNSPACED


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list that is written with spaces."""
    return frozenset(words.split())


STOP_WORDS = frozenset().union(*FUNCTION_WORDS.values()) - OTHER_NEGATION_WORDS - {"not"}
"""Function words of all languages that are told apart; a negation is none of them, for it turns what is said."""

_DIGIT = re.compile(r"\d")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_PREFIX_HANGUL = 2
_STEM_LETTERS = 6
_WORD = re.compile(r"[^\W_]+(?:[.,:/-]\d+)*")
_UNSPACED = re.compile(f"[{UNSPACED}]+")


def singular(word: str) -> str:
    """Return ``word`` without a final "s", where it is long enough for that to be an ending."""
    return word.removesuffix("s") if len(word) > 3 else word


def form(word: str, *, letters: int) -> str:
    """Return what a case-folded ``word`` and its other endings have in common: its first letters.

    A word with a digit stands for itself. Of Korean, where particles are written to the word, two syllables count.

    Args:
        word: without marks around it.
        letters: how many of them tell one word from another.
    """
    if _DIGIT.search(word):
        return word
    if _HANGUL.match(word):
        return word[:_PREFIX_HANGUL]
    return singular(word)[:letters]


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

"""Function words, and what the forms of one word have in common, in any language: crude, and by spelling alone.

For comparing two texts by the words they share. What feeds the bundled encoder has its own words and stems, which are
frozen (``text.words``).
"""

from __future__ import annotations

import re

from truthlens.text.language import FUNCTION_WORDS


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list that is written with spaces."""
    return frozenset(words.split())


_NEGATIONS = frozenset({"nicht", "pas", "non", "no", "não", "niet", "not"})
STOP_WORDS = frozenset().union(*FUNCTION_WORDS.values()) - _NEGATIONS
"""Function words of all languages that are told apart; a negation is none of them, for it turns what is said."""

_DIGIT = re.compile(r"\d")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_PREFIX_HANGUL = 2


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

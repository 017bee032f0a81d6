"""Tell whether a text is about what a question asks, by the words that they share."""

from __future__ import annotations

from truthlens.evidence.language.word_table import word_set
from truthlens.text.function_words import COMMON_WORDS
from truthlens.text.words import words

_TEXT_CHARS = 100_000
_QUESTION_CHARS = 2_000
_ASKING = word_set(
    "tell explain describe list give show name say please help write what which does did many much long "
    "often kind way thing question answer know need want get take make use work mean happen"
)


def is_about(question: str, text: str, *, least: int = 0) -> bool:
    """Return whether ``text`` holds enough of the words that ``question`` asks with: a third of them, and two where there are four.

    ``least`` asks for so many in any case, and with 1 for no more.
    """
    asked = _content(question[:_QUESTION_CHARS])
    if not asked:
        return False
    shared = asked & _content(text[:_TEXT_CHARS])
    if least == 1:
        return bool(shared)
    return len(shared) >= max(least, 2 if len(asked) >= 4 else 1) and len(shared) / len(asked) >= 0.33


def _content(text: str) -> set[str]:
    return {
        word.stem
        for word in words(text)
        if not word.stop and not word.negation and word.stem not in COMMON_WORDS and word.stem not in _ASKING
        and (len(word.stem) > 2 or not word.stem.isascii() or word.numbers)
    }  # fmt: skip

"""Whether two texts are in one language, where that is clear from their scripts or function words; no model.

Short texts, and languages that these cannot tell apart, count as the same: nobody may rest a refusal on a guess.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from truthlens.core.language import FUNCTION_WORDS

_READ_CHARS = 20_000
_SAMPLE_CHARS = 4000
# Where a letter is about a word, it weighs as much as the letters of one.
_WEIGHTS = {"CJK": 4, "HIRAGANA": 4, "KATAKANA": 4, "HANGUL": 4, "THAI": 2}
_LEAST_WEIGHT = 24
_CLEAR_SHARE = 0.7
_LEAST_WORDS = 8
_JAPANESE = ("HIRAGANA", "KATAKANA")
_JAPANESE_SHARE = 0.1
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,300}`|https?://\S+", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")


def same_language(first: str, second: str) -> bool:
    """Whether nothing clearly says that the texts are in two languages. Code and addresses do not count."""
    texts = [_CODE.sub(" ", text[:_READ_CHARS])[:_SAMPLE_CHARS] for text in (first, second)]
    scripts = [_script_of(text) for text in texts]
    if None in scripts:
        return True
    if scripts[0] != scripts[1]:
        return False
    counts = [_function_words(text) for text in texts]
    return not any(
        _clear(counts[0], one, other) and _clear(counts[1], other, one)
        for one in FUNCTION_WORDS
        for other in FUNCTION_WORDS
        if one != other
    )


def _script_of(text: str) -> str | None:
    """The script of most of the letters, or ``None`` where there are few letters or no clear majority."""
    weights: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if script := _script(character):
            weights[script] += count * _WEIGHTS.get(script, 1)
    kana = sum(weights[script] for script in _JAPANESE)
    if kana and kana >= _JAPANESE_SHARE * (kana + weights["CJK"]):
        weights["HIRAGANA"] = kana + weights["CJK"]
        weights["KATAKANA"] = weights["CJK"] = 0
    total = weights.total()
    if total < _LEAST_WEIGHT:
        return None
    script, most = weights.most_common(1)[0]
    return script if most >= _CLEAR_SHARE * total else None


@lru_cache(maxsize=8192)
def _script(character: str) -> str:
    """The first word of the character's Unicode name, which for a letter is its script."""
    if not character.isalpha():
        return ""
    name = unicodedata.name(character, "").split()
    while name and name[0] in {"FULLWIDTH", "HALFWIDTH", "MODIFIER"}:
        name = name[1:]
    return name[0] if name else ""


def _function_words(text: str) -> dict[str, int]:
    words = Counter(_WORD.findall(text.casefold()))
    return {code: sum(words[word] for word in known) for code, known in FUNCTION_WORDS.items()}


def _clear(counts: dict[str, int], one: str, other: str) -> bool:
    """Whether ``one`` is the text's language and ``other`` is not: many of its function words, twice as many."""
    return (
        counts[one] >= _LEAST_WORDS
        and counts[one] == max(counts.values())
        and counts[one] >= 2 * counts[other] + 2
    )

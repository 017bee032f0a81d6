"""Whether a model can read a text, judged by the text's script.

A classifier gives a figure for any input, also for one in a script that its vocabulary hardly holds; such a
figure means nothing and must not be reported. Languages that share a script are not told apart here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ANY_LANGUAGE = "*"
"""In a manifest's ``languages``: the model reads every script."""

# Letters by script; what is in none of these counts as "other".
_RANGES = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff",
    "hebrew": "\u0590-\u05ff",
    "arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff",
    "devanagari": "\u0900-\u097f",
    "thai": "\u0e00-\u0e7f",
    "hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "kana": "\u3040-\u30ff\u31f0-\u31ff",
    "han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f",
}
_OF_LANGUAGE = {
    "zh": ("han",),
    "yue": ("han",),
    "ja": ("han", "kana"),
    "ko": ("hangul", "han"),
    "el": ("greek",),
    "he": ("hebrew",),
    "yi": ("hebrew",),
    "th": ("thai",),
    **dict.fromkeys(("ru", "uk", "be", "bg", "sr", "mk", "kk", "ky", "mn", "tg"), ("cyrillic",)),
    **dict.fromkeys(("ar", "fa", "ur", "ps", "ckb"), ("arabic",)),
    **dict.fromkeys(("hi", "mr", "ne", "sa"), ("devanagari",)),
}
_PATTERNS = {script: re.compile(f"[{letters}]") for script, letters in _RANGES.items()}
_LETTER = re.compile(r"[^\W\d_]")
# A word is about five letters of an alphabet and one or two characters of these.
_WORDLIKE = frozenset({"han", "kana", "hangul", "thai"})
_WORDLIKE_WEIGHT = 4


def readable(text: str, languages: Iterable[str]) -> bool:
    """Whether at least half of ``text`` is in a script of ``languages``.

    Letters are weighed so that Han, Kana, Hangul and Thai characters count four, which makes the rule for Chinese
    in an English text the same as ``text.sentences.is_chinese``. A text without letters is readable.

    Args:
        text: an answer or a passage.
        languages: ISO 639 codes, regions allowed (``en``, ``pt-BR``); ``*`` means every script. A code that is
            not known here is taken for a language in Latin letters.
    """
    codes = {code.replace("_", "-").split("-")[0].lower() for code in languages}
    if ANY_LANGUAGE in codes:
        return True
    scripts = {script for code in codes for script in _OF_LANGUAGE.get(code, ("latin",))}
    if text.isascii() and "latin" in scripts:
        return True
    read = 0
    named = 0
    weighed = 0
    for script, pattern in _PATTERNS.items():
        count = len(pattern.findall(text))
        weight = count * (_WORDLIKE_WEIGHT if script in _WORDLIKE else 1)
        named += count
        weighed += weight
        read += weight if script in scripts else 0
    other = max(0, len(_LETTER.findall(text)) - named)
    return read * 2 >= weighed + other

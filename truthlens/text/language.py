"""The language of a text, by its script and its function words; no model.

Short texts and languages that are not listed stay unknown (``""``): nobody may rest a refusal on a guess.
"""

from __future__ import annotations

import re

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_KANA = r"\u3040-\u30ff"
_HANGUL = r"\uac00-\ud7af"
_UNSPACED = re.compile(f"[{_HAN}{_KANA}]")
_WORD = re.compile(f"[^\\W_{_HAN}{_KANA}]+")
_WORDS_OF = {
    "en": "the a an of to in is are was and what how do does can i my it for on with that this be you",
    "de": "der die das und ist ein eine nicht ich wie was zu den mit von für auf sind kann wird es im",
    "fr": "le la les des est un une et que quel quelle comment je du dans pour sur avec pas ce sont mon",
    "es": "el los las es una y qué cómo de la en por para con que mi se del son puedo cuál un",
    "it": "il gli che è una di come per con non sono del della cosa posso mi le un e qual quale",
    "pt": "o os as é uma e que como de da do em para com não meu minha são posso qual um",
    "nl": "de het een en is van wat hoe ik niet voor met op zijn kan mijn te dat deze er",
}
FUNCTION_WORDS = {code: frozenset(words.split()) for code, words in _WORDS_OF.items()}
LANGUAGES = frozenset({*FUNCTION_WORDS, "zh", "ja", "ko"})


def language_of(text: str) -> str:
    """The language of ``text`` as a code of ``LANGUAGES``, or ``""`` where it cannot be told.

    Chinese, Japanese and Korean are told by script, the others by their function words.
    """
    sample = text[:4000]
    if len(re.findall(f"[{_HANGUL}]", sample)) * 5 > len(sample):
        return "ko"
    if unspaced := len(_UNSPACED.findall(sample)):
        letters = sum(character.isalpha() for character in sample)
        if unspaced * 5 >= letters:
            return "ja" if re.search(f"[{_KANA}]", sample) else "zh"
    words = _WORD.findall(sample.casefold())
    counts = {code: sum(word in known for word in words) for code, known in FUNCTION_WORDS.items()}
    first, second = sorted(counts, key=lambda code: -counts[code])[:2]
    return first if counts[first] > counts[second] else ""

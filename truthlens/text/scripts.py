r"""Classes of characters by Unicode script, as ``\p{…}`` of the ``regex`` package knows them. Pure.

Each constant is the inside of a character class for ``re``: ``re.compile(f"[{HAN}]+")``. ``text.words`` has
ranges of its own, for models are trained on its words.
"""

from __future__ import annotations

import sys
from array import array
from typing import Final

import regex

_FIRST_SURROGATE, _LAST_SURROGATE, _LAST_ASSIGNED = 0xD800, 0xDFFF, 0x33479
_CODE = "I" if array("I").itemsize == 4 else "L"
_ALL = (
    array(_CODE, [*range(_FIRST_SURROGATE), *range(_LAST_SURROGATE + 1, _LAST_ASSIGNED + 1)])
    .tobytes()
    .decode(f"utf-32-{sys.byteorder[0]}e")
)


def class_of(*properties: str) -> str:
    r"""Return the inside of a class for ``re`` that holds the characters of any of the Unicode properties.

    Args:
        properties: names as they stand in ``\p{…}``: scripts such as ``Han``, blocks such as ``InArrows``.
    """
    pattern = "[{}]+".format("".join(rf"\p{{{name}}}" for name in properties))
    runs = (match[0] for match in regex.finditer(pattern, _ALL))
    return "".join(f"\\U{ord(run[0]):08x}-\\U{ord(run[-1]):08x}" for run in runs)


# The mark of long vowels, the middle dot and voicing marks belong to Hiragana and Katakana both, so to no script.
KANA: Final = class_of("Hiragana", "Katakana", "InHiragana", "InKatakana") + "\uff70\uff9e\uff9f"
HAN: Final = class_of("Han")
HANGUL: Final = class_of("Hangul")
CJK: Final = HAN + KANA
"""Scripts of which every character is about a word or a syllable, written without spaces."""
UNSPACED: Final = CJK + class_of("Thai", "Lao", "Khmer", "Myanmar")
"""All scripts that are written without spaces between words."""
CJK_MARKS: Final = class_of("InCJK_Symbols_And_Punctuation", "InHalfwidth_And_Fullwidth_Forms")
SCRIPTS: Final = {
    name: class_of(name.title())
    for name in ("latin", "greek", "cyrillic", "hebrew", "arabic", "devanagari", "thai")
} | {"hangul": HANGUL, "kana": KANA, "han": HAN}
"""Classes of the scripts that are told apart, by name."""

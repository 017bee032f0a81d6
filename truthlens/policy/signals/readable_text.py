"""Normalise a text to what its reader sees: no markup, no invisible characters, no look-alikes.

A writer who wants to keep a word from being found puts a tag, an asterisk, a soft hyphen or a mark into it,
or takes a letter of another alphabet; a person and a model read the word all the same. What is made here is
for finding words only and is never shown.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator

import regex

# Letters of other alphabets that are drawn like a Latin one. Source: confusables.txt of Unicode Technical
# Standard 39, of it the scripts that people can type; NFKC takes care of full-width, circled and mathematical
# letters, the names of characters of small capitals and letters in boxes.
_ALIKE = (
    "aɑαа AΑАᎪꓮ bƄЬᏏ BΒВᏴꓐꞴ cϲсⲥꮯ CϹСᏟꓚⲤ dԁᏧꓒ DᎠꓓ eеҽꬲ EΕЕᎬꓰ fքꞙꬵẝ FϜꓝꞘ gɡցᶃƍ GԌᏀᏳꓖ hһհᏂ HΗНᎻꓧⲎ iıɩιіꙇӏꭵᎥ "
    "IΙІӀꓲⲒ jϳј JͿЈᎫꓙꞲ KΚКᏦꓗⲔ lƖǀ LᏞꓡⳐ MΜϺМᎷꓟⲘ nոռ NΝꓠⲚ oοσоօⲟᴑꬽ OΟОՕꓳⲞ pρϱрⲣ PΡРᏢꓑⲢ qԛգզ rгᴦⲅꮁꭇꭈ RᎡᏒꓣƦ "
    "sѕꮪƽ SЅՏᏕᏚꓢ TΤТᎢꓔⲦ uυսʋꞟꭎꭒ UՍꓴ vνѵꮩ VѴᏙꓦ wѡաɯꮃԝ WԜᏔᎳꓪ xх XΧХꓫⲬꞳ yγуүɣᶌỿꭚ YΥУҮᎽᎩꓬⲨ zꮓ ZΖᏃꓜ"
)
# Alike only to who does not look closely. Whole words of Russian and Greek are written with them, so they
# count only in words that have a Latin letter as well.
_NEARLY_ALIKE = "bв eεэ hн kкκ mм nηп NИП oθ rя RЯ tтτ uи wωшщ yч"
_MARKUP = "*_~`\\[]"
_UNSEEN = {ord(each): None for each in (*_MARKUP, *map(chr, range(0x20)), "\x7f") if not each.isspace()}
_PIECE = 1 << 16
# Deeper runs change no direction, as in Annex 9.
_MAX_NESTED = 125

_TAG = re.compile(r"<!--.{0,300}?-->|<[!/?a-zA-Z][^<>]{0,300}>", re.DOTALL)
# No character has so large a number, and Python refuses to read very long ones.
_NO_ENTITY = re.compile(r"&#[xX]?[0-9a-fA-F]{9,};?")
_LINK_END = re.compile(r"\]\([^()\s]{0,300}\)")
_BROKEN_WORD = re.compile(r"(?<=\w)[-\u2010]\n[ \t]{0,20}(?=\w)")
_LINE_END = r"[-\u2010]?[ \t]{0,20}(?:\r\n?|[\n\v\f\x85\u2028\u2029])\s{0,20}"
# Tried at the beginning of a word alone, and given back nothing of one: else a long word takes the square of its length.
_OVER_LINES = re.compile(rf"(?<!\w)\w++(?:{_LINE_END}\w++)+")
_LINE_ENDS = re.compile(_LINE_END)
# Into so many pieces a word is cut that is put together again.
_WORD_PIECES = 4
_INVISIBLE = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{Cf}]+")
# The blocks of marks that are put on Latin, Greek and Cyrillic letters; elsewhere marks are vowels.
_MARKS = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
# What a bidirectional override shows backwards, and what opens and closes it. Source: Unicode Standard Annex 9.
_OVERRIDE, _OPENS, _CLOSES = "\u202e", "\u202a\u202b\u202d\u202e\u2066\u2067\u2068", "\u202c\u2069"
_DIRECTION = re.compile(f"([{_OPENS}{_CLOSES}\n\u2029])")
_DRAWN = re.compile(
    r"LATIN LETTER SMALL CAPITAL ([A-Z])|NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL LETTER ([A-Z])|REGIONAL INDICATOR SYMBOL LETTER ([A-Z])"
    r"|PARENTHESIZED LATIN (?:SMALL|CAPITAL) LETTER ([A-Z])"
)
_LATIN_WORD = regex.compile(r"\p{Latin}+")
_LATIN = regex.compile(r"\p{Latin}")
_SPELLED = re.compile(r"(?<!\w)[^\W\d_]([ .\-])(?:[^\W\d_]\1){2,}[^\W\d_](?!\w)")
_WORD = re.compile(r"\w+")
_SPACE = re.compile(r"\s")


def _table(groups: str) -> dict[int, str]:
    """Return a table from each character of a group but its first to its first."""
    return {ord(other): group[0] for group in groups.split() for other in group[1:]}


def _struck() -> Iterator[tuple[int, str]]:
    """Yield Latin letters with a stroke or hook, which no normal form decomposes, and their base."""
    for code in (*range(0x80, 0x2B0), *range(0x1D00, 0x1DC0), *range(0x2C60, 0x2C80), *range(0xA720, 0xA800)):
        words = unicodedata.name(chr(code), "").split(" WITH ")[0].split()
        if len(words) == 4 and words[0] == "LATIN" and words[2] == "LETTER" and len(words[3]) == 1:
            yield code, words[3].lower() if words[1] == "SMALL" else words[3]


def _drawn() -> Iterator[tuple[int, str]]:
    """Yield characters that are drawn as a letter and that no normal form decomposes into it, and the letter.

    Of letters in brackets the normal form has the brackets as well.
    """
    for code in (
        *range(0x250, 0x2B0),
        *range(0x1D00, 0x1D80),
        *range(0xA720, 0xA800),
        *range(0x249C, 0x24B6),
        *range(0x1F110, 0x1F12A),
        *range(0x1F150, 0x1F200),
    ):
        name = _DRAWN.fullmatch(unicodedata.name(chr(code), ""))
        if name is not None:
            yield code, name[name.lastindex or 0].lower()


_STRICT = _table(_ALIKE)
_LOOSE = _table(_NEARLY_ALIKE) | _STRICT
_STRUCK = dict(_struck())
_LETTERS = dict(_drawn())
_ANY_ALIKE = re.compile("[" + "".join(map(chr, _LOOSE)) + "]")
_ANY_STRUCK = re.compile("[" + "".join(map(chr, _STRUCK)) + "]")


def pieces(text: str) -> Iterator[str]:
    """Yield ``text`` in parts that end at white space if possible; long texts are processed piecewise."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + _PIECE) if len(text) - start > _PIECE else None
        end = space.end() if space is not None and space.end() - start < 2 * _PIECE else start + _PIECE
        yield text[start:end]
        start = end


def compatible(text: str) -> str:
    """Return ``text`` in NFKC, except two ligatures that expand to sentences, eighteen times as long."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.replace("\ufdfa", " ").replace("\ufdfb", " "))


def readable(text: str) -> str:
    """Return ``text`` in NFKC without markup and invisible characters, look-alikes as Latin letters."""
    if "<" in text:
        text = _TAG.sub("", text)
    if "&" in text:
        text = html.unescape(_NO_ENTITY.sub("", text))
    text = _BROKEN_WORD.sub("", _LINK_END.sub("", text)).translate(_UNSEEN)
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", compatible(text.translate(_LETTERS)))
    # The marks that NFC leaves belong to no letter that there is: they only cover the one that they stand on.
    return _latin(_MARKS.sub("", text))


def in_reading_order(text: str) -> str:
    """Return ``text`` with what an override from right to left shows backwards turned round, line by line."""
    if _OVERRIDE not in text:
        return text
    open_runs: list[tuple[bool, list[str]]] = [(False, [])]

    def close() -> None:
        backwards, inner = open_runs.pop()
        # Turned round once for each change of direction around it.
        run = "".join(inner)
        open_runs[-1][1].append(run[::-1] if backwards is not open_runs[-1][0] else run)

    for piece in _DIRECTION.split(text):
        if piece in ("\n", "\u2029"):
            while len(open_runs) > 1:
                close()
        if len(piece) == 1 and piece in _OPENS and len(open_runs) <= _MAX_NESTED:
            forced = {"\u202e": True, "\u202d": False}
            open_runs.append((forced.get(piece, open_runs[-1][0]), []))
        elif len(piece) == 1 and piece in _CLOSES:
            if len(open_runs) > 1:
                close()
        else:
            open_runs[-1][1].append(piece)
    while len(open_runs) > 1:
        close()
    return "".join(open_runs[0][1])


def unaccented(text: str) -> str:
    """Return ``text`` without accents; ``ø`` and the like become the letter without its stroke."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text)))
    return _latin(_ANY_STRUCK.sub(lambda match: _STRUCK[ord(match[0])], text))


def spelled_out(text: str) -> str:
    """Return the words of ``text`` written letter by letter (``d o s e``), from four letters, one a line."""
    return "\n".join(match[0].replace(match[1], "") for match in _SPELLED.finditer(text))


def over_lines(text: str) -> str:
    """Return the words that a line end in a word of ``text`` may have cut, put together, one a line: of two to four pieces each."""
    found: list[str] = []
    for chain in _OVER_LINES.finditer(text):
        parts = _LINE_ENDS.split(chain[0])
        found += [
            "".join(parts[at : at + count])
            for count in range(2, _WORD_PIECES + 1)
            for at in range(len(parts) - count + 1)
        ]
    return "\n".join(found)


def _latin(text: str) -> str:
    """Return ``text`` with each word that looks Latin written in Latin letters."""
    return _WORD.sub(_as_latin, text) if _ANY_ALIKE.search(text) else text


def _as_latin(match: re.Match[str]) -> str:
    word = match[0]
    if word.isascii():
        return word
    latin = word.translate(_LOOSE if _LATIN.search(word) else _STRICT)
    return latin if latin.isascii() or _LATIN_WORD.fullmatch(latin) else word

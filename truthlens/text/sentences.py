"""Where sentences end, with offsets; and whether a text is Chinese, or JSON.

No natural-language library: the rules cover Latin and CJK punctuation and are pure functions of the text.
"""

from __future__ import annotations

import json
import re

import regex

from truthlens.core.cancellation import checkpoint
from truthlens.text.function_words import COMMON_WORDS, WORDS_OF
from truthlens.text.spans import trimmed
from truthlens.text.values.moments import (
    CENTURY_NAMES,
    GERMAN_MONTHS,
    MONTHS,
    NOT_ENGLISH_MONTHS,
)
from truthlens.text.values.numerals import SHORT_SCALES

# A sentence ends at CJK end punctuation, at Latin end punctuation that is followed by white space (with
# closing quotes or brackets in between), or at a line break.
# A run of marks is tried once and whole: from within, or in part, it cannot match where it did not as a whole.
_END = re.compile(r"[。！？；]+[”’」』）)\"']*|(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|\n+")
# Never the last word of a sentence: a title, or what introduces the next word.
_OPENS = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Messrs|Dr|Drs|Prof|Gen|Col|Capt|Lt|Sgt|Maj|Gov|Sen|Rep|Rev|Hon|Mt|vs|cf|viz|approx|ca"
    r"|e\.g|i\.e|bzw|Nr|Nos|Figs?|Eqs?|Secs?|Chs?|Vols?|pp?|[Rr]efs?|(?<=\S )No)|^\s{0,8}\d{1,3})\.$"
)
# The last word only where the next one plainly begins a sentence.
_ABBREVIATES = re.compile(
    r"(?:\b(?:et al|etc|Inc|Ltd|Co|Corp|Bros|Jr|Sr|St|Ave|Blvd|Rd|Dept|Est|Esq|Ph\.D|usw|Jan|Feb|Mar|Apr|Jun|Jul|Aug"
    r"|Sep|Sept|Oct|Okt|Nov|Dec|Dez)|(?:^|[\s(\[\"'“‘*])(?:[A-Za-z]\.){0,4}[A-Zzdu]|(?:^|[\s(\d])[ap]\.m)\.$"
)
_LEADS_TO = r"[^\S\n]{1,3}[\"'“‘(*_]{0,3}"
_STARTS = re.compile(
    _LEADS_TO
    + r"(?:The|A|An|It|Its|This|That|These|Those|They|Their|He|She|His|Her|We|You|I|In|On|At|By|For|If|When"
    r"|However|There|But|And|So|As|After|Before|While|Although|Also|According|Based|Then|Now|Some|Many|Most|No|Yes)(?=[\s,'’])"
)
# "No." is an answer at the beginning of a sentence, and a number's name before a figure.
_NO = re.compile(r"^\W*No\.$")
_CAPITAL = re.compile(rf"{_LEADS_TO}[^\W\d_a-z]")
# Behind a quotation or an ellipsis a small letter goes on: "Stop!" she said.
_GOES_ON = re.compile(r"[^\S\n]{1,3}[a-z]")
# Characters before a full stop that decide whether it abbreviates: more than the longest abbreviation.
_ABBREVIATION_CHARS = 16
# "1.2 Mio. Euro", "19. Jh. gebaut": a word that is cut short behind its number.
_SCALED = re.compile(
    rf"\d(?:[^\S\n]{{0,2}}(?:{'|'.join(SHORT_SCALES)})|\.[^\S\n]{{0,2}}(?:jhd?|jhdt))\.$", re.IGNORECASE
)
_COMMON = re.compile(rf"{_LEADS_TO}([^\W\d_]+)(?=[\s,'’])")
# A day before its month, a number before its century: "am 3. Mai", "vom 3. bis 5. Mai", "im 19. Jahrhundert". Of names that are English as well ("It is in room 12. April was cold.")
# the year decides, or a German word before the day.
_DAY_NUMBER = r"(?:0?[1-9]|[12]\d|3[01])\."
_DAY = re.compile(rf"(?:(?P<word>[^\W\d_]+)[^\S\n])?(?<![\d.,:]){_DAY_NUMBER}$")
_GERMAN_WORDS = WORDS_OF["de"] - WORDS_OF["en"]
_I_AM = re.compile(r"\bI am \d+\.$")


def _month_behind(names: frozenset[str]) -> regex.Pattern[str]:
    sure, known = "|".join(names), "|".join(sorted(MONTHS, key=len, reverse=True))
    other_day = rf"(?:[^\S\n]{{1,3}}(?:[^\W\d_A-Z]{{1,5}}|[-–])[^\S\n]{{1,3}}{_DAY_NUMBER})?"
    return regex.compile(
        rf"{other_day}[^\S\n]{{1,3}}(?i:(?:{sure})\b|(?:{known})\.?,?[^\S\n]{{1,2}}\d{{4}}\b)"
    )


_CENTURY_NAMES = CENTURY_NAMES - {"century", "centuries"}
_MONTH = _month_behind(NOT_ENGLISH_MONTHS | _CENTURY_NAMES)
_GERMAN_MONTH = _month_behind(frozenset(GERMAN_MONTHS) | _CENTURY_NAMES)
_MONTH_CHARS = 48
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LETTER = re.compile(r"[^\W\d_]")


def sentences(text: str, *, ahead: int = 0) -> list[tuple[int, int]]:
    """Return the character ranges of the sentences of ``text``, in order, without surrounding white space.

    Every character that is not white space belongs to exactly one range. Inputs of the bundled encoder are cut by
    ``sentences_v1`` instead.

    Args:
        text: all of it; where it ends within what may be the month of a date, it is taken for one.
        ahead: how many characters at its end only stand for text that is still to come.
    """
    last = len(text) - ahead
    ranges: list[tuple[int, int]] = []
    start = 0
    for match in _END.finditer(text):
        checkpoint()
        if _is_within(text, start, match, last):
            continue
        ranges.append(trimmed(text, start, match.end()))
        start = match.end()
    ranges.append(trimmed(text, start, len(text)))
    return [(first, last) for first, last in ranges if first < last]


def may_be_date(text: str, start: int, end: int, last: int) -> bool:
    """Return whether the full stop before ``end`` is that of a day, and its month follows, or may follow from ``last`` on.

    Args:
        text: what the places are in.
        start: where the sentence begins.
        end: behind the full stop.
        last: where what is known of the text ends.
    """
    before = text[max(start, end - 1 - _ABBREVIATION_CHARS) : end]
    day = _DAY.search(before)
    if day is None:
        return False
    word = day["word"]
    german = word is not None and (word in _GERMAN_WORDS or (word == "am" and not _I_AM.search(before)))
    month = _GERMAN_MONTH if german else _MONTH
    return month.match(text, end, min(last, end + _MONTH_CHARS), partial=True) is not None


def _is_within(text: str, start: int, match: re.Match[str], last: int) -> bool:
    """Return whether the sentence from ``start`` goes on behind these marks; looks at a few characters on either side."""
    mark, end = match.start(), match.end()
    if text[mark] not in ".!?…":
        return False
    if (text[end - 1] not in ".!?" or match[0].endswith("...")) and _GOES_ON.match(text, end):
        return True
    if text[mark] != ".":
        return False
    before = text[max(start, mark - _ABBREVIATION_CHARS) : mark + 1]
    if _OPENS.search(before):
        return True
    if _NO.search(before):
        return _CAPITAL.match(text, end) is None
    if end == mark + 1 and may_be_date(text, start, end, last):
        return True
    if _SCALED.search(before):
        word = _COMMON.match(text, end)
        return word is None or not word[1][0].isupper() or word[1].lower() not in COMMON_WORDS
    return _ABBREVIATES.search(before) is not None and _STARTS.match(text, end) is None


def is_chinese(text: str) -> bool:
    """Return whether ``text`` reads as Chinese: at least a fifth of its letters are Han characters.

    A Latin word is many letters where a Chinese one is two, hence a fifth and not a half.
    """
    han = len(_HAN.findall(text))
    return han > 0 and han * 5 >= len(_LETTER.findall(text))


def is_json(text: str) -> bool:
    """Return whether ``text`` is a JSON object or list, with nothing but white space around it."""
    bare = text.strip()
    if not bare.startswith(("{", "[")):
        return False
    try:
        json.loads(bare)
    except (ValueError, RecursionError):
        return False
    return True

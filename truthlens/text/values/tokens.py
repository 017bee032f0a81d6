"""Cut a text into numbers, words, runs of Han characters and marks, in one pass. Pure.

The scan behind ``values.quantities``, for whole answers and whole passages: one regular expression, linear in the text. Words
have no stems here; ``text.words`` has, and is frozen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from truthlens.text.function_words import FUNCTION_WORDS
from truthlens.text.scripts import CJK

FRACTION_SIGNS = "½⅓⅔¼¾⅕⅛⅜⅝⅞"
_NUMBER = (
    r"(?P<n>\d{1,3}(?:[\u00a0\u202f']\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*[" + FRACTION_SIGNS + "]?"
    "|[" + FRACTION_SIGNS + "])|"
)  # fmt: skip
HAN_DIGITS = "零〇一二两兩三四五六七八九十百千万萬亿億兆"
NUMBER, WORD, HAN, HAN_NUMBER, MARK, BREAK = "n", "w", "h", "k", "s", "b"

# What parts dates, shares and durations is a token of its own.
_HAN_MARKS = (
    "日元(?!旦)|分之|世纪|世紀|年代|小时|小時|分钟|分鐘|分間|時間|时间|个月|個月|か月|ヶ月|カ月|季度|四半期|曜日|星期|上午|下午|午前|午後|晚上|早上|凌晨|年度|年間|年间"
    "|[年月日号號第时時点點分]"
)
# Marks that only say how a text looks: tags of HTML within a line, emphasis. Other tags part what stands beside them.
_ATTRIBUTES = r"(?:\s+[\w:-]{1,40}=(?:\"[^\"<>]{0,300}\"|'[^'<>]{0,300}'|[^\s<>\"']{1,300})){0,8}\s?/?>"
_MARKUP = (
    r"(?P<x></?(?:b|i|u|s|em|strong|span|sup|sub|a|code|mark|small|big|font|abbr|data|time|ins|del|kbd|q)" + _ATTRIBUTES
    + r"|&nbsp;|`{1,3}|~~|(?<![^\W_])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![^\W_]))"
    + r"|(?P<t></?[a-z][a-z0-9]{0,15}" + _ATTRIBUTES + ")|"
)  # fmt: skip
_TOKEN = re.compile(
    _MARKUP + _NUMBER + r"(?P<w>[^\W\d_" + FRACTION_SIGNS + CJK + r"]+(?:['’](?:s|t|re|ll|ve|d)\b)?)"
    r"|(?P<k>[" + HAN_DIGITS + r"]+)"
    r"|(?P<h>" + _HAN_MARKS + r"|(?:(?!" + _HAN_MARKS + r"|[" + HAN_DIGITS + r"])[" + CJK + r"])+)"
    r"|(?P<s>[^\s\w])|(?P<b>\n)"
)
_PLAIN = re.compile(
    _MARKUP
    + _NUMBER
    + r"(?P<w>[^\W\d_"
    + FRACTION_SIGNS
    + r"]+(?:['’](?:s|t|re|ll|ve|d)\b)?)|(?P<s>[^\s\w])|(?P<b>\n)"
)
_WIDE = re.compile(f"[{CJK}]")
_TOLD = tuple(FUNCTION_WORDS)
_CODES = {
    word: tuple(code for code in _TOLD if word in FUNCTION_WORDS[code])
    for words in FUNCTION_WORDS.values()
    for word in words
}
_FULL_WIDTH = str.maketrans("０１２３４５６７８９％．，：", "0123456789%.,:")


class Token(NamedTuple):
    """Characters ``start`` to ``end``: its sort (``NUMBER``, ``WORD``, …) and its text in lower case."""

    sort: str
    start: int
    end: int
    low: str


_BEHIND = [""] * 16
# ``Token._make`` without its check: texts have hundreds of thousands of them.
_made: Callable[[Iterable[object]], Token] = partial(tuple.__new__, Token)


def tokens(text: str) -> list[Token]:
    """Return the tokens of ``text`` in order; white space other than line breaks, ``_`` and markup belong to none."""
    text = text.translate(_FULL_WIDTH) if not text.isascii() else text
    pattern = _TOKEN if not text.isascii() and _WIDE.search(text) else _PLAIN
    low = text.lower()
    if len(low) != len(text):  # a few letters grow when they are made small
        low = "".join(each if len(each) == 1 else text[at] for at, each in enumerate(map(str.lower, text)))
    found = [_made((match.lastgroup, *match.span(), match[0])) for match in pattern.finditer(low)]
    if not any(each in low for each in "*<`&~"):
        return found
    return [
        token if token.sort != "t" else token._replace(sort=BREAK) for token in found if token.sort != "x"
    ]


def lows(listed: Sequence[Token]) -> list[str]:
    """Return the tokens' texts in lower case and ``""`` behind them, so that a few places before and behind can be looked at."""
    return [token[3] for token in listed] + _BEHIND


def language_of(listed: Sequence[Token], *, most: int = 2000) -> str:
    """Return a language's code by script and function words, such as ``en``, ``de``, ``it``, ``zh``; ``""`` where neither tells."""
    counts = dict.fromkeys(_TOLD, 0)
    wide = kana = 0
    for sort, start, end, low in islice(listed, most):
        if sort == WORD:
            if low in _CODES:
                for code in _CODES[low]:
                    counts[code] += 1
        elif sort == HAN:
            wide += 2 * (end - start)
            kana += any("\u3040" <= each <= "\u30ff" for each in low)
    best = max(counts, key=lambda code: counts[code])
    if wide > 3 * counts[best]:
        return "ja" if kana else "zh"
    return best if counts[best] else ""

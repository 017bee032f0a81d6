"""Whether two sentences about one matter give different figures, dates or a different polarity. Pure.

Meaning models rate "opened in 1990" and "opened in 1985" as near copies, which is why these are compared by value. It
does not decide whether two sentences are about one matter, and knows no opposites ("rises", "falls").
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
_REFERENCE = re.compile(
    r"\b(?:passages?|sources?|documents?|steps?|figures?|tables?|sections?|chapters?|pages?|versions?|question"
    r"|docs?|refs?)[ _-]?(?:\d+(?:\s*(?:,|and|&|or|-)\s*\d+)*)|\[[^\]\n]{0,20}\d[^\]\n]{0,8}\]|第\d+[段篇章页条步]"
    r"|https?://\S+",
    re.IGNORECASE,
)
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# "May" and "March" are also verbs: as a month they stand beside a number, or after a word of time.
_CALENDAR = re.compile(
    rf"\b(?P<name>(?i:{'|'.join(m for m in _MONTHS if m not in {'may', 'march'})}|{'|'.join(_DAYS)}))s?\b"
    r"|(?:\b(?:in|of|by|until|since|from|to|and|through)\s+|\d\s+)(?P<after>May|March)\b"
    r"|\b(?P<before>May|March)(?=\s+\d)"
)
_TO_TWENTY = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {
    **{word: value for value, word in enumerate(_TO_TWENTY.split(), start=2)},
    **{word: 10 * value for value, word in enumerate(_TENS.split(), start=2)},
}
_SCALES = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "bn": 1e9,
    "trillion": 1e12,
    "万": 1e4,
    "百万": 1e6,
    "亿": 1e8,
}
_LETTER_SCALES = {"k": 1e3, "m": 1e6, "b": 1e9}
_NUMBER = re.compile(
    r"(?P<money>[$€£¥￥]|\b(?:USD|EUR|GBP)\s?)?\s?"
    rf"(?:(?<![A-Za-z0-9_.])(?P<digits>\d+(?:,\d{{3}})*(?:\.\d+)?)|(?<!\w)(?P<word>{'|'.join(_SMALL)})\b)"
    r"(?P<scale>\s?(?:hundred|thousand|million|billion|trillion|bn)\b|百万|万|亿)?"
    rf"(?:st|nd|rd|th)?(?:\s?-?(?P<unit>%|％|°?[A-Za-z°]+|[{_HAN}]{{1,2}}))?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\s*(?:-|–|—|~|to|or|and|至|到|或|和)?\s*", re.IGNORECASE)
_MONEY_UNITS = frozenset(
    {"dollar", "euro", "pound", "usd", "eur", "gbp", "cent", "yuan", "rmb", "yen", "元", "美元", "欧元"}
)
_PERCENT = frozenset({"%", "％", "percent", "pct"})
_SECONDS = {
    "second": 1.0,
    "sec": 1.0,
    "minute": 60.0,
    "min": 60.0,
    "hour": 3600.0,
    "hr": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
    "month": 2629800.0,
    "year": 31557600.0,
    "秒": 1.0,
    "分钟": 60.0,
    "小时": 3600.0,
    "天": 86400.0,
    "周": 604800.0,
    "个月": 2629800.0,
    "年": 31557600.0,
}
_MEASURES = {
    **{unit: ("time", seconds) for unit, seconds in _SECONDS.items()},
    **dict.fromkeys(("mg", "milligram"), ("mass", 0.001)),
    **dict.fromkeys(("g", "gram", "克"), ("mass", 1.0)),
    **dict.fromkeys(("kg", "kilogram", "千克", "公斤"), ("mass", 1000.0)),
    **dict.fromkeys(("mm", "millimeter", "millimetre", "毫米"), ("length", 0.001)),
    **dict.fromkeys(("cm", "centimeter", "centimetre", "厘米"), ("length", 0.01)),
    **dict.fromkeys(("m", "meter", "metre", "米"), ("length", 1.0)),
    **dict.fromkeys(("km", "kilometer", "kilometre", "公里", "千米"), ("length", 1000.0)),
}
# Words that follow a number without being what it counts.
_NO_UNIT_WORDS = (
    "a an and as at but by for from if in is it of on or per so than that the then these this to was were with are "
    "up out who which while when after before until can may will has have had be about"
)
_NO_UNITS = frozenset(_NO_UNIT_WORDS.split())
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
_ROUNDING = 1e-9
_TOLERANCE = 0.02  # months are not equally long, and conversions are rounded

_NEGATION = re.compile(
    r"\b(?:not|no|never|without|cannot|neither|nor|none|nobody|nothing)\b|n['’]t\b", re.IGNORECASE
)
_NEGATION_ZH = re.compile(r"没有|并非|从未|不|没|未|无|非")
_NO_NEGATION_ZH = re.compile(r"不仅|不但|不过|不同|不断|不少|不久|无论|非常|除非|未来|差不多|不管")
_NO_NEGATION = re.compile(r"\b(?:not only|no doubt|no longer than|no more than|not least)\b", re.IGNORECASE)
_CONTENT = re.compile(rf"[A-Za-z]{{3,}}|[{_HAN}]")
_STOP_WORDS = (
    "the and are was were has have had does did not for with that this from into its their they will would can could "
    "should may might must been being which who than then also but never without cannot"
)
_STOPS = frozenset(_STOP_WORDS.split())
_LONGEST = 1200
_SAME_STATEMENT = 0.7
"""Dice overlap of the content words at which a negation in one of two sentences turns it against the other."""


@dataclass(frozen=True, slots=True)
class _Figure:
    value: float
    kind: str
    """``money``, ``percent``, ``year``, a measure, else the word that it counts; ``""`` where nothing tells."""


@dataclass(frozen=True, slots=True)
class Content:
    """What of a sentence is compared: it is read once, however many sentences it is held against."""

    figures: frozenset[_Figure]
    values: tuple[float, ...]
    """Of all figures, sorted."""
    times: tuple[float, ...]
    """Of those that are lengths of time, sorted."""
    calendar: frozenset[str]
    negated: bool
    words: frozenset[str]


def content(sentence: str) -> Content:
    """The figures, dates, polarity and words of ``sentence``; of a longer text the first 1,200 characters count."""
    text = sentence[:_LONGEST]
    figures = frozenset(_figures(text))
    return Content(
        figures,
        tuple(sorted({figure.value for figure in figures})),
        tuple(sorted(figure.value for figure in figures if figure.kind == "time")),
        _calendar(text),
        _negations(text) % 2 == 1,
        _words(text),
    )


def conflicting(one: Content, other: Content) -> bool:
    """Whether one sentence gives a figure, date or polarity where the other gives another one.

    A value that only one of them gives is no conflict. The result does not depend on the order.
    """
    return (
        _figures_differ(one, other)
        or _dates_differ(one.calendar, other.calendar)
        or _polarity_differs(one, other)
    )


def _figures_differ(one: Content, other: Content) -> bool:
    return not _kinds_without_equal(one, other).isdisjoint(_kinds_without_equal(other, one))


def _kinds_without_equal(one: Content, other: Content) -> set[str]:
    """The kinds of those figures of ``one`` whose value ``other`` does not have.

    Equal values count as the same whatever they seem to count: the word behind a number is a weak sign.
    """
    return {
        figure.kind
        for figure in one.figures
        if not _has(other.values, figure.value, tolerance=_ROUNDING)
        and not (figure.kind == "time" and _has(other.times, figure.value, tolerance=_TOLERANCE))
    }


def _has(values: Sequence[float], value: float, *, tolerance: float) -> bool:
    """Whether one of the sorted ``values`` equals ``value``; ``tolerance`` is relative to the greater of the two."""
    place = bisect_left(values, value)
    # Equal ones first: of two numbers too long for a float the difference is none.
    for near in values[max(place - 1, 0) : place + 1]:
        if value == near or abs(value - near) <= tolerance * max(value, near):
            return True
    return False


def _figures(text: str) -> list[_Figure]:
    plain = _REFERENCE.sub(lambda found: " " * len(found[0]), text)
    matches = list(_NUMBER.finditer(plain))
    found: list[_Figure] = []
    unit, scale, money = "", 1.0, False
    # From the end: in "5 to 10 minutes" and "3-4 %" the first number has the unit of the second.
    for place in range(len(matches) - 1, -1, -1):
        match = matches[place]
        own = (match["unit"] or "").casefold()
        end = match.start("unit") if own in {"to", "or", "and", "至", "到", "或", "和"} else match.end()
        following = matches[place + 1].start() if place + 1 < len(matches) else -1
        if not (following >= 0 and own in _NO_UNITS | {""} and _BETWEEN.fullmatch(plain, end, following)):
            unit, scale = own, _SCALES[match["scale"].strip().casefold()] if match["scale"] else 1.0
        money = bool(match["money"]) or (
            place > 0 and bool(matches[place - 1]["money"]) and _joins(plain, matches[place - 1], match)
        )
        digits = match["digits"]
        value = float(digits.replace(",", "")) if digits else float(_SMALL[match["word"].casefold()])
        found.append(_figure(value, scale, unit, money=money, bare="," not in (digits or ",")))
    return found


def _joins(plain: str, one: re.Match[str], other: re.Match[str]) -> bool:
    """Whether nothing but a dash or "to" stands between two numbers."""
    end = max(one.end("digits"), one.end("word"), one.end("scale"))
    return _BETWEEN.fullmatch(plain, end, other.start()) is not None


def _figure(value: float, scale: float, unit: str, *, money: bool, bare: bool) -> _Figure:
    singular = unit if unit in _MEASURES else unit.removesuffix("s")
    if money or singular in _MONEY_UNITS:
        cents = 0.01 if singular == "cent" else 1.0
        return _Figure(value * scale * cents * _LETTER_SCALES.get(unit, 1.0), "money")
    if unit in _PERCENT:
        return _Figure(value, "percent")
    is_year = value.is_integer() and _FIRST_YEAR <= value <= _LAST_YEAR
    if bare and scale == 1.0 and is_year and (unit[:1] in {"", "年"} or unit in _NO_UNITS):
        return _Figure(value, "year")
    if unit == "k":
        return _Figure(value * 1e3, "")
    for candidate in (singular, unit[:1] if not unit.isascii() else ""):
        if candidate in _MEASURES:
            kind, factor = _MEASURES[candidate]
            return _Figure(value * scale * factor, kind)
    if not unit.isascii():
        return _Figure(value * scale, unit[:1])
    return _Figure(value * scale, "" if unit in _NO_UNITS else singular)


def _dates_differ(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    return any(
        bool((mine - theirs) & names) and bool((theirs - mine) & names)
        for names in (frozenset(_MONTHS), frozenset(_DAYS))
    )


def _calendar(text: str) -> frozenset[str]:
    """Months and days of the week that ``text`` names."""
    return frozenset(
        (match["name"] or match["after"] or match["before"]).casefold() for match in _CALENDAR.finditer(text)
    )


def _polarity_differs(one: Content, other: Content) -> bool:
    if one.negated == other.negated:
        return False
    shared = 2 * len(one.words & other.words)
    return shared > 0 and shared >= _SAME_STATEMENT * (len(one.words) + len(other.words))


def _negations(text: str) -> int:
    plain = _NO_NEGATION_ZH.sub("", _NO_NEGATION.sub("", text))
    return len(_NEGATION.findall(plain)) + len(_NEGATION_ZH.findall(plain))


def _words(text: str) -> frozenset[str]:
    plain = _NEGATION_ZH.sub("", re.sub(r"n['’]t\b", "", text))
    return frozenset(word.casefold() for word in _CONTENT.findall(plain)) - _STOPS

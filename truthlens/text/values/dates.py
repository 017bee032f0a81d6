"""Dates and times of day in English, Chinese, Japanese, German, French and Spanish texts, by parts. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sep sept", "october oct", "november nov", "december dec"), start=1,
    )
    for name in names.split()
}  # fmt: skip
# French and Spanish months have small letters: "Mars 2020" is no date.
_SMALL_MONTHS = {
    name: number
    for number, names in enumerate(
        ("janvier enero", "février febrero", "mars marzo", "avril abril", "mai mayo", "juin junio", "juillet julio",
         "août agosto", "septembre septiembre", "octobre octubre", "novembre noviembre", "décembre diciembre"), start=1,
    )
    for name in names.split()
}  # fmt: skip
_GERMAN_MONTHS = {
    "januar": 1,
    "februar": 2,
    "märz": 3,
    "mai": 5,
    "juni": 6,
    "juli": 7,
    "oktober": 10,
    "dezember": 12,
}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "一": 1, "二": 2, "三": 3, "四": 4}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ISO = re.compile(r"(?<!\d)(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?!\d)")
_HAN_DATE = re.compile(
    r"(?:(?P<year>\d{4})\s?年)?\s?(?P<month>\d{1,2})\s?月(?:\s?(?P<day>\d{1,2})\s?[日号])?|(?P<lone>\d{4})\s?年"
)
_SLASHES = re.compile(r"(?<![\d/])(?P<one>\d{1,2})/(?P<two>\d{1,2})/(?P<year>\d{4})(?![\d/])")
_CLOCK = re.compile(
    r"\b(?P<hour>1?\d|2[0-4])(?::(?P<minute>[0-5]\d))?\s?(?P<half>[ap])\.?m\b"
    r"|(?<![\d:])(?P<hours>1?\d|2[0-4]):(?P<minutes>[0-5]\d)(?![\d:])",
    re.IGNORECASE,
)
_QUARTER = re.compile(
    r"\bQ(?P<quarter>[1-4])\b(?:\s(?P<year>\d{4})\b)?"
    r"|\b(?P<nth>first|second|third|fourth)\squarter(?:\sof\s(?P<of>\d{4})\b)?|第(?P<han>[一二三四1-4])季度"
)
MONTHS = _SMALL_MONTHS | _GERMAN_MONTHS | _MONTHS
_MONTH_NAME = "|".join(sorted(MONTHS, key=len, reverse=True))
_NAMED_DATE = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.|er)?\s(?:of\s|de\s)?)?(?P<month>{_MONTH_NAME})\b\.?"
    r"(?:\s(?P<day>\d{1,2})(?:st|nd|rd|th)?\b(?!\s?%|[.:]\d))?(?:\s?,?\s(?:de\s)?(?P<year>[12]\d{3})\b)?",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(rf"\b(?P<weekday>{'|'.join(_WEEKDAYS)})s?\b", re.IGNORECASE)
_YEAR = re.compile(r"(?<![\d.,$€£¥#-])(?P<year>1[5-9]\d\d|20\d\d)s?\b(?![.,:]\d|\s?%)")
_COUNTED_AFTER_YEAR = re.compile(r"\s?-?(?P<unit>[a-z]+)")


_PATTERNS = (_ISO, _SLASHES, _HAN_DATE, _QUARTER, _NAMED_DATE, _WEEKDAY, _CLOCK, _YEAR)
_DIGIT = re.compile(r"\d")


def dates(text: str, start: int, end: int) -> list[tuple[int, int, Mapping[str, int]]]:
    """Dates and times of day between ``start`` and ``end``, not overlapping: start, end and parts of each.

    Parts are ``year``, ``month``, ``day``, ``weekday`` (Monday is 0), ``quarter``, ``time`` (minutes of the
    half day), ``half`` (1 after noon) and, where the order of figures is uncertain, ``month_and_day``.
    """
    found: list[tuple[int, int, Mapping[str, int]]] = []
    for pattern in _PATTERNS if _DIGIT.search(text, start, end) else (_QUARTER, _NAMED_DATE, _WEEKDAY):
        for match in pattern.finditer(text, start, end):
            parts = _READERS.get(pattern, _date_parts)(match)
            first, last = match.span()
            taken = any(first < other[1] and other[0] < last for other in found)
            if parts and not taken and _is_date(text, match, parts):
                found.append((first, last, parts))
    return found


def _date_parts(match: re.Match[str]) -> dict[str, int]:
    given = {name: value for name, value in match.groupdict().items() if value}
    parts: dict[str, int] = {}
    for name, value in given.items():
        if name == "weekday":
            parts["weekday"] = _WEEKDAYS.index(value.lower())
        elif name == "month" and not value.isdigit():
            parts["month"] = MONTHS[value.lower()]
        else:
            parts[{"before": "day", "lone": "year"}.get(name, name)] = int(value)
    return parts


def _slash_parts(match: re.Match[str]) -> dict[str, int]:
    """Month and day only where the order is certain; otherwise both in one part, whatever the order."""
    one, two, year = int(match["one"]), int(match["two"]), int(match["year"])
    if one > 12 >= two or two > 12 >= one:
        return {"year": year, "month": min(one, two), "day": max(one, two)}
    return {"year": year, "month_and_day": min(one, two) * 100 + max(one, two)}


def _quarter_parts(match: re.Match[str]) -> dict[str, int]:
    written = match["quarter"] or match["nth"] or match["han"]
    year = match["year"] or match["of"]
    return {"quarter": _ORDINALS.get(written) or int(written)} | ({"year": int(year)} if year else {})


def _clock_parts(match: re.Match[str]) -> dict[str, int]:
    """``time`` in minutes of the half day, and ``half`` where it is certain which one."""
    hour, minute = int(match["hour"] or match["hours"]), int(match["minute"] or match["minutes"] or 0)
    parts = {"time": hour % 12 * 60 + minute}
    if match["half"]:
        parts["half"] = int(match["half"].lower() == "p")
    elif hour > 12 or hour == 0:
        parts["half"] = int(hour >= 12)
    return parts


_READERS = {_QUARTER: _quarter_parts, _SLASHES: _slash_parts, _CLOCK: _clock_parts}


def _is_date(text: str, match: re.Match[str], parts: Mapping[str, int]) -> bool:
    if match.re is _NAMED_DATE:
        # "may" and "march" are verbs as well, and "May" begins a question
        word = match["month"]
        if word.lower() in {"may", "march"} and not word[0].isupper():
            return False
        if word.lower() not in _MONTHS:
            return len(parts) > 1 and (word.islower() or word.lower() in _GERMAN_MONTHS)
        return len(parts) > 1 or (word[0].isupper() and len(word) > 3 and word.lower() != "march")
    if match.re is _YEAR and (unit := _COUNTED_AFTER_YEAR.match(text, match.end())):
        # "2000 calories" counts, "in 2000 sales fell" dates
        return text[max(0, match.start() - 8) : match.start()].lower().endswith(
            ("in ", "since ", "by ", "until ", "of ", "from ", "during ", "and ", "to ")
        ) or unit["unit"] in {"and", "to", "by", "the", "was", "is", "a", "for", "with", "when", "as", "or"}  # fmt: skip
    return True

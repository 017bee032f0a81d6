"""Read dates, times of day and periods from tokens, in six languages, by parts. Pure.

Parts are ``year``, ``decade`` (194), ``century`` (20), ``month``, ``day``, ``weekday`` (Monday is 0), ``quarter``, ``time`` (minutes of the half day) with ``half`` (1 after
noon) where it is certain, ``month_and_day`` where the order of figures is uncertain.
"""

from __future__ import annotations

from types import MappingProxyType

from truthlens.text.values.clocks import (
    CLOCK_GOES_ON,
    NOONS,
    Moment,
    clock,
    han_date,
    han_word,
    worded_clock,
)
from truthlens.text.values.cursor import Cursor
from truthlens.text.values.numerals import ORDINALS, number_word
from truthlens.text.values.tokens import HAN, HAN_NUMBER, NUMBER, WORD
from truthlens.text.values.units import UNITS
from truthlens.text.word_forms import word_set


def _numbered(*rows: str) -> dict[str, int]:
    return {name: number for number, names in enumerate(rows, start=1) for name in names.split()}


_ENGLISH_MONTHS = _numbered(
    "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug", "september sep sept",
    "october oct", "november nov", "december dec",
)  # fmt: skip
GERMAN_MONTHS = MappingProxyType(_numbered(
    "januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober okt", "november", "dezember dez",
))  # fmt: skip
MONTHS = MappingProxyType(_ENGLISH_MONTHS | GERMAN_MONTHS | _numbered(
    "janvier enero", "février febrero", "mars marzo", "avril abril", "mayo", "juin junio", "juillet julio", "août agosto",
    "septembre septiembre", "octobre octubre", "novembre noviembre", "décembre diciembre",
))  # fmt: skip
NOT_ENGLISH_MONTHS = frozenset(GERMAN_MONTHS) - frozenset(_ENGLISH_MONTHS)
"""German names of months that are no English ones."""
WEEKDAYS = MappingProxyType({
    name: number
    for number, names in enumerate(
        ("monday mondays mon montag montags lundi lunes", "tuesday tuesdays tue tues dienstag dienstags mardi martes",
         "wednesday wednesdays wed mittwoch mittwochs mercredi miércoles",
         "thursday thursdays thu thur thurs donnerstag donnerstags jeudi jueves",
         "friday fridays fri freitag freitags vendredi viernes",
         "saturday saturdays sat samstag samstags sonnabend samedi sábado sábados",
         "sunday sundays sun sonntag sonntags dimanche domingo domingos"))
    for name in names.split()
})  # fmt: skip
_SHORT_DAYS = word_set("mon tue tues wed thu thur thurs fri sat sun")
_QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
CENTURY_NAMES, _YEARS, _DECADES = (
    frozenset(word for word, unit in UNITS.items() if unit.sort == "months" and unit.factor == months)
    for months in (1200, 12, 120)
)
_NUMBERED_CENTURY = ("siglo", "siglos")
_ROMANCE = word_set("années años")
_AFTER_CENTURY = word_set("st nd rd th e er ème º .")
_JOINS = word_set("- – to and or until bis und oder et y al ,")
_TO_DAY = (_JOINS - {"oder"}) | {"au"}
_MOST_CENTURIES = 8  # that are named together
_CENTURIES = range(16, 22)  # as years that stand alone are read from 1500 on
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_ROMAN = {"x" * (number // 10) + _ONES[number % 10]: number for number in _CENTURIES}
_ORDINALS = {word: number for number, word in enumerate(ORDINALS, start=1)}
_ORDINALS |= {f"{roman}{end}": number for roman, number in _ROMAN.items() for end in ("e", "ème", "ᵉ")}
CENTURY_WORDS = frozenset((*_NUMBERED_CENTURY, *_ORDINALS))
"""Words with which a century may begin: "nineteenth", "XIXe", "siglo"."""
_AFTER_DAY = frozenset(("st", "nd", "rd", "th", "er", "."))
_BEFORE_MONTH = frozenset(("of", "de", "."))
_LONGEST_YEAR = 4
_DAYS = range(1, 32)
# What stands behind the first number of a date or a time, months and Han characters aside.
_GOES_ON = _AFTER_DAY | _BEFORE_MONTH | CLOCK_GOES_ON | word_set("- – / to and or until bis und au et y al ,")


def moment(at: Cursor, place: int) -> Moment | None:
    """Return the moment whose first token is at ``place``."""
    read = _READERS.get(at.sort(place))
    return None if read is None else read(at, place)


def _numeric(at: Cursor, place: int) -> Moment | None:
    low, following = at.lows[place], at.lows[place + 1]
    if (span := _century(at, place) or _decade(at, place)) is not None:
        return span
    if (
        following not in _GOES_ON
        and following.removesuffix("'s") not in MONTHS
        and len(low) != _LONGEST_YEAR
        and low.count(".") < 2
        and at.sort(place + 1) != HAN
    ):
        return None
    return (
        _joined_by_marks(at, place)
        or han_date(at, place)
        or _dotted(at, place)
        or clock(at, place)
        or _day_first(at, place)
        or _lone_year(at, place)
    )


def _century(at: Cursor, place: int, several: int = _MOST_CENTURIES) -> Moment | None:
    """Read "19th century", "19. Jahrhundert", "XIXe siècle", "siglo XIX", "nineteenth" of "nineteenth and twentieth centuries"."""
    if at.lows[place] in _NUMBERED_CENTURY:
        behind = at.lows[place + 1]
        number = _ROMAN.get(behind) or at.number(place + 1)
        known = number is not None and number in _CENTURIES
        return Moment(place, place + 2, {"century": number or 0}) if known else None
    read = _century_number(at, place)
    if read is None:
        return None
    number, end = read
    if at.lows[end] in CENTURY_NAMES:
        return _decade_of_century(at, place, end + 1, number) or Moment(place, end + 1, {"century": number})
    if several == 1 or at.lows[end] not in _JOINS:
        return None
    end += 1
    end += at.lows[end] in ("and", "und", "et", "y")
    end += at.lows[end] in ("the", "das", "dem", "le", "au")
    # Of several, the last one has the name.
    return None if _century(at, end, several - 1) is None else Moment(place, read[1], {"century": number})


def _century_number(at: Cursor, place: int) -> tuple[int, int] | None:
    """Return which century an ordinal at a token may number, and the token behind it."""
    low, end = at.lows[place], place + 1
    number = _ORDINALS.get(low)
    if low == "twenty" and at.lows[end] == "-" and at.lows[end + 1] == "first":
        number, end = 21, end + 2
    elif number is None:
        number = None if low.startswith("0") else at.number(place)
        ordinal = at.lows[end] in _AFTER_CENTURY and at.joined(end)
        # "19 centuries" are a time, "19世纪" is not.
        if not ordinal and not at.lows[end].startswith("世"):
            return None
        end += ordinal
    end += at.lows[end] == "-" and at.lows[end + 1] in CENTURY_NAMES
    return (number, end) if number is not None and number in _CENTURIES else None


def _decade_of_century(at: Cursor, place: int, end: int, number: int) -> Moment | None:
    """Read "20世纪40年代"."""
    decade = at.number(end)
    if decade is None or decade % 10 or decade >= 100 or at.lows[end + 1] != "年代":
        return None
    return Moment(place, end + 2, {"decade": 10 * (number - 1) + decade // 10})


def _decade(at: Cursor, place: int) -> Moment | None:
    """Read "1940s", "1940's", "1940er Jahre", "années 1940", "década de 1940", "1940年代"."""
    year = at.number(place, 4)
    if year is None or len(at.lows[place]) != _LONGEST_YEAR or not 1500 <= year < 2100 or year % 10:
        return None
    behind = _behind_decade(at, place)
    if behind is None:
        return None
    # "The 1800s" are a hundred years as often as ten.
    return Moment(place, behind, {"decade": year // 10} if year % 100 else {"century": year // 100 + 1})


def _behind_decade(at: Cursor, place: int) -> int | None:
    """Return the token behind a decade whose year is at ``place``, ``None`` for no decade."""
    end = place + 1
    end += at.lows[end] in ("'", "’") and at.joined(end) and at.lows[end + 1] == "s"
    if at.lows[end] == "s" and at.joined(end):
        return end + 1
    if at.lows[end] in ("er", "ern") and at.joined(end):
        more = end + 1 + (at.lows[end + 1] == "-")
        return more + 1 if at.lows[more] in _YEARS else end + 1
    if at.lows[end] == "年代":
        return end + 1
    return place + 1 if _is_named_decade(at, place) else None


def _is_named_decade(at: Cursor, place: int) -> bool:
    """Return whether a year is that of "années 1940", "década de 1940" and of "années 1940 et 1950"."""
    before = place - 1
    tens = at.number(before - 1, 4) if at.lows[before] in _JOINS else None
    before -= 2 * (tens is not None and tens % 10 == 0)
    before -= at.lows[before] == "de"
    before -= at.lows[before] in ("los", "las", "les")
    until = at.number(place + 2, 4) if at.lows[place + 1] in (*_JOINS, "à", "a") else None
    return (at.lows[before] in _DECADES or at.lows[before] in _ROMANCE) and not (until and until % 10)


def _joined_by_marks(at: Cursor, place: int) -> Moment | None:
    """Read "2024-05-09", "2024/05", "9/5/2024" and "15-05-2024"."""
    mark = at.lows[place + 1]
    if mark not in ("-", "/") or not at.joined(place + 1, 2):
        return None
    one, two = at.number(place, 4), at.number(place + 2, 4)
    third = at.number(place + 4, 4) if at.lows[place + 3] == mark and at.joined(place + 3, 2) else None
    if one is None or two is None:
        return None
    if len(at.lows[place]) == _LONGEST_YEAR:
        return _year_first(at, place, one, two, third)
    low, high = sorted((one, two))
    if third is None or third <= 1000 or not 1 <= low <= 12 or high > 31:
        return None
    known = {"month": low, "day": high} if high > 12 else {"month_and_day": low * 100 + high}
    return Moment(place, place + 5, {"year": third, **known})


def _year_first(at: Cursor, place: int, year: int, month: int, day: int | None) -> Moment | None:
    if not 1 <= month <= 12:
        return None
    if day is not None:
        parts = {"year": year, "month": month, "day": day}
        return _with_clock(at, place, place + 5, parts) if 1 <= day <= 31 else None
    dated = len(at.lows[place + 2]) == 2 and 1900 <= year < 2100
    return Moment(place, place + 3, {"year": year, "month": month}) if dated else None


def _with_clock(at: Cursor, place: int, behind: int, parts: dict[str, int]) -> Moment:
    """Take the time of day that follows an ISO date: "2024-05-09T18:00", "2024-05-09 18:00"."""
    end = behind + (at.lows[behind] in ("t", ","))
    found = clock(at, end)
    if found is not None and ":" in at.written(found.first, found.behind):
        return Moment(place, found.behind, parts | found.parts)
    return Moment(place, behind, parts)


def _dotted(at: Cursor, place: int) -> Moment | None:
    """Read "12.01.2024" and "1.4.2025", which are one token."""
    parts = at.lows[place].split(".")
    if (
        len(parts) == 3
        and all(each.isdigit() for each in parts)
        and len(parts[2]) == _LONGEST_YEAR
        and max(map(len, parts[:2])) <= 2
    ):
        day, month, year = map(int, parts)
        if 1 <= month <= 12 and 1 <= day <= 31 and 1000 < year < 2200:
            return Moment(place, place + 1, {"year": year, "month": month, "day": day})
    return None


def _day_first(at: Cursor, place: int) -> Moment | None:
    """Read "12 April 2024", "the 3rd of May", "3 to 17 May" (its first day), "1. Mai"."""
    day = at.number(place)
    if day is None or not 1 <= day <= 31:
        return None
    end = place + 1
    ordinal = at.lows[end] in _AFTER_DAY and at.joined(end)
    end += ordinal
    end += at.lows[end] in _BEFORE_MONTH
    month = _month(at, end)
    if month is not None:
        return _year_behind(at, place, end + 1, {"month": month, "day": day})
    if ordinal or at.lows[end] in _TO_DAY:
        other = at.number(end + 1)
        ahead = end + 2 + (at.lows[end + 2] in _AFTER_DAY)
        ahead += at.lows[ahead] in _BEFORE_MONTH
        month = _month(at, ahead) if other is not None and 1 <= other <= 31 else None
        if month is not None:
            found = _year_behind(at, place, ahead + 1, {"month": month, "day": day})
            return Moment(place, place + 1 + ordinal, found.parts)
    if ordinal and at.lows[place - 1] == "the" and at.sort(end) != WORD:
        return Moment(place, end, {"day": day}, unsure=True)
    return None


def _month(at: Cursor, place: int) -> int | None:
    """Return the number of a month's name, ``None`` for another word and for "may" as a verb."""
    low = at.lows[place].removesuffix("'s")
    month = MONTHS.get(low)
    if month is None:
        return None
    if low in ("mars", "mai") and at.worded not in ("fr", "de") and not _is_dated(at, place):
        return None
    if low in ("may", "march", "mar") and not at.is_capital(place):
        return None
    return month


def _is_dated(at: Cursor, place: int) -> bool:
    """Return whether a word that is a month in some languages alone stands before a year, and "Mars" behind a day as well.

    A short text does not tell its language: "12 mai 2014" is a date in any, and "Mars 2020" is a mission.
    """
    year = at.number(place + 1, 4)
    behind_day = place > 0 and (at.lows[place - 1] == "." or at.number(place - 1) is not None)
    return year is not None and 1000 <= year < 2200 and (at.lows[place] == "mai" or behind_day)


def _year_behind(at: Cursor, place: int, end: int, parts: dict[str, int]) -> Moment:
    if (
        at.lows[end] == "."
        and at.joined(end)
        and len(at.lows[end - 1]) <= 4
        and at.number(end + 1, 4) is not None
    ):
        end += 1
    ahead = end + (at.lows[end] in (",", "de", "del", "of"))
    year = at.number(ahead, 4)
    is_hour = at.lows[ahead + 1] == ":" and at.joined(ahead + 2)
    if year is not None and 1000 <= year < 2200 and not is_hour:
        return Moment(place, ahead + 1, parts | {"year": year})
    return Moment(place, end, parts)


def _lone_year(at: Cursor, place: int) -> Moment | None:
    year = at.number(place, 4)
    if year is None or len(at.lows[place]) != _LONGEST_YEAR or not 1500 <= year < 2100:
        return None
    behind = place + 1
    if at.lows[behind] == "q" and at.joined(behind + 1) and at.number(behind + 1) in (1, 2, 3, 4):
        return Moment(place, behind + 2, {"year": year, "quarter": int(at.lows[behind + 1])})
    return Moment(place, behind, {"year": year}, unsure=True)


def _worded(at: Cursor, place: int) -> Moment | None:
    low = at.lows[place]
    bare = low.removesuffix("'s")
    if low == "q" and at.joined(place + 1) and at.number(place + 1) in (1, 2, 3, 4):
        return _year_behind(at, place, place + 2, {"quarter": int(at.lows[place + 1])})
    if low in _QUARTERS and at.lows[place + 1] in ("quarter", "quarters"):
        return _year_behind(at, place, place + 2, {"quarter": _QUARTERS[low]})
    if bare in WEEKDAYS:
        if bare in _SHORT_DAYS and not at.is_capital(place):
            return None
        return Moment(place, place + 1, {"weekday": WEEKDAYS[bare]}, unsure=bare in ("sun", "sat", "wed"))
    if low in NOONS:
        return Moment(place, place + 1, {"time": 0, "half": NOONS[low]})
    if (month := _month(at, place)) is not None:
        return _month_first(at, place, month)
    return _century(at, place) or _worded_year(at, place) or worded_clock(at, place)


def _worded_year(at: Cursor, place: int) -> Moment | None:
    """Read "nineteen ninety-four", and "the nineteen nineties"."""
    century = at.english(place) if at.worded == "en" else 0
    if not 16 <= century <= 20 or at.lows[place - 1] == "at":
        return None
    low = at.lows[place + 1]
    if low.endswith("ies") and (tens := number_word(f"{low[:-3]}y", "en")):
        return Moment(place, place + 2, {"decade": 10 * century + tens // 10})
    tens, ones = at.english(place + 1), at.english(place + 3)
    if tens < 10 or at.written(place, place + 2).count(" ") != 1:
        return None
    hyphen = at.lows[place + 2] == "-" and at.joined(place + 2)
    joined = tens >= 20 and 0 < ones < 10 and hyphen
    if hyphen and not joined:
        return None
    return Moment(place, place + 2 + 2 * joined, {"year": 100 * century + tens + ones * joined})


def _month_first(at: Cursor, place: int, month: int) -> Moment | None:
    end = place + 1 + (at.lows[place + 1] == "." and at.joined(place + 1))
    day, following = at.number(end), at.lows[end + 1]
    # "May 5%" and "May 5.2" have no day.
    goes_on = following in ("%", ":") or (following == "." and at.joined(end + 2))
    if day is not None and day in _DAYS and not goes_on:
        behind = end + 1 + (following in _AFTER_DAY and following != "." and at.joined(end + 1))
        return _year_behind(at, place, behind, {"month": month, "day": day})
    dated = _year_behind(at, place, end, {"month": month})
    if "year" in dated.parts:
        return dated
    low = at.lows[place]
    if low == "may":
        return None if at.lows[place - 1] in ("", ".", "!", "?") else dated  # it begins a sentence
    return dated if len(low) > 3 and low != "march" and at.is_capital(place) else None


_READERS = {NUMBER: _numeric, WORD: _worded, HAN: han_word, HAN_NUMBER: han_date}
"""What reads a moment, by the sort of its first token."""

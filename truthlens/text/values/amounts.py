"""Read what belongs to a number: scale, currency, percent sign, unit, label, noun. Pure."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType

from truthlens.text.values.cursor import Cursor
from truthlens.text.values.numerals import LETTERS, scale_after
from truthlens.text.values.tokens import BREAK, HAN, NUMBER, WORD
from truthlens.text.values.typed import TypedValue, ValueKind
from truthlens.text.values.units import (
    BITS_A_SECOND,
    CURRENCIES,
    CURRENCY_CODES,
    CURRENCY_NAMES,
    CURRENCY_SIGNS,
    HUNDREDTHS,
    LABELS,
    PERCENT,
    POINTS,
    SYMBOLS,
    UNITS,
    UnitOfMeasure,
)
from truthlens.text.word_forms import word_set
from truthlens.text.words import stem

_ONE = Decimal(1)
_RATIO_WORDS = word_set("ratio dscr leverage quotient verhältnis multiple")
_MOST_POWER = 60  # of ten, of the words behind a number
_RATIO_TIMES = frozenset(("x", "×"))
_BEFORE_UNIT = word_set(
    "working extra further more full whole consecutive business calendar additional free clear"
)


@dataclass(frozen=True, slots=True)
class Written:
    """A number from one token to before another: ``digit`` is the worth of its last digit.

    ``spelled`` says that it stands in words. ``digits`` are those of a figure with one point.
    """

    first: int
    behind: int
    amounts: tuple[Decimal, ...]
    digit: Decimal = _ONE
    spelled: bool = False
    digits: str = ""


@dataclass(frozen=True, slots=True)
class UnitOf:
    """What belongs to a number: a unit of ``factor`` base units, the token behind it and the token where the value begins."""

    kind: ValueKind
    unit: str
    behind: int
    start: int
    factor: Decimal = _ONE
    named: str = ""
    nouns: tuple[str, ...] = ()


def scale_of(at: Cursor, number: Written, *, is_money: bool) -> tuple[int, int]:
    """Return the power of ten of the words and letters behind a number, and the token behind them."""
    behind = number.behind
    low, power = at.lows[behind], scale_after(at.listed, behind, at.worded)
    if power and not (low in ("cent", "cents") and not is_money and at.worded != "fr"):
        behind += 1
        while power < _MOST_POWER and (more := scale_after(at.listed, behind, at.worded)):
            power, behind = power + more, behind + 1
        return power, behind
    letter = (is_money and low in LETTERS) or (not number.spelled and _is_letter_scale(at, behind))
    return (LETTERS[low], behind + 1) if letter and at.joined(behind) else (0, behind)


def two_scales(at: Cursor, number: Written, power: int) -> Written:
    """Return "1万2千" as one number."""
    behind = number.behind
    if not (power and at.joined(behind) and at.sort(behind) == NUMBER and at.lows[behind].isdigit()):
        return number
    smaller = scale_after(at.listed, behind + 1, at.worded)
    if not 0 < smaller < power:
        return number
    more = Decimal(at.lows[behind]).scaleb(smaller - power)
    return replace(number, amounts=tuple(each + more for each in number.amounts), behind=behind + 2)


def unit_of(at: Cursor, number: Written, currency: tuple[str, int] | None) -> UnitOf | None:
    """Return the unit of a number, ``None`` for a bare one and for a count."""
    behind = number.behind
    gap = behind + (at.lows[behind] == "-" and at.joined(behind, 2))
    if currency is None:
        return _unit_behind(at, number, gap) or _unit_beside(at, number)
    return UnitOf(
        ValueKind.CURRENCY, currency[0], gap + 1 if at.lows[gap] in CURRENCY_CODES else behind, currency[1]
    )


def _unit_behind(at: Cursor, number: Written, place: int) -> UnitOf | None:
    """Return the share, the money or the measure that the token at ``place`` makes of a number."""
    first = number.first
    if (percent := percent_at(at, place)) is not None:
        name, past, part = percent
        return UnitOf(ValueKind.PERCENTAGE, name, past, first, part, nouns=at.nouns(past))
    if (money := currency_at(at, place)) is not None:
        return UnitOf(ValueKind.CURRENCY, money[0], place + 1, first, money[1])
    measure = measure_at(at, place)
    if measure is None or (number.spelled and measure[1] == "bit"):
        return None
    known, name, past = measure
    return UnitOf(ValueKind.MEASURE, known.sort, past, first, known.factor, name)


def _unit_beside(at: Cursor, number: Written) -> UnitOf | None:
    """Return a ratio, a label or an unknown unit, by the word before a number or the letters that touch it."""
    first, behind = number.first, number.behind
    low, before = at.lows[behind], at.lows[first - 1]
    touched = at.joined(behind)
    if low in _RATIO_TIMES and touched and _stands_alone(at, behind):
        return UnitOf(ValueKind.RATIO, "x", behind + 1, first)
    if before in LABELS and not number.spelled:
        return UnitOf(ValueKind.LABEL, before, behind, first)
    if at.lows[first - 1 - (before in _BEFORE_RATIO)] in _RATIO_WORDS:
        return UnitOf(ValueKind.RATIO, "x", behind, first)
    if touched and at.sort(behind) == WORD and low != "s":
        # A unit that is not known, or the letter of a name: it equals the same letters alone.
        own = at.written(behind)
        return UnitOf(ValueKind.MEASURE, f"{own}?", behind + 1, first, named=own)
    return None


def percent_at(at: Cursor, place: int) -> tuple[str, int, Decimal] | None:
    """Return the unit of a percent sign or word at ``place``, the token behind and how much it is."""
    low, following = at.lows[place], at.lows[place + 1]
    pointed = following in _POINT
    if low in PERCENT:
        return "points" if pointed else "%", place + 1 + pointed, _ONE
    if low in POINTS:
        return "points", place + 1, POINTS[low]
    if low == "basis" and pointed:
        return "points", place + 2, POINTS["bp"]
    if low in _POINT and (following, at.lows[place + 2]) == ("de", "pourcentage"):
        return "points", place + 3, _ONE
    if (low, following) == ("puntos", "porcentuales"):
        return "points", place + 2, _ONE
    if (low, following) not in _PER_CENT:
        return None
    pointed = at.lows[place + 2] in _POINT
    return "points" if pointed else "%", place + 2 + pointed, _ONE


def period_at(at: Cursor, place: int) -> tuple[str, Decimal, int] | None:
    """Return the time of "a month", "per hour", "/day" or "daily": its unit, how much, and the token behind."""
    low, following = at.lows[place], at.lows[place + 1]
    if low in OFTEN:
        return *OFTEN[low], place + 1
    known = UNITS.get(following) if low in _PER else None
    if known is None or known.sort not in AGAIN or following in ("a", "an"):
        return None
    return known.sort, known.factor, place + 2


def _rate_at(at: Cursor, place: int) -> tuple[str, Decimal] | None:
    """Return what "a month", "/kg" and "per 100 g" say: a unit's sort, and how much of it."""
    if (period := period_at(at, place)) is not None:
        return period[:2]
    per, behind, many = at.lows[place], place + 1, _ONE
    if per not in _PER:
        return None
    if at.lows[behind].isascii() and at.lows[behind].isdecimal():
        behind, many = behind + 1, Decimal(at.lows[behind])
    if not many:
        return None
    if per == "/" and at.lows[behind] == "s":
        return UNITS["second"].sort, many
    measure = measure_at(at, behind)
    if measure is None or (per not in ("per", "/") and len(measure[1]) < 3):
        return None  # "a m." may be a time
    return measure[0].sort, measure[0].factor * many


def measured(at: Cursor, number: Written, name: str) -> TypedValue:
    """Return a measure whose unit stands elsewhere."""
    known = UNITS[name]
    unit = UnitOf(ValueKind.MEASURE, known.sort, number.behind, number.first, known.factor, name)
    return made(at, number, unit, known.factor)


def made(at: Cursor, number: Written, unit: UnitOf, factor: Decimal = _ONE) -> TypedValue:
    """Return the value of a number in the base unit."""
    sign, behind = 0 if unit.kind is ValueKind.LABEL else _sign(at, unit.start), unit.behind
    first = unit.start - (sign != 0)
    if unit.unit in ("degree", "fahrenheit") and (at.lows[behind], at.lows[behind + 1]) in _BELOW:
        sign, behind = -1, behind + 2
    amounts = tuple(each * factor for each in number.amounts)
    last = at.listed[behind - 1]
    end = last.end
    if last.sort == HAN:
        end = last.start + len(unit.named or _beginning(last.low, CURRENCY_NAMES) or last.low)
    again = unit.unit in AGAIN and at.lows[first - 1] in ("every", "each")
    return TypedValue(
        unit.kind, at.listed[first].start, end, tuple(-each for each in amounts) if sign < 0 else amounts,
        AGAIN[unit.unit] if again else unit.unit, unit.nouns, place=number.digit * factor, bound=at.bound(first),
        named=unit.named, spelled=number.spelled, first=first, behind=behind, factor=factor,
        per=("time", _ONE) if unit.named in BITS_A_SECOND else _rate_at(at, behind), sign=sign, digits=number.digits,
    )  # fmt: skip


def _sign(at: Cursor, first: int) -> int:
    """Return the sign before a value's first token: -1, 1, or 0 for none and for other dashes."""
    before = at.lows[first - 1] if first > at.free else ""
    if before == "minus" and at.gap(first) == " ":
        return 0 if at.sort(first - 2) == NUMBER else -1
    if before not in _SIGNS or not at.joined(first):
        return 0
    opening = at.lows[first - 2] in _BEFORE_SIGN or at.sort(first - 2) == BREAK
    if at.joined(first - 1) and not opening:
        return 0
    if 0 < at.free == first - 1 and before in "-–":
        return 0  # "10 -15 kg"
    return 1 if before == "+" else -1


def _is_letter_scale(at: Cursor, place: int) -> bool:
    """Return whether a letter right behind a number multiplies it: "540k", "48.2M", "3bn"; "2.5m" may be metres."""
    low, after = at.lows[place], at.lows[place + 1]
    if low not in ("m", "b"):
        return low in ("k", "bn", "mn")
    return at.is_capital(place) or after in CURRENCY_CODES or after in CURRENCY_NAMES or after == "people"


def is_named(at: Cursor, first: int) -> bool:
    """Return whether a number stands behind a name, as in "Fibre 300"."""
    return at.is_noun(first - 1) and at.is_capital(first - 1) and at.gap(first) == " "


def currency_before(at: Cursor, first: int) -> tuple[str, int] | None:
    """Return the currency before a number, and the token where it begins."""
    low, before = at.lows[first - 1] if first > at.free else "", first - 1
    if low in CURRENCY_SIGNS:
        before -= at.lows[before - 1] in ("us", "hk", "a", "c", "nz") and at.joined(before)
        return CURRENCY_SIGNS[low], before
    return (CURRENCY_CODES[low], before) if low in CURRENCY_CODES else None


def currency_at(at: Cursor, place: int) -> tuple[str, Decimal] | None:
    """Return the currency that a sign, code or name at a token says, and how much of it."""
    low = at.lows[place]
    if low in CURRENCIES:
        return CURRENCIES[low], _ONE
    if low in HUNDREDTHS:
        return HUNDREDTHS[low] or "money", Decimal("0.01")
    name = _beginning(low, CURRENCY_NAMES) if at.sort(place) == HAN else ""
    return (CURRENCY_NAMES[name], _ONE) if name else None


def _beginning(low: str, names: Container[str], most: int = 4) -> str:
    """Return the longest of some names with which Han characters begin, ``""`` for none."""
    return next((low[:size] for size in range(most, 0, -1) if low[:size] in names), "")


def measure_at(at: Cursor, place: int) -> tuple[UnitOfMeasure, str, int] | None:
    """Return the unit that begins at a token, its name, and the token behind it."""
    low = at.lows[place]
    if at.sort(place) == HAN:
        name, behind = _beginning(low, UNITS, 3), place + 1
        if name == "年" and (low + at.lows[behind]).startswith(_NO_YEARS):
            return None
    elif (exact := _symbol(at, place)) is not None:
        return exact
    else:
        name, behind = _unit_name(at, place)
    return (UNITS[name], name, behind) if name in UNITS else None


def _symbol(at: Cursor, place: int) -> tuple[UnitOfMeasure, str, int] | None:
    """Return the unit whose sign stands at a token, as it is written: "mW" and "MW" are two."""
    own, low, following = at.written(place), at.lows[place], at.lows[place + 1]
    if low in BITS_A_SECOND and (len(own) > 2 or (own[-1:] == "b" and _is_by_second(at, place + 1))):
        return UNITS[BITS_A_SECOND[low]], low, place + 1
    if own not in SYMBOLS or (at.joined(place + 1) and following in _POWERS):
        return None
    if own + following + at.lows[place + 2] in ("km/h", "m/s"):
        return None
    if len(own) == 1:
        # Apart from the number a letter is a unit where it stands alone: "5 g.", not "5 g-strings".
        alone = own != "s" if at.joined(place) else _stands_alone(at, place)
        if not alone or at.lows[place - 2] in LABELS:
            return None
    return SYMBOLS[own], own, place + 1


def _is_by_second(at: Cursor, place: int) -> bool:
    return at.lows[place] == "/" and at.lows[place + 1] in ("s", "sec")


def _unit_name(at: Cursor, place: int) -> tuple[str, int]:
    """Return the name of the unit that may begin at a token, and the token behind it."""
    low, following = at.lows[place], at.lows[place + 1]
    if low in _BEFORE_UNIT and following in UNITS:
        return following, place + 2
    if following == "/" and (name := f"{low}/{at.lows[place + 2]}") in UNITS:
        return name, place + 3
    dimension = f"{_DIMENSIONS[low]}-{stem(following)}" if low in _DIMENSIONS else ""
    degrees = _DEGREES_OF.get(following, "") if low in _DEGREES else ""
    power = low + _POWERS.get(following, "") if low in _LENGTHS and at.joined(place + 1) else ""
    name = next((each for each in (dimension, degrees, power) if each in UNITS and each != low), "")
    if name:
        return name, place + 2
    return (low if _is_unit(at, place) else ""), place + 1


def _is_unit(at: Cursor, place: int) -> bool:
    """Return whether a word may be a unit; a letter apart from the number stands alone: not "5 g-strings"."""
    low, own = at.lows[place], at.written(place)
    if low in _NO_NAMES or own == "G":
        return False
    return (
        low not in _LETTERS_OF_UNITS
        or at.joined(place)
        or (own not in ("v", "M") and _stands_alone(at, place))
    )


def _stands_alone(at: Cursor, place: int) -> bool:
    """Return whether nothing but white space or punctuation stands behind a token."""
    return (
        not at.joined(place + 1)
        or at.sort(place + 1) == BREAK
        or at.lows[place + 1] in _PUNCTUATION
        or (at.lows[place + 1] in ("'", "’") and not at.joined(place + 2))
    )


_BEFORE_RATIO = frozenset(("of", "is", "was", "at", ":", "=", "von", "de"))
_DIMENSIONS = {"square": "square", "sq": "square", "cubic": "cubic", "cu": "cubic", "nautical": "nautical"}
_DEGREES = frozenset(("degrees", "degree", "°"))
_DEGREES_OF = {"f": "fahrenheit", "fahrenheit": "fahrenheit", "c": "celsius", "celsius": "celsius"}
_NO_NAMES = frozenset(("in", "an", "a", "ps", "bar", "bars"))
_LETTERS_OF_UNITS = frozenset(("m", "t", "h", "g", "l", "v", "w"))
_PUNCTUATION = frozenset('.,;:!?)]}"”»|…*<。，；：！？）】」、')
_NO_YEARS = ("年代", "年级", "年級", "年生", "年目", "年度")
_POINT = frozenset(("point", "points"))
_SIGNS = frozenset("-−–+")
_BELOW = frozenset((("below", "zero"), ("unter", "null")))
_BEFORE_SIGN = frozenset("|([{<>\"'“„«‚‘,;:=/~≈±(（［【：，；*")
"""Marks behind which a dash that touches a number is its sign; behind others it parts two things."""
_POWERS = MappingProxyType({"2": "2", "²": "2", "3": "3", "³": "3"})
_LENGTHS = frozenset(("mm", "cm", "dm", "m", "km", "ft"))
_PER = frozenset(("a", "an", "per", "each", "every", "/"))
AGAIN = MappingProxyType({"time": "every", "months": "every-months"})
"""The unit of the time between two, by the unit of the time."""
OFTEN = {
    word: (unit.sort, unit.factor)
    for word, unit in (
        ("hourly", UNITS["hour"]), ("daily", UNITS["day"]), ("nightly", UNITS["day"]), ("weekly", UNITS["week"]),
        ("fortnightly", UNITS["fortnight"]), ("monthly", UNITS["month"]), ("quarterly", UNITS["quarter-year"]), ("yearly", UNITS["year"]),
        ("annually", UNITS["year"]),
    )
}  # fmt: skip
_PER_CENT = frozenset((("per", "cent"), ("por", "ciento"), ("pour", "cent")))

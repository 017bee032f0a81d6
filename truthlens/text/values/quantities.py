"""Read the typed values of a text: money, percentages, dates, times, ratios, measures, counts, versions, labels. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType

from truthlens.core.cancellation import checkpoint
from truthlens.text.spans import touching
from truthlens.text.values.amounts import Written, measured, percent_at
from truthlens.text.values.clocks import NOONS, Moment
from truthlens.text.values.cursor import STARTERS, STOPS, Cursor, worded
from truthlens.text.values.moments import CENTURY_WORDS, MONTHS, WEEKDAYS, moment
from truthlens.text.values.numerals import han_number, is_one, number_word, read_words, written
from truthlens.text.values.ranges import put_together
from truthlens.text.values.rates import IN_ONE_WORD, fraction, in_one_word, whole_number, with_unit
from truthlens.text.values.tokens import (
    HAN,
    HAN_NUMBER,
    NUMBER,
    WORD,
    Token,
    language_of,
    tokens,
)
from truthlens.text.values.typed import Bound, TypedValue, ValueKind
from truthlens.text.values.units import (
    BITS_A_SECOND,
    CURRENCY_CODES,
    CURRENCY_NAMES,
    CURRENCY_SIGNS,
    LABELS,
    REFERENCES,
    SYMBOLS,
    UNITS,
)
from truthlens.text.word_forms import word_set

_ONE = Decimal(1)
_FIGURE = re.compile(r"[^\s\d]*\d\S*")
_MOST_GROUPS = 6  # of three digits


def typed_values(text: str, *, language: str | None = None) -> list[TypedValue]:
    """Return the values of ``text`` by position, not overlapping.

    Numbering of lists, ordinals, numbers within names (``KH-02``), citation marks and references to passages are none.
    """
    listed = tokens(text)
    return values_of(text, listed, language_of(listed) if language is None else language)


def figures(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return the figures of characters ``start`` to ``end``, in order.

    One with digits has the signs that touch it, ``$1.25M``, one in words its unit, ``two weeks``.
    """
    end = len(text) if end is None else end
    found = [match.span() for match in _FIGURE.finditer(text, start, end)]
    spelled = [
        (value.start + start, value.end + start) for value in typed_values(text[start:end]) if value.spelled
    ]
    held = touching(spelled, found)
    return sorted([*found, *(span for span, is_held in zip(spelled, held, strict=True) if not is_held)])


def values_of(text: str, listed: Sequence[Token], language: str) -> list[TypedValue]:
    """Return the values of tokens of ``text`` by position."""
    at = Cursor(text, listed, language)
    return put_together(at, _found(at))


def beginnings(listed: Sequence[Token], language: str) -> list[int]:
    """Return the tokens at which a value may begin, in order: what is no word and no mark, and words that begin one."""
    begin = _BEGIN.get(worded(language), _MOMENT_WORDS)
    german = language == "de"
    return [
        place
        for place, (sort, _, _, low) in enumerate(listed)
        if sort in _VALUE_SORTS
        or (
            sort == WORD
            and (low in begin or (german and len(low) > 8 and number_word(low, "de") is not None))
        )
    ]


def _found(at: Cursor) -> Iterator[TypedValue]:
    """Yield the values one by one: what one of the readers finds, and then what begins behind it."""
    behind = 0
    for place in beginnings(at.listed, at.language):
        if place < behind:
            continue
        checkpoint()
        found = _moment(at, place) or _quantity(at, place)
        if found is not None:
            yield found
            behind = at.free = max(found.behind, place + 1)


def _moment(at: Cursor, place: int) -> TypedValue | None:
    """Return the date or time that begins at a token, ``None`` for an amount in four digits."""
    found = moment(at, place)
    if found is None:
        return None
    first, behind = found.first, found.behind
    is_year = found.unsure and found.parts.keys() == {"year"}
    if is_year and _is_counted_year(at, first, behind):
        return None
    amounts = _amounts_of(at, found) if found.unsure else ()
    # A bare year, whose amount is compared as well, keeps what is said of amounts.
    said = None if amounts else _BOUND_OF_TIME.get(at.lows[first - 1])
    return TypedValue(
        ValueKind.TIME if found.is_clock else ValueKind.DATE, at.listed[first].start, at.listed[behind - 1].end, amounts,
        parts=MappingProxyType(found.parts), bound=said or at.bound(first), unsure=found.unsure, first=first, behind=behind,
    )  # fmt: skip


def _amounts_of(at: Cursor, found: Moment) -> tuple[Decimal, ...]:
    """Return what a date or time may be if it is none: "1990", "at 18.00", "at nine"."""
    parts, low = found.parts, at.lows[found.first]
    if parts.keys() == {"year"}:
        return (Decimal(parts["year"]),)
    if "time" in parts and "." in low:
        return (Decimal(low),)
    return (Decimal(parts["time"] // 60 or 12),) if "time" in parts and "half" not in parts else ()


def _is_counted_year(at: Cursor, first: int, behind: int) -> bool:
    """Return whether four digits are an amount: "$2000", "1500 metres", "no. 1999"."""
    before, following, sort = at.lows[first - 1], at.lows[behind], at.sort(behind)
    if before in _BEFORE_COUNTED or (before == "-" and at.joined(first - 1, 2)):
        return True
    if following in _SIGNS_BEHIND_COUNTED or (following in ("x", "×") and at.joined(behind)):
        return True
    if sort in (HAN, HAN_NUMBER) or following in _BEHIND_COUNTED or percent_at(at, behind) is not None:
        return True
    plural = following.endswith("s") and len(following) > 3 and following not in STOPS
    return at.written(behind) in _LONG_SYMBOLS or (
        plural and before not in _YEAR_BEFORE and not at.is_capital(behind)
    )


def _quantity(at: Cursor, place: int) -> TypedValue | None:
    sort = at.sort(place)
    if sort == NUMBER:
        return _digits(at, place)
    if sort == HAN_NUMBER:
        return _han(at, place)
    if sort != WORD or not at.worded:
        return None
    return in_one_word(at, place) if at.lows[place] in IN_ONE_WORD else _in_words(at, place)


def _in_words(at: Cursor, place: int) -> TypedValue | None:
    read = read_words(at.listed, place, at.worded, at.text)
    if read is None:
        return None
    value, behind, is_fraction = read
    if is_fraction:
        return fraction(at, place, behind, value)
    part, behind = _and_part(at, behind)
    value += part
    article = is_one(at.lows[place - 1], at.worded) and at.lows[place] in _WITH_ARTICLE
    one = behind - place == 1 and value == 1
    found = with_unit(at, Written(place - article, behind, (value,), spelled=True), only_unit=one)
    if found is not None and found.kind is ValueKind.COUNT and _follows_number(at, place):
        return replace(found, unsure=True)  # "six dollars fifty" without its dollars
    return _with_cents(at, found)


def _and_part(at: Cursor, place: int) -> tuple[Decimal, int]:
    """Return the part of "two and a half" and "one and three quarters" from its "and" on, and the token behind it."""
    if at.lows[place] == "and" and at.worded:
        read = read_words(at.listed, place + 1 + (at.lows[place + 1] == "a"), at.worded, at.text)
        if read is not None and read[2] and at.lows[read[1]] != "of":
            return read[0], read[1]
    return Decimal(0), place


def _follows_number(at: Cursor, place: int) -> bool:
    number = at.sort(place - 1) == NUMBER or at.lows[place - 1] in at.starters
    return number and at.text[at.listed[place - 1].end] == " "


def _with_cents(at: Cursor, found: TypedValue | None) -> TypedValue | None:
    """Return "six dollars fifty" as one sum."""
    if found is None or found.kind is not ValueKind.CURRENCY or found.place != 1:
        return found
    behind = found.behind
    cents = number_word(at.lows[behind], at.worded)
    if cents is None or cents < 5 or at.lows[behind + 1] in UNITS or at.gap(behind)[:1] != " ":
        return found
    behind += 1
    more = number_word(at.lows[behind + 1], at.worded) if at.lows[behind] == "-" and cents >= 20 else 0
    if more:
        cents, behind = cents + more, behind + 2
    amounts = tuple(each + Decimal(cents) / 100 for each in found.amounts)
    return replace(
        found, amounts=amounts, behind=behind, end=at.listed[behind - 1].end, place=Decimal("0.01")
    )


def _digits(at: Cursor, place: int) -> TypedValue | None:
    if _is_mark(at, place) or _is_denominator(at, place):
        return None
    if at.lows[place].count(".") >= 2 and not written(at.lows[place], at.language):
        return _version(at, place)
    low, behind = _spaced(at, place)
    amounts = written(low, at.language)
    if not amounts:
        return None
    if low.isdecimal() and (inches := _inches(at, behind)) is not None:
        return measured(at, Written(place, behind + 3, (12 * amounts[0] + inches,)), "inch")
    exponent = amounts[0].as_tuple().exponent
    digit = _ONE.scaleb(exponent) if isinstance(exponent, int) else _ONE
    digits = low if low.count(".") == 1 and low.replace(".", "").isdecimal() else ""
    number = _with_slash(at, Written(place, behind, amounts, digit, digits=digits), whole=low.isdecimal())
    if at.lows[number.behind] in _ORDINAL and at.joined(number.behind):
        return None
    part, behind = _and_part(at, number.behind)
    return with_unit(
        at, replace(number, behind=behind, amounts=tuple(each + part for each in number.amounts))
    )


def _with_slash(at: Cursor, number: Written, *, whole: bool) -> Written:
    """Return "3/4", "1 3/4" and "1-3/4" as one number."""
    if (alone := _slashed(at, number.first)) is not None:
        return replace(number, behind=number.first + 3, amounts=(alone,), digit=Decimal("0.01"))
    place = number.behind + (at.lows[number.behind] == "-" and at.joined(number.behind, 2))
    part = _slashed(at, place) if whole else None
    if part is None:
        return number
    return replace(number, behind=place + 3, amounts=(number.amounts[0] + part,), digit=Decimal("0.01"))


def _version(at: Cursor, place: int) -> TypedValue:
    token = at.listed[place]
    start = token.start - (at.lows[place - 1] == "v" and at.joined(place))
    return TypedValue(
        ValueKind.VERSION, start, token.end, unit=token.low, first=place, behind=place + 1, named=token.low
    )


def _slashed(at: Cursor, place: int) -> Decimal | None:
    """Return the value of "3/4" at a token."""
    over, under = at.lows[place], at.lows[place + 2]
    if at.lows[place + 1] != "/" or not at.joined(place + 1, 2):
        return None
    if not (over + under).isascii() or not (over.isdecimal() and under.isdecimal()):
        return None
    parts = len(over) == 1 and len(under) <= 2 and int(over) < int(under)
    return Decimal(over) / int(under) if parts else None


def _inches(at: Cursor, place: int) -> Decimal | None:
    """Return the inches of 6'2" whose first mark is at a token."""
    marked = at.lows[place] in ("'", "’", "′") and at.lows[place + 2] in ('"', "”", "″")
    inches = at.lows[place + 1]
    if not marked or not at.joined(place, 3):
        return None
    return Decimal(inches) if inches.isascii() and inches.isdecimal() and Decimal(inches) < 12 else None


def _spaced(at: Cursor, place: int) -> tuple[str, int]:
    """Return the digits of a number and the token behind it: "1 234,50" is one where decimals have a comma."""
    low, behind = at.lows[place], place + 1
    if at.language not in ("fr", "es", "de") or not low.isdecimal() or len(low) > 3:
        return low, behind
    while behind < place + _MOST_GROUPS and at.sort(behind) == NUMBER:
        digits = at.lows[behind]
        if at.gap(behind) != " " or not (digits[:3].isdecimal() and len(digits.split(",")[0]) == 3):
            break
        low, behind = low + digits, behind + 1
        if "," in digits:
            break
    return low, behind


def _han(at: Cursor, place: int) -> TypedValue | None:
    low, before = at.lows[place], at.lows[place - 1]
    value = han_number(low)
    if value is None:
        return None
    if before == "分之" and at.joined(place):
        return _han_share(at, place, value)
    following = at.lows[place + 1] if at.joined(place + 1) else ""
    counted = len(low) > 1 or following.startswith(_HAN_COUNTERS)
    if not counted or following.startswith("分之") or before.endswith(("第", "之")) or low == "一":
        return None
    return with_unit(at, Written(place, place + 1, (value,), spelled=True))


def _is_denominator(at: Cursor, place: int) -> bool:
    """Return whether a number in digits is that of "3分之一", and no time as in "30分之后"."""
    return at.lows[place + 1] == "分之" and at.joined(place + 1, 2) and at.sort(place + 2) == HAN_NUMBER


def _han_share(at: Cursor, place: int, value: Decimal) -> TypedValue | None:
    """Return "三分之一" and "3分之一" as a percentage, ``None`` where the text begins behind its first number."""
    first = place - 2
    of_han = at.sort(first) == HAN_NUMBER
    under = han_number(at.lows[first]) if of_han else whole_number(at, first)[0]
    if not under:
        return None
    return TypedValue(
        ValueKind.PERCENTAGE, at.listed[first].start, at.listed[place].end, (value * 100 / under,), "%",
        place=Decimal("0.5"), bound=at.bound(first), spelled=True, first=place, behind=place + 1,
    )  # fmt: skip


def _is_mark(at: Cursor, place: int) -> bool:
    """Return whether a number is the number of a list's item, a citation, or part of a name or an address."""
    _, start, end, low = at.listed[place]
    before, after = at.text[start - 1 : start], at.text[end : end + 1]
    if (before == "[" and after == "]") or before in {"^", "#", "@", "【"}:
        return True
    of = place - 1 - (at.lows[place - 1] in ("#", "no"))
    if at.lows[of] in REFERENCES:
        return True
    if after and after in ".):、" and low.isdecimal() and len(low) <= 2 and _begins_line(at, start):
        return at.text[end + 1 : end + 2] in (" ", "\t", "*", "")
    return _is_in_name(at, place)


def _begins_line(at: Cursor, start: int) -> bool:
    """Return whether marks alone stand before a place in its line."""
    line = at.text[at.text.rfind("\n", 0, start) + 1 : start] if start else ""
    return len(line) < 12 and not line.strip(" \t*#(-|>")


def _is_in_name(at: Cursor, place: int) -> bool:
    """Return whether a number is part of a name or an address: "KH-02", "a/2", "x_1"."""
    _, start, end, _ = at.listed[place]
    before, behind_name = at.text[start - 1 : start], at.lows[place - 1]
    if before == "-" and at.joined(place - 1) and at.sort(place - 2) == WORD:
        return at.lows[place - 2] not in ("to", "mid", "pre", "post")
    if behind_name == "h" and at.joined(place - 1) and at.sort(place - 2) == NUMBER:
        return False  # "2h30"
    if before.isalpha() and before != "x" and before <= "\u3000":
        return behind_name not in CURRENCY_CODES and behind_name not in ("v", "us")
    underscored = before == "_" and at.text[start - 2 : start - 1].isalnum()
    goes_on = at.text[end : end + 1] == "_" and at.text[end + 1 : end + 2].isalnum()
    return before in {"/", "\\"} or underscored or goes_on


_BEFORE_COUNTED = frozenset((*CURRENCY_SIGNS, *CURRENCY_CODES, *LABELS, "#", ".", "+", "°"))
_SIGNS_BEHIND_COUNTED = frozenset("%€°$£")
_BEHIND_COUNTED = frozenset((*UNITS, *CURRENCY_CODES, *CURRENCY_NAMES, *BITS_A_SECOND)) - {"in", "an", "a"}
_LONG_SYMBOLS = frozenset(each for each in SYMBOLS if len(each) > 1)
_WITH_ARTICLE = frozenset(("hundred", "thousand", "million", "dozen", "couple"))
_YEAR_BEFORE = word_set(
    "in since by until of from during and to before after between till around about early late mid the seit ab bis im en depuis"
    " desde hasta jusqu entre"
)
_BOUND_OF_TIME = {
    **dict.fromkeys(("before", "until", "till", "by", "vor", "bis", "avant", "antes", "hasta"), Bound.BELOW),
    **dict.fromkeys(("after", "nach", "après"), Bound.ABOVE),
}
_ORDINAL = frozenset(("st", "nd", "rd", "th", "º", "ª", "er", "ème", "e"))
_HAN_COUNTERS = tuple(
    "个個名人位次条條件台部本张張篇章段项項家所座万亿元美欧年天日月周时点小分秒米公千克度倍成套辆只種つ枚回冊歳円階"
)
_MOMENT_WORDS = frozenset(
    (*NOONS, *CENTURY_WORDS, *MONTHS, *WEEKDAYS, *word_set("q half quarter first second third fourth"))
)
_MOMENT_WORDS |= {f"{word}'s" for word in _MOMENT_WORDS}
_BEGIN = {language: words | _MOMENT_WORDS for language, words in STARTERS.items()}
_BEGIN["en"] |= IN_ONE_WORD
_VALUE_SORTS = frozenset((NUMBER, HAN, HAN_NUMBER))

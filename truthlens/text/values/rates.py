"""Read numbers that are told in other words: shares, rates, multiples and times between two. Pure.

Only what is exact: "one in twenty" is 5 %, "every other day" 48 hours, "three times as much" a ratio of 3.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from truthlens.text.values.amounts import (
    AGAIN,
    OFTEN,
    UnitOf,
    Written,
    currency_at,
    currency_before,
    is_named,
    made,
    measure_at,
    measured,
    percent_at,
    period_at,
    scale_of,
    two_scales,
    unit_of,
)
from truthlens.text.values.cursor import Cursor, is_plural
from truthlens.text.values.numerals import ORDINALS, is_one, read_words, scale_after
from truthlens.text.values.tokens import WORD
from truthlens.text.values.typed import TypedValue, ValueKind
from truthlens.text.values.units import LABELS, UNITS
from truthlens.text.word_forms import word_set
from truthlens.text.words import stem

_ONE, _MOST_PARTS = Decimal(1), 1000
_THE = word_set("the these those both all other its their our my los las les die den der")
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_MULTIPLES = {
    form: Decimal(number)
    for number, forms in (
        ("0.5", "halved halves halving"), ("2", "double doubled doubles doubling twofold"),
        ("3", "triple tripled triples tripling treble trebled threefold"), ("4", "quadruple quadrupled fourfold"),
        ("5", "fivefold"), ("10", "tenfold"),
    )
    for form in forms.split()
}  # fmt: skip
_MOST_BEHIND = 6  # tokens among which the noun of a count stands
_ROUND = frozenset((10, 100, 1000))
_OF_SOMETHING = word_set("as the that this what its their his her more")
"""Words behind a number of times that multiplies: "twice as much", "double the price"."""
_NO_TIMES = _OF_SOMETHING | {"over", "a", "an"}
_NTH = {word: place for place, word in enumerate(ORDINALS[1:], start=2)} | {"other": 2, "hundredth": 100}
_SPANS = word_set("minute hour day night week fortnight month year decade century")
_BEFORE_SPAN = word_set(
    "for within after than least most about over under nearly almost lasts lasted takes took take last"
)
_BEHIND_SPAN = word_set("before after later earlier early late")
_MORE_OF_SPAN = frozenset(("a", "half", "three"))  # "an hour and a half"
_HALF = frozenset(("half", "halbe", "halben", "halb", "halbes", "demi", "demie"))
_ORDINAL_PARTS = word_set("third fifth tenth sixth eighth fifths quarter quarters viertel cuarto quart")
_HALVES_BEHIND = frozenset(("way", "year", "term", "time", "board", "-"))
_HALVES_BEFORE = frozenset(("first", "second", "other", "better", "past"))
_ADJECTIVES = frozenset(("double", "triple", "treble", "quadruple"))
_BEFORE_NO_SHARE = LABELS | {"at"}
_NO_WHOLE = frozenset(("in", "an", "t", "h", "m"))
_NO_FRACTIONS = frozenset(("media", "medio", "quinto", "décimo", "second"))
IN_ONE_WORD = frozenset((*_TIMES, *_MULTIPLES, *_SPANS, *OFTEN, "every", "each"))
"""Words that are a number with what it counts, or may be."""


def with_unit(at: Cursor, number: Written, *, only_unit: bool = False) -> TypedValue | None:
    """Return the value with what belongs to it; with ``only_unit`` nothing without a unit."""
    currency = currency_before(at, number.first)
    power, behind = scale_of(at, number, is_money=currency is not None)
    number = two_scales(at, replace(number, behind=behind), power)
    scale = Decimal(10) ** power
    if power == 0 and (ratio := _ratio(at, number)) is not None:
        return ratio
    found = unit_of(at, number, currency)
    if found is None and (told := _share(at, number) or _times(at, number)) is not None:
        return told
    if found is None:
        return None if only_unit else _count(at, number, scale)
    if only_unit and found.kind is ValueKind.LABEL:
        return None
    return made(at, number, found, scale * found.factor)


def _share(at: Cursor, number: Written) -> TypedValue | None:
    """Return "one in twenty", "one label in twenty", "nine of ten" and "3 out of 4" as percentages."""
    noun, said, place = _out_of(at, number)
    part, (whole, behind) = number.amounts[0], whole_number(at, place)
    if not said or not 0 < part < whole <= _MOST_PARTS or part != part.to_integral_value():
        return None
    # "Nine of ten" and "nine readers in ten" are shares; "two of six beds" are a count.
    round_only = said in ("of", "per") or (noun and part > 1)
    if (round_only and whole not in _ROUND) or (said == "of" and not number.spelled):
        return None
    if at.lows[number.first - 1] in _BEFORE_NO_SHARE or _is_amount(at, behind):
        return None
    unit = UnitOf(ValueKind.PERCENTAGE, "%", behind, number.first, nouns=at.nouns(behind))
    share = (part * 100 / whole,)
    amounts = (*share, part) if said == "out" or part > 1 else share
    return replace(made(at, replace(number, amounts=amounts, digit=Decimal("0.01")), unit), factor=_ONE)


def _out_of(at: Cursor, number: Written) -> tuple[bool, str, int]:
    """Return whether a noun stands behind a number, the word before what it is a part of, and the token behind.

    The word is "in", "of", "per" or "out", or ``""`` where it is another one.
    """
    place = number.behind
    noun = next((size for size in (1, 2) if at.lows[place + size] == "in" and at.is_noun(place)), 0)
    place += noun or (at.lows[place] == "-" and at.lows[place + 1] == "in")
    said, behind = at.lows[place], place + 1
    if said == "out" and at.lows[behind] == "of":
        behind += 1
    elif said not in ("in", "of", "per"):
        return False, "", behind
    return noun > 0, said, behind + (at.lows[behind] in ("every", "each", "-"))


def _is_amount(at: Cursor, behind: int) -> bool:
    """Return whether a unit or a scale stands behind a number."""
    told = measure_at(at, behind) or percent_at(at, behind) or currency_at(at, behind)
    return told is not None or scale_after(at.listed, behind, at.worded) != 0


def whole_number(at: Cursor, place: int) -> tuple[Decimal, int]:
    """Return the number in digits or words at a token and the token behind it, 0 where there is none."""
    low = at.lows[place]
    if low.isascii() and low.isdecimal():
        return Decimal(low), place + 1
    read = read_words(at.listed, place, at.worded, at.text) if low and at.worded else None
    return (read[0], read[1]) if read is not None and not read[2] else (Decimal(0), place)


def _times(at: Cursor, number: Written) -> TypedValue | None:
    """Return "four times an hour" as 15 minutes between two, "three times as much" as a ratio."""
    times, behind = number.amounts[0], number.behind + 1
    if at.lows[number.behind] != "times" or times <= 0:
        return None
    return _often(at, number, behind, times)


def _often(at: Cursor, number: Written, behind: int, times: Decimal) -> TypedValue | None:
    """Return what a number of times says with the words behind it, ``None`` where they say nothing of it."""
    if (period := period_at(at, behind)) is not None:
        return _between(at, number, period, times)
    return _multiple(at, number, behind) if at.lows[behind] in _OF_SOMETHING else None


def _multiple(at: Cursor, number: Written, behind: int) -> TypedValue:
    """Return "three times as much" as a ratio."""
    return made(at, number, UnitOf(ValueKind.RATIO, "x", behind, number.first))


def _between(at: Cursor, number: Written, period: tuple[str, Decimal, int], times: Decimal) -> TypedValue:
    """Return the time between two of what happens so many times in a period."""
    sort, factor, behind = period
    unit = UnitOf(ValueKind.MEASURE, AGAIN[sort], behind, number.first)
    return made(at, replace(number, amounts=(factor / times,)), unit)


def in_one_word(at: Cursor, place: int) -> TypedValue | None:
    """Read "twice", "once a day", "every other day", "doubled"; nothing in "once it is paid"."""
    return next(read for words, read in _READERS if at.lows[place] in words)(at, place)


def _word(place: int, amount: Decimal = _ONE) -> Written:
    return Written(place, place + 1, (amount,), spelled=True)


def _adverb(at: Cursor, place: int) -> TypedValue | None:
    """Read "changed quarterly"; nothing in "a monthly fee" and in "$5 monthly"."""
    rate = place and place == at.free
    if rate or at.lows[place - 1] == "-" or at.is_noun(place + 1):
        return None
    return _between(at, _word(place), (*OFTEN[at.lows[place]], place + 1), _ONE)


def _one_span(at: Cursor, place: int) -> TypedValue | None:
    """Read "within a week" and "the day after"."""
    low, following = at.lows[place], at.lows[place + 1]
    before, article = at.lows[place - 2], at.lows[place - 1]
    more = following == "and" and at.lows[place + 2] in _MORE_OF_SPAN
    alone = article in ("a", "an") and (low == "fortnight" or before in _BEFORE_SPAN) and not more
    beside = article in ("a", "an", "the") and following in _BEHIND_SPAN
    return measured(at, _word(place), low) if alone or beside else None


def _multiplied(at: Cursor, place: int) -> TypedValue | None:
    low = at.lows[place]
    plain = low in _ADJECTIVES and at.lows[place + 1] not in _OF_SOMETHING
    return None if plain else _multiple(at, _word(place, _MULTIPLES[low]), place + 1)


def _so_often(at: Cursor, place: int) -> TypedValue | None:
    """Read "twice a day", "twice as much" and "twice"; nothing in "once it is paid"."""
    times, following = _TIMES[at.lows[place]], at.lows[place + 1]
    number = _word(place, Decimal(times))
    if times == 1 and period_at(at, place + 1) is None:
        return None
    if (often := _often(at, number, place + 1, Decimal(times))) is not None:
        return often
    unit = UnitOf(ValueKind.COUNT, "", place + 1, place, nouns=(stem("times"),))
    return None if following in _NO_TIMES else made(at, number, unit)


def _every(at: Cursor, place: int) -> TypedValue | None:
    """Read "every month" and "every other day" as the time between two, "every tenth family" as a share."""
    low, following = at.lows[place + 1], at.lows[place + 2]
    nth = _NTH.get(low, 0) if at.is_noun(place + 2) else 0
    if at.lows[place] == "each" and not nth:
        return None  # "3 for each hour" says of what the 3 is
    span = following if nth else low
    number = Written(place, place + 2 + bool(nth), (Decimal(nth or 1),), spelled=True)
    if span in _SPANS and (unit := UNITS[span]).sort in AGAIN:
        found = _between(at, number, (unit.sort, unit.factor * (nth or 1), number.behind), _ONE)
        # "Month" of "every month" goes on saying what the other values are of.
        return found if nth else replace(found, behind=place + 1)
    if low == "quarter" and following != "of":
        return _between(at, number, ("months", Decimal(3), number.behind), _ONE)
    if not nth or low == "other" or at.lows[place] == "each":
        return None
    share = Written(place, place + 2, (Decimal(100) / nth,), Decimal("0.01"), spelled=True)
    return made(at, share, UnitOf(ValueKind.PERCENTAGE, "%", place + 2, place, nouns=at.nouns(place + 2)))


def fraction(at: Cursor, place: int, behind: int, value: Decimal) -> TypedValue | None:
    """Read "half an hour", "a third of", "half a million"; nothing where "third" is an ordinal."""
    first = place - is_one(at.lows[place - 1], at.worded)
    before = at.lows[first - 2]
    number = Written(first, behind, (value,), Decimal("0.01"), spelled=True)
    if at.lows[first - 1] == "and" and before in UNITS and at.lows[first - 3] in ("a", "an"):
        return measured(at, replace(number, first=first - 3, amounts=(1 + value,)), before)
    of = behind + (at.lows[behind] in ("a", "an", "of", "-"))
    of += at.lows[of] in ("a", "an")
    low, scale = at.lows[of], scale_after(at.listed, of, at.worded)
    if scale > 2:
        return with_unit(at, Written(first, of + 1, (value * Decimal(10) ** scale,), spelled=True))
    if (percent := percent_at(at, of)) is not None:
        name, past, worth = percent
        unit = UnitOf(ValueKind.PERCENTAGE, name, past, first, nouns=at.nouns(past))
        return made(at, replace(number, behind=past), unit, worth)
    if low == "dozen":
        return with_unit(at, Written(first, of + 1, (value * 12,), spelled=True))
    # "Third day" is an ordinal, "half day" and "third of a day" are none.
    alone = first == place and behind - place == 1
    counted = not alone or at.lows[behind - 1] in _HALF or of - behind > 1
    if counted and low in UNITS and low not in _NO_WHOLE:
        return with_unit(at, replace(number, behind=of))
    return None if _is_no_fraction(at, place, behind, alone=alone) else _part(at, number)


def _part(at: Cursor, number: Written) -> TypedValue:
    """Return a fraction of what is not told as a share."""
    first, behind = number.first, number.behind
    return TypedValue(
        ValueKind.PERCENTAGE, at.listed[first].start, at.listed[behind - 1].end, (number.amounts[0] * 100,), "share",
        at.nouns(behind), place=Decimal("0.5"), bound=at.bound(first), spelled=True, first=first, behind=behind,
    )  # fmt: skip


def _is_no_fraction(at: Cursor, place: int, behind: int, *, alone: bool) -> bool:
    """Return whether a word is an ordinal ("third time") or part of another ("first half", "halfway")."""
    low, following = at.lows[place], at.lows[behind]
    if low == "half":
        return at.lows[place - 1] in _HALVES_BEFORE or following in _HALVES_BEHIND
    return low in _NO_FRACTIONS or ((alone or following == "time") and low in _ORDINAL_PARTS)


def _ratio(at: Cursor, number: Written) -> TypedValue | None:
    """Return "3:1" as a ratio."""
    behind = number.behind
    under = at.lows[behind + 1]
    if number.spelled or at.lows[behind] != ":" or not at.joined(behind, 2):
        return None
    if not under.isdecimal() or Decimal(under) == 0:
        return None
    ratio = replace(number, amounts=(number.amounts[0] / Decimal(under),))
    return _multiple(at, ratio, behind + 2)


def _count(at: Cursor, number: Written, scale: Decimal) -> TypedValue | None:
    # Behind "the two" stands what was spoken of, and no count.
    if number.spelled and number.behind - number.first == 1 and at.lows[number.first - 1] in _THE:
        return None
    unit = UnitOf(ValueKind.COUNT, "", number.behind, number.first, nouns=at.nouns(number.behind))
    behind = at.lows[number.behind : number.behind + _MOST_BEHIND]
    plural = any(is_plural(low) and stem(low) == unit.nouns[0] for low in behind) if unit.nouns else False
    found = replace(made(at, number, unit, scale), plural=plural)
    if number.spelled or not is_named(at, number.first):
        return found
    return replace(found, unsure=True, in_name=at.sort(number.first - 2) == WORD)


_READERS = (
    (("every", "each"), _every), (OFTEN, _adverb), (_SPANS, _one_span), (_MULTIPLES, _multiplied), (_TIMES, _so_often),
)  # fmt: skip
"""What reads a word that is a number with what it counts."""

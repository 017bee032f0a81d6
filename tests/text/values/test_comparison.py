"""Two values are one, differ, or say nothing of each other: by arithmetic, whatever they are written in."""

from __future__ import annotations

import calendar
import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from truthlens.text.values.comparison import ValueComparer, comparable, lies_within, same_value, says_same
from truthlens.text.values.quantities import typed_values
from truthlens.text.values.typed import TypedValue
from truthlens.text.values.units import CURRENCY_NAMES, SYMBOLS, UNITS

GROUPS = (
    ("kg", "g", "mg", "tonnes"),
    ("km", "m", "cm", "mm"),
    ("hours", "minutes", "days", "weeks"),
    ("months", "years", "decades"),
    ("l", "ml", "cl"),
    ("GB", "MB", "TB"),
)


def only(text: str) -> TypedValue:
    (found,) = typed_values(text, language="en")
    return found


pairs = st.sampled_from(GROUPS).flatmap(
    lambda group: st.tuples(st.sampled_from(group), st.sampled_from(group))
)


@given(pairs, st.integers(1, 9999))
def test_a_measure_is_the_same_in_every_unit_of_its_sort(units: tuple[str, str], number: int) -> None:
    """And another one where the number stays and the unit changes, or the number alone does."""
    one, other = units
    known, there = UNITS[one.lower()], UNITS[other.lower()]
    converted = number * known.factor / there.factor
    first = only(f"It takes {number} {one}.")
    if converted == converted.quantize(Decimal("0.000001")):
        assert same_value(only(f"It takes {converted:f} {other}."), first)
    if known.factor != there.factor:
        assert same_value(only(f"It takes {number} {other}."), first) is False
    assert same_value(only(f"It takes {number * 2} {one}."), first) is False


@given(
    st.integers(1, 9999), st.sampled_from([("kg", "minutes"), ("%", "kg"), ("km", "litres"), ("books", "kg")])
)
def test_values_of_two_sorts_do_not_speak_of_each_other(number: int, sorts: tuple[str, str]) -> None:
    one, other = (only(f"It is {number} {each}.") for each in sorts)
    assert same_value(one, other) is None
    assert same_value(other, one) is None


@given(st.integers(1501, 2099), st.integers(1, 12), st.integers(1, 28))
def test_what_leaves_parts_open_follows_and_confirms_nothing(year: int, month: int, day: int) -> None:
    """A day says its month, year and decade; none of those says the day. Another month is another date."""
    name = calendar.month_name[month]
    whole = only(f"on {day} {name} {year}")
    for coarse in (
        f"in {name} {year}",
        f"in {year}",
        f"in the {year // 10}0s",
        f"in Q{(month + 2) // 3} {year}",
    ):
        assert same_value(only(coarse), whole), coarse
        assert same_value(whole, only(coarse)) is None, coarse
    assert same_value(whole, only(f"on {day % 28 + 1} {name} {year}")) is False
    assert same_value(whole, only(f"in {year - 1}")) is False


@given(st.integers(-40, 250))
def test_degrees_of_both_scales(celsius: int) -> None:
    fahrenheit = celsius * Decimal(9) / 5 + 32
    assert same_value(only(f"at {fahrenheit:f} °F"), only(f"at {celsius} °C"))
    assert same_value(only(f"at {fahrenheit + 4:f} °F"), only(f"at {celsius} °C")) is False


@given(st.integers(11, 9999), st.integers(2, 12))
def test_rates_for_two_times(number: int, parts: int) -> None:
    """A sum a month is twelve times that a year."""
    monthly, yearly = only(f"${number} a month"), only(f"${number * 12} a year")
    assert same_value(yearly, monthly)
    assert same_value(only(f"${number * 12 + 12 * parts} a year"), monthly) is False


@given(st.integers(100, 9999), st.integers(0, 30))
def test_tolerances_are_of_their_kind(number: int, permille: int) -> None:
    """A policy's tolerance counts for sums of money, and for nothing that is counted."""
    near = Decimal(number) * (1000 + permille) / 1000
    comparer = ValueComparer(currency=1.0, percentage=0.5, ratio=1.0)
    one, other = only(f"${number}.00"), only(f"${near:.2f}")
    gap = abs(other.amounts[0] - one.amounts[0]) / other.amounts[0]
    assert comparer.equal(one, other) or gap > Decimal("0.01")
    counted = only(f"{number * 1000} books"), only(f"{int(near * 1000)} books")
    assert comparable(*counted)
    assert comparer.equal(*counted) is (same_value(*counted) is True)


@given(st.integers(1, 9), st.sampled_from(["{} out of 10", "{} in ten", "{} readers in 10"]))
def test_a_share_of_ten_is_no_share_of_a_hundred(number: int, form: str) -> None:
    share = only(f"It is {form.format(number)}.")
    assert same_value(share, only(f"It is {10 * number}%."))
    assert same_value(only(f"It is {number}%."), share) is False
    assert same_value(share, only(f"It is {number}%.")) is False


@given(st.integers(2, 9), st.integers(0, 9))
def test_versions(major: int, minor: int) -> None:
    """The same, or a part of the other."""
    one = only(f"It is version {major}.{minor}.1 now.")
    assert same_value(one, only(f"It is version {major}.{minor}.1 now."))
    assert same_value(one, only(f"It is version {major}.{minor}.2 now.")) is False
    assert same_value(one, only(f"It has {major} books.")) is None


WIDE = (
    ("{decade}s", "decade"), ("{decade}'s", "decade"), ("{decade}er Jahre", "decade"), ("années {decade}", "decade"),
    ("la década de {decade}", "decade"), ("{decade}年代", "decade"), ("{ordinal} century", "century"), ("{century}. Jahrhundert", "century"),
    ("{century}e siècle", "century"), ("{roman}e siècle", "century"), ("siglo {roman}", "century"), ("{century}世纪", "century"),
)  # fmt: skip
ROMAN = {16: "XVI", 17: "XVII", 18: "XVIII", 19: "XIX", 20: "XX", 21: "XXI"}
ORDINAL = {16: "16th", 17: "seventeenth", 18: "18th", 19: "nineteenth", 20: "20th", 21: "twenty-first"}


@given(
    st.sampled_from(WIDE),
    st.dates(dt.date(1501, 1, 1), dt.date(2089, 12, 31)),
    st.integers(-60, 60),
    st.booleans(),
)
def test_a_date_lies_within_its_decade_and_its_century(
    wide: tuple[str, str], day: dt.date, away: int, whole: bool
) -> None:
    """A decade or century says what holds for every date in it, and another one is another date; it confirms no date."""
    form, part = wide
    century = (day.year - 1) // 100 + 1
    if part == "decade":
        assume(day.year // 10 % 10)
        said = form.format(decade=day.year // 10 * 10 + 10 * away)
        assume(1500 < day.year + 10 * away < 2100 and (day.year // 10 + away) % 10)
    else:
        other = century + away % 3
        assume(other in ROMAN)
        said = form.format(century=other, roman=ROMAN[other], ordinal=ORDINAL[other])
        away = away % 3
    (claim,) = typed_values(f"Le / the / im {said}.")
    (date,) = typed_values(f"It was on {day.isoformat()}." if whole else f"It was in {day.year}.")
    assert comparable(claim, date)
    if away == 0:
        assert same_value(claim, date) is True
        assert same_value(date, claim) is None
        assert lies_within(date, claim)
    elif not (day.year % 100 == 0 and part == "century"):
        assert same_value(claim, date) is False
        assert same_value(date, claim) is False
        assert not lies_within(date, claim)


@pytest.mark.parametrize(
    ("year", "centuries"), [(1900, (19, 20)), (1901, (20,)), (1899, (19,)), (1850, (19,))]
)
def test_the_year_between_two_centuries_is_of_both(year: int, centuries: tuple[int, ...]) -> None:
    """Of the one by its count, of the other by its name."""
    (date,) = typed_values(f"It was in {year}.")
    claims = [typed_values(f"It was in the {number}th century.")[0] for number in (18, 19, 20, 21)]
    assert [18 + at for at, claim in enumerate(claims) if same_value(claim, date)] == list(centuries)


@given(st.sampled_from(sorted(SYMBOLS)), st.sampled_from(sorted(SYMBOLS)), st.integers(2, 9999))
def test_one_figure_in_two_units_is_no_one_value(one: str, other: str, number: int) -> None:
    """Nor is it in units of two sorts; two signs of one unit are the same."""
    first, second = (only(f"It takes {number} {each}.") for each in (one, other))
    assert (same_value(first, second) is True) is (SYMBOLS[one] == SYMBOLS[other])


@given(st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)), st.integers(2, 9999))
def test_one_figure_in_two_units_by_name_is_no_one_value(one: str, other: str, number: int) -> None:
    """For those names of the inventory that a text gives."""
    values = [typed_values(f"It takes {number} {each}.", language="en") for each in (one, other)]
    if all(len(each) == 1 and each[0].named == name for each, name in zip(values, (one, other), strict=True)):
        (first,), (second,) = values
        assert (same_value(first, second) is True) is (UNITS[one] == UNITS[other])


@given(
    st.sampled_from(sorted(set(CURRENCY_NAMES))),
    st.sampled_from(sorted(set(CURRENCY_NAMES))),
    st.integers(2, 9999),
)
def test_one_sum_in_two_currencies_is_no_one_value(one: str, other: str, number: int) -> None:
    """Yen and yuan are two; their sign may be either."""
    first, second = (only(f"It costs {number} {each}.") for each in (one, other))
    assert same_value(first, second) is (CURRENCY_NAMES[one] == CURRENCY_NAMES[other])
    assert same_value(only(f"It costs ¥{number}."), only(f"It costs {number} yuan.")) is True


@given(st.integers(2, 999))
def test_a_sign_is_part_of_a_value(number: int) -> None:
    """A temperature has one; of sums and shares words may say it ("a loss of"), unless both have a sign."""
    assert same_value(only(f"It is {number} °C."), only(f"It is -{number} °C.")) is False
    assert same_value(only(f"It is +{number}%."), only(f"It is -{number}%.")) is False
    assert same_value(only(f"It fell by {number}%."), only(f"It is -{number}%.")) is True
    assert not says_same(only(f"It is {number}%."), only(f"It is -{number}%."))
    assert says_same(only(f"It is −{number}%."), only(f"It is -{number}%."))


@given(st.integers(1, 20), st.integers(1, 9))
def test_the_digits_of_versions_are_compared_as_they_are_written(major: int, minor: int) -> None:
    """Behind a label; behind a name within a sentence nobody can tell whether "3.5" is "3.50"."""
    for form in ("It needs Python {}.", "It is version {} now.", "It is in room {}."):
        short, long = (only(form.format(f"{major}.{digits}")) for digits in (f"{minor}", f"{minor}0"))
        if "Python" in form:
            assert not says_same(short, long)
        else:
            assert same_value(short, long) is False
        assert same_value(long, only(form.format(f"{major}.{minor}0"))) is True
    assert same_value(only(f"It costs {major}.{minor} euros."), only(f"It costs {major}.{minor}0 euros."))


@given(st.integers(2, 999))
def test_points_are_no_percent_and_rates_are_compared_as_a_whole(number: int) -> None:
    def differ(one: str, other: str) -> bool:
        return same_value(only(f"It is {number} {one}."), only(f"It is {number} {other}.")) is False

    assert differ("percentage points", "percent")
    assert differ("bps", "%")
    assert differ("ml/kg", "ml/day")
    assert differ("mg per kg", "mg per day")
    assert differ("Mbit/s", "Gbit/s")
    assert differ("crore rupees", "lakh rupees")
    assert same_value(only(f"It is {number} mg/kg."), only(f"It is {number} mg per kg."))
    assert same_value(only(f"It is {number * 1000} Mbit/s."), only(f"It is {number} Gbps."))


def test_a_year_is_rounded_to_no_other() -> None:
    """The year 2000 is not 1998; what is about 2000 may be."""
    assert same_value(only("It was in 2000."), only("It was in 1998.")) is False
    assert same_value(only("It was around 2000."), only("It was in 1998.")) is True
    assert same_value(only("It was around 2000."), only("It was in 1850.")) is False

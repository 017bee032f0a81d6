"""Typed values of texts: every kind, in six languages."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.values.quantities import figures, typed_values
from truthlens.text.values.typed import Bound, TypedValue, ValueKind

CURRENCY, PERCENT, DATE, TIME = ValueKind.CURRENCY, ValueKind.PERCENTAGE, ValueKind.DATE, ValueKind.TIME
RATIO, MEASURE, COUNT, LABEL, VERSION = (
    ValueKind.RATIO, ValueKind.MEASURE, ValueKind.COUNT, ValueKind.LABEL, ValueKind.VERSION,
)  # fmt: skip


def only(text: str) -> TypedValue:
    (found,) = typed_values(text)
    return found


@pytest.mark.parametrize(
    ("text", "written", "kind", "amount", "unit"),
    [
        ("It cost $1,234,567.89.", "$1,234,567.89", CURRENCY, "1234567.89", "dollar"),
        ("NOI of $1.2M", "$1.2M", CURRENCY, "1200000", "dollar"),
        ("a loan of $1.5 million", "$1.5 million", CURRENCY, "1500000", "dollar"),
        ("about $500K", "$500K", CURRENCY, "500000", "dollar"),
        ("sales of 48.2M USD", "48.2M USD", CURRENCY, "48200000", "dollar"),
        ("It is €12.50.", "€12.50", CURRENCY, "12.50", "euro"),
        ("It is EUR 1960.00.", "EUR 1960.00", CURRENCY, "1960", "euro"),
        ("It costs 40 dollars.", "40 dollars", CURRENCY, "40", "dollar"),
        ("It costs twenty-five dollars.", "twenty-five dollars", CURRENCY, "25", "dollar"),
        ("a hundred and one pounds", "a hundred and one pounds", CURRENCY, "101", "pound"),
        ("It is six dollars fifty.", "six dollars fifty", CURRENCY, "6.5", "dollar"),
        ("worth 1.4 million crowns", "1.4 million crowns", CURRENCY, "1400000", "crown"),
        ("营收为12亿元", "12亿元", CURRENCY, "1200000000", "yuan"),
        ("费用为3万元", "3万元", CURRENCY, "30000", "yuan"),
        ("費用は1万2千円です", "1万2千円", CURRENCY, "12000", "yen"),
        ("Die Miete ist 1.234,50 Euro und das ist viel", "1.234,50 Euro", CURRENCY, "1234.50", "euro"),
        ("Le prix est de 1 234,50 euros", "1 234,50 euros", CURRENCY, "1234.50", "euro"),
        ("El precio es de 1.500 euros", "1.500 euros", CURRENCY, "1500", "euro"),
        ("Occupancy is 85%.", "85%", PERCENT, "85", "%"),
        ("a rise of 12.5 percent", "12.5 percent", PERCENT, "12.5", "%"),
        ("12.5 percentage points", "12.5 percentage points", PERCENT, "12.5", "points"),
        ("a rise of 25 bps", "25 bps", PERCENT, "0.25", "points"),
        ("a rise of 25 basis points", "25 basis points", PERCENT, "0.25", "points"),
        ("half a percentage point", "half a percentage point", PERCENT, "0.5", "points"),
        ("ein Plus von 2 Prozentpunkten und mehr", "2 Prozentpunkten", PERCENT, "2", "points"),
        ("It is ¥500.", "¥500", CURRENCY, "500", "yen or yuan"),
        ("5 crore rupees", "5 crore rupees", CURRENCY, "50000000", "rupee"),
        ("It is ₹5 lakh.", "₹5 lakh", CURRENCY, "500000", "rupee"),
        ("14.2 m³", "14.2 m³", MEASURE, "14200000", "volume"),
        ("5 cubic metres", "5 cubic metres", MEASURE, "5000000", "volume"),
        ("15 nautical miles", "15 nautical miles", MEASURE, "27780", "length"),
        ("6 knots", "6 knots", MEASURE, "11.112", "speed"),
        ("20 m/s", "20 m/s", MEASURE, "72", "speed"),
        ("100 Mbps", "100 Mbps", MEASURE, "12500000", "data"),
        ("100 Mbit/s", "100 Mbit", MEASURE, "12500000", "data"),
        ("five degrees below zero", "five degrees below zero", MEASURE, "-5", "degree"),
        ("at minus 5 degrees", "minus 5 degrees", MEASURE, "-5", "degree"),
        ("a cell of 12XQ", "12XQ", MEASURE, "12", "XQ?"),
        ("It fell by 7 per cent.", "7 per cent", PERCENT, "7", "%"),
        ("Die Rate ist 3,5 Prozent", "3,5 Prozent", PERCENT, "3.5", "%"),
        ("增长百分之八十五", "百分之八十五", PERCENT, "85", "%"),
        ("half of the boxes", "half", PERCENT, "50", "share"),
        ("three quarters of the lawn", "three quarters", PERCENT, "75", "share"),
        ("The DSCR is 1.25.", "1.25", RATIO, "1.25", "x"),
        ("1.25x coverage", "1.25x", RATIO, "1.25", "x"),
        ("a ratio of 1.25", "1.25", RATIO, "1.25", "x"),
        ("odds of 3:1", "3:1", RATIO, "3", "x"),
        ("It takes 1.5 hours.", "1.5 hours", MEASURE, "5400", "time"),
        ("It takes ninety minutes.", "ninety minutes", MEASURE, "5400", "time"),
        ("an hour and a half", "an hour and a half", MEASURE, "5400", "time"),
        ("half an hour", "half an hour", MEASURE, "1800", "time"),
        ("within 3 working days", "3 working days", MEASURE, "259200", "time"),
        ("a 12-month contract", "12-month", MEASURE, "12", "months"),
        ("nur 20 km/h", "20 km/h", MEASURE, "20", "speed"),
        ("900 square metres", "900 square metres", MEASURE, "900", "area"),
        ("at 25 °C", "25 °C", MEASURE, "25", "degree"),
        ("fünfundzwanzig Tage sind es und das ist viel", "fünfundzwanzig Tage", MEASURE, "2160000", "time"),
        ("three passages", "three", COUNT, "3", ""),
        ("les vingt-cinq personnes de la ville et du pays", "vingt-cinq", COUNT, "25", ""),
        ("quatre-vingt-dix-sept personnes sont dans la ville", "quatre-vingt-dix-sept", COUNT, "97", ""),
        ("treinta y cinco personas en la ciudad", "treinta y cinco", COUNT, "35", ""),
        ("共有三个段落", "三", COUNT, "3", ""),
        ("a dozen eggs", "a dozen", COUNT, "12", ""),
        ("two thousand three hundred trees", "two thousand three hundred", COUNT, "2300", ""),
        ("It is in Room 204.", "204", LABEL, "204", "room"),
        ("see section 3", "3", LABEL, "3", "section"),
    ],
)  # fmt: skip
def test_item_29_amounts(text: str, written: str, kind: ValueKind, amount: str, unit: str) -> None:
    """Each with its unit, at its characters."""
    found = only(text)
    assert (text[found.start : found.end], found.kind, found.unit) == (written, kind, unit)
    assert found.amounts[0] == Decimal(amount)


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("in Q3 2024", DATE, {"quarter": 3, "year": 2024}),
        ("the third quarter of 2024", DATE, {"quarter": 3, "year": 2024}),
        ("December 2024", DATE, {"month": 12, "year": 2024}),
        ("on 2024-12-01", DATE, {"year": 2024, "month": 12, "day": 1}),
        ("on 12/01/2024", DATE, {"year": 2024, "month_and_day": 112}),
        ("on 25/12/2024", DATE, {"year": 2024, "month": 12, "day": 25}),
        ("on 12 April 2024", DATE, {"month": 4, "day": 12, "year": 2024}),
        ("on October 6", DATE, {"month": 10, "day": 6}),
        ("the 3rd of May", DATE, {"month": 5, "day": 3}),
        ("on Tuesday", DATE, {"weekday": 1}),
        ("until 2024-05-09T18:00", DATE, {"year": 2024, "month": 5, "day": 9, "time": 360, "half": 1}),
        ("am 12.01.2024", DATE, {"year": 2024, "month": 1, "day": 12}),
        ("Das ist am 5. Mai und nicht im Juni 2024", None, {}),
        ("le 3 mai 2024", DATE, {"month": 5, "day": 3, "year": 2024}),
        ("el 3 de mayo de 2024", DATE, {"month": 5, "day": 3, "year": 2024}),
        ("2024年3月5日", DATE, {"year": 2024, "month": 3, "day": 5}),
        ("第三季度", DATE, {"quarter": 3}),
        ("星期二", DATE, {"weekday": 1}),
        ("火曜日", DATE, {"weekday": 1}),
        ("at 3 p.m.", TIME, {"time": 180, "half": 1}),
        ("at 21:40", TIME, {"time": 580, "half": 1}),
        ("before noon", TIME, {"time": 0, "half": 1}),
        ("by three in the afternoon", TIME, {"time": 180, "half": 1}),
        ("at half past nine", TIME, {"time": 570}),
        ("at a quarter to six", TIME, {"time": 345}),
        ("um 17 Uhr", TIME, {"time": 300, "half": 1}),
        ("à 17h30 dans la ville", TIME, {"time": 330, "half": 1}),
        ("a las 5 de la tarde", TIME, {"time": 300, "half": 1}),
        ("下午3点", TIME, {"time": 180, "half": 1}),
        ("午後3時", TIME, {"time": 180, "half": 1}),
    ],
)
def test_item_29_dates_and_times(text: str, kind: ValueKind | None, parts: dict[str, int]) -> None:
    """By the parts that are given."""
    found = typed_values(text)
    if kind is None:
        assert [each.kind for each in found] == [DATE, DATE]
    else:
        assert [(each.kind, dict(each.parts)) for each in found] == [(kind, parts)]


@pytest.mark.parametrize(
    "text",
    [
        "1. First do this",
        "as it says [3]",
        "model KH-02",
        "passage 2 says so",
        "the second time",
        "one of the boxes",
        "the two agreed",
        "you may go",
        "from the fifth year on",
    ],
)
def test_what_is_no_value(text: str) -> None:
    """List numbers, citations, names, ordinals, references, pronouns."""
    assert typed_values(text) == []


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("more than 50 trees", Bound.ABOVE),
        ("at least 50 trees", Bound.ABOVE),
        ("no more than 50 trees", Bound.BELOW),
        ("up to 50 trees", Bound.BELOW),
        ("fewer than 50 trees", Bound.BELOW),
        ("about 50 trees", Bound.ABOUT),
        ("almost 50 trees", Bound.ABOUT),
        ("with 50 trees", Bound.EXACT),
    ],
)
def test_how_a_value_is_stated(text: str, bound: Bound) -> None:
    """Bounds and approximations are told from exact figures."""
    assert only(text).bound is bound


def test_a_version_is_no_number() -> None:
    """Its dots part no thousands."""
    assert (only("The version is 2.3.1.").kind, only("The version is 2.3.1.").unit) == (VERSION, "2.3.1")


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("5-7 kg", [5000, 7000]),
        ("from -7 to -5 kg", [-7000, -5000]),
        ("10 -15 kg", [10000, 15000]),
        ("- 5 kg of flour", [5000]),
        ("10 minus 5", [10, 5]),
        ("| -5 | +7 |", [-5, 7]),
        ('{"low": -5, "high":-7}', [-5, -7]),
        ("-$200, −€300 and (-4 %)", [-200, -300, -4]),
    ],
)
def test_a_dash_is_a_sign_only_where_it_parts_nothing(text: str, amounts: list[int]) -> None:
    """It touches the number or its currency, and stands behind a gap or a mark that opens."""
    assert [value.amounts[0] for value in typed_values(text, language="en")] == amounts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It closes at 18.00.", {"time": 360, "half": 1}),
        ("It opens at 9.30 and closes late", {"time": 570}),
        ("bis 18.00", {"time": 360, "half": 1}),
        ("twenty minutes before noon", {"time": 700, "half": 0}),
        ("ten minutes after midnight", {"time": 10, "half": 0}),
        ("It is sold at 18.00 euros", {}),
        ("It grew by 18.00", {}),
    ],
)
def test_a_time_of_day_with_a_point_stands_behind_its_preposition(text: str, parts: dict[str, int]) -> None:
    """With nothing behind it that says another thing; it stays a number as well."""
    assert dict(only(text).parts) == parts


@pytest.mark.parametrize(
    ("text", "per"),
    [
        ("5 ml/kg", ("mass", 1000)),
        ("5 ml/day", ("time", 86400)),
        ("5 g per 100 ml", ("volume", 100)),
        ("2 euros a litre", ("volume", 1000)),
        ("3 m3/s", ("time", 1)),
        ("5 kg a m.", None),
        ("5 dollars per 0 kg", None),
    ],
)
def test_a_rate_says_what_it_is_for(text: str, per: object) -> None:
    """A time or a measure, with how much of it."""
    assert typed_values(text, language="en")[0].per == per


def test_a_count_has_its_noun_in_front() -> None:
    """The first plural of the words behind the number; no word of another column."""
    assert only("It has 12 senior engineers today.").nouns[0] == only("It has 3 engineers.").nouns[0]
    assert only("200 full-time staff").nouns == ("full", "tim", "staff")
    assert only("min 25    expiry").nouns == ()


def test_a_year_is_a_date_and_a_counted_number_is_none() -> None:
    """By what stands behind it."""
    assert only("It was founded in 1990.").parts == {"year": 1990}
    assert only("It has 2000 visitors.").kind is COUNT
    assert only("It is 1500 metres long.").kind is MEASURE


def test_a_month_has_no_more_days_than_a_calendar_gives_it() -> None:
    """At the end of a sentence "May 45." is a month and a number."""
    month, number = typed_values("It was read in May 45. Then it was shelved.")
    assert (dict(month.parts), number.kind) == ({"month": 5}, COUNT)


@given(st.text(alphabet=st.sampled_from("0123456789.,:/-%$€ 年月日时三百万分之 aMaypx'\n"), max_size=60))
def test_any_text_is_read_without_failure(text: str) -> None:
    """Values lie within the text, in order, and do not overlap."""
    found = typed_values(text)
    assert all(0 <= each.start < each.end <= len(text) for each in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize("text", ["at ²", "9999-12-31 ²\nk", "half ③ 15:30 ②.", "1/² of it", "5:³", "May ²."])
def test_digits_that_are_no_decimals_are_no_mistake(text: str) -> None:
    """Superscripts and circled figures say nothing, and reading goes on."""
    assert all(value.end <= len(text) for value in typed_values(text))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("分之五十的人同意。", "zh"),
        ("分之五", "zh"),
        (f"He is 6'{'1' * 5000}\" tall.", "en"),
        (f"On 12.{'1' * 5000}.2024.", "en"),
        ("In the " + "19th, " * 2000 + "century.", "en"),
        ("At 9 " + "o'clock " * 2000, "en"),
        ("tausend" * 3000, "de"),
        ("5" + "兆" * 90_000, "zh"),
        ("5 " + "兆 " * 100_000, "zh"),
    ],
    ids=lambda each: each[:12],
)
def test_what_is_longer_than_any_number_is_no_mistake(text: str, language: str) -> None:
    """Nor is a share that the text begins within: passages are often cut by length."""
    assert all(each.start < each.end for each in typed_values(text, language=language))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It costs $1.25M, or 40 %.", ["$1.25M,", "40"]),
        ("You have two weeks for nine books.", ["two weeks", "nine"]),
        ("Half of 40 seats, on 3 May.", ["Half", "40", "3"]),
        ("The two of them left.", []),
        ("Nothing here.", []),
    ],
)
def test_figures_are_words_with_a_digit_and_numbers_in_words(text: str, found: list[str]) -> None:
    """A number in words with its unit; each once, in order."""
    assert [text[start:end] for start, end in figures(text)] == found


def test_figures_of_a_part_have_the_places_of_the_whole() -> None:
    """Start and end are characters of the text."""
    text = "It has 12 seats and two doors."
    assert [text[start:end] for start, end in figures(text, 15, len(text))] == ["two"]

"""A value is read back from every form that it is written in, whatever marks and punctuation stand around it."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.text.values.quantities import typed_values
from truthlens.text.values.typed import Bound, TypedValue, ValueKind
from truthlens.text.values.units import SYMBOLS, UNITS

AROUND = [
    "{}", "{}.", "{},", "{};", "{}:", "{}!", "{}?", "({})", "({}).", '"{}"', '"{}."', "“{}”", "**{}**", "*{}*", "**{}**.", "_{}_", "`{}`",
    "<b>{}</b>", "<td>{}</td>", "<td>{}</td><td>no</td>", '<span class="fee">{}</span>.', "<br/>{}<br/>", "[{}](https://a.example)", "~~{}~~",
    "{}…", "{} – really", "{}\n", "{}</p>", "{} [S0].", "'{}'",
]  # fmt: skip
SENTENCES = ["It is {} Then they left.", "Theirs: {}", "| theirs | {} |", "> {}", "- {}", "It comes to {}"]
SHORT = (
    "g",
    "kg",
    "mg",
    "l",
    "ml",
    "m",
    "km",
    "cm",
    "mm",
    "h",
    "min",
    "W",
    "kW",
    "kWh",
    "t",
    "GB",
    "MHz",
    "V",
    "ha",
    "km/h",
    "°C",
)
LONG = (
    "grams",
    "litres",
    "metres",
    "hours",
    "minutes",
    "days",
    "weeks",
    "months",
    "years",
    "miles",
    "degrees",
    "watts",
    "acres",
)
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]

whole = st.integers(2, 999)
decimals = st.builds(
    lambda number, digits: Decimal(number).scaleb(-digits), st.integers(1, 99_999), st.integers(0, 2)
)
around = st.builds(
    lambda sentence, wrapped: sentence.format(wrapped), st.sampled_from(SENTENCES), st.sampled_from(AROUND)
)


def grouped(number: Decimal) -> list[str]:
    """The ways to write a number in digits."""
    return [f"{number:f}", f"{number:,f}"]


def one_value(text: str) -> TypedValue:
    found = typed_values(text, language="en")
    assert len(found) == 1, (text, found)
    assert found[0].bound is Bound.EXACT, text
    return found[0]


def holds(text: str, kind: ValueKind, amount: Decimal, unit: str | None = None) -> None:
    value = one_value(text)
    assert (value.kind, value.amounts[0]) == (kind, amount), (text, value)
    assert unit is None or value.unit == unit, (text, value)


@given(decimals, around, st.data())
def test_money(amount: Decimal, text: str, data: st.DataObject) -> None:
    digits = data.draw(st.sampled_from(grouped(amount)))
    forms = [
        f"${digits}",
        f"{digits} dollars",
        f"USD {digits}",
        f"{digits} USD",
        f"US${digits}",
        f"$ {digits}",
    ]
    holds(text.format(data.draw(st.sampled_from(forms))), ValueKind.CURRENCY, amount, "dollar")


@given(decimals, around, st.sampled_from(["{}%", "{} %", "{} percent", "{} per cent"]))
def test_percentages(amount: Decimal, text: str, form: str) -> None:
    holds(text.format(form.format(f"{amount:f}")), ValueKind.PERCENTAGE, amount)


@given(
    decimals,
    around,
    st.sampled_from(SHORT + LONG),
    st.sampled_from(["{} {}", "{}{}", "{}\u00a0{}", "{}&nbsp;{}"]),
)
def test_measures(amount: Decimal, text: str, unit: str, form: str) -> None:
    """Every unit, apart from the number and behind it; a bare letter right behind a number is a unit as well."""
    known = UNITS[unit.lower() if unit != "°C" else "°"]
    if form == "{}{}" and unit in LONG:
        form = "{} {}"
    holds(text.format(form.format(f"{amount:f}", unit)), ValueKind.MEASURE, amount * known.factor, known.sort)


SIGNED = ["-{}", "−{}", "–{}", "minus {}"]
OPENING = [
    "{}",
    "It is {}.",
    "({})",
    "| {} |",
    "|{}|",
    '"{}"',
    "low: {}",
    "low={}",
    "It is {}, they say",
    "**{}**",
    "<td>{}</td>",
]


@given(decimals, st.sampled_from(sorted(SYMBOLS)), st.sampled_from(SIGNED), st.sampled_from(OPENING), st.sampled_from([" ", ""]))  # fmt: skip
def test_signs_and_units(amount: Decimal, unit: str, sign: str, text: str, gap: str) -> None:
    """A negative amount in every unit of the inventory, by its sign; a letter apart from other text."""
    gap = gap if len(unit) > 1 else " "  # "5A" and "5s" may be names and years
    value = one_value(text.format(sign.format(f"{amount:f}{gap}{unit}")))
    known = SYMBOLS[unit]
    assert (value.unit, value.amounts[0], value.sign) == (known.sort, -amount * known.factor, -1)


@given(decimals, st.sampled_from(["{}${}", "{}€{}", "{}{} euros", "{}{}%", "{}{}"]), st.sampled_from(["-", "−"]), st.sampled_from(OPENING))  # fmt: skip
def test_signs_of_sums_and_shares(amount: Decimal, form: str, sign: str, text: str) -> None:
    """Before the currency's sign or the figure."""
    value = one_value(text.format(form.format(sign, f"{amount:f}")))
    assert (value.amounts[0], value.sign) == (-amount, -1)


@given(whole, around, st.data())
def test_counts(number: int, text: str, data: st.DataObject) -> None:
    forms = [str(number), ONES[number]] if number < len(ONES) else [str(number)]
    written = data.draw(st.sampled_from([f"{each} books" for each in forms]))
    value = one_value(text.format(written))
    assert (value.kind, value.amounts[0], value.nouns[:1]) == (ValueKind.COUNT, Decimal(number), ("book",))


@given(whole, around, st.sampled_from(["{}x", "{}×"]))
def test_ratios(number: int, text: str, form: str) -> None:
    holds(text.format(form.format(number)), ValueKind.RATIO, Decimal(number))


@given(st.integers(0, 23), st.sampled_from([0, 5, 15, 30, 45]), around, st.data())
def test_times(hour: int, minute: int, text: str, data: st.DataObject) -> None:
    half, small = ("p" if hour >= 12 else "a"), hour % 12 or 12
    forms = [
        f"{small}:{minute:02} {half}.m.",
        f"{small}:{minute:02}{half}m",
        f"{small}:{minute:02} {half.upper()}M",
    ]
    forms += [f"{hour:02}:{minute:02}"] if hour >= 13 or hour < 10 else []
    forms += [f"{small} {half}m", f"{small}{half}m", f"{small} {half}.m."] if not minute else []
    value = one_value(text.format(data.draw(st.sampled_from(forms))))
    assert value.kind is ValueKind.TIME
    assert dict(value.parts) == {"time": hour % 12 * 60 + minute, "half": int(hour >= 12)}


@given(around, st.data())
def test_dates(text: str, data: st.DataObject) -> None:
    year, month, date = (
        data.draw(st.integers(1900, 2099)),
        data.draw(st.integers(1, 12)),
        data.draw(st.integers(1, 28)),
    )
    name = MONTHS[month - 1]
    forms = [
        f"{year}-{month:02}-{date:02}",
        f"{date} {name} {year}",
        f"{name} {date}, {year}",
        f"{date}th of {name} {year}",
        f"{date:02}.{month:02}.{year}",
    ]
    value = one_value(text.format(data.draw(st.sampled_from(forms))))
    assert dict(value.parts) == {"year": year, "month": month, "day": date}


@given(st.integers(2, 60), st.integers(2, 24), around, st.data())
def test_shares_and_times_between(many: int, few: int, text: str, data: st.DataObject) -> None:
    """What exact arithmetic makes of other words."""
    share = text.format(
        data.draw(st.sampled_from([f"one in {many}", f"one label in {many}", f"1 out of {many}"]))
    )
    holds(share, ValueKind.PERCENTAGE, Decimal(100) / many)
    holds(text.format(f"every {few} minutes"), ValueKind.MEASURE, Decimal(60 * few), "every")
    holds(text.format(f"{few} times an hour"), ValueKind.MEASURE, Decimal(3600) / few, "every")


UNIT_PAIRS = [
    ("kg", "g"),
    ("hours", "minutes"),
    ("h", "min"),
    ("weeks", "days"),
    ("years", "months"),
    ("km", "m"),
    ("feet", "inches"),
    ("lb", "oz"),
]


@given(st.integers(1, 40), st.integers(1, 40), around, st.data())
def test_both_ends_of_a_range_have_its_unit(low: int, more: int, text: str, data: st.DataObject) -> None:
    """Behind the last number or as a sign before the first; so has a scale behind the last."""
    high = low + more
    joiner = data.draw(st.sampled_from(["-", "–", " to ", " or "]))
    unit = data.draw(st.sampled_from(["kg", "miles", "minutes", "months"]))
    first, second = typed_values(text.format(f"{low}{joiner}{high} {unit}"), language="en")
    factor = UNITS[unit].factor
    assert (first.kind, first.unit, first.amounts) == (second.kind, second.unit, (low * factor,))
    assert second.amounts == (high * factor,)
    for form, scale in (
        ("${}{}{}", 1),
        ("{}{}{} dollars", 1),
        ("${}{}${}", 1),
        ("${}{}{} million", 10**6),
        ("${}{}${} million", 10**6),
    ):
        found = typed_values(text.format(form.format(low, joiner, high)), language="en")
        assert [(each.kind, each.unit) for each in found] == [(ValueKind.CURRENCY, "dollar")] * 2, form
        assert [each.amounts[0] for each in found] == [low * scale, high * scale], form


@given(st.integers(1, 20), around, st.sampled_from(UNIT_PAIRS), st.data())
def test_a_measure_in_two_units_is_one(
    many: int, text: str, pair: tuple[str, str], data: st.DataObject
) -> None:
    """As many of the smaller as make less than one of the larger."""
    large, small = pair
    most = int(UNITS[large].factor / UNITS[small].factor) - 1
    few = data.draw(st.integers(1, most))
    whole = many * UNITS[large].factor + few * UNITS[small].factor
    for joiner in (" ", " and ") if UNITS[large].sort in ("time", "months") else (" ",):
        holds(text.format(f"{many} {large}{joiner}{few} {small}"), ValueKind.MEASURE, whole)


@given(st.integers(1, 9), st.integers(1, 11), st.sampled_from(["It is {}.", "It is {} tall", "He ({}) left"]))
def test_feet_and_inches(feet: int, inches: int, text: str) -> None:
    """With marks, and without the second unit."""
    for form in ("{}'{}\"", "{}′{}″", "{} ft {} in", "{} feet {}"):
        holds(
            text.format(form.format(feet, inches)),
            ValueKind.MEASURE,
            (12 * feet + inches) * Decimal("0.0254"),
            "length",
        )


@given(st.integers(1, 23), st.integers(1, 59), around)
def test_hours_with_minutes_behind_a_letter(hours: int, minutes: int, text: str) -> None:
    for form in ("{}h{:02}", "{}h{}m", "{}h {}min"):
        holds(
            text.format(form.format(hours, minutes)),
            ValueKind.MEASURE,
            Decimal(3600 * hours + 60 * minutes),
            "time",
        )


@given(st.integers(1, 900), st.integers(1, 99), around, st.sampled_from(["dollars", "euros"]))
def test_a_sum_with_its_cents_is_one(whole: int, cents: int, text: str, name: str) -> None:
    holds(
        text.format(f"{whole} {name} and {cents} cents"),
        ValueKind.CURRENCY,
        whole + Decimal(cents) / 100,
        name[:-1],
    )


@given(st.integers(1, 40), st.sampled_from([("½", "1/2"), ("¼", "1/4"), ("¾", "3/4"), ("⅛", "1/8")]), around)
def test_mixed_numbers(whole: int, part: tuple[str, str], text: str) -> None:
    """With a sign or a stroke, and the part alone."""
    sign, stroke = part
    over, under = map(int, stroke.split("/"))
    amount = Decimal(over) / under
    for written in (f"{whole}{sign}", f"{whole} {stroke}", f"{whole}-{stroke}"):
        holds(text.format(f"{written} kg"), ValueKind.MEASURE, (whole + amount) * 1000)
    holds(text.format(f"{sign} kg"), ValueKind.MEASURE, amount * 1000)
    holds(text.format(f"{stroke} kg"), ValueKind.MEASURE, amount * 1000)


HALVES = [
    ("a half", "0.5"),
    ("a quarter", "0.25"),
    ("three quarters", "0.75"),
    ("a third", "1/3"),
    ("two thirds", "2/3"),
]
PARTS = [(name, Decimal(value) if "/" not in value else Decimal(value[0]) / 3) for name, value in HALVES]


@given(st.sampled_from(PARTS), st.integers(1, 20), around)
def test_parts_in_words(part: tuple[str, Decimal], whole: int, text: str) -> None:
    """Of a whole, of a unit, behind a whole number and behind a unit."""
    name, amount = part
    holds(text.format(f"{name} of them"), ValueKind.PERCENTAGE, amount * 100)
    holds(text.format(f"{name} of an hour"), ValueKind.MEASURE, amount * 3600)
    holds(text.format(f"{name} of a per cent"), ValueKind.PERCENTAGE, amount)
    holds(text.format(f"{name} of a million"), ValueKind.COUNT, amount * 10**6)
    for number in {str(whole), ONES[whole] if 1 < whole < len(ONES) else str(whole)}:
        near(text.format(f"{number} and {name} hours"), (whole + amount) * 3600)
        near(text.format(f"{number} hours and {name}"), (whole + amount) * 3600)
    near(text.format(f"an hour and {name}"), (1 + amount) * 3600)


def near(text: str, amount: Decimal) -> None:
    assert abs(one_value(text).amounts[0] - amount) < Decimal("0.001"), text


ORDINALS = ["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
PERIODS = [("day", "daily"), ("week", "weekly"), ("month", "monthly"), ("year", "yearly"), ("hour", "hourly")]


@given(st.integers(2, 10), st.sampled_from(PERIODS), around)
def test_how_often(number: int, period: tuple[str, str], text: str) -> None:
    """The time between two, however it is told."""
    name, often = period
    known = UNITS[name]
    unit = "every" if known.sort == "time" else "every-months"
    forms = [
        f"every {number} {name}s",
        f"every {ORDINALS[number - 2]} {name}",
        f"once every {number} {name}s",
    ]
    forms += [f"every other {name}"] if number == 2 else []
    for form in forms:
        holds(text.format(form), ValueKind.MEASURE, known.factor * number, unit)
    for form in (f"{number} times a {name}", f"{ONES[number]} times {often}", f"{number} times per {name}"):
        holds(text.format(form), ValueKind.MEASURE, known.factor / number, unit)
    holds(text.format(f"every {name}"), ValueKind.MEASURE, known.factor, unit)
    (value,) = typed_values(f"It is changed {often}, as before.", language="en")
    assert (value.unit, value.amounts[0]) == (unit, known.factor)
    assert typed_values(f"It is the {often} report.", language="en") == []
    rated = one_value(text.format(f"${number} {often}"))
    assert rated.per == (known.sort, known.factor)


@given(st.integers(2, 10), around)
def test_shares_and_multiples_in_words(number: int, text: str) -> None:
    holds(text.format(f"every {ORDINALS[number - 2]} shop"), ValueKind.PERCENTAGE, Decimal(100) / number)
    holds(text.format(f"one-in-{number}"), ValueKind.PERCENTAGE, Decimal(100) / number)
    if number < 10:
        for form in (f"{ONES[number]} of ten", f"{number} readers in ten", f"{number} in 10"):
            holds(text.format(form), ValueKind.PERCENTAGE, Decimal(10 * number))
    for form in (f"{number} times the price", f"{ONES[number]} times that of others"):
        holds(text.format(form), ValueKind.RATIO, Decimal(number), "x")
    holds(text.format("twice the price"), ValueKind.RATIO, Decimal(2), "x")
    holds(text.format("doubled"), ValueKind.RATIO, Decimal(2), "x")
    holds(text.format("half a dozen eggs"), ValueKind.COUNT, Decimal(6))
    holds(text.format(f"{ONES[number]} dozen eggs"), ValueKind.COUNT, Decimal(12 * number))
    holds(text.format(f"{number}:1 here"), ValueKind.RATIO, Decimal(number), "x")


@given(
    st.sampled_from(["for", "within", "after", "lasts", "at least"]),
    st.sampled_from(["day", "week", "year", "decade", "century"]),
)
def test_one_of_a_unit_is_a_value_where_it_is_a_span(before: str, name: str) -> None:
    """And none where it says how often, or goes on."""
    (found,) = typed_values(f"It stays {before} a {name}.", language="en")
    assert (found.unit, found.amounts[0]) == (UNITS[name].sort, UNITS[name].factor)
    assert [each.amounts[0] for each in typed_values(f"It came a {name} earlier.", language="en")] == [
        UNITS[name].factor
    ]
    assert typed_values(f"What a {name} it was.", language="en") == []


@given(st.sampled_from(["zero times a day", "0 times an hour"]), around)
def test_no_time_lies_between_what_never_happens(form: str, text: str) -> None:
    assert one_value(text.format(form)).kind is ValueKind.COUNT


@given(
    st.sampled_from(
        [
            "a double room",
            "once it is paid",
            "the second half",
            "a third time",
            "half-board",
            "each other shop",
        ]
    )
)
def test_words_of_numbers_that_are_none(form: str) -> None:
    assert typed_values(f"It was {form} there.", language="en") == []


@given(
    st.integers(1, 12),
    st.integers(0, 59),
    st.sampled_from([("in the morning", 0), ("in the afternoon", 1), ("", None)]),
)
def test_times_in_words(hour: int, minute: int, half: tuple[str, int | None]) -> None:
    """Past and to the hour, at the hour, and with the half of the day."""
    name, noon = half
    forms = {
        0: f"at {ONES[hour]}{' ' + name if name else ' sharp'}",
        15: f"at a quarter past {ONES[hour]} {name}",
        30: f"at half past {ONES[hour]} {name}",
        45: f"at a quarter to {ONES[hour % 12 + 1]} {name}",
        20: f"at twenty past {ONES[hour]} {name}",
        50: f"at ten to {ONES[hour % 12 + 1]} {name}",
    }
    minute = min(forms, key=lambda each: abs(each - minute))
    value = one_value(f"It closes {forms[minute].strip()}.")
    assert value.parts["time"] == hour % 12 * 60 + minute
    assert value.parts.get("half") == noon


CLOCKS = {
    "de": ["um {h} Uhr"],
    "fr": ["à {h}h{m:02}", "à {h} heures"],
    "es": ["a las {h}:{m:02}"],
    "zh": ["{h}点{m}分", "{h}時{m}分"],
}
OFTEN = {
    "de": "Es ist {} und das ist nicht so.",
    "fr": "Il vient {} dans la salle.",
    "es": "Viene {} en la sala.",
    "zh": "他们{}到。",
}


@given(st.sampled_from(sorted(CLOCKS)), st.integers(13, 23), st.integers(1, 59), st.data())
def test_times_in_other_languages(language: str, hour: int, minute: int, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(CLOCKS[language]))
    (value,) = typed_values(OFTEN[language].format(form.format(h=hour, m=minute)), language=language)
    assert value.parts["time"] == hour % 12 * 60 + (minute if "{m" in form else 0), form
    assert value.parts.get("half", 1) == 1


@given(
    st.integers(1, 11),
    st.sampled_from([("上午", 0), ("下午", 1), ("午後", 1), ("晚上", 1)]),
    st.sampled_from(["点", "時", "点半"]),
)
def test_han_times_with_their_half(hour: int, half: tuple[str, int], mark: str) -> None:
    (value,) = typed_values(f"会议{half[0]}{hour}{mark}开始。")
    assert dict(value.parts) == {"time": hour * 60 + 30 * mark.endswith("半"), "half": half[1]}


NAMES = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
DATES = {
    "en": ["on {d} {n} {y}", "on {n} {d}, {y}", "the {d}. of {n} {y}"],
    "de": ["am {d}. {n} {y}", "am {d:02}.{m:02}.{y}"],
    "fr": ["le {d} {n} {y}"],
    "es": ["el {d} de {n} de {y}"],
    "zh": ["于{y}年{m}月{d}日"],
}


@given(
    st.sampled_from(sorted(DATES)), st.integers(1, 12), st.integers(1, 28), st.integers(1500, 2099), st.data()
)
def test_dates_in_other_languages(
    language: str, month: int, day: int, year: int, data: st.DataObject
) -> None:
    """The whole, the day and month, the month and year, the quarter and the weekday."""
    name = NAMES.get(language, NAMES["en"]).split()[month - 1]
    frame = (OFTEN | {"en": "It is {} there."})[language]

    def parts(written: str) -> list[dict[str, int]]:
        return [dict(each.parts) for each in typed_values(frame.format(written), language=language)]

    form = data.draw(st.sampled_from(DATES[language])).format(d=day, m=month, n=name, y=year)
    assert parts(form) == [{"year": year, "month": month, "day": day}], form
    if language == "zh":
        assert parts(f"{year}年{month}月") == [{"year": year, "month": month}]
        assert parts(f"第{month % 4 + 1}季度") == [{"quarter": month % 4 + 1}]
        assert parts(f"星期{'一二三四五六日'[month % 7]}") == [{"weekday": month % 7}]
    elif language == "en":
        assert parts(f"in {name} {year}") == [{"year": year, "month": month}]
        assert parts(f"in Q{month % 4 + 1} {year}") == [{"quarter": month % 4 + 1, "year": year}]
        assert parts(f"in {year} Q{month % 4 + 1}") == [{"quarter": month % 4 + 1, "year": year}]
        assert parts(f"in the {['first', 'second', 'third', 'fourth'][month % 4]} quarter") == [
            {"quarter": month % 4 + 1}
        ]
        tens = year // 10 * 10
        assert parts(f"in the {tens}s") == [
            {"decade": tens // 10} if tens % 100 else {"century": tens // 100 + 1}
        ]
        assert parts(f"at {year}-{month:02}-{day:02}T18:30") == [
            {"year": year, "month": month, "day": day, "time": 390, "half": 1}
        ]
        assert parts(f"from {day} to {day + 1} {name}") == [
            {"month": month, "day": day},
            {"month": month, "day": day + 1},
        ]
        assert parts(f"on {day + 1}/{month}/{year}" if day >= 12 else f"on {month}/{day + 12}/{year}") == [
            {"year": year, "month": month, "day": day + (1 if day >= 12 else 12)}
        ]


@given(
    st.integers(1, 999), st.integers(0, 999), st.integers(0, 99), st.sampled_from(["de", "fr", "es", "en"])
)
def test_separators_of_languages(many: int, rest: int, cents: int, language: str) -> None:
    amount = Decimal(many * 1000 + rest) + Decimal(cents) / 100
    marks = {"de": (".", ","), "fr": (" ", ","), "es": (".", ","), "en": (",", ".")}[language]
    written = f"{many}{marks[0]}{rest:03}{marks[1]}{cents:02}"
    (value,) = typed_values(f"{written} euros", language=language)
    assert (value.kind, value.amounts[0]) == (ValueKind.CURRENCY, amount)


BOUNDS = [
    ("more than", Bound.ABOVE),
    ("at least", Bound.ABOVE),
    ("no less than", Bound.ABOVE),
    ("over", Bound.ABOVE),
    ("up to", Bound.BELOW),
    ("no more than", Bound.BELOW),
    ("fewer than", Bound.BELOW),
    ("about", Bound.ABOUT),
    ("almost", Bound.ABOUT),
    ("just over", Bound.ABOUT),
    ("exactly", Bound.EXACT),
    ("a total of", Bound.EXACT),
]


@given(st.sampled_from(BOUNDS), st.integers(20, 999), st.sampled_from(["{} books", "${}", "{} kg", "{}%"]))
def test_bounds(bound: tuple[str, Bound], number: int, form: str) -> None:
    (value,) = typed_values(f"It holds {bound[0]} {form.format(number)} there.", language="en")
    assert (value.bound, value.written[0]) == (bound[1], Decimal(number))


@given(
    st.integers(2, 99),
    st.sampled_from(
        [
            "[{}]",
            "passage {} says so",
            "model KH-{}",
            "{}. First",
            "#{}",
            "no_{}_a",
            "step {} of it",
        ]
    ),
)
def test_numbers_that_state_nothing(number: int, form: str) -> None:
    """Citations, references, names, list marks, ordinals."""
    assert typed_values(form.format(number), language="en") == []


@given(st.integers(2, 999), st.sampled_from(["room", "section", "flight", "page", "version"]))
def test_labels_and_versions(number: int, name: str) -> None:
    (value,) = typed_values(f"It is {name} {number} there.", language="en")
    assert (value.kind, value.unit, value.amounts[0]) == (ValueKind.LABEL, name, Decimal(number))
    (value,) = typed_values(f"It runs on v{number}.2.1 there.", language="en")
    assert (value.kind, value.unit) == (ValueKind.VERSION, f"{number}.2.1")


SMALL_FORMS = [
    ("900 {}square metres", ValueKind.MEASURE, 900, "area"),
    ("900 m² {}", ValueKind.MEASURE, 900, "area"),
    ("20 km/h {}", ValueKind.MEASURE, 20, "speed"),
    ("within 3 {}working days", ValueKind.MEASURE, 259200, "time"),
    ("5k {}users", ValueKind.COUNT, 5000, ""),
    ("$5bn{}", ValueKind.CURRENCY, 5 * 10**9, "dollar"),
    ("3 thousand million {}stars", ValueKind.COUNT, 3 * 10**9, ""),
    ("every {}quarter", ValueKind.MEASURE, 3, "every-months"),
    ("once a {}week", ValueKind.MEASURE, 604800, "every"),
    ("six dollars fifty{}", ValueKind.CURRENCY, "6.5", "dollar"),
    ("six dollars twenty-five{}", ValueKind.CURRENCY, "6.25", "dollar"),
    ("24{}个月", ValueKind.MEASURE, 24, "months"),
    ("2{}年", ValueKind.MEASURE, 24, "months"),
    ("2 and a {}half kilos", ValueKind.MEASURE, 2500, "mass"),
    ("a {}hundred and one pounds", ValueKind.CURRENCY, 101, "pound"),
    ("-5{} °C", ValueKind.MEASURE, -5, "degree"),
    ("the DSCR is 1.25{}", ValueKind.RATIO, "1.25", "x"),
]


@given(st.sampled_from(SMALL_FORMS), st.sampled_from(["", " ", "."]))
def test_forms_that_stand_alone(form: tuple[str, ValueKind, int | str, str], mark: str) -> None:
    """One of each way to join a number, a scale and a unit, whatever stands behind it."""
    written, kind, amount, unit = form
    (value,) = typed_values(f"It is {written.format('')}{mark}")
    assert (value.kind, value.amounts[0], value.unit) == (kind, Decimal(amount), unit)


MOMENTS = [
    ("at noon", {"time": 0, "half": 1}),
    ("at midnight", {"time": 0, "half": 0}),
    ("at 9 at night", {"time": 540, "half": 1}),
    ("at 3 in the night", {"time": 180, "half": 0}),
    ("at nine o'clock", {"time": 540}),
    ("at 6:30:15 pm", {"time": 390, "half": 1}),
    ("on the 5th", {"day": 5}),
    ("in May 2024", {"month": 5, "year": 2024}),
    ("in 2024-05", {"year": 2024, "month": 5}),
    ("on Mon", {"weekday": 0}),
    ("on 03/04/2024", {"year": 2024, "month_and_day": 304}),
    ("火曜日", {"weekday": 1}),
    ("2024年度", {"year": 2024}),
    ("12 mai 2014", {"year": 2014, "month": 5, "day": 12}),
]


@given(st.sampled_from(MOMENTS), st.sampled_from(["", ".", ", and so"]))
def test_moments_that_stand_alone(form: tuple[str, dict[str, int]], behind: str) -> None:
    (value,) = typed_values(f"It is {form[0]}{behind}")
    assert dict(value.parts) == form[1]


YEARS = ["in {}", "since {} it", "by {} they", "between {} and", "({})", "of {} was"]
AMOUNTS = ["${}", "{} metres", "no. {}", "{}%", "EUR {}", "{} calories", "{} dollars", "{}x", "room {}"]


@given(st.integers(1500, 2099), st.sampled_from(YEARS), st.sampled_from(AMOUNTS))
def test_four_digits_are_a_year_unless_they_measure_or_count(year: int, dated: str, counted: str) -> None:
    (value,) = typed_values(f"It is {dated.format(year)}.", language="en")
    assert dict(value.parts) == {"year": year}
    (value,) = typed_values(f"It is {counted.format(year)}.", language="en")
    assert not value.parts
    assert value.written[0] == year


NO_MOMENTS = [
    "we may go",
    "they march on",
    "the mon file",
    "it was sun",
    "Mars landed",
    "second quarterback",
    "version 12.30 is",
    "25:70 then",
]


@given(st.sampled_from(NO_MOMENTS))
def test_words_and_figures_that_are_no_moment(text: str) -> None:
    assert not any(each.parts for each in typed_values(text, language="en"))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("in the 1940s and 1950s", [{"decade": 194}, {"decade": 195}]),
        ("in den 1940er-Jahren", [{"decade": 194}]),
        ("dans les années 1940, 1950 et 1960", [{"decade": 194}, {"decade": 195}, {"year": 1960}]),
        ("les années 1940 à 1945", [{"year": 1940}, {"year": 1945}]),
        ("los años 1940", [{"decade": 194}]),
        ("20世纪40年代", [{"decade": 194}]),
        ("in the 1800s", [{"century": 19}]),
        ("the 17th, 18th and 19th centuries", [{"century": 17}, {"century": 18}, {"century": 19}]),
        ("from the 18th to the 20th century", [{"century": 18}, {"century": 20}]),
        ("a nineteenth-century mill", [{"century": 19}]),
        ("im 19. Jh. gebaut", [{"century": 19}]),
        ("XVIIIe et XIXe siècles", [{"century": 18}, {"century": 19}]),
        ("the 19th and 20th of May", [{"month": 5, "day": 19}, {"month": 5, "day": 20}]),
        ("the twelfth century, siglo XV, the 1390s", [{}]),
        ("two centuries, 19 centuries, the 100th century", [{}, {}]),
        ("his nineteenth birthday, Ludwig XIV, 2nd place, in the 1905s", [{"year": 1905}]),
    ],
)
def test_decades_and_centuries(text: str, parts: list[dict[str, int]]) -> None:
    """In the forms of six languages, and several of one name; what only looks like them is read as before."""
    assert [dict(each.parts) for each in typed_values(text)] == parts

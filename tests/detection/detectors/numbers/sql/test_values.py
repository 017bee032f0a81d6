"""Rows become known values; what is none is counted."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from truthlens.detection.detectors.numbers.sources import ValueKind
from truthlens.detection.detectors.numbers.sql.options import Table
from truthlens.detection.detectors.numbers.sql.values import RowReader


def read(cell: object, **column: Any) -> tuple[object, int]:
    """Return the value of one cell, ``None`` where it has none, and how many could not be read."""
    table = Table.model_validate(
        {"table": "t", "scope": {"a": "a"}, "columns": [{"column": "c", "type": "count", **column}]}
    )
    found = RowReader("db", table).read([(cell,)])
    values = [value for record in found.records for value in record]
    if values and values[0].kind is ValueKind.DATE:
        return dt.date(**values[0].parts), found.unreadable
    return (values[0].amounts[0] if values else None, found.unreadable)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (3, Decimal(3)),
        (0.85, Decimal("0.85")),
        (Decimal("1.20"), Decimal("1.20")),
        (-4, Decimal(-4)),
        (0, Decimal(0)),
        (Decimal("0E-8"), Decimal(0)),
        (10**30, Decimal(10**30)),
    ],
)
def test_numbers_are_decimals(cell: object, value: Decimal) -> None:
    """A float is the number that it shows as."""
    assert read(cell) == (value, 0)


@pytest.mark.parametrize(
    "cell",
    [
        "12",
        "1.2M",
        b"\x01",
        True,
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("-Infinity"),
        Decimal("1E+40"),
        Decimal("1E-40"),
        10**400,
        1e300,
        Decimal(1).copy_sign(Decimal(1)).scaleb(0) + Decimal("0." + "1" * 20),
        Decimal("1." + "1" * 80),
        dt.date(2024, 1, 1),
        [1],
        {"a": 1},
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_what_is_no_number_is_counted(cell: object) -> None:
    """Texts, switches, bytes, NaN and numbers beyond measure are no values."""
    if cell == Decimal(1) + Decimal("0." + "1" * 20):
        assert read(cell) == (cell, 0)  # twenty digits are fine
    else:
        assert read(cell) == (None, 1)


def test_an_empty_cell_is_no_mistake() -> None:
    """NULL has no value and is not counted."""
    assert read(None) == (None, 0)


def test_a_scale_gives_the_plain_size() -> None:
    """0.85 is 85 %, and 1.2 in thousands is 1,200."""
    assert read(0.85, type="percent", scale=100) == (Decimal(85), 0)
    assert read(Decimal("1.2"), type="currency", scale=1000) == (Decimal(1200), 0)
    assert read(0.07, type="percent", scale=100) == (Decimal(7), 0)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (dt.date(2024, 12, 1), dt.date(2024, 12, 1)),
        (dt.datetime(2024, 12, 1, 23, 59, tzinfo=dt.UTC), dt.date(2024, 12, 1)),
        ("2024-12-01", dt.date(2024, 12, 1)),
        ("2024-12-01 10:00:00.000", dt.date(2024, 12, 1)),
        ("2024-02-30", None),
        ("12/01/2024", None),
        ("2024-12-01" + "x" * 100, None),
        (20241201, None),
    ],
)
def test_dates(cell: object, value: dt.date | None) -> None:
    """Dates, moments and what SQLite writes for them; nothing that could be read in two ways."""
    assert read(cell, type="date") == (value, 0 if value else 1)


def periods(*cells: object) -> tuple[list[tuple[dict[str, int], list[Decimal], str]], int]:
    period = {"year": "y", "quarter": "q", "month": "m"}
    table = Table.model_validate({"table": "t", "scope": {"a": "a"}, "period": period})
    found = RowReader("db", table).read([cells])
    values = [value for record in found.records for value in record]
    return [(dict(each.parts), list(each.amounts), each.source) for each in values], found.unreadable


def test_a_period_is_one_value_with_its_parts() -> None:
    """A quarter or a month without its year is none, and what is no quarter or month is counted."""
    assert periods(2024, 3, None) == ([({"year": 2024, "quarter": 3}, [], "sql:db.t.q")], 0)
    assert periods(2024, "Q4", 12) == ([({"year": 2024, "quarter": 4, "month": 12}, [], "sql:db.t.m")], 0)
    assert periods(Decimal(2024), None, None) == ([({"year": 2024}, [Decimal(2024)], "sql:db.t.y")], 0)
    assert periods(2024, 5, 13) == ([({"year": 2024}, [Decimal(2024)], "sql:db.t.y")], 2)
    assert periods(None, 3, 7) == ([], 2)
    assert periods(0, None, None) == ([], 1)
    assert periods(2024.5, "Q0", "May") == ([], 3)


def test_units_are_those_of_answers() -> None:
    """A currency by its code or name, any where none is given; ratios are multiples."""
    table = Table.model_validate({"table": "t", "scope": {"a": "a"}, "columns": [
        {"column": "a", "type": "currency", "unit": "EUR"}, {"column": "b", "type": "currency", "unit": "dollar"},
        {"column": "c", "type": "currency"}, {"column": "d", "type": "ratio"}, {"column": "e", "type": "percent"}]})  # fmt: skip
    (record,) = RowReader("db", table).read([(1, 2, 3, 4, 5)]).records
    assert [value.unit for value in record] == ["euro", "dollar", "money", "x", ""]


def test_labels_are_words_on_one_line() -> None:
    """Synonyms stand side by side, a row's label goes before them, and control characters do not pass."""
    table = Table.model_validate({
        "table": "t", "scope": {"a": "a"}, "label_column": "name", "columns": [
            {"column": "netIncome_total", "type": "count"}, {"column": "x", "type": "count", "label": ["units", "flats"]}],
    })  # fmt: skip
    (record,) = RowReader("db", table).read([(1, 2, "Rent\n\x1b[31m  of flats")]).records
    assert [value.label for value in record] == [
        "Rent [31m of flats: net income total",
        "Rent [31m of flats: units; flats",
    ]
    (record,) = RowReader("db", table).read([(1, 2, None)]).records
    assert [value.label for value in record] == ["net income total", "units; flats"]

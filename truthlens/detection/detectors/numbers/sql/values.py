"""Read the rows of a table as known values. Pure.

Whatever a database holds, a cell gives values of its column's type or none: an empty cell is skipped, and what is no number or no
date is counted.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from truthlens.detection.detectors.numbers.segments import spaced
from truthlens.detection.detectors.numbers.sources import KnownValue
from truthlens.detection.detectors.numbers.sql.options import Column, Table, ValueType
from truthlens.text.values.typed import ValueKind

# What a sum of money or a rate can be; numbers of thousands of digits cost more than they tell.
_MOST_MAGNITUDE = 30
_MOST_DIGITS = 60
_ISO_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T].{0,40})?", re.ASCII)
_QUARTER = re.compile(r"[Qq]?([1-4])", re.ASCII)
_KINDS = {
    ValueType.CURRENCY: ValueKind.CURRENCY,
    ValueType.PERCENT: ValueKind.PERCENTAGE,
    ValueType.RATIO: ValueKind.RATIO,
    ValueType.COUNT: ValueKind.COUNT,
    ValueType.DATE: ValueKind.DATE,
}
_UNITS = {ValueType.RATIO: "x"}
_BETWEEN_WORDS = "; "

Record = tuple[KnownValue, ...]


@dataclass(frozen=True, slots=True)
class Records:
    """The values of some rows, a record for each row that has any, and how many cells could not be read."""

    records: tuple[Record, ...] = ()
    unreadable: int = 0


class _UnreadableError(Exception):
    """A cell holds something else than its column should."""


class RowReader:
    """Reads the rows of one table.

    Args:
        database: its name.
        table: its mapping.
    """

    def __init__(self, database: str, table: Table) -> None:
        self._table = table
        self._columns = [
            (each, f"sql:{database}.{table.table}.{each.column}", _label(each)) for each in table.columns
        ]
        self._source = f"sql:{database}.{table.table}"

    def read(self, rows: Sequence[Sequence[object]]) -> Records:
        """Return the records of rows as ``TableQuery.statement`` gives them."""
        records: list[Record] = []
        unreadable = 0
        for row in rows:
            found: list[KnownValue] = []
            about = row[-1] if self._table.label_column is not None else None
            prefix = "" if about is None else _one_line(str(about))
            for value in self._cells(row, prefix):
                if value is None:
                    unreadable += 1
                else:
                    found.append(value)
            if found:
                records.append(tuple(found))
        return Records(tuple(records), unreadable)

    def _cells(self, row: Sequence[object], about: str) -> Iterator[KnownValue | None]:
        """Yield the values of a row, ``None`` for each cell that cannot be read."""
        for (column, source, label), cell in zip(self._columns, row, strict=False):
            if cell is None:
                continue
            try:
                yield _known(column, cell, _joined(about, label), source)
            except _UnreadableError:
                yield None
        if self._table.period is not None:
            yield from self._period(row[len(self._columns) :], about)

    def _period(self, cells: Sequence[object], about: str) -> Iterator[KnownValue | None]:
        """Yield the period of a row, by the year and what the row has of quarter and month; its source is the finest column."""
        period = self._table.period
        assert period is not None  # the caller looks
        named = (("year", period.year), ("quarter", period.quarter), ("month", period.month))
        parts: dict[str, int] = {}
        finest = period.year
        for (part, name), cell in zip([each for each in named if each[1] is not None], cells, strict=False):
            if cell is None:
                continue
            try:
                number = (
                    _quarter(cell) if part == "quarter" else _whole(cell, 12 if part == "month" else 9999)
                )
            except _UnreadableError:
                yield None
                continue
            if part == "year" or "year" in parts:
                parts[part], finest = number, name or finest
            else:
                yield None  # of which year nobody knows
        if parts:
            label = _joined(about, _BETWEEN_WORDS.join(period.label))
            yield _dated(parts, label, f"{self._source}.{finest}")


def _known(column: Column, cell: object, label: str, source: str) -> KnownValue:
    """Return the value of a cell.

    Raises:
        _UnreadableError: It holds none of its column's type.
    """
    if column.type is ValueType.DATE:
        day = _date(cell)
        return _dated({"year": day.year, "month": day.month, "day": day.day}, label, source)
    unit = column.currency if column.type is ValueType.CURRENCY else _UNITS.get(column.type, "")
    return KnownValue(_KINDS[column.type], (_number(cell) * column.scale,), unit, label, source)


def _dated(parts: Mapping[str, int], label: str, source: str) -> KnownValue:
    # A year alone may be written as any other number.
    amounts = (Decimal(parts["year"]),) if parts.keys() == {"year"} else ()
    return KnownValue(ValueKind.DATE, amounts, "", label, source, parts=MappingProxyType(dict(parts)))


def _number(cell: object) -> Decimal:
    if isinstance(cell, bool):
        raise _UnreadableError
    if isinstance(cell, int):
        if cell.bit_length() > 4 * _MOST_MAGNITUDE:
            raise _UnreadableError
        return Decimal(cell)
    if isinstance(cell, float):
        if not math.isfinite(cell):
            raise _UnreadableError
        cell = Decimal(repr(cell))
    if not isinstance(cell, Decimal) or not cell.is_finite():
        raise _UnreadableError
    if cell and (abs(cell.adjusted()) > _MOST_MAGNITUDE or len(cell.as_tuple().digits) > _MOST_DIGITS):
        raise _UnreadableError
    return cell


def _date(cell: object) -> dt.date:
    if isinstance(cell, dt.datetime):
        return cell.date()
    if isinstance(cell, dt.date):
        return cell
    # SQLite has no dates of its own.
    written = _ISO_DATE.fullmatch(cell.strip()) if isinstance(cell, str) and len(cell) <= 64 else None
    if written is None:
        raise _UnreadableError
    try:
        return dt.date.fromisoformat(written[1])
    except ValueError:
        raise _UnreadableError from None


def _whole(cell: object, most: int) -> int:
    number = _number(cell)
    if number != number.to_integral_value() or not 1 <= number <= most:
        raise _UnreadableError
    return int(number)


def _quarter(cell: object) -> int:
    if isinstance(cell, str):
        written = _QUARTER.fullmatch(cell.strip()) if len(cell) <= 8 else None
        if written is None:
            raise _UnreadableError
        return int(written[1])
    return _whole(cell, 4)


def _label(column: Column) -> str:
    """Return the words of a column: as given, or those of its name ("netIncome" and "net_income" are "net income")."""
    return _BETWEEN_WORDS.join(column.label) or spaced(column.column)


def _joined(about: str, label: str) -> str:
    return f"{about}: {label}" if about else label


def _one_line(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())

"""Define the record of a typed value: its kind, amounts, unit and how it is stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType

_NOTHING: Mapping[str, int] = MappingProxyType({})
_ONE = Decimal(1)


class ValueKind(StrEnum):
    """What a value is; ``CURRENCY``, ``PERCENTAGE``, ``DATE`` and ``RATIO`` are the names of the source's claim types."""

    CURRENCY = "currency"
    PERCENTAGE = "percentage"
    DATE = "date"
    TIME = "time"
    RATIO = "ratio"
    MEASURE = "measure"
    COUNT = "count"
    VERSION = "version"
    LABEL = "label"


class Bound(StrEnum):
    """How a value is stated."""

    EXACT = "exact"
    ABOUT = "about"
    ABOVE = "above"
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value at characters ``start`` to ``end``.

    ``amounts`` are the readings of a number, the likeliest first, in the base unit of ``unit``: a currency, what a measure
    measures (``length``), a label's word, or ``""``. ``nouns`` are stems of what a count counts, the noun
    itself first, ``plural`` where it has that form. ``parts`` are those of a date or time (``values.moments``),
    whose year alone also has an amount. ``place`` is the worth of the last digit that is stated, in the base unit. ``named`` is the unit as it is
    written, ``spelled`` whether the number stands in words. ``factor`` is what scale and unit make of the number as it
    is written. ``per`` is what a rate holds for, as a unit's sort and how much of it: "a month", "per 100 g".
    ``sign`` is -1 or 1 where a sign stands before the number, else 0. ``digits`` are those of a figure with one
    point: versions 3.1 and 3.10 differ; ``in_name`` says that it follows a name ("with Python 3.10").
    A measure of the unit ``every`` or ``every-months`` is the time between two of what happens again and again.
    """

    kind: ValueKind
    start: int
    end: int
    amounts: tuple[Decimal, ...] = ()
    unit: str = ""
    nouns: tuple[str, ...] = ()
    parts: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    place: Decimal = _ONE
    bound: Bound = Bound.EXACT
    named: str = ""
    spelled: bool = False
    unsure: bool = False
    first: int = 0
    behind: int = 0
    factor: Decimal = _ONE
    per: tuple[str, Decimal] | None = None
    plural: bool = False
    sign: int = 0
    digits: str = ""
    in_name: bool = False

    @property
    def written(self) -> tuple[Decimal, ...]:
        """The amounts as they are written, without scale and unit."""
        return self.amounts if self.factor == 1 else tuple(each / self.factor for each in self.amounts)

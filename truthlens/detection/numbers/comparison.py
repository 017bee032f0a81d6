"""Say whether two typed values are comparable, and whether they are equal within the tolerance of their kind. Pure.

Tolerances are relative to the evidence's value, bounds included, in decimals. Source: numeric-claims, claim types.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Protocol

from truthlens.text.values.quantities import Bound, TypedValue, ValueKind
from truthlens.text.word_forms import word_set

_EXACT = Decimal(0)
_HUNDRED = Decimal(100)
# A month is 30 or 31 days, and miles are given in whole kilometres.
_CALENDAR = Decimal("0.035")
_OTHER_SYSTEM = Decimal("0.02")
_ABOUT = Decimal("0.1")
_ROUNDED = Decimal("0.012")
_DAYS_OF_MONTH = Decimal("30.4375")
_SECONDS_OF_DAY = Decimal(86400)
_METRIC = word_set(
    "m cm mm km g kg mg l ml cl metre metres meter meters kilometre kilometres kilometers kilograms litres"
)
_NUMERIC = frozenset(
    (
        ValueKind.CURRENCY,
        ValueKind.PERCENTAGE,
        ValueKind.RATIO,
        ValueKind.MEASURE,
        ValueKind.COUNT,
        ValueKind.LABEL,
    )
)
_DATED = frozenset((ValueKind.DATE, ValueKind.TIME))
_SHARES = frozenset((ValueKind.RATIO, ValueKind.PERCENTAGE))
"""What may be written one way or the other: a leverage of 1.4x is 140 %."""
_BOUNDED = Decimal("0.34")
"""How far a bound ("more than 50,000") may stand from the figure that it is said of, relative to it."""


class Tolerances(Protocol):
    """The tolerances of a policy, in percent."""

    @property
    def currency_tolerance(self) -> float:
        """Of sums of money."""

    @property
    def percentage_tolerance(self) -> float:
        """Of percentages."""

    @property
    def ratio_tolerance(self) -> float:
        """Of ratios."""


class Comparer:
    """Compares values under a policy's tolerances.

    Args:
        tolerances: in percent of the evidence's value.
    """

    def __init__(self, tolerances: Tolerances) -> None:
        self._tolerance: Mapping[ValueKind, Decimal] = {
            ValueKind.CURRENCY: Decimal(str(tolerances.currency_tolerance)) / 100,
            ValueKind.PERCENTAGE: Decimal(str(tolerances.percentage_tolerance)) / 100,
            ValueKind.RATIO: Decimal(str(tolerances.ratio_tolerance)) / 100,
        }

    def tolerance(self, kind: ValueKind) -> Decimal:
        """Return the tolerance of a kind as a share."""
        return self._tolerance.get(kind, _EXACT)

    def reach(self, value: TypedValue) -> float:
        """Return how far from a value, as a share of it, what equals it may be."""
        return max(0.06, float(self.tolerance(value.kind)) * 1.2) + (
            0.3 if value.bound is not Bound.EXACT else 0.0
        )

    def equal(self, claim: TypedValue, actual: TypedValue) -> bool:
        """Return whether what the answer says follows from a value of the evidence."""
        if claim.kind in _DATED or actual.kind in _DATED:
            return _same_date(claim, actual) or self._amounts_equal(claim, actual)
        if claim.kind is ValueKind.VERSION or actual.kind is ValueKind.VERSION:
            return claim.kind is actual.kind and _same_version(claim.unit, actual.unit)
        return self._amounts_equal(claim, actual)

    def stated_alike(self, claim: TypedValue, actual: TypedValue) -> bool:
        """Return whether the two have the same amount or the same parts, as far as the claim has digits."""
        if claim.kind in _DATED:
            return True
        return any(
            one == other or _is_rounding(one, other, claim.place, actual.place)
            for one in claim.amounts
            for other in _converted(actual, claim)
        )

    def _amounts_equal(self, claim: TypedValue, actual: TypedValue) -> bool:
        if not claim.amounts or not actual.amounts or not lenient(claim, actual):
            return False
        tolerance = max(self.tolerance(claim.kind), self.tolerance(actual.kind))
        if claim.unit != actual.unit and {claim.unit, actual.unit} == {"time", "months"}:
            tolerance = _CALENDAR
        elif (
            claim.named != actual.named
            and (claim.named in _METRIC) != (actual.named in _METRIC)
            and claim.unit == actual.unit != "time"
        ):
            tolerance = max(tolerance, _OTHER_SYSTEM)
        # What a bare figure of a record is measured in, its readers know.
        mine = (
            (*claim.amounts, *claim.written)
            if actual.kind is ValueKind.COUNT and not actual.nouns
            else claim.amounts
        )
        return any(
            _within(one, other, tolerance, claim, actual)
            for one in mine
            for other in _converted(actual, claim)
        )


def comparable(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether a value of the evidence could stand in the place of the claim's: of one kind and one sort of unit."""
    if claim.kind in _DATED:
        return actual.kind in _DATED and _share_parts(claim, actual)
    if actual.kind in _DATED:
        return False
    if claim.kind is ValueKind.VERSION or actual.kind is ValueKind.VERSION:
        return claim.kind is actual.kind
    if claim.kind is ValueKind.LABEL or actual.kind is ValueKind.LABEL:
        return claim.kind is actual.kind and claim.unit == actual.unit
    if claim.kind is ValueKind.COUNT and actual.kind is ValueKind.COUNT:
        return not claim.nouns or not actual.nouns or bool(set(claim.nouns) & set(actual.nouns))
    if claim.kind is ValueKind.COUNT or actual.kind is ValueKind.COUNT:
        return False
    if claim.kind is not actual.kind:
        return False
    if claim.kind is ValueKind.MEASURE:
        return claim.unit == actual.unit or {claim.unit, actual.unit} == {"time", "months"}
    return True


def lenient(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether equal amounts of the two may be one value: of one unit, or one of them without."""
    if claim.kind is ValueKind.LABEL or actual.kind is ValueKind.LABEL:
        return (
            claim.unit == actual.unit or ValueKind.COUNT in (claim.kind, actual.kind) or actual.kind in _DATED
        )
    if claim.kind is ValueKind.COUNT or actual.kind is ValueKind.COUNT:
        return True
    if claim.kind is ValueKind.CURRENCY and actual.kind is ValueKind.CURRENCY:
        return claim.unit == actual.unit or "money" in (claim.unit, actual.unit)
    if claim.kind is ValueKind.MEASURE and actual.kind is ValueKind.MEASURE:
        return claim.unit == actual.unit or {claim.unit, actual.unit} in (
            {"time", "months"},
            {"degree", "fahrenheit"},
        )
    if claim.kind in _DATED or actual.kind in _DATED:
        return claim.kind in (ValueKind.COUNT, *_DATED) and actual.kind in (ValueKind.COUNT, *_DATED)
    return claim.kind is actual.kind or {claim.kind, actual.kind} == _SHARES


def _converted(actual: TypedValue, claim: TypedValue) -> tuple[Decimal, ...]:
    """Return the amounts of the evidence's value in the unit of the claim."""
    amounts = actual.amounts
    if claim.unit == "time" and actual.unit == "months":
        return tuple(each * _DAYS_OF_MONTH * _SECONDS_OF_DAY for each in amounts)
    if claim.unit == "months" and actual.unit == "time":
        return tuple(each / _DAYS_OF_MONTH / _SECONDS_OF_DAY for each in amounts)
    if claim.unit == "fahrenheit" and actual.unit == "degree":
        return tuple(each * 9 / 5 + 32 for each in amounts)
    if claim.unit == "degree" and actual.unit == "fahrenheit":
        return tuple((each - 32) * 5 / 9 for each in amounts)
    if claim.kind is ValueKind.PERCENTAGE and actual.kind is ValueKind.RATIO:
        return tuple(each * _HUNDRED for each in amounts)
    if claim.kind is ValueKind.RATIO and actual.kind is ValueKind.PERCENTAGE:
        return tuple(each / _HUNDRED for each in amounts)
    if claim.kind is ValueKind.PERCENTAGE and actual.kind is ValueKind.COUNT:
        return (*amounts, *(each * _HUNDRED for each in amounts if each <= 1))
    if claim.kind is ValueKind.COUNT and actual.kind is ValueKind.PERCENTAGE and not claim.nouns:
        return (*amounts, *(each / _HUNDRED for each in amounts))
    if claim.kind is ValueKind.COUNT and not claim.nouns:
        return (*amounts, *actual.written)
    return amounts


def _within(claim: Decimal, actual: Decimal, tolerance: Decimal, said: TypedValue, given: TypedValue) -> bool:
    if claim == actual:
        return True
    gap, size = abs(claim - actual), abs(actual)
    if gap <= tolerance * size:
        return True
    if claim < 0 < actual and abs(-claim - actual) <= tolerance * size:
        return True  # "a fall of 6 percent" for -6
    if actual < 0 < claim and abs(claim + actual) <= tolerance * size:
        return True
    if said.bound is Bound.ABOVE:
        return given.bound is not Bound.BELOW and claim <= actual and gap <= _BOUNDED * size
    if said.bound is Bound.BELOW:
        return given.bound is not Bound.ABOVE and claim >= actual and gap <= _BOUNDED * size
    if said.bound is Bound.ABOUT or given.bound is Bound.ABOUT:
        return gap <= _ABOUT * size
    if said.unit == "share" or given.unit == "share":
        return gap <= Decimal(1)
    return _is_rounding(claim, actual, said.place, given.place)


def _is_rounding(claim: Decimal, actual: Decimal, place: Decimal, finer: Decimal) -> bool:
    """Return whether the claim is the evidence's figure with fewer digits: 1.2 million of 1,234,567, 30 of 29.6."""
    gap, size = abs(claim - actual), abs(actual)
    if finer < place and gap * 2 <= place and (place * 10 <= size or place == 1):
        return True
    # "97,000" of 96,812: trailing zeros are not digits that were counted.
    digits = claim.normalize().as_tuple()
    exponent = digits.exponent if isinstance(digits.exponent, int) else 0
    return exponent >= 2 and gap * 2 <= Decimal(10) ** exponent and gap <= _ROUNDED * size


def _share_parts(one: TypedValue, other: TypedValue) -> bool:
    keys = one.parts.keys() & other.parts.keys()
    if "month_and_day" in one.parts or "month_and_day" in other.parts:
        return bool(keys) or "month" in one.parts or "month" in other.parts
    return bool(keys - {"half"})


def _same_date(claim: TypedValue, actual: TypedValue) -> bool:
    mine, theirs = _completed(claim.parts), _completed(actual.parts)
    keys = (mine.keys() & theirs.keys()) - {"half"}
    if not keys or any(mine[key] != theirs[key] for key in keys):
        return False
    if "half" in mine and "half" in theirs and "time" in keys and mine["half"] != theirs["half"]:
        return False
    # A day is not confirmed by its month alone, nor a month by its year.
    for fine, coarse in (("day", "month"), ("month", "year"), ("quarter", "year"), ("time", "day")):
        if fine in mine and fine not in theirs and coarse in keys and not _within_day(fine, keys):
            return False
    return True


def _within_day(fine: str, keys: set[str]) -> bool:
    return fine in ("month", "quarter") and bool(keys & {"day", "month"})


def _completed(parts: Mapping[str, int]) -> dict[str, int]:
    """Return parts with what follows from them: the weekday of a date, the quarter and the decade of a month."""
    found = dict(parts)
    if "month" in found:
        found.setdefault("quarter", (found["month"] + 2) // 3)
        if "day" in found:
            low, high = sorted((found["month"], found["day"]))
            found.setdefault("month_and_day", low * 100 + high)
            if "year" in found:
                with contextlib.suppress(ValueError):
                    day = dt.date(found["year"], found["month"], found["day"])
                    found.setdefault("weekday", day.weekday())
    if "year" in found:
        found.setdefault("decade", found["year"] // 10)
    return found


def _same_version(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")

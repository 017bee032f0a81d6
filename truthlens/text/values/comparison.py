"""Say whether two typed values are comparable, and whether they are equal within the tolerance of their kind. Pure.

Tolerances are relative to the evidence's value, bounds included, in decimals. Source: numeric-claims, claim types.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal

from truthlens.text.values.typed import Bound, TypedValue, ValueKind
from truthlens.text.values.units import same_currency
from truthlens.text.word_forms import word_set

_EXACT = Decimal(0)
_HUNDRED = Decimal(100)
_OF_SHARES = Decimal("0.01")  # the last digit of a share that is made of two numbers
# A month is 30 or 31 days, and miles are given in whole kilometres.
_CALENDAR = Decimal("0.035")
_OTHER_SYSTEM = Decimal("0.02")
_ABOUT = Decimal("0.1")
_ROUNDED = Decimal("0.012")
_YEARS = {Bound.EXACT: _EXACT, Bound.ABOUT: Decimal(5)}
_DEGREES = frozenset(("degree", "fahrenheit"))
_BARE_DEGREES = frozenset(("degree", "degrees", "°", "degré", "degrés", "grado", "grados", "grad", "度"))
_DAYS_OF_MONTH = Decimal("30.4375")
_SECONDS_OF_DAY = Decimal(86400)
_METRIC = word_set(
    "m cm mm km g kg mg l ml cl metre metres meter meters kilometre kilometres kilometers kilograms litres"
)
_DATED = frozenset((ValueKind.DATE, ValueKind.TIME))
_CONVERTED = ({"time", "months"}, {"time", "every"}, {"months", "every-months"}, {"degree", "fahrenheit"})
_OF_UNITS = frozenset((ValueKind.CURRENCY, ValueKind.MEASURE, ValueKind.PERCENTAGE))
_CONFUSED = (
    frozenset(("length", "area", "volume", "pint")),
    frozenset(("power", "energy")),
    frozenset(("current", "charge")),
    frozenset(("length", "speed")),
    frozenset(("time", "months")),
)
"""Sorts of measures whose units are written for each other by mistake."""
_COARSER = (
    ("day", "month"),
    ("month", "year"),
    ("month", "quarter"),
    ("quarter", "year"),
    ("time", "day"),
    ("year", "decade"),
    ("year", "century"),
    ("decade", "century"),
)
_SHARES = frozenset((ValueKind.RATIO, ValueKind.PERCENTAGE))
"""What may be written one way or the other: a leverage of 1.4x is 140 %."""
_BOUNDED = Decimal("0.34")
"""How far a bound ("more than 50,000") may stand from the figure that it is said of, relative to it."""


class ValueComparer:
    """Compares values under a policy's tolerances.

    Args:
        currency: tolerance of sums of money, in percent of the evidence's value.
        percentage: of percentages.
        ratio: of ratios.
    """

    def __init__(self, *, currency: float = 0.0, percentage: float = 0.0, ratio: float = 0.0) -> None:
        self._tolerance: Mapping[ValueKind, Decimal] = {
            ValueKind.CURRENCY: Decimal(str(currency)) / 100,
            ValueKind.PERCENTAGE: Decimal(str(percentage)) / 100,
            ValueKind.RATIO: Decimal(str(ratio)) / 100,
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
        if not (claim.amounts and actual.amounts and lenient(claim, actual)) or _versions_differ(
            claim, actual
        ):
            return False
        if claim.kind in _DATED and actual.kind in _DATED and claim.bound in _YEARS:
            return abs(claim.amounts[0] - actual.amounts[0]) <= _YEARS[claim.bound]
        if claim.per and actual.per and claim.per != actual.per:
            return _same_rate(claim, actual)
        if claim.kind is actual.kind is ValueKind.PERCENTAGE:
            claim, actual = _share_alone(claim), _share_alone(actual)
        if _same_degrees(claim, actual):
            return True
        tolerance, given = self._slack(claim, actual), _converted(actual, claim)
        return any(
            _within(one, other, tolerance, claim, actual) for one in _said(claim, actual) for other in given
        )

    def _slack(self, claim: TypedValue, actual: TypedValue) -> Decimal:
        """Return the tolerance of two values as a share, wider where one is converted to the other's unit."""
        tolerance = max(self.tolerance(claim.kind), self.tolerance(actual.kind))
        if {claim.unit, actual.unit} == {"time", "months"}:
            return _CALENDAR
        systems = (claim.named in _METRIC) != (actual.named in _METRIC)
        return max(tolerance, _OTHER_SYSTEM) if systems and claim.unit == actual.unit != "time" else tolerance


def _said(claim: TypedValue, actual: TypedValue) -> tuple[Decimal, ...]:
    """Return the amounts of a claim; what a bare figure of a record is measured in, its readers know."""
    unknown = actual.kind is ValueKind.COUNT and not actual.nouns
    return (*claim.amounts, *claim.written) if unknown else claim.amounts


def _same_degrees(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether two temperatures have one figure, and words leave open on which scale: "68 degrees"."""
    bare = {claim.unit, actual.unit} == _DEGREES and _BARE_DEGREES & {claim.named, actual.named}
    return bool(bare) and not set(claim.amounts).isdisjoint(actual.amounts)


def _share_alone(value: TypedValue) -> TypedValue:
    """Return a share without the count that it is as well: "9 out of 10" is no 9 %."""
    return replace(value, amounts=value.amounts[:1]) if value.place == _OF_SHARES else value


def same_value(claim: TypedValue, actual: TypedValue) -> bool | None:
    """Return whether ``claim`` follows from ``actual``, ``None`` where neither speaks against the other.

    Values of two sorts do not, nor a date and one that leaves some of its parts open.
    """
    bare = any(each.kind is ValueKind.COUNT and not each.nouns for each in (claim, actual))
    related = comparable(claim, actual) or comparable(actual, claim)
    if (related or bare) and _EXACTLY.equal(claim, actual):
        return True
    dated = claim.kind in _DATED and actual.kind in _DATED
    return None if not related or (dated and not _dates_differ(claim, actual)) else False


def lies_within(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether a date lies within the decade or the century that the evidence gives: it says nothing against it."""
    wide = actual.parts.keys() & {"decade", "century"}
    return bool(wide & completed(claim.parts).keys()) and not _dates_differ(claim, actual)


def _dates_differ(one: TypedValue, other: TypedValue) -> bool:
    mine, theirs = completed(one.parts), completed(other.parts)
    return any(not _agree(key, mine, theirs) for key in mine.keys() & theirs.keys())


def _agree(key: str, mine: Mapping[str, int], theirs: Mapping[str, int]) -> bool:
    """Return whether two dates have one part in common; 1900 is of the 19th century, and the 1900s are of the 20th."""
    if mine[key] == theirs[key]:
        return True
    if key != "century":
        return False
    low, high = sorted((mine, theirs), key=lambda parts: parts[key])
    return low[key] == high[key] - 1 and high.get("year") == low[key] * 100


_EXACTLY = ValueComparer()


def _same_rate(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether two rates for different times are one: 5 dollars a year are about 42 cents a month."""
    assert claim.per is not None
    assert actual.per is not None
    if claim.per[0] != actual.per[0] or (
        claim.unit != actual.unit and not same_currency(claim.unit, actual.unit)
    ):
        return False
    wanted = actual.amounts[0] * claim.per[1] / actual.per[1]
    slack = _ABOUT * wanted if claim.bound is Bound.ABOUT else claim.place / 2
    return abs(claim.amounts[0] - wanted) <= slack


def comparable(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether a value of the evidence could stand in the place of the claim's: of one kind and one sort of unit."""
    if claim.kind in _DATED and actual.kind in _DATED:
        return _share_parts(claim, actual)
    if claim.kind is not actual.kind:
        return False
    match claim.kind:
        case ValueKind.LABEL:
            return claim.unit == actual.unit
        case ValueKind.COUNT:
            return not claim.nouns or not actual.nouns or bool(set(claim.nouns) & set(actual.nouns))
        case ValueKind.MEASURE:
            return _same_sort(claim, actual)
    return True


def _same_sort(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether two measures are of one sort, or of two that are converted."""
    return claim.unit == actual.unit or {claim.unit, actual.unit} in _CONVERTED


def _same_money(claim: TypedValue, actual: TypedValue) -> bool:
    return same_currency(claim.unit, actual.unit)


def lenient(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether equal amounts of the two may be one value: of one unit, or one of them without."""
    kinds = claim.kind, actual.kind
    counted, dated = ValueKind.COUNT in kinds, list(map(_DATED.__contains__, kinds))
    if ValueKind.LABEL in kinds:
        return claim.unit == actual.unit or counted or dated[1]
    if {claim.unit, actual.unit} == {"%", "points"}:
        return False
    if claim.kind is ValueKind.COUNT and claim.nouns and actual.kind is not ValueKind.COUNT:
        return not actual.unit or actual.kind is ValueKind.PERCENTAGE
    if counted or all(dated):
        return True
    if any(dated):  # "sold at 18.00"
        return claim.unsure and kinds == (ValueKind.TIME, ValueKind.CURRENCY)
    if claim.kind is not actual.kind:
        return _SHARES.issuperset(kinds)
    same = {ValueKind.CURRENCY: _same_money, ValueKind.MEASURE: _same_sort}.get(claim.kind)
    return same is None or same(claim, actual)


def _converted(actual: TypedValue, claim: TypedValue) -> tuple[Decimal, ...]:
    """Return the amounts of the evidence's value in the unit of the claim."""
    amounts, plain = actual.amounts, claim.kind is ValueKind.COUNT and not claim.nouns
    convert = _CONVERSIONS.get((claim.unit, actual.unit)) or _CONVERSIONS.get((claim.kind, actual.kind))
    if convert is not None:
        return tuple(map(convert, amounts))
    if claim.kind is ValueKind.PERCENTAGE and actual.kind is ValueKind.COUNT:
        return (*amounts, *(each * _HUNDRED for each in amounts if each <= 1))
    if plain and actual.kind is ValueKind.PERCENTAGE:
        return (*amounts, *(each / _HUNDRED for each in amounts))
    return (*amounts, *actual.written) if plain else amounts


_CONVERSIONS: Mapping[tuple[str, str], Callable[[Decimal], Decimal]] = {
    ("time", "months"): lambda amount: amount * _DAYS_OF_MONTH * _SECONDS_OF_DAY,
    ("months", "time"): lambda amount: amount / _DAYS_OF_MONTH / _SECONDS_OF_DAY,
    ("fahrenheit", "degree"): lambda amount: amount * 9 / 5 + 32,
    ("degree", "fahrenheit"): lambda amount: (amount - 32) * 5 / 9,
    (ValueKind.PERCENTAGE, ValueKind.RATIO): lambda amount: amount * _HUNDRED,
    (ValueKind.RATIO, ValueKind.PERCENTAGE): lambda amount: amount / _HUNDRED,
}
"""What makes an amount of the second unit or kind one of the first."""


def _within(claim: Decimal, actual: Decimal, tolerance: Decimal, said: TypedValue, given: TypedValue) -> bool:
    if claim == actual:
        return True
    gap, size = abs(claim - actual), abs(actual)
    if gap <= tolerance * size:
        return True
    if claim * actual < 0 and may_be_turned(said, given):
        return abs(claim + actual) <= tolerance * size  # "a fall of 6 percent" for -6
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


def counts_same(one: TypedValue, other: TypedValue) -> bool:
    """Return whether two counts may be of one thing: one's noun is among the other's words, or is none."""
    return not one.nouns or not other.nouns or one.nouns[0] in other.nouns or other.nouns[0] in one.nouns


def says_same(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether neither sign nor noun nor the digits of a version say that two equal values differ."""
    if claim.amounts and actual.amounts and claim.amounts[0] * actual.amounts[0] < 0:
        return False
    if claim.digits and actual.digits and claim.digits != actual.digits and (claim.in_name or actual.in_name):
        return False
    if claim.kind is ValueKind.COUNT and actual.kind is ValueKind.COUNT:
        return counts_same(claim, actual)
    if claim.kind in (ValueKind.MEASURE, ValueKind.CURRENCY) and actual.kind is ValueKind.COUNT:
        return not (actual.nouns or actual.unsure)
    return True


def is_other_unit(claim: TypedValue, actual: TypedValue) -> bool:
    """Return whether two values are one figure with another unit, scale, currency, rate or sign.

    Version 3.1 for version 3.10 is one as well.
    """
    if claim.amounts and claim.amounts == actual.amounts and _versions_differ(claim, actual):
        return True
    sorts = {claim.unit, actual.unit}
    if claim.kind is not actual.kind or claim.kind not in _OF_UNITS or sorts & {"", "share"}:
        return False
    if not claim.amounts or not actual.amounts:
        return False
    mine, theirs = claim.written[0], actual.written[0]
    if mine == -theirs != 0:
        return not may_be_turned(claim, actual)
    if mine != theirs:
        return False
    return len(sorts) == 1 or claim.kind is not ValueKind.MEASURE or any(sorts <= each for each in _CONFUSED)


def may_be_turned(one: TypedValue, other: TypedValue) -> bool:
    """Return whether words may say what the sign of one of two values does: a fall of 6 % is -6 %.

    No word says it of a temperature.
    """
    return not (one.sign and other.sign) and not {one.unit, other.unit} & _DEGREES


def _versions_differ(one: TypedValue, other: TypedValue) -> bool:
    """Return whether two figures with a point are labels whose digits differ: version 3.1 and version 3.10.

    Behind a name alone ("Python 3.1", "GPA 3.5") nobody can tell: then they neither differ nor are the same (``says_same``).
    """
    if not one.digits or not other.digits or one.digits == other.digits:
        return False
    return ValueKind.LABEL in (one.kind, other.kind)


def _share_parts(one: TypedValue, other: TypedValue) -> bool:
    keys = completed(one.parts).keys() & completed(other.parts).keys()
    if "month_and_day" in one.parts or "month_and_day" in other.parts:
        return bool(keys) or "month" in one.parts or "month" in other.parts
    return bool(keys - {"half"})


def _same_date(claim: TypedValue, actual: TypedValue) -> bool:
    mine, theirs = completed(claim.parts), completed(actual.parts)
    keys = (mine.keys() & theirs.keys()) - {"half"}
    if not keys or any(not _agree(key, mine, theirs) for key in keys):
        return False
    if "half" in mine and "half" in theirs and "time" in keys and mine["half"] != theirs["half"]:
        return False
    # A day is not confirmed by its month alone, nor a month by its year, nor a year by its decade.
    for fine, coarse in _COARSER:
        if fine in mine and fine not in theirs and coarse in keys and not _within_day(fine, keys):
            return False
    return True


def _within_day(fine: str, keys: set[str]) -> bool:
    return fine in ("month", "quarter") and bool(keys & {"day", "month"})


def completed(parts: Mapping[str, int]) -> dict[str, int]:
    """Return parts with what follows from them: the weekday of a date, the quarter of a month, the decade and the century of a year."""
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
    if "decade" in found:
        found.setdefault("century", found["decade"] // 10 + 1)
    return found


def _same_version(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")

"""Say whether a value follows from values of the evidence: sums, differences, products, shares, durations, counts of what is listed. Pure."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections.abc import Sequence
from itertools import combinations

from truthlens.detection.numbers.comparison import comparable
from truthlens.detection.numbers.places import Index, Item
from truthlens.text.values.quantities import Bound, TypedValue, ValueKind

MOST_OPERANDS = 40
_NEAR = 0.0051
_DAY, _HOUR_MINUTES, _YEAR_DAYS = 86400.0, 60, 365.25
_NUMERIC = frozenset(
    (ValueKind.CURRENCY, ValueKind.MEASURE, ValueKind.COUNT, ValueKind.PERCENTAGE, ValueKind.RATIO)
)


def follows(value: TypedValue, operands: Sequence[Item], *, cued: bool) -> bool:
    """Return whether ``value`` is what some of ``operands`` come to.

    Args:
        value: of the answer.
        operands: values of the places that speak of the same, the nearest first; the first 40 count.
        cued: the sentence says that it reckons ("in total", "difference", "each"): only then sums and differences count.
    """
    items = list(operands)[:MOST_OPERANDS]
    if value.kind in (ValueKind.DATE, ValueKind.TIME):
        return _date_follows(value, items)
    if not value.amounts or value.kind not in _NUMERIC:
        return False
    target = float(value.amounts[0])
    slack = max(
        abs(target) * (0.1 if value.bound is not Bound.EXACT else _NEAR),
        float(value.place) / 2 if value.bound is Bound.ABOUT else 0.0,
    )
    same = [float(each.value.amounts[0]) for each in items if each.value.amounts and _adds(value, each.value)]
    if value.kind is ValueKind.PERCENTAGE and _is_share(value, target, items):
        return True
    if value.kind in (ValueKind.MEASURE, ValueKind.COUNT) and _is_span(value, target, slack, items):
        return True
    if value.kind in (ValueKind.CURRENCY, ValueKind.MEASURE, ValueKind.COUNT) and _is_product(
        value, target, slack, items
    ):
        return True
    if not cued:
        return False
    if any(
        abs(abs(one - other) - target) <= slack or abs(one + other - target) <= slack
        for one, other in combinations(same, 2)
    ):
        return True
    if 3 <= len(same) <= 12 and any(
        abs(sum(run) - target) <= slack for size in (3, 4, 5) for run in combinations(same[:9], size)
    ):
        return True
    return any(abs(2 * one - target) <= slack or abs(one / 2 - target) <= slack for one in same)


def reckoned(value: TypedValue, operands: Sequence[Item]) -> bool:
    """Return whether a precise figure comes of two steps over all values of the evidence: sums, products, and one more value.

    For figures of three digits or more, which hardly come about by chance.
    """
    target = abs(float(value.amounts[0]))
    slack = max(target * 0.0006, float(value.place) / 2 if value.bound is not Bound.EXACT else 0.006)
    own = sorted(
        {
            abs(float(each.value.amounts[0]))
            for each in operands
            if each.value.amounts and _adds(value, each.value)
        }
        - {0.0}
    )
    loose = {
        abs(float(amount))
        for each in operands
        if each.value.kind is ValueKind.COUNT
        for amount in each.value.amounts[:1]
    }
    loose |= {
        float(each.value.written[0])
        for each in operands
        if each.value.kind is ValueKind.MEASURE and each.value.amounts
    }
    counts = sorted({*loose, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 10.0, 12.0, 24.0, 30.0, 52.0, 60.0} - {0.0, 1.0})[
        :MOST_OPERANDS
    ]
    shares = {
        float(each.value.amounts[0]) / 100
        for each in operands
        if each.value.kind is ValueKind.PERCENTAGE and each.value.amounts
    }
    own = own[:MOST_OPERANDS]
    first = {0.0, *own}
    first |= {one * count for one in own for count in counts} | {
        one / count for one in own for count in counts
    }
    for share in shares:
        first |= {amount for one in own for amount in (one * share, one * (1 - share), one * (1 + share))}
    first |= {one + other for one in own for other in own} | {
        abs(one - other) for one in own for other in own
    }
    if value.kind is ValueKind.COUNT:
        first |= {one * other for one in own for other in counts}
    steps = sorted(first)
    return any(
        (at := bisect_left(steps, wanted - slack)) < len(steps) and steps[at] <= wanted + slack
        for base in (0.0, *own) for wanted in (target - base, target + base) if wanted >= 0 or base == 0.0
    )  # fmt: skip


def _adds(value: TypedValue, other: TypedValue) -> bool:
    if value.kind is ValueKind.COUNT:
        return other.kind is ValueKind.COUNT or (other.kind is ValueKind.MEASURE and False)
    return comparable(value, other)


def _is_share(value: TypedValue, target: float, items: Sequence[Item]) -> bool:
    """A share of two figures of one kind, in percent; the change from one to the other; what is left of 100."""
    slack = (
        1.2 if value.unit == "share" or value.bound is not Bound.EXACT else 0.51 if value.place >= 1 else 0.06
    )
    amounts = [
        (each.value.kind, each.value.unit, float(each.value.amounts[0])) for each in items
        if each.value.amounts and each.value.kind is not ValueKind.PERCENTAGE
    ]  # fmt: skip
    for kind, unit, one in amounts:
        for kind_, unit_, other in amounts:
            if kind is kind_ and unit == unit_ and other > abs(one) >= 0 and other > 0:
                share = 100 * one / other
                if abs(share - target) <= slack or abs(100 - share - target) <= slack:
                    return True
                if one > 0 and abs(100 * (other - one) / one - target) <= slack:
                    return True
    return any(
        abs(100 - float(each.value.amounts[0]) - target) <= 0.01
        for each in items
        if each.value.kind is ValueKind.PERCENTAGE
    )


def _is_product(value: TypedValue, target: float, slack: float, items: Sequence[Item]) -> bool:
    """A figure times a count ("seven nights at 184"), or divided by one."""
    wanted = [float(each.value.amounts[0]) for each in items if each.value.amounts and each.value.kind is value.kind
              and (value.kind is ValueKind.COUNT or comparable(value, each.value))]  # fmt: skip
    if value.kind is ValueKind.COUNT and target < 100:
        return False
    counts = [
        float(each.value.amounts[0])
        for each in items
        if each.value.amounts and each.value.kind is ValueKind.COUNT
    ]
    counts += [
        float(each.value.amounts[0]) / _factor(each.value)
        for each in items
        if each.value.kind is ValueKind.MEASURE and each.value.unit in ("time", "months")
    ]
    shares = [
        float(each.value.amounts[0]) / 100
        for each in items
        if each.value.kind is ValueKind.PERCENTAGE and each.value.amounts
    ]
    slack = max(slack, 0.006)
    for one in wanted:
        if any(
            abs(one * count - target) <= slack or (count and abs(one / count - target) <= slack)
            for count in counts
            if count > 1
        ):
            return True
        if any(
            abs(one * share - target) <= slack
            or abs(one * (1 - share) - target) <= slack
            or abs(one * (1 + share) - target) <= slack
            for share in shares
        ):
            return True
    return False


def _factor(value: TypedValue) -> float:
    from truthlens.text.values.units import UNITS

    return float(UNITS[value.named].factor) if value.named in UNITS else 1.0


def _is_span(value: TypedValue, target: float, slack: float, items: Sequence[Item]) -> bool:
    """A time between two dates or times of day, or an age."""
    if value.kind is ValueKind.MEASURE and value.unit not in ("time", "months"):
        return False
    if value.kind is ValueKind.COUNT and value.nouns:
        return False
    dated = [each.value.parts for each in items if each.value.parts]
    years = sorted({parts["year"] for parts in dated if "year" in parts})
    if value.unit == "months" or value.kind is ValueKind.COUNT:
        per_year = 12.0 if value.unit == "months" else 1.0
        if any(
            abs(abs(one - other) * per_year - target) <= max(slack, 0.0)
            for one, other in combinations(years, 2)
        ):
            return True
        if any(
            abs((abs(one - other) - 1) * per_year - target) <= 0.0 for one, other in combinations(years, 2)
        ):
            return True
    days = [day for parts in dated if (day := _day(parts)) is not None]
    if value.kind is ValueKind.MEASURE:
        target_days = target * 30.4375 if value.unit == "months" else target / _DAY
        loose = 3.0 if value.unit == "months" else 3.5 if value.named.startswith("week") else 1.01
        if target_days >= 1 and any(
            abs(abs(one - other) - target_days) <= loose for one, other in combinations(days, 2)
        ):
            return True
        times = [minutes for parts in dated for minutes in _minutes(parts)]
        minutes_ = target / 60
        if value.unit == "time" and any(
            abs(abs(one - other) - minutes_) <= max(0.5, slack / 60) for one, other in combinations(times, 2)
        ):
            return True
    return False


def _day(parts: object) -> int | None:
    assert hasattr(parts, "get")
    month, day = parts.get("month"), parts.get("day")
    if month is None or day is None:
        return None
    try:
        return dt.date(parts.get("year") or 2023, month, day).toordinal()
    except ValueError:
        return None


def _minutes(parts: object) -> list[int]:
    assert hasattr(parts, "get")
    time, half = parts.get("time"), parts.get("half")
    if time is None:
        return []
    return [time + 720 * half] if half is not None else [time, time + 720]


def _date_follows(value: TypedValue, items: Sequence[Item]) -> bool:
    """A day or a time that lies a stated span before or behind another one."""
    spans = [
        float(each.value.amounts[0])
        for each in items
        if each.value.kind is ValueKind.MEASURE and each.value.unit == "time" and each.value.amounts
    ]
    months = [
        float(each.value.amounts[0])
        for each in items
        if each.value.kind is ValueKind.MEASURE and each.value.unit == "months" and each.value.amounts
    ]
    dated = [each.value.parts for each in items if each.value.parts]
    if "time" in value.parts and "day" not in value.parts:
        mine = _minutes(value.parts)
        return any(
            abs((one + sign * span / 60) % 720 - other % 720) < 1
            for parts in dated for one in _minutes(parts) for other in mine for span in spans for sign in (1, -1) if span < _DAY
        )  # fmt: skip
    if "year" in value.parts and value.parts.keys() == {"year"}:
        year = value.parts["year"]
        return any(
            abs(parts["year"] + sign * span / 12 - year) < 0.01
            for parts in dated
            if "year" in parts
            for span in months
            for sign in (1, -1)
        )
    day = _day(value.parts)
    if day is None:
        return False
    return any(
        abs(base + sign * span / _DAY - day) <= 0.01
        for parts in dated if (base := _day(parts)) is not None for span in (*spans, *(each * 30.4375 * _DAY for each in months)) for sign in (1, -1)
    )  # fmt: skip


def count_follows(value: TypedValue, index: Index) -> bool:
    """Return whether a small count is the number of what a table or a list of records holds, or of equal cells in it."""
    if value.kind is not ValueKind.COUNT or not value.amounts or not 0 < value.amounts[0] <= 60:
        return False
    records = {place.record for place in index.places if place.record >= 0}
    return len(records) > 1 and value.amounts[0] <= len(records)

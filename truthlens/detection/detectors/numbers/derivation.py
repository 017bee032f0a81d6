"""Say whether a value follows from values of the evidence: sums, differences, products, shares, durations. Pure."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, permutations

from truthlens.detection.detectors.numbers.places import Item
from truthlens.text.values.comparison import comparable
from truthlens.text.values.typed import Bound, TypedValue, ValueKind
from truthlens.text.values.units import UNITS

MOST_OPERANDS = 40
_NEAR = 0.0051
_DAY, _DAYS_OF_MONTH = 86400.0, 30.4375
_DATED = (ValueKind.DATE, ValueKind.TIME)
_PARTS = (ValueKind.PERCENTAGE, ValueKind.RATIO)
_SPANS = ("time", "months")


def follows(value: TypedValue, operands: Sequence[Item], *, cued: bool) -> bool:
    """Return whether ``value`` is what some of ``operands`` come to.

    Args:
        value: of the answer.
        operands: values that the sentence names, of the places that speak of the same, the nearest first; the first 40 count.
        cued: the sentence says that it reckons ("in total", "difference", "each"): only then sums and differences count.
    """
    values = [each.value for each in operands[:MOST_OPERANDS]]
    if value.kind in _DATED:
        return _date_follows(value, values)
    if not value.amounts or value.kind not in _WAYS:
        return False
    slack = max(_slack(value), float(value.place) / 2 if value.bound is Bound.ABOUT else 0.0)
    return any(way(value, slack, values) for way in _WAYS[value.kind]) or (
        cued and _is_reckoned(value, slack, values)
    )


def lies_between(value: TypedValue, items: Sequence[Item]) -> bool:
    """Return whether a duration is the time between two dates or times of day of ``items``."""
    return _is_span(value, _slack(value), [each.value for each in items])


def applied(value: TypedValue, items: Sequence[Item]) -> bool | None:
    """Return whether ``value`` is a share or a multiple of a figure beside it, both of one sentence's values ``items``.

    ``None``: it may be what such a share or a span leaves or adds, by words that are not read ("a third fewer").
    """
    values = [each.value for each in items]
    if value.kind in _DATED:
        return None if _date_follows(value, values) else False
    if not value.amounts or value.kind not in _WAYS:
        return False
    target, slack, pairs = _amount(value), _slack(value), list(_shares_of(value, values))
    if _has(target, slack, (amount * share for amount, share in pairs)):
        return True
    # What is left, what there was before, and both together.
    others = (
        other
        for amount, share in pairs
        for other in (
            amount * (1 - share),
            amount * (1 + share),
            *(amount / each for each in (share, 1 - share, 1 + share) if each > 0),
        )
    )
    return None if _has(target, slack, others) else False


def times(value: TypedValue, items: Sequence[Item], said: Sequence[TypedValue]) -> bool:
    """Return whether ``value`` is a figure as often as the answer says beside it: 54 for three at 18 each."""
    if not value.amounts or _is_product not in _WAYS.get(value.kind, ()):
        return False
    counts = [each.written[0] for each in _of_kind(said, ValueKind.COUNT, ValueKind.MEASURE)]
    ones = [each.value for each in items if each.value.amounts and comparable(value, each.value)]
    return any(count > 1 and one.amounts[0] * count == value.amounts[0] for one in ones for count in counts)


def _amount(value: TypedValue) -> float:
    return float(value.amounts[0])


def _of_kind(values: Iterable[TypedValue], *kinds: ValueKind) -> list[TypedValue]:
    """Return the values of some kinds that have an amount."""
    return [each for each in values if each.amounts and each.kind in kinds]


def _spans(values: Sequence[TypedValue], unit: str) -> list[float]:
    return [_amount(each) for each in _of_kind(values, ValueKind.MEASURE) if each.unit == unit]


def _has(target: float, slack: float, amounts: Iterable[float]) -> bool:
    """Return whether one of the amounts is the target, within the slack."""
    return any(abs(amount - target) <= slack for amount in amounts)


def _gaps(numbers: Sequence[int]) -> list[int]:
    return [abs(one - other) for one, other in combinations(numbers, 2)]


def _slack(value: TypedValue) -> float:
    """Return how far from a value what it follows from may lie."""
    return abs(_amount(value)) * (_NEAR if value.bound is Bound.EXACT else 0.1)


def _shares_of(value: TypedValue, values: Sequence[TypedValue]) -> Iterator[tuple[float, float]]:
    """Yield each figure of the value's kind, or count, with each share or multiple beside it."""
    for part, whole in permutations((each for each in values if each.amounts), 2):
        alike = comparable(value, whole)
        if part.kind in _PARTS and (alike or whole.kind is ValueKind.COUNT):
            percent = part.kind is ValueKind.PERCENTAGE
            yield (
                _amount(whole) if alike else float(whole.written[0]),
                _amount(part) / (100 if percent else 1),
            )


def _is_reckoned(value: TypedValue, slack: float, values: Sequence[TypedValue]) -> bool:
    """Return whether a value is a sum, a difference, the double or the half of values of its kind."""
    counted = value.kind is ValueKind.COUNT
    same = [
        _amount(each)
        for each in values
        if each.amounts and (each.kind is ValueKind.COUNT if counted else comparable(value, each))
    ]
    pairs = (result for one, other in combinations(same, 2) for result in (abs(one - other), one + other))
    runs = (sum(run) for size in (3, 4, 5) for run in combinations(same[:9], size) if len(same) <= 12)
    # "Four times" is no double of "twice".
    alone = (result for one in same for result in (2 * one, one / 2) if value.kind is not ValueKind.RATIO)
    return _has(_amount(value), slack, chain(pairs, runs, alone))


def _is_share(value: TypedValue, slack: float, values: Sequence[TypedValue]) -> bool:
    """A share of two figures of one kind, in percent; the change from one to the other; what is left of 100."""
    target, rough = _amount(value), value.unit == "share" or value.bound is not Bound.EXACT
    slack = 1.2 if rough else 0.51 if value.place >= 1 else 0.06
    left = (100 - _amount(each) for each in _of_kind(values, ValueKind.PERCENTAGE))
    return _has(target, slack, _percentages(values)) or _has(target, 0.01, left)


def _percentages(values: Sequence[TypedValue]) -> Iterator[float]:
    """Yield the shares of two figures of one kind: the smaller's, what it lacks, and the change."""
    figures = [each for each in values if each.amounts and each.kind is not ValueKind.PERCENTAGE]
    for smaller, larger in permutations(figures, 2):
        one, other = _amount(smaller), _amount(larger)
        if (smaller.kind, smaller.unit) == (larger.kind, larger.unit) and other > abs(one):
            yield from (100 * one / other, 100 - 100 * one / other)
            if one > 0:
                yield 100 * (other - one) / one


def _is_quotient(value: TypedValue, slack: float, values: Sequence[TypedValue]) -> bool:
    """Return whether one of two figures of one kind is so many times the other."""
    figures = [each for each in values if each.amounts and each.kind is not ValueKind.RATIO]
    for one, other in permutations(figures, 2):
        alike = (one.kind, one.unit) == (other.kind, other.unit)
        if alike or ValueKind.COUNT in (one.kind, other.kind):  # "15 minutes (was eight)"
            below = float(one.amounts[0] if alike else one.written[0])
            above = float(other.amounts[0] if alike else other.written[0])
            if below > 0 and abs(above / below - _amount(value)) <= slack:
                return True
    return False


def _is_product(value: TypedValue, slack: float, values: Sequence[TypedValue]) -> bool:
    """A figure times a count ("seven nights at 184"), or divided by one; a share of it, off it or on it."""
    target, counted = _amount(value), value.kind is ValueKind.COUNT
    if counted and target < 100:
        return False
    wanted = [_amount(each) for each in _of_kind(values, value.kind) if counted or comparable(value, each)]
    counts = [_amount(each) for each in _of_kind(values, ValueKind.COUNT)]
    counts += [
        _amount(each) / _factor(each) for each in _of_kind(values, ValueKind.MEASURE) if each.unit in _SPANS
    ]
    shares = [_amount(each) / 100 for each in _of_kind(values, ValueKind.PERCENTAGE)]
    products = (
        each for one in wanted for count in counts if count > 1 for each in (one * count, one / count)
    )
    parts = (
        each
        for one in wanted
        for share in shares
        for each in (one * share, one * (1 - share), one * (1 + share))
    )
    return _has(target, max(slack, 0.006), chain(products, parts))


def _factor(value: TypedValue) -> float:
    return float(UNITS[value.named].factor) if value.named in UNITS else 1.0


def _is_span(value: TypedValue, slack: float, values: Sequence[TypedValue]) -> bool:
    """A time between two dates or times of day, or an age."""
    dated = [each.parts for each in values if each.parts]
    if value.kind is ValueKind.COUNT:
        return not value.nouns and _is_age(_amount(value), slack, dated)
    if value.unit == "months":
        days, loose = _amount(value) * _DAYS_OF_MONTH, 3.0
        return _is_age(_amount(value), slack, dated, per_year=12) or _is_of_days(days, loose, dated)
    if value.unit != "time":
        return False
    loose = 3.5 if value.named.startswith("week") else 1.01
    clocks = [minutes for parts in dated for minutes in _minutes(parts)]
    between = _has(_amount(value) / 60, max(0.5, slack / 60), _gaps(clocks))
    return between or _is_of_days(_amount(value) / _DAY, loose, dated)


def _is_age(target: float, slack: float, dated: Sequence[Mapping[str, int]], *, per_year: int = 1) -> bool:
    """Return whether years or months lie between two years; before the birthday an age is a year less."""
    years = _gaps(sorted({parts["year"] for parts in dated if "year" in parts}))
    return any(abs(gap * per_year - target) <= slack or (gap - 1) * per_year == target for gap in years)


def _is_of_days(target: float, loose: float, dated: Sequence[Mapping[str, int]]) -> bool:
    return target >= 1 and _has(target, loose, _gaps(_days(dated)))


def _days(dated: Sequence[Mapping[str, int]]) -> list[int]:
    """Return the numbers of the days that dates name, of any year where they have none."""
    found: list[int] = []
    for parts in dated:
        if "month" in parts and "day" in parts:
            with contextlib.suppress(ValueError):
                found.append(dt.date(parts.get("year") or 2023, parts["month"], parts["day"]).toordinal())
    return found


def _minutes(parts: Mapping[str, int]) -> list[int]:
    time, half = parts.get("time"), parts.get("half")
    if time is None:
        return []
    return [time + 720 * half] if half is not None else [time, time + 720]


def _date_follows(value: TypedValue, values: Sequence[TypedValue]) -> bool:
    """A day or a time that lies a stated span before or behind another one."""
    parts, dated = value.parts, [each.parts for each in values if each.parts]
    spans, months = _spans(values, "time"), _spans(values, "months")
    if "time" in parts and "day" not in parts:
        clocks = [minutes for each in dated for minutes in _minutes(each)]
        ends = _shifted(clocks, [span / 60 for span in spans if span < _DAY])
        return any(abs(end % 720 - other % 720) < 1 for end in ends for other in _minutes(parts))
    if parts.keys() == {"year"}:
        years = [each["year"] for each in dated if "year" in each]
        return _has(parts["year"], 0.01, _shifted(years, [span / 12 for span in months]))
    spans += [each * _DAYS_OF_MONTH * _DAY for each in months]
    ends = _shifted(_days(dated), [span / _DAY for span in spans])
    return any(_has(day, 0.01, ends) for day in _days([parts]))


def _shifted(bases: Sequence[int], spans: Sequence[float]) -> list[float]:
    """Return what lies each span behind and before each base."""
    return [end for base in bases for span in spans for end in (base + span, base - span)]


_WAYS: Mapping[ValueKind, tuple[Callable[[TypedValue, float, Sequence[TypedValue]], bool], ...]] = {
    ValueKind.PERCENTAGE: (_is_share,),
    ValueKind.RATIO: (_is_quotient,),
    ValueKind.CURRENCY: (_is_product,),
    ValueKind.MEASURE: (_is_span, _is_product),
    ValueKind.COUNT: (_is_span, _is_product),
}
"""From what a value of each kind may follow, whatever the sentence says."""

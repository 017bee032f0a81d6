"""Put values together that stand beside each other: "2 hours 30 minutes", "5-7 kg", "$5 to 10 million". Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from truthlens.text.values.amounts import Written, measured
from truthlens.text.values.cursor import Cursor
from truthlens.text.values.typed import Bound, TypedValue, ValueKind

_RANGE = frozenset(("-", "–", "—", "to", "bis", "à", "or", "oder", "ou"))
_BETWEEN = _RANGE | frozenset(("and", ",", "und", "et", "a", "y", "→", "/", "o"))
_PARTED = (ValueKind.MEASURE, ValueKind.CURRENCY)
_DEGREES = ("degree", "fahrenheit")
_TALL = frozenset(("tall", "high", "long", "wide", "deep"))
_FEET = frozenset(("ft", "foot", "feet"))


def put_together(at: Cursor, values: Iterable[TypedValue]) -> list[TypedValue]:
    """Return the values: "5 ft 11 in" is one, and both ends of a range have its unit."""
    found: list[TypedValue] = []
    for value in values:
        whole = _compound(at, found[-1], value) if found else None
        found[-1:] = [whole] if whole else [*found[-1:], value]
    for place in range(len(found) - 2, -1, -1):
        found[place : place + 2] = _with_shared_unit(at, *found[place : place + 2])
    return found


def _compound(at: Cursor, one: TypedValue, other: TypedValue) -> TypedValue | None:
    """Return "2 hours 30 minutes" and "6 pounds 20 pence" as one value, ``None`` for two."""
    between = at.lows[one.behind : other.first]
    if between not in ([], ["and"]) or one.kind not in _PARTED or one.unit in _DEGREES or one.per:
        return None
    rest = _joined_rest(at, one, other) if not between else _rest_behind_and(one, other)
    if rest is None or rest.bound is not Bound.EXACT or not rest.amounts:
        return None
    if one.unit != rest.unit != "money" or not rest.amounts[0] < one.factor > rest.factor:
        return None
    return replace(
        one, end=rest.end, amounts=tuple(each + rest.amounts[0] for each in one.amounts), place=rest.place,
        behind=rest.behind, per=rest.per,
    )  # fmt: skip


def _joined_rest(at: Cursor, one: TypedValue, other: TypedValue) -> TypedValue | None:
    """Return what ``other``, right behind a measure or a sum, adds to it, ``None`` for a value of its own."""
    if one.named in _FEET and other.kind is ValueKind.COUNT:
        behind = other.behind + (at.lows[other.behind] == "in")
        bare = behind > other.behind or not other.nouns or at.lows[behind] in _TALL
        return measured(at, Written(other.first, behind, other.amounts), "inch") if bare else None
    if one.named == "h" and at.joined(other.first) and other.named in ("", "m"):
        return measured(at, Written(other.first, other.behind, other.written), "min")
    return other if other.kind is one.kind else None


def _rest_behind_and(one: TypedValue, other: TypedValue) -> TypedValue | None:
    """Return what "and ``other``" adds: "two hours and a half"; "1 kg and 500 g" may be two things."""
    if other.unit == "share" and other.spelled and not other.nouns:
        amounts = (other.amounts[0] * one.factor / 100,)
        return replace(other, unit=one.unit, amounts=amounts, factor=amounts[0])
    alone = one.unit in ("time", "months") or one.kind is ValueKind.CURRENCY
    return other if alone and other.kind is one.kind else None


def _with_shared_unit(at: Cursor, value: TypedValue, following: TypedValue) -> tuple[TypedValue, TypedValue]:
    """Return two values with the unit of their range.

    "4" of "4 to 6 minutes" and of "4, 10 and 200 GB" has the unit of the last, "10" of "$5-10" that of the first.
    """
    between = at.lows[value.behind : following.first]
    ranged, of = _RANGE.issuperset(between), between == ["of"]
    together = between == ["out", "of"] or (1 <= len(between) <= 2 and _BETWEEN.issuperset(between))
    if _is_bare(value) and (together or of):
        # "20 of 40 patients", and no kilos in "two of 23 kg"
        value = replace(value, nouns=following.nouns if following.nouns or of else value.nouns)
        return value if of else _like_end(value, following, ranged=ranged), following
    if together and ranged and value.kind is ValueKind.CURRENCY and at.lows[value.first - 1] != "from":
        return _like_start(value, following)
    return value, following


def _like_end(value: TypedValue, following: TypedValue, *, ranged: bool) -> TypedValue:
    """Return a bare number with the unit, or in a range the scale, of what follows: "5 to 10 million"."""
    if not following.amounts or following.kind is ValueKind.DATE:
        return value
    smaller = ranged and value.amounts[0] < following.written[0] and following.factor > 1
    return _like(value, following) if following.unit or smaller else value


def _like_start(value: TypedValue, following: TypedValue) -> tuple[TypedValue, TypedValue]:
    """Return both ends of "$5-10 million" in the currency of the first and the scale of the last."""
    following = _like(following, value) if _is_bare(following) else following
    smaller = value.factor == 1 < following.factor and value.amounts[0] < following.written[0]
    if smaller and (following.kind, following.unit) == (value.kind, value.unit):
        value = _scaled(value, following.factor)
    return value, following


def _is_bare(value: TypedValue) -> bool:
    return value.kind is ValueKind.COUNT and not value.nouns


def _like(value: TypedValue, other: TypedValue) -> TypedValue:
    """Return a bare number with the kind, the unit and, where it has none of its own, the scale of another."""
    value = replace(value, kind=other.kind, unit=other.unit, named=other.named, per=other.per)
    return _scaled(value, other.factor) if value.factor == 1 else value


def _scaled(value: TypedValue, factor: Decimal) -> TypedValue:
    return replace(
        value, amounts=tuple(each * factor for each in value.amounts), place=value.place * factor, factor=value.factor * factor
    )  # fmt: skip

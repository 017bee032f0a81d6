"""Convert a value from one unit to another with ``pint``, which comes with ``truthlens[units]``."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import Any

# Names with powers of one digit, multiplied and divided: pint reads much more, arithmetic included.
_NAME = r"[^\W\d_][^\W\d]{0,30}(?:(?:\^|\*\*)-?\d)?"
_UNIT = re.compile(rf"[°µ]?{_NAME}(?: ?[*/·] ?[°µ]?{_NAME}| {_NAME}){{0,6}}|%")


class UnitError(ValueError):
    """A unit is unknown, or the two do not convert; the message says which and holds neither."""


class UnitsMissingError(RuntimeError):
    """``pint`` is not installed."""


def converted(value: Decimal, source: str, target: str) -> Decimal:
    """Return ``value`` of the unit ``source`` in the unit ``target``; its first use blocks for a second.

    Raises:
        UnitError: a unit is not known, or they measure different things.
        UnitsMissingError: the library is not installed; the message says how to install it.
    """
    if not (_UNIT.fullmatch(source) and _UNIT.fullmatch(target)):
        raise UnitError("units are names such as km/h, with * and / and powers of one digit")
    registry = _registry()
    import pint

    try:
        given = registry.Quantity(value, registry.parse_units(source))
        return Decimal(given.to(registry.parse_units(target)).magnitude)
    except pint.UndefinedUnitError:
        raise UnitError("a unit is not known") from None
    except pint.DimensionalityError:
        raise UnitError("the two units do not measure the same") from None
    except (pint.PintError, ArithmeticError, ValueError, TypeError):
        raise UnitError("the value cannot be converted") from None


@cache
def _registry() -> Any:
    try:
        import pint
    except ImportError:
        raise UnitsMissingError("units need the library pint: pip install 'truthlens[units]'") from None
    return pint.UnitRegistry(non_int_type=Decimal)

"""The tool ``calculation``: arithmetic, and conversion of units with ``pint`` (``truthlens[units]``)."""

from __future__ import annotations

import asyncio
import re
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

import pydantic

from truthlens.core.records.agentic_settings import ToolName
from truthlens.mitigation.agentic.tools.arithmetic import MOST_CHARS, ExpressionError, computed, written
from truthlens.mitigation.agentic.tools.interfaces import (
    WRONG_PARAMETERS,
    BaseTool,
    ToolError,
    ToolParameters,
    ToolResult,
)

_ARROW = re.compile(r"\s*->\s*")
# Names with powers of one digit, multiplied and divided: pint reads much more, arithmetic included.
_NAME = r"[^\W\d_][^\W\d]{0,30}(?:(?:\^|\*\*)-?\d)?"
_UNIT = re.compile(rf"[°µ]?{_NAME}(?: ?[*/·] ?[°µ]?{_NAME}| {_NAME}){{0,6}}|%")


class CalculationParameters(ToolParameters):
    """``units`` is ``from -> to``, such as ``km/h -> m/s``: those of the value and of the result."""

    expression: Annotated[str, pydantic.Field(min_length=1, max_length=MOST_CHARS)]
    units: Annotated[str, pydantic.Field(max_length=120, pattern=r"^[^>]+->[^>]+$")] | None = None


class CalculationTool(BaseTool):
    """Computes an expression; what it gives is arithmetic on what the model gave to it, and no evidence."""

    parameters = CalculationParameters

    def __init__(self, *, enabled: bool = True) -> None:
        super().__init__(
            ToolName.CALCULATION.value,
            'Computes an arithmetic expression. With units, such as "km/h -> m/s", its value is converted.',
            timeout=5.0,
            enabled=enabled,
        )

    async def execute(self, expression: str, units: str | None) -> ToolResult:  # type: ignore[override]
        """Return ``expression = value``, with the units where there are some.

        Raises:
            ToolError: it cannot be computed or converted.
        """
        try:
            value = computed(expression)
            if units is None:
                return self.succeeded(f"{expression} = {written(value)}")
            source, target = _ARROW.split(units.strip())
            result = await asyncio.to_thread(converted, value, source, target)
        except (ExpressionError, UnitError) as error:
            raise ToolError(WRONG_PARAMETERS, str(error)) from None
        except UnitsMissingError as error:
            raise ToolError("not-installed", str(error)) from None
        return self.succeeded(f"{expression} {source} = {written(result)} {target}")


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

"""The tool ``calculation``: arithmetic, and conversion of units."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated

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
from truthlens.mitigation.agentic.tools.units import UnitError, UnitsMissingError, converted

_ARROW = re.compile(r"\s*->\s*")


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

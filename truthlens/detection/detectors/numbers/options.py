"""The options of the detector: twelve settings of the source, as keys of the policy and as environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from truthlens.core.records.enums import Stricter
from truthlens.detection.detectors.numbers.sql.options import (
    Databases,
    no_switch,
    scope_headers,
    table_scopes,
)

PREFIX = "HALLUCINATION_"
_FIGURES = (
    "currency_tolerance", "percentage_tolerance", "ratio_tolerance", "confidence_penalty", "target_time_ms", "target_rate",
)  # fmt: skip
_SWITCHES = (
    "verify_currency", "verify_percentages", "verify_dates", "verify_ratios", "auto_flag", "review_queue",
)  # fmt: skip
VARIABLES: Mapping[str, str] = {option: PREFIX + option.upper() for option in (*_FIGURES, *_SWITCHES)}
"""The environment variable of each option that has one."""
_TRUE, _FALSE = frozenset(("true", "1", "yes", "on")), frozenset(("false", "0", "no", "off"))
_Figure = Annotated[float, pydantic.BeforeValidator(no_switch)]


class Options(pydantic.BaseModel):
    """Options of the detector. A key of the policy goes before an environment variable, that before the source's figure."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    currency_tolerance: Annotated[_Figure, Stricter.LOWER] = pydantic.Field(default=5.0, ge=0, le=100)
    percentage_tolerance: Annotated[_Figure, Stricter.LOWER] = pydantic.Field(default=2.0, ge=0, le=100)
    ratio_tolerance: Annotated[_Figure, Stricter.LOWER] = pydantic.Field(default=5.0, ge=0, le=100)
    confidence_penalty: Annotated[_Figure, Stricter.NO_EFFECT] = pydantic.Field(default=20.0, ge=0, le=100)
    target_time_ms: Annotated[_Figure, Stricter.NO_EFFECT] = pydantic.Field(default=100.0, gt=0, le=60_000)
    target_rate: Annotated[_Figure, Stricter.NO_EFFECT] = pydantic.Field(default=0.05, ge=0, le=1)
    verify_currency: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=True, strict=True)
    verify_percentages: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=True, strict=True)
    verify_dates: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=True, strict=True)
    verify_ratios: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=True, strict=True)
    auto_flag: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=True, strict=True)
    review_queue: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=True, strict=True)
    verify_counts: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=True, strict=True)
    strict: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=False, strict=True)
    floor: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=False, strict=True)
    databases: Annotated[Databases, Stricter.MORE] = ()

    @property
    def scope_headers(self) -> frozenset[str]:
        """The headers that scopes are read from; a policy has to trust them."""
        return scope_headers(self.databases)

    @property
    def scopes(self) -> tuple[frozenset[str], ...]:
        """Sets of names of an exchange's scope, each of which is enough to ask a table for values."""
        return table_scopes(self.databases)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_environment(cls, given: Any) -> Any:
        """Add what the environment says of options that are not given.

        Raises:
            ValueError: a variable holds something else than its option takes.
        """
        if not isinstance(given, Mapping):
            return given
        found = dict(given)
        for option, variable in VARIABLES.items():
            written = os.environ.get(variable, "").strip()
            if written and option not in found:
                found[option] = (
                    _switch(variable, written) if option in _SWITCHES else _figure(option, variable, written)
                )
        return found


def _switch(variable: str, written: str) -> bool:
    if written.lower() in _TRUE:
        return True
    if written.lower() in _FALSE:
        return False
    raise ValueError(f"the environment variable {variable} is {written!r}; expected true or false")


def _figure(option: str, variable: str, written: str) -> float:
    field = Options.model_fields[option]
    high = next((each.le for each in field.metadata if hasattr(each, "le")), 100)
    above = any(hasattr(each, "gt") for each in field.metadata)
    expected = f"expected a number {'above 0, up to' if above else 'of 0 to'} {high:g}"
    try:
        value = float(written)
    except ValueError:
        raise ValueError(f"the environment variable {variable} is {written!r}; {expected}") from None
    if not 0 <= value <= high or (above and value == 0):
        raise ValueError(f"the environment variable {variable} is {written}; {expected}")
    return value

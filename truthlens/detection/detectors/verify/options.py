"""Declare the options of the detector ``verify``."""

from __future__ import annotations

from typing import Annotated, Self

import pydantic

from truthlens.core.records.enums import Stricter
from truthlens.core.registry import CallingOptions

_Name = Annotated[str, pydantic.Field(min_length=1, max_length=200)]
_Risk = Annotated[float, pydantic.Field(ge=0, le=1, allow_inf_nan=False)]


class Options(CallingOptions):
    """Options of the detector.

    ``doubtful`` are the lowest and the highest risk, both included, of claims that the model is asked about.
    ``trust`` is how sure it is taken to be at most, either way: the probability that it is right.
    """

    model: Annotated[_Name, Stricter.UNKNOWN]
    doubtful: Annotated[tuple[_Risk, _Risk], Stricter.WIDER] = (0.15, 0.93)
    max_claims: Annotated[int, Stricter.HIGHER] = pydantic.Field(default=10, ge=1, le=100, strict=True)
    trust: Annotated[float, Stricter.UNKNOWN] = pydantic.Field(default=0.9, gt=0.5, lt=1, allow_inf_nan=False)
    most_chars: Annotated[int, Stricter.HIGHER] = pydantic.Field(
        default=12_000, ge=400, le=1_000_000, strict=True
    )

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Self:
        low, high = self.doubtful
        if low > high:
            raise ValueError(
                f"doubtful ends at {high:g}, below its begin at {low:g}; write the lower risk first"
            )
        return self

    @property
    def models(self) -> tuple[str, ...]:
        """The name of the model that is asked."""
        return (self.model,)

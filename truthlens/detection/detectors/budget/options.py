"""Declare the options of the detector ``budget``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import pydantic
from pydantic_core import PydanticCustomError

from truthlens.core.records.enums import Endpoint, Stricter
from truthlens.core.registry import CallingOptions

_Name = Annotated[str, pydantic.Field(min_length=1, max_length=200)]
_Share = Annotated[float, pydantic.Field(ge=0, le=1, allow_inf_nan=False)]


class Method(StrEnum):
    """Which rule says that a claim is grounded; ``docs/budget.md`` has their formulas."""

    DIRECTED = "directed"
    SEED = "seed"
    ORIGIN = "origin"


class Options(CallingOptions):
    """Options of the detector. The defaults are the figures of the source.

    ``evidence_use`` and ``grounded_ratio`` are limits on differences and shares of probabilities, ``target`` is the
    probability that evidence is to lift a claim to, ``claim_chars`` the least length of a claim.
    """

    model: Annotated[_Name, Stricter.UNKNOWN]
    method: Annotated[Method, Stricter.UNKNOWN] = Method.DIRECTED
    target: Annotated[float, Stricter.UNKNOWN] = pydantic.Field(
        default=0.95, gt=0.5, lt=1, allow_inf_nan=False
    )
    evidence_use: Annotated[_Share, Stricter.HIGHER] = 0.15
    confidence: Annotated[_Share, Stricter.HIGHER] = 0.45
    grounded_ratio: Annotated[_Share, Stricter.HIGHER] = 0.70
    max_claims: Annotated[int, Stricter.HIGHER] = pydantic.Field(default=10, ge=1, le=100, strict=True)
    claim_chars: Annotated[int, Stricter.UNKNOWN] = pydantic.Field(default=15, ge=1, le=10_000, strict=True)
    max_concurrency: Annotated[int, Stricter.HIGHER] = pydantic.Field(default=4, ge=1, le=64, strict=True)
    top_logprobs: Annotated[int, Stricter.UNKNOWN] = pydantic.Field(default=20, ge=1, le=20, strict=True)
    endpoint: Annotated[Endpoint, Stricter.UNKNOWN] = Endpoint.CHAT
    most_chars: Annotated[int, Stricter.HIGHER] = pydantic.Field(
        default=24_000, ge=400, le=1_000_000, strict=True
    )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _names_a_model(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("model") is None:
            raise PydanticCustomError(
                "model_missing", "no `model` is named; it is to be one whose server gives log probabilities"
            )
        return values

    @property
    def models(self) -> tuple[str, ...]:
        """The name of the model that is asked."""
        return (self.model,)

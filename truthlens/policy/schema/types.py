"""Define the base of all sections and the types of values that several of them share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, Strict

Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$")]
Text = Annotated[str, Field(min_length=1)]
Role = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.\-]{0,63}$")]
MarkName = Annotated[str, Field(pattern=r"^[^\s<>:/\[\]{}][^<>:\n\[\]{}]{0,63}$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~\-]+$")]
# An enum member never stands in YAML, so these fields take its text although the models are strict.
Lax = Strict(strict=False)


class Section(BaseModel):
    """Base of all sections: unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

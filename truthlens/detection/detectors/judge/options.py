"""Declare the options of the detector ``judge``."""

from __future__ import annotations

from typing import Annotated

import pydantic

from truthlens.core.records.enums import Stricter
from truthlens.core.registry import CallingOptions
from truthlens.detection.level_options import LevelOptions
from truthlens.prompts.forms import Structured

_Name = Annotated[str, pydantic.Field(min_length=1, max_length=200)]


class Options(LevelOptions, CallingOptions):
    """Options of the detector. The defaults are the figures of the source."""

    model: Annotated[_Name, Stricter.UNKNOWN]
    formatting_model: Annotated[_Name | None, Stricter.UNKNOWN] = None
    two_stage: Annotated[bool, Stricter.UNKNOWN] = pydantic.Field(default=True, strict=True)
    max_tokens: Annotated[int, Stricter.HIGHER] = pydantic.Field(default=2000, ge=64, le=2000, strict=True)
    formatting_max_tokens: Annotated[int, Stricter.HIGHER] = pydantic.Field(
        default=1000, ge=64, le=1000, strict=True
    )
    structured: Annotated[Structured, Stricter.UNKNOWN] = Structured.AUTO
    high_unsupported: Annotated[int, Stricter.LOWER] = pydantic.Field(default=2, ge=1, le=10_000, strict=True)
    most_chars: Annotated[int, Stricter.HIGHER] = pydantic.Field(
        default=24_000, ge=400, le=1_000_000, strict=True
    )

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that are asked, each once."""
        return tuple(dict.fromkeys((self.model, self.formatter) if self.two_stage else (self.model,)))

    @property
    def formatter(self) -> str:
        """The model of the second stage."""
        return self.formatting_model or self.model

"""Declare the options of the detector ``judge``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import pydantic

from truthlens.registry import CallingOptions

_Name = Annotated[str, pydantic.Field(min_length=1, max_length=200)]


class Structured(StrEnum):
    """How the form of a reply is asked for; ``auto`` begins with the strictest and goes down where a server refuses."""

    AUTO = "auto"
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    NONE = "none"


class Options(CallingOptions):
    """Options of the detector. The defaults are the figures of the source."""

    model: _Name
    formatting_model: _Name | None = None
    two_stage: bool = pydantic.Field(default=True, strict=True)
    max_tokens: int = pydantic.Field(default=2000, ge=64, le=2000, strict=True)
    formatting_max_tokens: int = pydantic.Field(default=1000, ge=64, le=1000, strict=True)
    structured: Structured = Structured.AUTO
    most_chars: int = pydantic.Field(default=24_000, ge=400, le=1_000_000, strict=True)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that are asked, each once."""
        return tuple(dict.fromkeys((self.model, self.formatter) if self.two_stage else (self.model,)))

    @property
    def formatter(self) -> str:
        """The model of the second stage."""
        return self.formatting_model or self.model

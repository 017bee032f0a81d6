"""The detector ``reader``: whether each claim follows from the sentences that bear on it."""

from __future__ import annotations

from typing import Annotated

import pydantic

from truthlens.core.records.enums import DetectorName, Stricter
from truthlens.core.registry import Context, DetectorType
from truthlens.detection.interfaces import Detector

BUNDLED_READER = "truthlens-reader-en-v1"


class Options(pydantic.BaseModel):
    """Options of ``reader``."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    model: Annotated[str, Stricter.UNKNOWN] = pydantic.Field(
        default=BUNDLED_READER,
        min_length=1,
        max_length=400,
        description="Folder of the reader, or its name in the models folder. Default: the bundled one.",
    )
    max_claims: Annotated[int, Stricter.HIGHER] = pydantic.Field(
        default=64,
        ge=1,
        le=1_000,
        description="So many claims of an answer are read, which takes about 40 ms each; of further ones the other detectors tell.",
    )
    max_seconds: Annotated[float, Stricter.HIGHER] = pydantic.Field(
        default=2.0,
        gt=0.0,
        le=600.0,
        description="So many seconds of an exchange are spent on reading; give less than timeout_s.",
    )


def build(context: Context) -> Detector:
    """Return the detector with the reader that the plan's options name, or the bundled one."""
    from truthlens.detection.detectors.reader.detector import ReaderDetector

    options: Options = context.options
    return ReaderDetector(
        context.models.reader(options.model), max_claims=options.max_claims, time_s=options.max_seconds
    )


DETECTOR = DetectorType(DetectorName.READER, build, options=Options, follows=True)

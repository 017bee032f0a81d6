"""The record of one ``truthlens calibrate``: the threshold, its goal, and what measured it.

A policy's ``{max_miss_rate, calibration}`` names such a file. Nothing here compares a record with a plan
(``threshold_lookup`` does) or measures anything.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from truthlens.core.records.enums import Aggregation
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import ModelIdentity
from truthlens.core.thresholds import EVEN_ODDS

MAX_BYTES = 64 * 1024
"""A record is far smaller; what is larger is another kind of file and is not read to its end."""

Share = Annotated[float, Field(ge=0, le=1)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class RecordError(ValueError):
    """A file is no threshold record; the message says why.

    ``labelled`` where it holds labelled answers instead.
    """

    def __init__(self, message: str, *, labelled: bool = False) -> None:
        self.labelled = labelled
        super().__init__(message)


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MissRateGoal(_Frozen):
    """The threshold keeps the expected miss rate at or below this."""

    max_miss_rate: float = Field(gt=0, lt=1)


class CostGoal(_Frozen):
    """The threshold has the least expected cost on the data."""

    cost_ratio: float = Field(gt=0, allow_inf_nan=False)
    prior: float = Field(gt=0, lt=1)


class FlagShareGoal(_Frozen):
    """The threshold flags about this share of unlabelled answers."""

    flag_share: float = Field(gt=0, lt=1)


class Measured(_Frozen):
    """What the threshold does to the answers.

    For a miss rate goal ``miss_rate`` is the mean over source texts and ``miss_bound`` the bound that was
    held against the goal; for a cost goal ``miss_rate`` is the share of answers and there is no bound.
    ``supported_flagged`` is ``null`` where the data have no supported answers. For a flag share goal there is
    ``flagged`` alone, the share of the checked answers.
    """

    miss_rate: Share | None = None
    miss_bound: Share | None = None
    supported_flagged: Share | None = None
    flagged: Share | None = None


class RowCounts(_Frozen):
    """Counts: answers, the source texts of the unsupported ones, and answers that were not scored.

    ``unlabelled`` are the checked answers of a flag share goal, which has none of the other kinds.
    """

    unsupported: int = Field(default=0, ge=0)
    unsupported_texts: int = Field(default=0, ge=0)
    supported: int = Field(default=0, ge=0)
    unscored: int = Field(default=0, ge=0)
    unlabelled: int | None = Field(default=None, ge=0)


class ScoredWith(_Frozen):
    """What the scores came from; a plan with anything else has other scores.

    ``scoring_version`` is ``core.scoring_version.SCORING_VERSION`` of the code that scored; 0 where it did
    not count. ``detectors`` are the weights; ``options`` holds what differs from a detector's defaults.
    ``expected_rate`` is the base rate that the scores are probabilities at.
    """

    model: str
    model_sha256: Digest
    aggregation: Aggregation
    detectors: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    scoring_version: int = Field(default=0, ge=0)
    expected_rate: float = Field(default=EVEN_ODDS, gt=0, lt=1)

    @property
    def identity(self) -> ModelIdentity:
        """The model, in the record's words."""
        return ModelIdentity(self.model, self.model_sha256, self.aggregation)


class DataFile(_Frozen):
    """The labelled file: its name without folder, and its contents' digest."""

    name: str
    sha256: Digest


class ThresholdRecord(_Frozen):
    """A threshold and where it comes from. ``date`` is the UTC day, ``truthlens`` the version of the tool."""

    format: Literal[1] = 1
    threshold: Share
    goal: MissRateGoal | CostGoal | FlagShareGoal
    measured: Measured
    answers: RowCounts
    scored_with: ScoredWith
    data: DataFile
    date: str
    truthlens: str

    def to_json(self) -> str:
        """Return the record as the text of its file."""
        return (
            json.dumps(self.model_dump(mode="json", exclude_none=True), indent=2, ensure_ascii=False) + "\n"
        )


def options_of(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the options of the plan's detectors that differ from their defaults, as plain JSON data, by detector.

    Defaults are left out, so that an option which a later version adds does not make every record another one's.
    """
    found = {
        spec.name: spec.options.model_dump(mode="json", exclude_defaults=True)
        for spec in plan.detectors
        if isinstance(spec.options, BaseModel)
    }
    return {name: options for name, options in found.items() if options}


def parse_record(content: bytes) -> ThresholdRecord:
    """Parse the record in the bytes of its file.

    Raises:
        RecordError: it is none.
    """
    if _is_row(content.split(b"\n", 1)[0]) or _is_row(content):
        raise RecordError("it holds labelled answers", labelled=True)
    if len(content) > MAX_BYTES:
        raise RecordError(f"it is larger than {MAX_BYTES // 1024} KiB, which no threshold record is")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RecordError("it is not valid JSON") from error
    try:
        return ThresholdRecord.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise RecordError(f"{where}: {first['msg']}") from error


def _is_row(content: bytes) -> bool:
    """Return whether this is one row of labelled answers."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and {"response", "label"} <= data.keys()

"""Read the records that ``truthlens calibrate`` writes, and tell what of a plan differs from what measured one.

No data file is ever scored here; a record is made beforehand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from truthlens.core.errors import ModelError
from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.enums import Aggregation
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import ModelIdentity
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.core.thresholds import EVEN_ODDS, LEAST_RATE
from truthlens.policy.plans.record_files import MAX_BYTES, Contents, Identify, Unread
from truthlens.yamlfile.diagnostics import KeyPath, Report

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class RecordError(ValueError):
    """A file is no record of its kind; the message says why.

    ``labelled`` where it holds labelled answers instead.
    """

    def __init__(self, message: str, *, labelled: bool = False) -> None:
        self.labelled = labelled
        super().__init__(message)


class Frozen(BaseModel):
    """A part of a record: nothing may be in it that it does not name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ScoredWith(Frozen):
    """What the scores came from; a plan with anything else has other scores.

    ``scoring_version`` is ``core.scoring_version.SCORING_VERSION`` of the code that scored; 0 where it did
    not count. ``detectors`` are the weights; ``options`` holds what differs from a detector's defaults.
    ``expected_rate`` is the base rate that the scores are probabilities at, ``fusion`` a digest of the plan's own coefficients, empty
    for the shipped ones.
    """

    model: str
    model_sha256: Digest
    aggregation: Aggregation
    detectors: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    scoring_version: int = Field(default=0, ge=0)
    fusion: str = ""
    expected_rate: float = Field(default=EVEN_ODDS, gt=LEAST_RATE, lt=1 - LEAST_RATE)

    @property
    def identity(self) -> ModelIdentity:
        """The model, in the record's words."""
        return ModelIdentity(self.model, self.model_sha256, self.aggregation)


class DataFile(Frozen):
    """The labelled file: its name without folder, and its contents' digest."""

    name: str
    sha256: Digest


class Record(Frozen):
    """A record as a whole; ``called`` is what its kind is called."""

    called: ClassVar[str]

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Parse the record in the bytes of its file.

        Raises:
            RecordError: it is none.
        """
        if len(content) > MAX_BYTES:
            raise RecordError(f"it is larger than {MAX_BYTES // 1024} KiB, which no {cls.called} is")
        try:
            return cls.model_validate(json.loads(content))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            raise RecordError(f"{where}: {first['msg']}") from error
        except (ValueError, RecursionError) as error:
            raise RecordError("it is not valid JSON") from error

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


def fusion_of(plan: Plan) -> str:
    """Return a digest of the coefficients that the plan has of its own; empty where it has the shipped ones."""
    if plan.coefficients is None:
        return ""
    content = json.dumps(weights_of(plan.coefficients), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def weights_of(coefficients: Coefficients) -> dict[str, Any]:
    """Return coefficients as plain JSON data."""
    return {
        "intercept": coefficients.intercept,
        "opinions": dict(coefficients.opinions),
        "accusations": dict(coefficients.accusations),
        "vouchers": coefficients.vouchers,
        "whole": dict(coefficients.whole),
        "most": dict(coefficients.most),
    }


@dataclass(frozen=True, slots=True)
class Lookup:
    """The records of one policy file and the check of plans against them.

    ``identify`` says which model scores for a plan; without it models cannot be compared.
    """

    report: Report
    contents: Contents
    identify: Identify | None = None

    def content(self, name: str, path: KeyPath, *, what: str, remedy: str) -> bytes | None:
        """Return what is in the file ``name``; ``None``, with a report at ``path``, if it cannot be read."""
        content = self.contents.get(name, Unread("it was not there when the policy was read"))
        if isinstance(content, Unread):
            self.report.error(path, f"{what} {name!r} cannot be read: {content.problem}", remedy)
            return None
        return content

    def model(self, plan: Plan, path: KeyPath, *, so: str) -> ModelIdentity | None:
        """Return the model that scores for ``plan``; ``None``, with a report, if it cannot be read."""
        assert self.identify is not None
        try:
            return self.identify(plan.model_id)
        except (ModelError, OSError) as error:
            self.report.error(
                path, f"the plan's model cannot be read, so {so} cannot be checked: {error}", "fix the model"
            )
            return None


def differences(made: ScoredWith, plan: Plan, own: Iterable[str]) -> list[str]:
    """Return, in words, what is not as it was for a record; ``own`` is what its kind compares besides."""
    found = [*own]
    if made.scoring_version != SCORING_VERSION:
        rules = f"{made.scoring_version}, and this version of TruthLens scores by the rules {SCORING_VERSION}"
        found.insert(0, f"under the scoring rules {rules}")
    options = options_of(plan)
    if made.options != options:
        words = f"{_in_words(made.options)}, and the plan has {_in_words(options)}"
        found.append(f"with the detector options {words}")
    return found


def _in_words(options: Mapping[str, Mapping[str, Any]]) -> str:
    """Return options in words; those that are left out are the detectors' defaults."""
    named = sorted((name, key, value) for name, keys in options.items() for key, value in keys.items())
    return (
        ", ".join(f"{name}.{key} {json.dumps(value)}" for name, key, value in named)
        or "left at their defaults"
    )

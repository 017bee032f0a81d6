"""The record of one ``truthlens calibrate``, and the check of plans against it; nothing is measured here.

It holds the threshold, its goal, and what measured it. A policy's ``{max_miss_rate, calibration}`` names its
file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from truthlens import __version__
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import ModelIdentity
from truthlens.policy.plans import records
from truthlens.policy.schema import MissRateThreshold
from truthlens.yamlfile.diagnostics import KeyPath

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"PK\x03\x04")
_LABELLED_NAMES = (".jsonl", ".jsonl.gz", ".ndjson")
_SOME_FILE = "LABELLED.jsonl"
_MANY_FLAGGED = 0.9

Share = Annotated[float, Field(ge=0, le=1)]


class MissRateGoal(records.Frozen):
    """The threshold keeps the expected miss rate at or below this."""

    max_miss_rate: float = Field(gt=0, lt=1)


class CostGoal(records.Frozen):
    """The threshold has the least expected cost on the data."""

    cost_ratio: float = Field(gt=0, allow_inf_nan=False)
    prior: float = Field(gt=0, lt=1)


class FlagShareGoal(records.Frozen):
    """The threshold flags about this share of unlabelled answers."""

    flag_share: float = Field(gt=0, lt=1)


class Measured(records.Frozen):
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


class RowCounts(records.Frozen):
    """Counts: answers, the source texts of the unsupported ones, and answers that were not scored.

    ``unlabelled`` are the checked answers of a flag share goal, which has none of the other kinds.
    """

    unsupported: int = Field(default=0, ge=0)
    unsupported_texts: int = Field(default=0, ge=0)
    supported: int = Field(default=0, ge=0)
    unscored: int = Field(default=0, ge=0)
    unlabelled: int | None = Field(default=None, ge=0)


class ThresholdRecord(records.Record):
    """A threshold and where it comes from. ``date`` is the UTC day, ``truthlens`` the version of the tool."""

    called = "threshold record"
    format: Literal[1] = 1
    threshold: Share
    goal: MissRateGoal | CostGoal | FlagShareGoal
    measured: Measured
    answers: RowCounts
    scored_with: records.ScoredWith
    data: records.DataFile
    date: str
    truthlens: str

    @classmethod
    def read(cls, content: bytes) -> Self:
        """See ``Record.read``; labelled answers are told from other files."""
        if _is_row(content.split(b"\n", 1)[0]) or _is_row(content):
            raise records.RecordError("it holds labelled answers", labelled=True)
        return super().read(content)


def _is_row(content: bytes) -> bool:
    """Return whether this is one row of labelled answers."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and {"response", "label"} <= data.keys()


@dataclass(frozen=True, slots=True)
class Calibrations(records.Lookup):
    """The threshold records of one policy file; that models cannot be compared is warned of."""

    def record(self, keys: MissRateThreshold, path: KeyPath, *, decision: str) -> ThresholdRecord | None:
        """Return the record that the threshold at ``path`` names.

        ``None``, with a report, if it cannot be used.
        """
        place = (*path, "calibration")
        remedy = self._remedy(keys.max_miss_rate, decision)
        content = self.content(keys.calibration, place, what="the threshold record", remedy=remedy)
        if content is None:
            return None
        try:
            record = _parse(keys.calibration, content)
        except records.RecordError as error:
            message = f"{keys.calibration!r} is no threshold record: {error}"
            beside = Path(self.report.file).parent / keys.calibration
            data = str(beside) if error.labelled else _SOME_FILE
            self.report.error(place, message, self._remedy(keys.max_miss_rate, decision, data))
            return None
        if not isinstance(record.goal, MissRateGoal):
            made_for = "a cost ratio" if isinstance(record.goal, CostGoal) else "a share of flagged answers"
            message = f"{keys.calibration!r} was made for {made_for}, not for a miss rate"
            self.report.error(place, message, remedy)
            return None
        if not math.isclose(record.goal.max_miss_rate, keys.max_miss_rate, rel_tol=1e-9):
            message = (
                f"max_miss_rate is {keys.max_miss_rate:g}, but {keys.calibration!r} was made for"
                f" {record.goal.max_miss_rate:g}"
            )
            either = f"write {record.goal.max_miss_rate:g}, or {remedy}"
            self.report.error((*path, "max_miss_rate"), message, either)
            return None
        self._warn(record, place)
        return record

    def check(self, record: ThresholdRecord, plan: Plan, path: KeyPath) -> None:
        """Report where ``plan`` scores with something other than what ``record`` was made with.

        ``path`` is the place of the plan's own threshold, or of the plan where it inherits one.
        """
        assert isinstance(record.goal, MissRateGoal)
        made, own = record.scored_with, []
        if made.expected_rate != plan.expected_rate:
            own.append(f"for expected_rate {made.expected_rate:g}, and the plan's is {plan.expected_rate:g}")
        detectors = {spec.name: spec.weight for spec in plan.detectors}
        if _shares(made.detectors) != _shares(detectors):
            own.append(f"with the detectors {_listed(made.detectors)}, and the plan has {_listed(detectors)}")
        if made.fusion != records.fusion_of(plan):
            own.append("with other weights of the verdict (`fusion`) than the plan's")
        found = records.differences(made, plan, own)
        aggregation = plan.aggregation
        if self.identify is None:
            aggregation = aggregation or made.aggregation
        else:
            model = self.model(plan, path, so="its calibrated threshold")
            if model is None:
                return
            aggregation = aggregation or model.aggregation
            if model.sha256 != made.model_sha256:
                found.append(f"for the model {_model(made.identity)}, and the plan's is {_model(model)}")
        if aggregation is not made.aggregation:
            found.append(f"with aggregation {made.aggregation}, and the plan's is {aggregation}")
        if found:
            message = f"the threshold was calibrated {'; '.join(found)}"
            remedy = self._remedy(record.goal.max_miss_rate, plan.decision)
            self.report.error(path, message, f"{remedy}, or write a threshold here")

    def _warn(self, record: ThresholdRecord, path: KeyPath) -> None:
        if self.identify is None:
            self.report.warn(
                path,
                f"the threshold was calibrated for the model {record.scored_with.model!r}, which was not compared with"
                " the plan's",
                "run `truthlens check` where the models are",
            )
        flagged = record.measured.supported_flagged
        if flagged is not None and flagged >= _MANY_FLAGGED:
            self.report.warn(
                path,
                f"at the calibrated threshold {record.threshold:.3f}, {flagged:.0%} of the supported answers are flagged",
                "allow a higher max_miss_rate, or use a better model",
            )
        if record.truthlens != __version__:
            self.report.warn(
                path,
                f"the threshold was calibrated by another version of TruthLens ({record.truthlens}), whose scores may"
                " differ",
                "run `truthlens calibrate` again",
            )

    def _remedy(self, max_miss_rate: float, decision: str, data: str = _SOME_FILE) -> str:
        return (
            f"run: truthlens calibrate {data} --max-miss-rate {max_miss_rate:g} --config {self.report.file}"
            f" --decision {decision} --write"
        )


def _parse(name: str, content: bytes) -> ThresholdRecord:
    if name.endswith(_LABELLED_NAMES):
        raise records.RecordError("it holds labelled answers", labelled=True)
    if content.startswith(_COMPRESSED):
        raise records.RecordError("it is compressed")
    return ThresholdRecord.read(content)


def _shares(detectors: Mapping[str, float]) -> dict[str, float]:
    """Return the weights as the fusion uses them: only their ratios count."""
    total = sum(detectors.values())
    return {name: round(weight / total, 9) for name, weight in detectors.items()}


def _listed(detectors: Mapping[str, float]) -> str:
    return ", ".join(f"{name} ({weight:g})" for name, weight in sorted(detectors.items())) or "none"


def _model(model: ModelIdentity) -> str:
    return f"{model.name!r} ({model.sha256[:12]})"

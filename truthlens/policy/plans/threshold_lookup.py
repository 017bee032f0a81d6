"""Find the threshold records that a policy names, and check its plans against them.

No data file is ever scored here; a record is made beforehand, by ``truthlens calibrate``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truthlens import __version__
from truthlens.core.errors import ModelError
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import ModelIdentity
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.policy.files import UnfitFileError, read_start
from truthlens.policy.plans.threshold_record import (
    MAX_BYTES,
    CostGoal,
    MissRateGoal,
    RecordError,
    ThresholdRecord,
    options_of,
    parse_record,
)
from truthlens.policy.schema import MissRateThreshold
from truthlens.yamlfile.diagnostics import KeyPath, Report

Identify = Callable[[str | None], ModelIdentity]
"""From a plan's ``model_id`` to the model that will score for it; may raise ``ModelError``."""

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"PK\x03\x04")
_LABELLED_NAMES = (".jsonl", ".jsonl.gz", ".ndjson")
_SOME_FILE = "LABELLED.jsonl"
_MANY_FLAGGED = 0.9


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a record could not be read."""

    problem: str


Contents = Mapping[str, bytes | Unread]
"""Contents of the records that a policy names, by the name that it gives them."""


def record_contents(data: Mapping[str, Any], folder: Path) -> dict[str, bytes | Unread]:
    """Read the records that the YAML ``data`` names, each once; names are relative to ``folder``."""
    return {name: _read(folder / name) for name in dict.fromkeys(_names(data))}


@dataclass(frozen=True, slots=True)
class Calibrations:
    """The records of one policy file and the check of plans against them.

    ``identify`` says which model scores for a plan; without it models cannot be compared, which is warned of.
    """

    report: Report
    contents: Contents
    identify: Identify | None = None

    def record(self, keys: MissRateThreshold, path: KeyPath, *, decision: str) -> ThresholdRecord | None:
        """Return the record that the threshold at ``path`` names.

        ``None``, with a report, if it cannot be used.
        """
        place = (*path, "calibration")
        content = self.contents.get(keys.calibration, Unread("it was not there when the policy was read"))
        if isinstance(content, Unread):
            message = f"the threshold record {keys.calibration!r} cannot be read: {content.problem}"
            self.report.error(place, message, self._remedy(keys.max_miss_rate, decision))
            return None
        try:
            record = _parse(keys.calibration, content)
        except RecordError as error:
            message = f"{keys.calibration!r} is no threshold record: {error}"
            beside = Path(self.report.file).parent / keys.calibration
            data = str(beside) if error.labelled else _SOME_FILE
            self.report.error(place, message, self._remedy(keys.max_miss_rate, decision, data))
            return None
        if not isinstance(record.goal, MissRateGoal):
            made_for = "a cost ratio" if isinstance(record.goal, CostGoal) else "a share of flagged answers"
            message = f"{keys.calibration!r} was made for {made_for}, not for a miss rate"
            self.report.error(place, message, self._remedy(keys.max_miss_rate, decision))
            return None
        if not math.isclose(record.goal.max_miss_rate, keys.max_miss_rate, rel_tol=1e-9):
            message = (
                f"max_miss_rate is {keys.max_miss_rate:g}, but {keys.calibration!r} was made for"
                f" {record.goal.max_miss_rate:g}"
            )
            remedy = f"write {record.goal.max_miss_rate:g}, or {self._remedy(keys.max_miss_rate, decision)}"
            self.report.error((*path, "max_miss_rate"), message, remedy)
            return None
        self._warn(record, place)
        return record

    def check(self, record: ThresholdRecord, plan: Plan, path: KeyPath) -> None:
        """Report where ``plan`` scores with something other than what ``record`` was made with.

        ``path`` is the place of the plan's own threshold, or of the plan where it inherits one.
        """
        assert isinstance(record.goal, MissRateGoal)
        made, found = record.scored_with, []
        if made.scoring_version != SCORING_VERSION:
            found.append(
                f"under the scoring rules {made.scoring_version}, and this version of TruthLens scores by the rules"
                f" {SCORING_VERSION}"
            )
        if made.expected_rate != plan.expected_rate:
            found.append(
                f"for expected_rate {made.expected_rate:g}, and the plan's is {plan.expected_rate:g}"
            )
        detectors = {spec.name: spec.weight for spec in plan.detectors}
        if _shares(made.detectors) != _shares(detectors):
            found.append(
                f"with the detectors {_listed(made.detectors)}, and the plan has {_listed(detectors)}"
            )
        options = options_of(plan)
        if made.options != options:
            found.append(
                f"with the detector options {_settings(made.options)}, and the plan has {_settings(options)}"
            )
        aggregation = plan.aggregation
        if self.identify is None:
            aggregation = aggregation or made.aggregation
        else:
            try:
                model = self.identify(plan.model_id)
            except (ModelError, OSError) as error:
                message = (
                    f"the plan's model cannot be read, so its calibrated threshold cannot be checked: {error}"
                )
                self.report.error(path, message, "fix the model")
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


def _names(data: object) -> Iterator[str]:
    """Yield the names under ``threshold.calibration`` anywhere in the file."""
    if isinstance(data, Mapping):
        threshold = data.get("threshold")
        if isinstance(threshold, Mapping) and isinstance(name := threshold.get("calibration"), str):
            yield name
        for value in data.values():
            yield from _names(value)
    elif isinstance(data, list):
        for value in data:
            yield from _names(value)


def _read(path: Path) -> bytes | Unread:
    try:
        return read_start(path, MAX_BYTES + 1)
    except UnfitFileError as error:
        return Unread(str(error))
    except OSError as error:
        return Unread(error.strerror or "there is no such file")


def _parse(name: str, content: bytes) -> ThresholdRecord:
    if name.endswith(_LABELLED_NAMES):
        raise RecordError("it holds labelled answers", labelled=True)
    if content.startswith(_COMPRESSED):
        raise RecordError("it is compressed")
    return parse_record(content)


def _shares(detectors: Mapping[str, float]) -> dict[str, float]:
    """Return the weights as the fusion uses them: only their ratios count."""
    total = sum(detectors.values())
    return {name: round(weight / total, 9) for name, weight in detectors.items()}


def _listed(detectors: Mapping[str, float]) -> str:
    return ", ".join(f"{name} ({weight:g})" for name, weight in sorted(detectors.items())) or "none"


def _settings(options: Mapping[str, Mapping[str, Any]]) -> str:
    """Return options in words; those that are left out are the detectors' defaults."""
    named = sorted((name, key, value) for name, keys in options.items() for key, value in keys.items())
    return (
        ", ".join(f"{name}.{key} {json.dumps(value)}" for name, key, value in named)
        or "left at their defaults"
    )


def _model(model: ModelIdentity) -> str:
    return f"{model.name!r} ({model.sha256[:12]})"

"""From the keys of `hallucination` and of a plugin's configuration to a plan: inheritance and checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from truthlens.core.records import (
    DetectorName,
    DetectorSpec,
    EvidenceRules,
    Mode,
    Plan,
    PremiumSettings,
    StandardSettings,
    Streaming,
)
from truthlens.core.thresholds import threshold_from_cost
from truthlens.policy.calibrated import Calibrations
from truthlens.policy.diagnostics import KeyPath, Report
from truthlens.policy.plan import DEFAULT_DECISION
from truthlens.policy.schema import (
    Behaviour,
    CostThreshold,
    MissRateThreshold,
    PluginConfiguration,
    WeightedDetector,
)
from truthlens.policy.shape import suggest
from truthlens.policy.threshold_record import ThresholdRecord

AVAILABLE_DETECTORS = frozenset({DetectorName.ENCODER})
AVAILABLE_MODES = frozenset({Mode.LIGHTWEIGHT})
_LOWEST_SENSIBLE_THRESHOLD = 0.05

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PlanBuilder:
    """Makes plans and reports what is wrong with them.

    ``model_exists`` says whether a ``model_id`` can be loaded; ``models`` are the names under ``models:``,
    or ``None`` where any name may be called. Without ``calibrations`` no threshold record is read, and a plan that
    names one keeps the threshold that it inherits.
    """

    report: Report
    model_exists: Callable[[str], bool]
    models: frozenset[str] | None
    calibrations: Calibrations | None = None
    # The record that a decision's threshold stands in, for the plans that inherit it.
    _records: dict[str, ThresholdRecord] = field(default_factory=dict)

    def build(self, base: Plan, keys: Behaviour, path: KeyPath) -> Plan:
        """``base`` with the written ``keys`` over it; ``path`` is where they stand."""
        mode = self._mode(base, keys, path)
        plan = replace(
            base,
            mode=mode,
            enabled=_or(keys.enabled, base.enabled),
            threshold=self._threshold(base, keys, path),
            aggregation=_or(keys.aggregation, base.aggregation),
            streaming=_or(keys.streaming, base.streaming),
            on_unchecked=_or(keys.on_unchecked, base.on_unchecked),
            details=_or(keys.details, base.details),
            detectors=self._detectors(base, keys, path),
            model_id=_or(keys.model_id, base.model_id),
            use_cpu=_or(keys.use_cpu, base.use_cpu),
            warning_template=_or(keys.warning_template, base.warning_template),
            warning_position=_or(keys.warning_position, base.warning_position),
            require_disclaimer=_or(keys.require_disclaimer, base.require_disclaimer),
            timeout_s=_or(keys.timeout_s, base.timeout_s),
            standard=_standard(base.standard, keys, mode),
            premium=self._premium(base.premium, keys, mode, path),
            evidence=self._evidence(base.evidence, keys, path),
        )
        self._check_together(plan, keys, path)
        self._check_calibrated(plan, keys, path)
        return plan

    def check_model(self, name: str, path: KeyPath) -> None:
        """Report a model that has no entry under ``models:``, where there is such a section."""
        if self.models is not None and name not in self.models:
            remedy = suggest(name, self.models, otherwise=f"add {name!r} to `models`")
            self.report.error(path, f"the model {name!r} is not under `models`", remedy)

    def _mode(self, base: Plan, keys: Behaviour, path: KeyPath) -> Mode:
        if isinstance(keys, PluginConfiguration) and keys.mode is not None:
            if keys.default_mode is not None:
                message = "mode and default_mode are both written and mean the same"
                self.report.error((*path, "default_mode"), message, "keep mode")
            return keys.mode
        return _or(keys.default_mode, base.mode)

    def _threshold(self, base: Plan, keys: Behaviour, path: KeyPath) -> float:
        match keys.threshold:
            case None:
                return base.threshold
            case CostThreshold(cost_ratio=cost_ratio, prior=prior):
                threshold = threshold_from_cost(cost_ratio=cost_ratio, prior=prior)
                if threshold < _LOWEST_SENSIBLE_THRESHOLD:
                    self.report.warn(
                        (*path, "threshold"),
                        f"cost_ratio {cost_ratio:g} and prior {prior:g} give the threshold {threshold:.3f}, "
                        "at which nearly every answer is flagged",
                        "lower cost_ratio, or write a number",
                    )
                return threshold
            case MissRateThreshold():
                return self._calibrated(base, keys.threshold, (*path, "threshold"))
            case number:
                return float(number)

    def _calibrated(self, base: Plan, keys: MissRateThreshold, path: KeyPath) -> float:
        if self.calibrations is None:
            return base.threshold
        record = self.calibrations.record(keys, path, decision=base.decision)
        if record is None:
            return base.threshold
        self._records[base.decision] = record
        return record.threshold

    def _check_calibrated(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        own = keys.threshold is not None
        record = self._records.get(plan.decision if own else DEFAULT_DECISION)
        if self.calibrations is not None and record is not None and plan.enabled:
            self.calibrations.check(record, plan, (*path, "threshold") if own else path)

    def _detectors(self, base: Plan, keys: Behaviour, path: KeyPath) -> tuple[DetectorSpec, ...]:
        if keys.detectors is None:
            return base.detectors
        specs: list[DetectorSpec] = []
        available = ", ".join(sorted(AVAILABLE_DETECTORS))
        for index, entry in enumerate(keys.detectors):
            weighted = entry if isinstance(entry, WeightedDetector) else WeightedDetector(name=entry)
            place = (*path, "detectors", index)
            if weighted.name not in list(DetectorName):
                remedy = suggest(weighted.name, DetectorName, otherwise=f"available: {available}")
                self.report.error(place, f"there is no detector {weighted.name!r}", remedy)
            elif weighted.name not in AVAILABLE_DETECTORS:
                message = f"the detector {weighted.name!r} is not in this version and does not run"
                self.report.warn(
                    place, message, f"leave it for a later version, or remove it; available: {available}"
                )
            elif any(spec.name == weighted.name for spec in specs):
                self.report.error(place, f"the detector {weighted.name!r} is listed twice", "keep one")
            else:
                specs.append(DetectorSpec(weighted.name, weighted.weight))
        if not specs and all(_detector_name(entry) in list(DetectorName) for entry in keys.detectors):
            self.report.error(
                (*path, "detectors"), "no detector is left that runs", f"add one of: {available}"
            )
            return base.detectors
        return tuple(specs)

    def _premium(self, base: PremiumSettings, keys: Behaviour, mode: Mode, path: KeyPath) -> PremiumSettings:
        section = keys.premium
        iterations = _short_iterations(keys, mode, Mode.STANDARD)
        if section is None:
            return replace(base, max_iterations=_or(iterations, base.max_iterations))
        place = (*path, "premium")
        for index, name in enumerate(section.verification_models or ()):
            self.check_model(name, (*place, "verification_models", index))
        if section.judge_model is not None:
            self.check_model(section.judge_model, (*place, "judge_model"))
        models = section.verification_models
        return PremiumSettings(
            verification_models=base.verification_models if models is None else tuple(models),
            judge_model=_or(section.judge_model, base.judge_model),
            max_iterations=_or(section.max_iterations, _or(iterations, base.max_iterations)),
            require_consensus=_or(section.require_consensus, base.require_consensus),
        )

    def _evidence(self, base: EvidenceRules, keys: Behaviour, path: KeyPath) -> EvidenceRules:
        section = keys.evidence
        if section is None:
            return base
        for index, pattern in enumerate(section.user_patterns or ()):
            self._check_pattern(pattern, (*path, "evidence", "user_patterns", index))
        patterns = section.user_patterns
        return EvidenceRules(
            system_min_chars=_or(section.system_min_chars, base.system_min_chars),
            system_instruction_share=_or(section.system_instruction_share, base.system_instruction_share),
            user_patterns=base.user_patterns if patterns is None else tuple(patterns),
        )

    def _check_pattern(self, pattern: str, path: KeyPath) -> None:
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            self.report.error(path, f"not a regular expression: {error}", "mend it (Python's re syntax)")
            return
        if groups != 1:
            message = f"the pattern has {groups} groups, expected the one that captures a passage"
            self.report.error(path, message, "write other groups as (?:...)")

    def _check_together(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        written = keys.model_fields_set
        if "model_id" in written and plan.model_id is not None and not self.model_exists(plan.model_id):
            self.report.warn(
                (*path, "model_id"),
                f"there is no model folder {plan.model_id!r}; the bundled model is used instead",
                "put the model there, mend the path, or remove the key",
            )
        if not plan.enabled:
            return
        mode_key = "mode" if "mode" in written else "default_mode"
        decides_mode = bool(written & {"mode", "default_mode"})
        if (decides_mode or "streaming" in written) and (
            plan.mode is not Mode.LIGHTWEIGHT and plan.streaming is not Streaming.BUFFER
        ):
            self.report.error(
                (*path, "streaming" if "streaming" in written else mode_key),
                f"mode {plan.mode} changes whole answers and cannot work with streaming {plan.streaming}, "
                "where text leaves before it is judged",
                "write streaming: buffer, or mode lightweight",
            )
        if decides_mode and plan.mode not in AVAILABLE_MODES:
            self.report.warn(
                (*path, mode_key),
                f"mode {plan.mode} is not carried out by this version; the answer is "
                "detected and warned as in lightweight",
                "write lightweight, or leave it for a later version",
            )
        if "max_iterations" in written and plan.mode is Mode.LIGHTWEIGHT:
            message = "max_iterations has no effect in mode lightweight"
            self.report.warn((*path, "max_iterations"), message, "remove it, or choose another mode")


def _standard(base: StandardSettings, keys: Behaviour, mode: Mode) -> StandardSettings:
    section = keys.standard
    iterations = _short_iterations(keys, mode, Mode.PREMIUM)
    written = section.max_iterations if section else None
    convergence = section.convergence_threshold if section else None
    return StandardSettings(
        max_iterations=_or(written, _or(iterations, base.max_iterations)),
        convergence_threshold=_or(convergence, base.convergence_threshold),
    )


def _short_iterations(keys: Behaviour, mode: Mode, other: Mode) -> int | None:
    """The plugin's short ``max_iterations``, unless it is meant for the ``other`` mode."""
    return keys.max_iterations if isinstance(keys, PluginConfiguration) and mode is not other else None


def _or(written: _T | None, inherited: _T) -> _T:
    return inherited if written is None else written


def _detector_name(entry: str | WeightedDetector) -> str:
    return entry.name if isinstance(entry, WeightedDetector) else entry

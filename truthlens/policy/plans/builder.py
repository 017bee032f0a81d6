"""Build a plan from the keys of `hallucination` and of a plugin's configuration: inheritance and checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pydantic
import regex

from truthlens.core.records.calls import ModelSpec
from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import DetectorSpec, EvidenceRules, Plan
from truthlens.core.thresholds import EVEN_ODDS, at_rate, threshold_from_cost
from truthlens.policy.plans.cascade import cascade_settings, check_cascade
from truthlens.policy.plans.modes import ModeSettings
from truthlens.policy.plans.streams import check_streams, stream_settings
from truthlens.policy.plans.threshold_lookup import Calibrations
from truthlens.policy.plans.threshold_record import ThresholdRecord
from truthlens.policy.policy import DEFAULT_DECISION
from truthlens.policy.schema import (
    Behaviour,
    CostThreshold,
    MissRateThreshold,
    PluginConfiguration,
    WeightedDetector,
)
from truthlens.policy.validation import suggest
from truthlens.registry import CallingOptions, DetectorType, Need, detector_types
from truthlens.yamlfile.diagnostics import KeyPath, Report

_LOWEST_SENSIBLE_THRESHOLD = 0.05
_HIGHEST_SENSIBLE_THRESHOLD = 0.99
_LONGEST_PATTERN = 2_000
# Who speaks in a conversation; a model does not vouch for itself, nor does a question answer itself.
_SPEAKING_ROLES = frozenset(("user", "human", "assistant", "model", "ai", "bot", "system", "developer"))

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PlanBuilder:
    """Makes plans and reports what is wrong with them.

    ``model_exists`` says whether a ``model_id`` can be loaded; ``models`` has the entries under ``models:``
    by name, or is ``None`` where any name may be called. Without ``calibrations`` no threshold record is
    read, and a plan that names one keeps the threshold that it inherits.
    """

    report: Report
    model_exists: Callable[[str], bool]
    models: Mapping[str, ModelSpec] | None
    calibrations: Calibrations | None = None
    # The record that a decision's threshold stands in, for the plans that inherit it.
    _records: dict[str, ThresholdRecord] = field(default_factory=dict)

    def build(self, base: Plan, keys: Behaviour, path: KeyPath) -> Plan:
        """Return ``base`` with the written ``keys`` over it; ``path`` is their place."""
        mode = self._mode(base, keys, path)
        plan = replace(
            base,
            mode=mode,
            enabled=_or(keys.enabled, base.enabled),
            threshold=self._threshold(base, keys, path),
            expected_rate=_or(keys.expected_rate, base.expected_rate),
            aggregation=_or(keys.aggregation, base.aggregation),
            streaming=_or(keys.streaming, base.streaming),
            stream=stream_settings(base.stream, keys),
            on_unchecked=_or(keys.on_unchecked, base.on_unchecked),
            reasoning=_or(keys.reasoning, base.reasoning),
            details=_or(keys.details, base.details),
            detectors=self._detectors(base, keys, path),
            model_id=_or(keys.model_id, base.model_id),
            use_cpu=_or(keys.use_cpu, base.use_cpu),
            warning_template=_or(keys.warning_template, base.warning_template),
            warning_position=_or(keys.warning_position, base.warning_position),
            require_disclaimer=_or(keys.require_disclaimer, base.require_disclaimer),
            disclaimer_template=_or(keys.disclaimer_template, base.disclaimer_template),
            timeout_s=_or(keys.timeout_s, base.timeout_s),
            evidence=self._evidence(base.evidence, keys, path),
            cascade=cascade_settings(base.cascade, keys, path, self.report),
        )
        check_cascade(plan, keys, path, self.report)
        self._check_model_folder(plan, keys, path)
        plan = ModeSettings(self.report, self.models, self.check_model).apply(plan, keys, path)
        if plan.enabled:
            check_streams(plan, keys, path, self.report)
        self._check_calibrated(plan, keys, path)
        self._check_rate(plan, keys, path)
        return plan

    def check_model(self, name: str, path: KeyPath) -> None:
        """Report a model that has no entry under ``models:``, if there is such a section."""
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
                rate = _or(keys.expected_rate, base.expected_rate)
                if at_rate(threshold, EVEN_ODDS, given=rate) < _LOWEST_SENSIBLE_THRESHOLD:
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

    def _check_rate(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        if (
            keys.expected_rate is not None
            and plan.enabled
            and plan.even_threshold > _HIGHEST_SENSIBLE_THRESHOLD
        ):
            self.report.warn(
                (*path, "expected_rate"),
                f"where {plan.expected_rate:g} of the answers are expected to be unsupported, the threshold "
                f"{plan.threshold:g} takes a score of {plan.even_threshold:.4f} at even odds: hardly any answer is flagged",
                "lower the threshold as well: it is the probability from which you want an answer flagged",
            )

    def _check_calibrated(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        own = keys.threshold is not None
        record = self._records.get(plan.decision if own else DEFAULT_DECISION)
        if self.calibrations is not None and record is not None and plan.enabled:
            self.calibrations.check(record, plan, (*path, "threshold") if own else path)

    def _detectors(self, base: Plan, keys: Behaviour, path: KeyPath) -> tuple[DetectorSpec, ...]:
        if keys.detectors is None:
            return base.detectors
        specs: list[DetectorSpec] = []
        types = detector_types()
        available = ", ".join(sorted(types))
        for index, entry in enumerate(keys.detectors):
            weighted = entry if isinstance(entry, WeightedDetector) else WeightedDetector(name=entry)
            place = (*path, "detectors", index)
            if weighted.name not in types:
                remedy = suggest(weighted.name, sorted(types), otherwise=f"available: {available}")
                self.report.error(place, f"there is no detector {weighted.name!r}", remedy)
            elif any(spec.name == weighted.name for spec in specs):
                self.report.error(place, f"the detector {weighted.name!r} is listed twice", "keep one")
            else:
                declared = types[weighted.name]
                options = self._options(declared, weighted.model_extra or {}, place)
                asked = self._asked(declared, options, place)
                specs.append(DetectorSpec(weighted.name, weighted.weight, options, asked))
        return tuple(specs) or base.detectors

    def _asked(
        self, declared: DetectorType, options: pydantic.BaseModel | None, place: KeyPath
    ) -> tuple[str, ...]:
        """Return the models that a detector asks; each is to be under `models`."""
        asked = options.models if isinstance(options, CallingOptions) else ()
        for name in dict.fromkeys(asked):
            self.check_model(name, place)
        if Need.CALLS in declared.needs and not asked and options is not None:
            self.report.error(
                place, f"the detector {declared.name!r} asks no model", "name one in its options"
            )
        return tuple(dict.fromkeys(asked))

    def _options(
        self, declared: DetectorType, written: Mapping[str, object], place: KeyPath
    ) -> pydantic.BaseModel | None:
        """Return the options of a detector, ``None`` where it has its defaults."""
        try:
            options = declared.options.model_validate(written)
        except pydantic.ValidationError as error:
            for problem in error.errors():
                where = (*place, *problem["loc"])
                if problem["type"] == "extra_forbidden":
                    known = [*declared.options.model_fields, "name", "weight"]
                    key = str(problem["loc"][-1])
                    remedy = suggest(key, known, otherwise=f"known: {', '.join(known)}")
                    self.report.error(where, f"the detector {declared.name!r} has no option {key!r}", remedy)
                else:
                    self.report.error(
                        where, problem["msg"], f"see the options of {declared.name} in the docs"
                    )
            return None
        return options if options.model_fields_set else None

    def _evidence(self, base: EvidenceRules, keys: Behaviour, path: KeyPath) -> EvidenceRules:
        section = keys.evidence
        if section is None:
            return base
        for index, pattern in enumerate(section.user_patterns or ()):
            self._check_pattern(pattern, (*path, "evidence", "user_patterns", index))
        for index, role in enumerate(section.roles or ()):
            self._check_role(role, (*path, "evidence", "roles", index))
        return EvidenceRules(
            system=_or(section.system, base.system),
            system_min_chars=_or(section.system_min_chars, base.system_min_chars),
            roles=_listed(section.roles, base.roles),
            marks=_listed(section.marks, base.marks),
            user_patterns=_listed(section.user_patterns, base.user_patterns),
            intermediate_calls=_or(section.intermediate_calls, base.intermediate_calls),
        )

    def _check_role(self, role: str, path: KeyPath) -> None:
        if role.strip().lower() in _SPEAKING_ROLES:
            self.report.error(
                path,
                f"messages of the role {role!r} are a part of the conversation and never evidence as a whole",
                "remove it; list roles of tools and other sources",
            )

    def _check_pattern(self, pattern: str, path: KeyPath) -> None:
        if len(pattern) > _LONGEST_PATTERN:
            message = f"the pattern has {len(pattern)} characters, at most {_LONGEST_PATTERN} are read"
            self.report.error(path, message, "write several shorter ones")
            return
        try:
            groups = re.compile(pattern).groups
            # What it is matched with. The two differ in details, and the first one's messages are the better
            # ones.
            regex.compile(pattern, regex.MULTILINE | regex.DOTALL)
        except (re.error, regex.error) as error:
            self.report.error(path, f"not a regular expression: {error}", "fix it (Python's re syntax)")
            return
        except (RecursionError, OverflowError):
            self.report.error(path, "the pattern nests too deeply", "write it flatter")
            return
        if groups != 1:
            message = f"the pattern has {groups} groups, expected the one that captures a passage"
            self.report.error(path, message, "write other groups as (?:...)")

    def _check_model_folder(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        written = keys.model_fields_set
        if "model_id" in written and plan.model_id is not None and not self.model_exists(plan.model_id):
            self.report.warn(
                (*path, "model_id"),
                f"there is no model folder {plan.model_id!r}; the bundled model is used instead",
                "put the model there, fix the path, or remove the key",
            )


def _listed(written: list[str] | None, inherited: tuple[str, ...]) -> tuple[str, ...]:
    return inherited if written is None else tuple(written)


def _or(written: _T | None, inherited: _T) -> _T:
    return inherited if written is None else written

"""Build a plan from the keys of `hallucination` and of a plugin's configuration: inheritance and checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import pydantic
import regex

from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.core.records.calls import ModelSpec
from truthlens.core.records.coefficients import Coefficients
from truthlens.core.records.enums import DetectorName, Mode
from truthlens.core.records.plan import DEFAULT_DETECTORS, DetectorSpec, Plan
from truthlens.core.records.retrieval import SourceSpec
from truthlens.core.records.settings import EvidenceRules, PremiumSettings, Section, StandardSettings
from truthlens.core.registry import CallingOptions, DetectorType, Need, detector_types
from truthlens.core.thresholds import EVEN_ODDS, at_rate, threshold_from_cost
from truthlens.policy.plans.conflicts import report_conflicts
from truthlens.policy.plans.declared_options import read_options
from truthlens.policy.plans.record_files import SHIPPED
from truthlens.policy.policy import DEFAULT_DECISION
from truthlens.policy.schema import (
    Behaviour,
    CostThreshold,
    MissRateThreshold,
    PluginConfiguration,
    WeightedDetector,
)
from truthlens.policy.validation import suggest
from truthlens.yamlfile.diagnostics import KeyPath, Report

if TYPE_CHECKING:
    from truthlens.policy.plans.fusion_record import FusionRecord, Fusions
    from truthlens.policy.plans.threshold_record import Calibrations, ThresholdRecord

_LOWEST_SENSIBLE_THRESHOLD = 0.05
_LONGEST_PATTERN = 2_000
# Who speaks in a conversation; a model does not vouch for itself, nor does a question answer itself.
_SPEAKING_ROLES = frozenset(("user", "human", "assistant", "model", "ai", "bot", "system", "developer"))

# Keys that mean by themselves what they say; the others are read by a method each.
_INHERITED = frozenset(
    ("enabled", "expected_rate", "aggregation", "streaming", "on_flagged", "on_unchecked", "max_unscored", "reasoning", "details", "model_id",
     "use_cpu", "warning_template", "warning_position", "require_disclaimer", "disclaimer_template", "timeout_s", "shadow")
)  # fmt: skip

# Sections that need no look at other keys.
_SECTIONS = ("agentic", "auto", "cascade", "mitigation", "retrieval", "stream")

# Of these a key without a value means the default; any other such key is not written.
_MAY_BE_NONE = frozenset(each.name for each in fields(Plan) if each.default is None)

_T = TypeVar("_T")
_I = TypeVar("_I", StandardSettings, PremiumSettings)
_S = TypeVar("_S", bound=Section)


def _without_opinions(base: Plan, written: Mapping[str, Any]) -> Plan:
    """Return ``base``, without the reader where an aggregation is named and nobody listed detectors: that joins scores, not claims."""
    if written.get("aggregation") is None or base.detectors is not DEFAULT_DETECTORS:
        return base
    kept = tuple(spec for spec in DEFAULT_DETECTORS if spec.name != DetectorName.READER)
    return replace(base, detectors=kept)


@dataclass(frozen=True, slots=True)
class PlanBuilder:
    """Makes plans and reports what is wrong with them.

    ``model_exists`` says whether a ``model_id`` can be loaded; ``models`` has the entries under ``models:``
    by name, or is ``None`` where any name may be called; ``sources`` those under ``sources:``. ``calibrations`` is asked where a plan names a
    threshold record; where it gives ``None``, none is read, and the plan keeps the threshold that it inherits.
    The same for ``fusions`` and weights of the verdict.
    """

    report: Report
    model_exists: Callable[[str], bool]
    models: Mapping[str, ModelSpec] | None
    calibrations: Callable[[], Calibrations | None]
    fusions: Callable[[], Fusions | None]
    sources: Mapping[str, SourceSpec]
    # The record that a decision's threshold stands in, for the plans that inherit it.
    _records: dict[str, ThresholdRecord] = field(default_factory=dict)
    _fitted: dict[str, FusionRecord] = field(default_factory=dict)

    def build(self, base: Plan, keys: Behaviour, path: KeyPath) -> Plan:
        """Return ``base`` with the written ``keys`` over it; ``path`` is their place."""
        written: dict[str, Any] = {
            name: value
            for name in keys.model_fields_set & _INHERITED
            if (value := getattr(keys, name)) is not None or name in _MAY_BE_NONE
        }
        mode = self._mode(base, keys, path)
        standard, premium = _over(base.standard, keys.standard), _over(base.premium, keys.premium)
        plan = replace(
            base,
            **written,
            mode=mode,
            threshold=self._threshold(base, keys, path),
            coefficients=self._coefficients(base, keys, path),
            detectors=self.detectors(_without_opinions(base, written), keys.detectors, path),
            evidence=self._evidence(base.evidence, keys, path),
            standard=_short_iterations(standard, keys, mode, other=Mode.PREMIUM),
            premium=_short_iterations(premium, keys, mode, other=Mode.STANDARD),
            **{name: _over(getattr(base, name), getattr(keys, name)) for name in _SECTIONS},
        )
        self._check_band(keys, path)
        self._check_model_folder(plan, keys, path)
        self._check_models(keys, path)
        self._check_names(plan, keys, path)
        report_conflicts(plan, keys, path, self.report, models=self.models)
        self._check_records(plan, keys, path)
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
        calibrations = self.calibrations()
        if calibrations is None:
            return base.threshold
        record = calibrations.record(keys, path, decision=base.decision)
        if record is None:
            return base.threshold
        self._records[base.decision] = record
        return record.threshold

    def _check_band(self, keys: Behaviour, path: KeyPath) -> None:
        low, high = keys.cascade.band if keys.cascade is not None else (0.0, 1.0)
        if low > high:
            self.report.error(
                (*path, "cascade", "band"),
                f"the band ends at {high:g}, below its begin at {low:g}",
                "write the lower score first",
            )

    def _coefficients(self, base: Plan, keys: Behaviour, path: KeyPath) -> Coefficients | None:
        if keys.fusion is None:
            return base.coefficients
        if keys.fusion == SHIPPED:
            return None
        fusions = self.fusions()
        if fusions is None:
            return base.coefficients
        record = fusions.record(keys.fusion, (*path, "fusion"), decision=base.decision)
        if record is None:
            return base.coefficients
        self._fitted[base.decision] = record
        return record.weights.coefficients

    def _check_records(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        """Report where a plan scores with something other than what measured its threshold and weights."""
        kinds: tuple[tuple[str, Mapping[str, Any], Callable[[], Any]], ...] = (
            ("threshold", self._records, self.calibrations),
            ("fusion", self._fitted, self.fusions),
        )
        for key, records, lookup in kinds if plan.enabled else ():
            own = getattr(keys, key) is not None
            record = records.get(plan.decision if own else DEFAULT_DECISION)
            if record is not None:
                lookup().check(record, plan, (*path, key) if own else path)

    def detectors(
        self, base: Plan, entries: Sequence[str | WeightedDetector] | None, path: KeyPath
    ) -> tuple[DetectorSpec, ...]:
        """Return the detectors that the list ``detectors`` in ``path`` names, those of ``base`` where there is none."""
        if entries is None:
            return base.detectors
        specs: list[DetectorSpec] = []
        types = detector_types()
        available = ", ".join(sorted(types))
        for index, entry in enumerate(entries):
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
                place, f"the detector '{declared.name}' asks no model", "name one in its options"
            )
        return tuple(dict.fromkeys(asked))

    def _options(
        self, declared: DetectorType, written: Mapping[str, object], place: KeyPath
    ) -> pydantic.BaseModel | None:
        """Return the options of a detector, ``None`` where it has its defaults."""
        noun = f"the detector '{declared.name}'"
        options = read_options(
            declared.options,
            written,
            place,
            self.report,
            noun=noun,
            name=declared.name,
            own=("name", "weight"),
        )
        return options if options is not None and options.model_fields_set else None

    def _evidence(self, base: EvidenceRules, keys: Behaviour, path: KeyPath) -> EvidenceRules:
        section = keys.evidence
        if section is None:
            return base
        for index, pattern in enumerate(section.user_patterns):
            self._check_pattern(pattern, (*path, "evidence", "user_patterns", index))
        for index, role in enumerate(section.roles):
            self._check_role(role, (*path, "evidence", "roles", index))
        return section.over(base)

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

    def _check_models(self, keys: Behaviour, path: KeyPath) -> None:
        """Report models that cannot be called."""
        if keys.premium is not None:
            for index, name in enumerate(keys.premium.verification_models):
                self.check_model(name, (*path, "premium", "verification_models", index))
            if keys.premium.judge_model is not None:
                self.check_model(keys.premium.judge_model, (*path, "premium", "judge_model"))
        if keys.agentic is not None:
            for key in AgenticSettings.MODEL_KEYS:
                if (name := getattr(keys.agentic, key)) is not None:
                    self.check_model(name, (*path, "agentic", key))

    def _check_names(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        """Report sources that are not there, and modes that ``auto`` cannot choose."""
        if keys.retrieval is not None:
            for index, name in enumerate(keys.retrieval.sources):
                if name not in self.sources:
                    remedy = suggest(name, self.sources, otherwise=f"add {name!r} to `sources`")
                    place = (*path, "retrieval", "sources", index)
                    self.report.error(place, f"the source {name!r} is not under `sources`", remedy)
            if plan.retrieval.when and not plan.retrieval.sources:
                self.report.error(
                    (*path, "retrieval", "when"),
                    "no source is named to retrieve from",
                    "list one under retrieval.sources",
                )
        if keys.auto is not None and plan.enabled:
            for index, mode in enumerate(keys.auto.modes):
                if mode is Mode.AUTO:
                    self.report.error(
                        (*path, "auto", "modes", index),
                        f"auto cannot choose {mode}",
                        "list lightweight, standard, premium or agentic",
                    )

    def _check_model_folder(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        written = keys.model_fields_set
        if "model_id" in written and plan.model_id is not None and not self.model_exists(plan.model_id):
            self.report.warn(
                (*path, "model_id"),
                f"there is no model folder {plan.model_id!r}; the bundled model scores instead, on the CPU",
                "put the model there, fix the path, or remove the key",
            )


def _or(written: _T | None, inherited: _T) -> _T:
    return inherited if written is None else written


def _over(base: _S, section: _S | None) -> _S:
    """Return ``base`` with what is written in ``section`` over it."""
    return base if section is None else section.over(base)


def _short_iterations(base: _I, keys: Behaviour, mode: Mode, *, other: Mode) -> _I:
    """Return ``base`` with the plugin's short ``max_iterations``, unless that is for the ``other`` mode."""
    if not isinstance(keys, PluginConfiguration) or keys.max_iterations is None or mode is other:
        return base
    section = keys.standard if isinstance(base, StandardSettings) else keys.premium
    if section is not None and "max_iterations" in section.model_fields_set:
        return base
    return base.model_copy(update={"max_iterations": keys.max_iterations})

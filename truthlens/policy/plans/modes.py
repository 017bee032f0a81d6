"""The settings of the modes that act on answers: inheritance, and what their keys mean together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from truthlens.core.records.calls import ModelSpec
from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import (
    AutoSettings,
    Consensus,
    MitigationSettings,
    Plan,
    PremiumSettings,
    StandardSettings,
)
from truthlens.policy.schema import Behaviour, PluginConfiguration, Section
from truthlens.yamlfile.diagnostics import KeyPath, Report

AVAILABLE_MODES = frozenset({Mode.LIGHTWEIGHT, Mode.STANDARD, Mode.PREMIUM, Mode.AUTO})

_I = TypeVar("_I", StandardSettings, PremiumSettings)
_S = TypeVar("_S", StandardSettings, PremiumSettings, AutoSettings, MitigationSettings)


@dataclass(frozen=True, slots=True)
class ModeSettings:
    """Reads the mode settings of one plan; ``check_model`` reports a model that cannot be called."""

    report: Report
    models: Mapping[str, ModelSpec] | None
    check_model: Callable[[str, KeyPath], None]

    def apply(self, plan: Plan, keys: Behaviour, path: KeyPath) -> Plan:
        """Return ``plan`` (its mode already chosen) with the mode settings of ``keys`` over its own."""
        self._check_models(keys, path)
        standard = _short_iterations(_over(plan.standard, keys.standard), keys, plan.mode, other=Mode.PREMIUM)
        premium = _short_iterations(_over(plan.premium, keys.premium), keys, plan.mode, other=Mode.STANDARD)
        plan = replace(
            plan,
            standard=standard,
            premium=premium,
            auto=_over(plan.auto, keys.auto),
            mitigation=_over(plan.mitigation, keys.mitigation),
        )
        if plan.enabled:
            self._check_mode(plan, keys, path)
            self._check_standard(plan, keys, path)
            self._check_premium(plan, keys, path)
            self._check_auto(plan, keys, path)
            self._check_bounds(plan, keys, path)
        return plan

    def _check_models(self, keys: Behaviour, path: KeyPath) -> None:
        if keys.premium is None:
            return
        place = (*path, "premium")
        for index, name in enumerate(keys.premium.verification_models or ()):
            self.check_model(name, (*place, "verification_models", index))
        if keys.premium.judge_model is not None:
            self.check_model(keys.premium.judge_model, (*place, "judge_model"))

    def _check_mode(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        written = keys.model_fields_set
        key = "mode" if "mode" in written else "default_mode"
        decides = bool(written & {"mode", "default_mode"})
        if decides and plan.mode not in AVAILABLE_MODES:
            self.report.warn(
                (*path, key),
                f"mode {plan.mode} is not carried out by this version; the answer is "
                "detected and warned as in lightweight",
                "write lightweight, standard, premium or auto, or leave it for a later version",
            )
        if "max_iterations" in written and plan.mode is Mode.LIGHTWEIGHT:
            message = "max_iterations has no effect in mode lightweight"
            self.report.warn((*path, "max_iterations"), message, "remove it, or choose another mode")

    def _check_standard(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        convergence = keys.standard.convergence_threshold if keys.standard else None
        if convergence is not None and convergence > plan.threshold:
            self.report.warn(
                (*path, "standard", "convergence_threshold"),
                f"{convergence:g} lies above the threshold {plan.threshold:g}, at which the answer would still be "
                "flagged; the threshold is used instead",
                "lower it, or remove it",
            )

    def _check_premium(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        settings, written = plan.premium, keys.premium
        consensus = written.consensus if written else None
        if consensus is Consensus.JUDGE and settings.judge_model is None:
            self.report.error(
                (*path, "premium", "consensus"),
                "consensus judge needs a judge_model",
                "name one, or choose segment_vote, weighted_fusion, replacement or debate",
            )
        if consensus is Consensus.DEBATE and settings.judge_model is None and settings.verification_models:
            self.report.warn(
                (*path, "premium", "consensus"),
                f"there is no judge_model; {settings.verification_models[0]!r} writes the answer after the debate",
                "name a judge_model",
            )
        decides = bool(keys.model_fields_set & {"mode", "default_mode", "premium"})
        if decides and plan.mode is Mode.PREMIUM and not settings.verification_models:
            key = "mode" if "mode" in keys.model_fields_set else "default_mode"
            self.report.warn(
                (*path, key if key in keys.model_fields_set else "premium"),
                "mode premium has no verification_models, so that there is no second opinion; flagged answers are "
                "refined as in standard",
                "name models under premium.verification_models, or write standard",
            )

    def _check_auto(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        modes = keys.auto.modes if keys.auto else None
        for index, mode in enumerate(modes or ()):
            if mode not in AVAILABLE_MODES - {Mode.AUTO}:
                self.report.error(
                    (*path, "auto", "modes", index),
                    f"auto cannot choose {mode}",
                    "list lightweight, standard or premium",
                )
        if (
            modes
            and plan.mode is Mode.AUTO
            and Mode.PREMIUM in modes
            and not plan.premium.verification_models
        ):
            self.report.warn(
                (*path, "auto", "modes"),
                "premium has no verification_models and is never chosen",
                "name models under premium.verification_models, or remove premium",
            )

    def _check_bounds(self, plan: Plan, keys: Behaviour, path: KeyPath) -> None:
        section = keys.mitigation
        if section is None:
            return
        place = (*path, "mitigation")
        if section.deadline_s is not None and section.deadline_s < plan.timeout_s:
            self.report.warn(
                (*place, "deadline_s"),
                f"{section.deadline_s:g} s are less than one detection may take (timeout_s {plan.timeout_s:g})",
                "raise it, or lower timeout_s",
            )
        priced = any(model.price is not None for model in (self.models or {}).values())
        if section.max_cost_usd is not None and not priced:
            message = "no model under `models` has a price, so that nothing is counted"
            self.report.warn((*place, "max_cost_usd"), message, "write prices, or bound max_tokens instead")


def _over(base: _S, section: Section | None) -> _S:
    """Return ``base`` with what is written in ``section`` over it; their keys have the same names."""
    if section is None:
        return base
    known = {field.name for field in fields(base)}
    written: dict[str, Any] = {name: getattr(section, name) for name in section.model_fields_set & known}
    changes: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in written.items()
        if value is not None
    }
    return replace(base, **changes)


def _short_iterations(base: _I, keys: Behaviour, mode: Mode, *, other: Mode) -> _I:
    """Return ``base`` with the plugin's short ``max_iterations``, unless that is for the ``other`` mode."""
    if not isinstance(keys, PluginConfiguration) or keys.max_iterations is None or mode is other:
        return base
    section = keys.standard if isinstance(base, StandardSettings) else keys.premium
    if section is not None and section.max_iterations is not None:
        return base
    return replace(base, max_iterations=keys.max_iterations)

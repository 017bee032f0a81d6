"""Check what a policy needs of the place where it is served: for ``check``, the start and every reload.

Not here: what does not depend on the policy (ports, certificates, Envoy), and what depends on how the server
is called (whether it has an upstream).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from truthlens.core.errors import DetectorError, ModelError
from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import Plan
from truthlens.detection.building import DetectorSet
from truthlens.policy import Diagnostic, InvalidPolicyError, Policy, Severity
from truthlens.process.model_store import ModelShelf, SimilarityShelf, has_model, placement_of
from truthlens.process.settings import Settings


@dataclass(frozen=True, slots=True)
class Ready:
    """The detectors of a policy, warm, and what an operator should know before it is served."""

    detectors: DetectorSet
    warnings: tuple[Diagnostic, ...]


async def make_ready(
    policy: Policy, shelf: ModelShelf, similarity: SimilarityShelf, *, environ: Mapping[str, str]
) -> Ready:
    """Load what the plans of ``policy`` need; nothing that is in force changes.

    Args:
        policy: to be served.
        shelf: loads encoders.
        similarity: loads the model by which modes find claims to compare.
        environ: where the keys of models come from.

    Raises:
        InvalidPolicyError: a model that a plan needs cannot be used here, or a detector cannot be built; each with its plan.
    """
    errors: list[Diagnostic] = []
    loaded = []  # kept until the detectors hold them
    for plan in _by_model(policy):
        try:
            loaded.append(await asyncio.to_thread(shelf.encoder_of, policy, plan))
        except ModelError as error:
            errors.append(_of_plan(policy, plan, f"its model cannot be used here: {error}"))
    comparing = [plan for plan in policy.all_plans if compares(plan)]
    if comparing:
        try:
            await similarity()
        except ModelError as error:
            message = f"it compares answers by meaning, and the model for that cannot be used here: {error}"
            errors.append(_of_plan(policy, comparing[0], message))
    if errors:
        raise InvalidPolicyError(errors)
    try:
        detectors = await asyncio.to_thread(shelf.detectors_for, policy)
    except (DetectorError, ModelError) as error:
        plan = policy.plan_named(getattr(error, "decision", "")) or policy.default
        remedy = "fix what the message names, or remove it from the detector's options"
        raise InvalidPolicyError(
            [_of_plan(policy, plan, f"a detector cannot be built: {error}", remedy)]
        ) from error
    warnings = [*elsewhere(policy, shelf.settings), *_keys(policy, environ)]
    return Ready(detectors, tuple(sorted(warnings, key=lambda each: each.line)))


def compares(plan: Plan) -> bool:
    """Whether ``plan`` needs the similarity model."""
    others = plan.corrects and plan.mode not in (Mode.STANDARD, Mode.AGENTIC)
    return others and bool(plan.premium.verification_models)


def called(plan: Plan) -> tuple[str, ...]:
    """The models that ``plan`` calls by name."""
    asked = dict.fromkeys(name for spec in plan.asking for name in spec.models)
    searching = plan.agentic.models if plan.corrects and plan.may_search else ()
    others = plan.premium.models if plan.mode in (Mode.PREMIUM, Mode.AUTO) and plan.corrects else ()
    return tuple(dict.fromkeys((*others, *searching, *asked)))


def _by_model(policy: Policy) -> Iterator[Plan]:
    """Yield the first plan of each model: the default, whose model is always loaded, and enabled ones."""
    seen: set[str | None] = set()
    for plan in policy.all_plans:
        if plan.model_id not in seen and (plan.enabled or plan is policy.default):
            seen.add(plan.model_id)
            yield plan


def elsewhere(policy: Policy, settings: Settings) -> Iterator[Diagnostic]:
    """Yield a warning, one a model, that ``use_cpu`` of a plan has no effect; of a folder that is missing the policy's own warning tells."""
    told = set()
    for plan in policy.all_plans:
        missing = plan.model_id is not None and not has_model(plan.model_id, settings)
        if not plan.enabled or missing or plan.model_id in told:
            continue
        on_cpu = placement_of(policy, plan, settings).use_cpu
        if plan.use_cpu is not on_cpu:
            told.add(plan.model_id)
            where = "the CPU" if on_cpu else "a GPU"
            message = f"use_cpu is {str(plan.use_cpu).lower()}, but its model runs on {where}"
            remedy = "write use_cpu where model_id is written, the same for every decision with that model_id"
            yield _of_plan(policy, plan, message, remedy, Severity.WARNING)


def _keys(policy: Policy, environ: Mapping[str, str]) -> Iterator[Diagnostic]:
    models = policy.models or {}
    for name in sorted({name for plan in policy.all_plans if plan.calls_models for name in called(plan)}):
        spec = models.get(name)
        if spec is not None and spec.api_key_env and not environ.get(spec.api_key_env):
            line, key = policy.places["model", name]
            message = (
                f"the environment variable {spec.api_key_env!r} is not set, so {name!r} cannot be called"
            )
            yield Diagnostic(
                Severity.WARNING, policy.file, line, key, message, "set it where the server runs"
            )


def _of_plan(
    policy: Policy,
    plan: Plan,
    message: str,
    remedy: str = "fix the model or what is installed, or change model_id, use_cpu or mode",
    severity: Severity = Severity.ERROR,
) -> Diagnostic:
    line, key = policy.places["decision", plan.decision]
    return Diagnostic(severity, policy.file, line, key, message, remedy)

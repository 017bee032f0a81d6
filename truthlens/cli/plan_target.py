"""The plan that a command works on: its model, its detectors, its place in the policy file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from truthlens.core.errors import PolicyError
from truthlens.core.records.calls import ModelSpec
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import ModelIdentity
from truthlens.detection.models.fingerprint import model_identity
from truthlens.model_store import find_model, has_model, scoring_folder
from truthlens.policy import InvalidPolicyError, Policy, default_policy, load_policy
from truthlens.settings import Settings


@dataclass(frozen=True, slots=True)
class Target:
    """A plan with its model, and the policy file that it comes from.

    ``threshold`` is the plan's present one, ``None`` where there is no policy or it cannot be used. ``models`` are the
    policy's, by name.
    """

    plan: Plan
    max_windows: int
    folder: Path
    identity: ModelIdentity
    config: Path | None
    threshold: float | None
    models: Mapping[str, ModelSpec]


def find_target(settings: Settings, config: Path | None, decision: str, model: str | None) -> Target:
    """Return the plan of ``decision`` (without ``config``: the built-in one), and the model that scores.

    Raises:
        PolicyError: the policy cannot be used, has no such decision, or detection is off in it.
        ModelError: there is no such model, or it cannot be used.
    """
    policy = load_plain(config, settings) if config else default_policy()
    plan = plan_of(policy, decision)
    if not plan.enabled:
        raise PolicyError(
            f"{config}: detection is off in the decision {decision!r}; there are no scores; name another with --decision"
        )
    folder = find_model(model, settings) if model is not None else scoring_folder(plan.model_id, settings)
    threshold = threshold_now(config, settings, decision) if config else None
    return Target(
        plan,
        policy.limits.max_windows,
        folder,
        model_identity(folder),
        config,
        threshold,
        policy.models or {},
    )


def load_plain(config: Path, settings: Settings) -> Policy:
    """Load the policy without its threshold records: the one to be made may be missing or not fit."""
    return load_policy(config, model_exists=model_finder(settings), use_records=False)


def threshold_now(config: Path, settings: Settings, decision: str) -> float | None:
    """Return the threshold of ``decision``, its record included; ``None`` where the policy cannot be used."""
    try:
        policy = load_policy(config, model_exists=model_finder(settings), identify=identifier(settings))
    except InvalidPolicyError:
        return None
    return plan_of(policy, decision).threshold


def plan_of(policy: Policy, decision: str) -> Plan:
    """Return the plan of ``decision``.

    Raises:
        PolicyError: there is no such decision.
    """
    plan = policy.plan_named(decision)
    if plan is None:
        names = ", ".join(policy.decision_names)
        raise PolicyError(f"{policy.file}: there is no decision {decision!r}; known: {names}")
    return plan


def identifier(settings: Settings) -> Callable[[str | None], ModelIdentity]:
    """Return a function that says which model scores for a ``model_id``; by default the bundled one."""
    return lambda model_id: model_identity(scoring_folder(model_id, settings))


def model_finder(settings: Settings) -> Callable[[str], bool]:
    """Return a function that says whether there is a folder for a ``model_id``."""
    return partial(has_model, settings=settings)

"""The plan that a command works on: of the policy that is given, else of the shipped one, as the gateway has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from truthlens.cli.plan_lines import described
from truthlens.core.errors import PolicyError
from truthlens.core.net import Address
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import ModelIdentity
from truthlens.detection.models.fingerprint import model_identity
from truthlens.lab.evaluate.plan_scorer import PlanScorer
from truthlens.llm.offline import OfflineModels
from truthlens.policy import InvalidPolicyError, Policy, load_policy
from truthlens.process.model_store import Placement, find_model, has_model, placement_of, scoring_folder
from truthlens.process.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings, shipped_policy
from truthlens.process.start_checks import elsewhere


@dataclass(frozen=True, slots=True)
class Target:
    """A plan of a policy, with what an option put in the place of its own, and the model that scores.

    ``threshold`` is the one that the gateway has, or the option's; ``None`` where the policy cannot be served as it is.
    ``overrides`` names the options that changed anything.
    """

    settings: Settings
    policy: Policy
    plan: Plan
    placement: Placement
    threshold: float | None
    overrides: tuple[str, ...] = ()

    @property
    def identity(self) -> ModelIdentity:
        """Return which model scores."""
        return model_identity(self.placement.folder)

    def scorer(self, models: OfflineModels | None = None) -> PlanScorer:
        """Return what scores by the plan; ``models``, which its detectors ask, is closed with it.

        Raises:
            DetectorError: a detector asks models, and there is nothing to ask them with.
        """
        return PlanScorer(
            self.plan,
            self.placement.folder,
            use_cpu=self.placement.use_cpu,
            threads=self.settings.threads,
            max_windows=self.policy.limits.max_windows,
            models=models,
        )

    def announce(self) -> None:
        """Say on standard error by which policy, decision, detectors and threshold is scored, and what to know of it."""
        told = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        changed = f" ({', '.join(self.overrides)})" if self.overrides else ""
        plan = described(self.plan, self.threshold)
        told.print(f"policy {self.policy.file}, decision {plan}{changed}", style="dim")
        for warning in (*self.policy.warnings, *elsewhere(self.policy, self.settings)):
            told.print(warning.render(), style="dim")


def offline_settings(config: Path | None, models: Path | None, *, threads: int = 1) -> Settings:
    """Return the settings of a command that serves nothing."""
    return Settings(
        Address.parse(DEFAULT_EXTPROC, name="--extproc"),
        Address.parse(DEFAULT_CONSOLE, name="--console"),
        config=config or shipped_policy(),
        models=models,
        threads=threads,
    )


def find_target(
    settings: Settings,
    decision: str,
    *,
    model: str | None = None,
    threshold: float | None = None,
    use_records: bool = True,
    use_fusion: bool = True,
) -> Target:
    """Return the plan of ``decision`` and the model that scores.

    Args:
        settings: whose policy is meant.
        decision: its name.
        model: scores in the place of the plan's own.
        threshold: in the place of the plan's own.
        use_records: false lets the decision's threshold be unknown, as the record that has it is yet to be made.
        use_fusion: false takes the shipped weights of the verdict, as the plan's own are yet to be fitted.

    Raises:
        PolicyError: the policy cannot be used, or has no such decision.
        ModelError: there is no such model, or it cannot be used.
    """
    policy = load(settings, use_records=use_records and threshold is None, use_fusion=use_fusion)
    plan, overrides = plan_of(policy, decision), []
    if threshold is not None:
        plan = replace(plan, threshold=threshold)
        overrides.append("--threshold")
    if model is not None:
        plan = replace(plan, model_id=str(find_model(model, settings)))
        overrides.append(f"--model {model}")
    now = plan.threshold if use_records else _threshold_now(settings, decision)
    return Target(settings, policy, plan, placement_of(policy, plan, settings), now, tuple(overrides))


def demand_detection(target: Target) -> None:
    """Check that the plan scores anything.

    Raises:
        PolicyError: detection is off in it.
    """
    if not target.plan.enabled:
        raise PolicyError(
            f"{target.policy.file}: detection is off in the decision {target.plan.decision!r}; there are no scores; name"
            " another with --decision"
        )


def load(settings: Settings, *, use_records: bool = True, use_fusion: bool = True) -> Policy:
    """Load the policy of ``settings``.

    Raises:
        InvalidPolicyError: it has mistakes.
    """
    return load_policy(
        settings.config,
        model_exists=model_finder(settings),
        identify=identifier(settings),
        use_records=use_records,
        use_fusion=use_fusion,
    )


def _threshold_now(settings: Settings, decision: str) -> float | None:
    try:
        return plan_of(load(settings), decision).threshold
    except InvalidPolicyError:
        return None


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

"""``check``: what the server would say of a policy file, and whether the policy fits the Envoy in front of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from truthlens.cli import options
from truthlens.cli.plan_lines import described
from truthlens.cli.plan_target import identifier, model_finder, offline_settings
from truthlens.envoy.checks.timeouts import clock_diagnostics, longest_hold_s, read_envoy
from truthlens.policy import InvalidPolicyError, Policy, compile_policy
from truthlens.policy.compile import check_text, read_text
from truthlens.process.model_store import ModelShelf, SimilarityShelf
from truthlens.process.settings import DEFAULT_DRAIN_GRACE_S, Settings
from truthlens.process.start_checks import make_ready
from truthlens.telemetry.metrics import Metrics
from truthlens.yamlfile.diagnostics import Diagnostic, Severity

out = Console(soft_wrap=True, highlight=False, markup=False)


def check(
    file: Annotated[Path, typer.Argument(help="Policy file (YAML).", exists=True, dir_okay=False)],
    envoy: Annotated[
        list[Path] | None,
        typer.Option(
            "--envoy",
            help="Envoy bootstrap (YAML or JSON) that the policy will run behind: also finds holds of the policy that do "
            "not fit its timeouts, and says which value to change. Repeat for several.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings as well.")] = False,
    drain_grace: Annotated[
        float,
        options.setting("drain-grace", "What `serve` is started with: --envoy compares it, too.", min=0),
    ] = DEFAULT_DRAIN_GRACE_S,
    models: options.Models = None,
) -> None:
    """Validate a policy: every mistake with file, line, key and remedy. Exit status 1 if there is one."""
    settings = offline_settings(file, models)
    text, policy, found = _found(file, settings)
    sound = _report(file, found, strict=strict)
    if sound and policy is not None:
        chosen = policy.chosen_by_clients()
        for plan in (policy.default, *policy.plans):
            words = ", ".join(f"{atom.type} {atom.name}" for atom in chosen.get(plan.decision, ()))
            reach = f"; a client can reach it by what it sends ({words})" if words else ""
            out.print(f"  {described(plan, plan.threshold)}{reach}")
    if envoy and policy is not None:
        plans = (*policy.plans, policy.default)
        held_s = max((longest_hold_s(plan) for plan in plans if plan.enabled), default=0.0)
        note = f", answers of {file} are held for up to {held_s:g} s"
        for path in envoy:
            sound &= _report(path, _fit(policy, text, path), strict=strict, note=note)
        sound &= _fits_a_stop(held_s, drain_grace) or not strict
    elif envoy:
        for path in envoy:
            out.print(f"{path}: not checked, for {file} cannot be used")
    if not sound:
        raise typer.Exit(1)


def _found(file: Path, settings: Settings) -> tuple[str, Policy | None, list[Diagnostic]]:
    """Return the text of ``file``, its policy if it could be served here, and all that the server reports."""
    text = ""
    try:
        text = read_text(file)
        policy = compile_policy(
            text, file=str(file), model_exists=model_finder(settings), identify=identifier(settings)
        )
        shelf, similarity = ModelShelf(settings, Metrics()), SimilarityShelf(settings)
        ready = asyncio.run(make_ready(policy, shelf, similarity, environ=os.environ))
    except InvalidPolicyError as error:
        return text, None, _with_warnings(error, file, text, settings)
    return text, policy, sorted((*policy.warnings, *ready.warnings), key=lambda each: each.line)


def _with_warnings(error: InvalidPolicyError, file: Path, text: str, settings: Settings) -> list[Diagnostic]:
    said = check_text(
        text, file=str(file), model_exists=model_finder(settings), identify=identifier(settings)
    )
    return [*error.diagnostics, *(each for each in said if each.severity is Severity.WARNING)]


def _fit(policy: Policy, policy_text: str, envoy: Path) -> list[Diagnostic]:
    """Return what is wrong with ``policy`` behind the Envoy configuration at ``envoy``."""
    try:
        text = read_text(envoy)
    except InvalidPolicyError as error:
        return list(error.diagnostics)
    return clock_diagnostics(policy, read_envoy(text, file=str(envoy)), policy_text=policy_text)


def _fits_a_stop(held_s: float, grace_s: float) -> bool:
    """Return whether a stop waits for the longest hold; where it does not, a line says so."""
    if held_s > grace_s:
        out.print(
            f"warning: a stop cuts answers that are held for longer than the --drain-grace of {grace_s:g} s;"
            f" start truthlens serve with --drain-grace {held_s:g} or more"
        )
    return held_s <= grace_s


def _report(file: Path, found: Sequence[Diagnostic], *, strict: bool, note: str = "") -> bool:
    """Print what was found and a last line that sums it up; false where the command is to fail for it."""
    for diagnostic in found:
        out.print(diagnostic.render())
    errors = sum(diagnostic.severity is Severity.ERROR for diagnostic in found)
    warnings = len(found) - errors
    if errors or (strict and warnings):
        out.print(f"{file}: {errors} error(s), {warnings} warning(s)")
        return False
    out.print(f"{file}: ok" + (f", {warnings} warning(s)" if warnings else "") + note)
    return True

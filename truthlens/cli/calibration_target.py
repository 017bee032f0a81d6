"""What all ways to ``calibrate`` share: which plan is meant, and saving, setting and printing the result."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from truthlens import __version__
from truthlens.cli import options
from truthlens.cli.plan_options import PlanOptions
from truthlens.cli.plan_target import (
    Target,
    demand_detection,
    identifier,
    load,
    model_finder,
    plan_of,
)
from truthlens.core.errors import PolicyError, TruthLensError
from truthlens.core.records.plan import Plan
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.detection.models.fingerprint import sha256_of
from truthlens.policy import Severity
from truthlens.policy.compile import check_text, read_text
from truthlens.policy.files import replace_file
from truthlens.policy.plans.records import DataFile, ScoredWith, fusion_of, options_of
from truthlens.policy.plans.threshold_edit import with_key
from truthlens.process.settings import Settings

out = Console(highlight=False, soft_wrap=True, markup=False)
# Progress goes where it does not mix with --json.
progress_out = Console(stderr=True, highlight=False)

# A threshold that was calibrated with other weights no longer fits: that is said, and is for the next command.
_LEFT = {"threshold": "still has {} other error(s)", "fusion": "now has {} error(s)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationJob(PlanOptions):
    """The options that all ways to calibrate share; its fields are what Typer reads."""

    write: Annotated[
        bool, typer.Option("--write", help="Set that decision's threshold in the policy file.")
    ] = False
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Threshold record to write (JSON). With --write and --max-miss-rate by default beside the policy.",
            dir_okay=False,
        ),
    ] = None
    limit: options.Limit = None
    as_json: options.AsJson = False

    def target(self, *, use_fusion: bool = True) -> Target:
        """Return the plan whose threshold, or without ``use_fusion`` whose weights, are yet to be found.

        Raises:
            PolicyError: the policy cannot be used, or the plan detects nothing.
            ModelError: the model cannot be used.
        """
        target = self.find(use_records=False, use_fusion=use_fusion)
        demand_detection(target)
        return target

    def beside_policy(self, kind: str) -> Path | None:
        """Return where a record is written that the policy is to name, by default beside the policy."""
        if self.output is not None or not self.write:
            return self.output
        assert self.config is not None
        return self.config.parent / f"{self.decision}.{kind}.json"

    def finish(
        self,
        target: Target,
        value: float | str | dict[str, Any],
        data: Mapping[str, Any],
        lines: Iterable[str | Table],
        *,
        key: str = "threshold",
        output: Path | None = None,
    ) -> None:
        """Set the decision's ``key`` to ``value`` where asked to; print ``data`` as JSON, or ``lines``."""
        remaining = set_value(target, value, key=key) if self.write else 0
        if self.as_json:
            typer.echo(json.dumps({**data, "policy": str(self.config) if self.write else None}))
            return
        for line in lines:
            out.print(line)
        if output is not None:
            out.print(f"record     {output}")
        if self.write:
            out.print(f"policy     {self.config}: {key} of {self.decision} set")
        if remaining:
            out.print(f"           it {_LEFT[key].format(remaining)}: truthlens check {self.config}")


def name_of(output: Path, target: Target) -> str:
    """Return ``output`` as the policy of ``target`` names it: relative to its own folder."""
    folder = target.settings.config.parent.resolve()
    return Path(os.path.relpath(output.resolve(), folder)).as_posix()


def set_value(target: Target, value: float | str | dict[str, Any], *, key: str = "threshold") -> int:
    """Write a value of a decision's ``key`` into the policy; the result is how many errors it has elsewhere.

    Raises:
        PolicyError: it would be an error itself, or the file was changed meanwhile.
    """
    settings, decision = target.settings, target.plan.decision
    path = settings.config
    # Scoring takes a while: what counts is the file as it is now.
    text = read_text(path)
    plan = plan_of(load(settings, use_records=False, use_fusion=key != "fusion"), decision)
    if _scoring(plan) != _scoring(target.plan):
        raise PolicyError(
            f"{path}: the decision {decision!r} was changed while the answers were scored; run it again"
        )
    changed = with_key(text, value, decision=decision, file=str(path), key=key)
    before, after = (_errors(content, path, settings) for content in (text, changed))
    new = [line for line in after if line not in before and (key == "threshold" or key in line.split(":")[0])]
    if new:
        raise PolicyError("\n".join(new))
    raw = path.read_bytes()
    if raw.decode("utf-8-sig") != text:
        raise PolicyError(f"{path}: was changed by someone else just now; run it again")
    replace_file(path, changed if not raw.startswith(b"\xef\xbb\xbf") else "\ufeff" + changed)
    return len(after)


def scored_with(target: Target) -> ScoredWith:
    """Return what the scores of ``target`` come from, for a record."""
    plan, model = target.plan, target.identity
    return ScoredWith(
        model=model.name,
        model_sha256=model.sha256,
        aggregation=plan.aggregation or model.aggregation,
        detectors={spec.name: spec.weight for spec in plan.detectors},
        options=options_of(plan),
        fusion=fusion_of(plan),
        scoring_version=SCORING_VERSION,
        expected_rate=plan.expected_rate,
    )


def made(target: Target) -> dict[str, Any]:
    """Return what every record says of its making: from which scores, when and by which version."""
    return {
        "scored_with": scored_with(target),
        "date": datetime.now(UTC).date().isoformat(),
        "truthlens": __version__,
    }


def data_file(file: Path) -> DataFile:
    """Return the name of a file and its digest."""
    return DataFile(name=file.name, sha256=sha256_of(file))


def save(path: Path, content: str) -> None:
    """Write a record, whole or not at all.

    Raises:
        TruthLensError: the file cannot be written.
    """
    try:
        replace_file(path, content)
    except OSError as error:
        raise TruthLensError(f"{path} cannot be written: {error.strerror}; give another --output") from error


def _scoring(plan: Plan) -> tuple[Any, ...]:
    return (
        plan.model_id,
        plan.use_cpu,
        plan.aggregation,
        plan.detectors,
        plan.cascade,
        plan.expected_rate,
        plan.coefficients,
    )


def _errors(text: str, path: Path, settings: Settings) -> list[str]:
    found = check_text(
        text, file=str(path), model_exists=model_finder(settings), identify=identifier(settings)
    )
    return [f"{d.key}: {d.message}; {d.remedy}" for d in found if d.severity is Severity.ERROR]

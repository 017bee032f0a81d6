"""``eval``: figures of a plan's detectors on labelled answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from truthlens.cli import options
from truthlens.cli.asked_models import calls_line, models_of
from truthlens.cli.evaluation_tables import show
from truthlens.cli.plan_target import Target, find_target
from truthlens.core.errors import ModelError, PolicyError
from truthlens.core.net import Address
from truthlens.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings
from truthlens.training.evaluate.evaluation import Blind, Quality
from truthlens.training.evaluate.evaluation import evaluate as evaluate_files
from truthlens.training.evaluate.plan_scorer import PlanScorer
from truthlens.training.evaluate.report import machine, prepare, write_report

out = Console(highlight=False, markup=False)
# Progress goes where it does not mix with --json.
progress_out = Console(stderr=True, highlight=False)


def evaluate(
    files: options.LabelledFiles,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            help="Write report.md, figures.json and plots into this folder (needs the extra truthlens[eval]).",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Response threshold (default: the policy's; without one, the model's).",
            show_default=False,
        ),
    ] = None,
    base_rate: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=0.999,
            help="Weigh rows so that this share is unsupported (default: as they are).",
            show_default=False,
        ),
    ] = None,
    quality: Annotated[Quality, typer.Option(help="Which rows, by their annotation quality.")] = Quality.ALL,
    resamples: Annotated[
        int, typer.Option(min=0, max=100_000, help="Resamples for the 95 % intervals; 0 for none.")
    ] = 1000,
    config: options.Config = None,
    decision: Annotated[str, typer.Option(help="Decision of the policy whose plan is measured.")] = "default",
    blind: Annotated[
        Path | None,
        typer.Option(
            help="Run folder of a blind model (train --blind): say what is gained over it (needs truthlens[train]).",
            exists=True,
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    model: options.ModelName = None,
    models: options.Models = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="First rows of each file only.", show_default=False)
    ] = None,
    threads: options.Threads = 1,
    upstream: options.Upstream = None,
    replies: options.Replies = None,
    recorded: options.Recorded = False,
) -> None:
    """Score labelled answers with all detectors of a plan: figures of answers, spans and characters, rankings, latency.

    Each line: {context: [text], query, response, label, spans?: [{start, end}]}. Figures that a file has no labels for
    are null. docs/evaluation.md says what each figure means.
    """
    if report is not None:
        prepare(report)
    if config is None and decision != "default":
        raise typer.BadParameter("--decision needs --config POLICY")
    settings = Settings(
        Address.parse(DEFAULT_EXTPROC, name="--extproc"),
        Address.parse(DEFAULT_CONSOLE, name="--console"),
        models=models,
        threads=threads,
    )
    target = find_target(settings, config, decision, model)
    compared = None if blind is None else _blind(blind, threads)
    flags = {
        "--config": config,
        "--decision": None if decision == "default" else decision,
        "--blind": blind,
        "--model": model,
        "--models": models,
        "--threshold": threshold,
        "--base-rate": base_rate,
        "--quality": None if quality is Quality.ALL else quality,
        "--resamples": None if resamples == 1000 else resamples,
        "--limit": limit,
        "--threads": None if threads == 1 else threads,
        "--report": report,
        "--upstream": upstream,
        "--replies": replies,
    }
    asked = models_of(target.plan, target.models, upstream=upstream, replies=replies, recorded=recorded)
    with PlanScorer(
        target.plan, target.folder, threads=threads, max_windows=target.max_windows, models=asked
    ) as scorer:
        found = evaluate_files(
            files,
            score=scorer,
            model=_name(scorer),
            threshold=_threshold(target, scorer) if threshold is None else threshold,
            token_limit=None if scorer.encoder is None else scorer.encoder.manifest.tau_span,
            limit=limit,
            base_rate=base_rate,
            quality=quality,
            rounds=resamples,
            about=_about(target, scorer, threads, _command(files, flags)),
            detectors=scorer.detectors,
            blind=compared,
            console=progress_out,
        )
    written = None if report is None else write_report(found, report)
    if as_json:
        calls = {} if asked is None else {"models": asked.summary(found.pooled.figures["rows"])}
        typer.echo(json.dumps({**found.as_json(), **calls}))
        return
    show(found, out)
    if asked is not None:
        out.print(calls_line(asked.summary(found.pooled.figures["rows"])))
    if written is not None:
        out.print(f"report in {written}", soft_wrap=True)


def _blind(run: Path, threads: int) -> Blind:
    try:
        from truthlens.training.evaluate.blind_model import load_blind
    except ImportError as error:
        raise ModelError(
            f"--blind needs {error.name}; install it with: pip install 'truthlens[train]'"
        ) from error
    return load_blind(run, threads=threads)


def _name(scorer: PlanScorer) -> str:
    return "no model" if scorer.encoder is None else scorer.encoder.manifest.name


def _threshold(target: Target, scorer: PlanScorer) -> float:
    """Return the policy's threshold; without a policy, the model's, or the built-in plan's where it has none."""
    if target.config is None:
        return (
            target.plan.threshold if scorer.encoder is None else scorer.encoder.manifest.recommended_threshold
        )
    if target.threshold is None:
        raise PolicyError(
            f"{target.config} cannot be used as it is, so its threshold is not known; see truthlens check"
            f" {target.config}, or give --threshold"
        )
    return target.threshold


def _about(target: Target, scorer: PlanScorer, threads: int, command: str) -> dict[str, Any]:
    encoder = scorer.encoder
    aggregation = target.plan.aggregation or (None if encoder is None else encoder.manifest.aggregation)
    return {
        "aggregation": None if aggregation is None else aggregation.value,
        "revision": None if encoder is None else encoder.manifest.revision or None,
        "runtime": None if encoder is None else encoder.runtime,
        "config": None if target.config is None else str(target.config),
        "decision": target.plan.decision,
        "detectors": [{"name": spec.name, "weight": spec.weight} for spec in target.plan.detectors],
        "machine": machine(threads),
        "command": command,
    }


def _command(files: Sequence[Path], flags: Mapping[str, object]) -> str:
    words = ["truthlens", "eval", *map(str, files)]
    for flag, value in flags.items():
        if value is not None:
            words += [flag, str(value)]
    return shlex.join(words)

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
from truthlens.cli.evaluation_tables import show
from truthlens.cli.plan_options import PlanOptions, calls_line, takes_plan
from truthlens.cli.plan_target import Target, demand_detection
from truthlens.lab.evaluate.evaluation import Blind, Quality
from truthlens.lab.evaluate.evaluation import evaluate as evaluate_files
from truthlens.lab.evaluate.plan_scorer import PlanScorer
from truthlens.lab.evaluate.report import machine, prepare, write_report

out = Console(highlight=False, markup=False)
# Progress goes where it does not mix with --json.
progress_out = Console(stderr=True, highlight=False)


@takes_plan
def evaluate(
    *,
    files: options.LabelledFiles,
    as_json: options.AsJson = False,
    report: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            help="Write report.md, figures.json and plots into this folder (needs the extra truthlens[eval]).",
        ),
    ] = None,
    threshold: options.Threshold = None,
    base_rate: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=0.999, help="Weigh rows so that this share is unsupported (default: as they are)."
        ),
    ] = None,
    quality: Annotated[Quality, typer.Option(help="Which rows, by their annotation quality.")] = Quality.ALL,
    resamples: Annotated[
        int, typer.Option(min=0, max=100_000, help="Resamples for the 95 % intervals; 0 for none.")
    ] = 1000,
    plan: PlanOptions,
    blind: Annotated[
        Path | None,
        typer.Option(
            help="Run folder of a blind model (train --blind): say what is gained over it (needs truthlens[train]).",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    limit: options.Limit = None,
) -> None:
    """Score labelled answers with all detectors of a plan: figures of answers, spans and characters, rankings, latency.

    Each line: {context: [text], query, response, label, spans?: [{start, end}]}. Figures that a file has no labels for
    are null. Which policy, decision, detectors and threshold are measured goes to standard error; docs/evaluation.md says what
    each figure means.
    """
    if report is not None:
        prepare(report)
    target = plan.find(threshold=threshold)
    demand_detection(target)
    compared = None if blind is None else _blind(blind, plan.threads)
    flags = {
        "--config": plan.config,
        "--decision": None if plan.decision == "default" else plan.decision,
        "--blind": blind,
        "--model": plan.model,
        "--models": plan.models,
        "--threshold": threshold,
        "--base-rate": base_rate,
        "--quality": None if quality is Quality.ALL else quality,
        "--resamples": None if resamples == 1000 else resamples,
        "--limit": limit,
        "--threads": None if plan.threads == 1 else plan.threads,
        "--report": report,
        "--upstream": plan.upstream,
        "--replies": plan.replies,
    }
    asked = plan.asked(target)
    with target.scorer(asked) as scorer:
        target.announce()
        found = evaluate_files(
            files,
            score=scorer,
            model=_name(scorer),
            threshold=target.plan.threshold,
            token_limit=None if scorer.encoder is None else scorer.encoder.manifest.tau_span,
            limit=limit,
            base_rate=base_rate,
            quality=quality,
            rounds=resamples,
            about=_about(target, scorer, plan.threads, _command(files, flags)),
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
    with options.needing("train", "--blind"):
        from truthlens.lab.train.blind_model import load_blind
    return load_blind(run, threads=threads)


def _name(scorer: PlanScorer) -> str:
    return "no model" if scorer.encoder is None else scorer.encoder.manifest.name


def _about(target: Target, scorer: PlanScorer, threads: int, command: str) -> dict[str, Any]:
    encoder = scorer.encoder
    aggregation = target.plan.aggregation or (None if encoder is None else encoder.manifest.aggregation)
    return {
        "aggregation": None if aggregation is None else aggregation.value,
        "revision": None if encoder is None else encoder.manifest.revision or None,
        "runtime": None if encoder is None else encoder.runtime,
        "config": target.policy.file,
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

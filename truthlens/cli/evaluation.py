"""``eval``: figures of a model on labelled answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from truthlens.cli import options
from truthlens.core.net import Address
from truthlens.model_store import find_model
from truthlens.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings
from truthlens.training.evaluate.evaluation import Evaluation, Quality
from truthlens.training.evaluate.evaluation import evaluate as evaluate_files
from truthlens.training.evaluate.report import machine, prepare, write_report
from truthlens.training.evaluate.served_encoder import ServedEncoder, load_served
from truthlens.training.evaluate.summary import BREAKDOWNS

out = Console(highlight=False, markup=False)
# Progress goes where it does not mix with --json.
progress_out = Console(stderr=True, highlight=False)
_NO_VALUE = "–"


def evaluate(
    files: Annotated[
        list[Path], typer.Argument(help="Labelled JSON lines, plain or .gz.", exists=True, dir_okay=False)
    ],
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
        typer.Option(min=0, max=1, help="Response threshold (default: the model's).", show_default=False),
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
    model: options.ModelName = None,
    models: options.Models = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="First rows of each file only.", show_default=False)
    ] = None,
    threads: options.Threads = 1,
) -> None:
    """Score labelled answers: precision, recall and F1 at example, span and character level, AUROC, AUPRC, calibration, latency.

    Each line: {context: [text], query, response, label, spans?: [{start, end}]}. Figures that a file has no labels for
    are null. docs/evaluation.md says what each figure means.
    """
    if report is not None:
        prepare(report)
    settings = Settings(
        Address.parse(DEFAULT_EXTPROC, name="--extproc"),
        Address.parse(DEFAULT_CONSOLE, name="--console"),
        models=models,
        threads=threads,
    )
    encoder = load_served(find_model(model, settings), threads=threads)
    encoder.warm_up()
    flags = {
        "--model": model,
        "--models": models,
        "--threshold": threshold,
        "--base-rate": base_rate,
        "--quality": None if quality is Quality.ALL else quality,
        "--resamples": None if resamples == 1000 else resamples,
        "--limit": limit,
        "--threads": None if threads == 1 else threads,
        "--report": report,
    }
    found = evaluate_files(
        files,
        score=encoder,
        model=encoder.manifest.name,
        threshold=encoder.manifest.recommended_threshold if threshold is None else threshold,
        token_limit=encoder.manifest.tau_span,
        limit=limit,
        base_rate=base_rate,
        quality=quality,
        rounds=resamples,
        about=_about(encoder, threads, _command(files, flags)),
        console=progress_out,
    )
    written = None if report is None else write_report(found, report)
    if as_json:
        typer.echo(json.dumps(found.as_json()))
        return
    _show(found)
    if written is not None:
        out.print(f"report in {written}", soft_wrap=True)


def _about(encoder: ServedEncoder, threads: int, command: str) -> dict[str, Any]:
    manifest = encoder.manifest
    return {
        "aggregation": manifest.aggregation.value,
        "revision": manifest.revision or None,
        "runtime": encoder.runtime,
        "machine": machine(threads),
        "command": command,
    }


def _command(files: Sequence[Path], flags: Mapping[str, object]) -> str:
    words = ["truthlens", "eval", *map(str, files)]
    for flag, value in flags.items():
        if value is not None:
            words += [flag, str(value)]
    return shlex.join(words)


def _show(found: Evaluation) -> None:
    rows = [(_short(one.name), one.figures) for one in found.files]
    if len(rows) > 1:
        rows.append((found.pooled.name, found.pooled.figures))
    out.print(
        f"{found.settings['model']}, answers flagged from a score of {found.settings['threshold']:g} on"
    )
    out.print(_answers("file", rows), _parts("file", rows))
    for key, column in BREAKDOWNS.items():
        named: Mapping[str, Any] = found.pooled.figures[key]
        if len(named) > 1:
            out.print(_answers(column, list(named.items())))
    best = found.pooled.figures["best"]
    if best is not None:
        out.print(
            f"best F1 in hindsight {best['f1']:.3f} at {best['threshold']:.3f} (optimistic: chosen on these rows)"
        )


def _short(name: str) -> str:
    """Return a file's name without its folder and its usual endings."""
    return Path(name).name.removesuffix(".gz").removesuffix(".jsonl")


def _answers(first: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    """Return the table of whole answers.

    ``_parts`` is a second one, so that each fits on a narrow terminal.

    ``_parts`` is a second one, so that each fits on a narrow terminal.
    """
    table = _table(first, "rows", "unsup.", "AUROC", "AUPRC", "P", "R", "F1")
    for name, row in rows:
        figures = [row["example"][key] for key in ("auroc", "auprc", "precision", "recall", "f1")]
        table.add_row(name, str(row["rows"]), str(row["unsupported"]), *map(_figure, figures))
    return table


def _parts(first: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    """Return the table of parts of answers, calibration and time."""
    table = _table(first, "char F1", "span F1", "ECE", "Brier", "AURC", "p50 ms", "p99 ms", "ms/1k")
    for name, row in rows:
        risk = row["risk_coverage"] or {}
        figures = [row["char"]["f1"], row["span"]["f1"], row["ece"], row["brier"], risk.get("aurc")]
        times = [row["latency_ms"][key] for key in ("p50", "p99", "per_1000_tokens")]
        table.add_row(
            name, *map(_figure, figures), *(_NO_VALUE if value is None else f"{value:.0f}" for value in times)
        )
    return table


def _table(first: str, *columns: str) -> Table:
    table = Table()
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _figure(value: float | None) -> str:
    return _NO_VALUE if value is None else f"{value:.3f}".removeprefix("0")

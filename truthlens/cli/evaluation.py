"""``eval``: figures of a model on labelled answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from truthlens.app import find_model
from truthlens.cli import options
from truthlens.core.records import Answer, AnswerKind, DetectorResult, Endpoint, Exchange, Passage, Provenance
from truthlens.detection.encoder import EncoderDetector
from truthlens.detection.engine import load_encoder
from truthlens.proxy.config import Address
from truthlens.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings

out = Console(highlight=False)
# Progress goes where it does not mix with --json.
progress_out = Console(stderr=True, highlight=False)


def evaluate(
    files: Annotated[
        list[Path], typer.Argument(help="Labelled JSON lines, plain or .gz.", exists=True, dir_okay=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Response threshold (default: the model's).", show_default=False),
    ] = None,
    model: options.ModelName = None,
    models: options.Models = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="First rows of each file only.", show_default=False)
    ] = None,
    threads: options.Threads = 1,
) -> None:
    """Score labelled answers: precision, recall and F1 at example, span and character level, AUROC, AUPRC, ECE, latency.

    Each line: {context: [text], query, response, label, spans?: [{start, end}]}. Figures that a file has no labels for
    are null.
    """
    from truthlens.hub.evaluate import evaluate as evaluate_files

    encoder = load_encoder(find_model(model, _settings(models, threads)), threads=threads)
    encoder.warm_up()
    result = evaluate_files(
        files,
        score=_scorer(encoder),
        model=encoder.manifest.name,
        threshold=encoder.manifest.recommended_threshold if threshold is None else threshold,
        limit=limit,
        console=progress_out,
    )
    if as_json:
        typer.echo(json.dumps(result))
        return
    _show(result)


def _settings(models: Path | None, threads: int) -> Settings:
    return Settings(
        Address.parse(DEFAULT_EXTPROC, name="--extproc"),
        Address.parse(DEFAULT_CONSOLE, name="--console"),
        models=models,
        threads=threads,
    )


def _scorer(encoder: EncoderDetector) -> Callable[[str, Sequence[str], str], DetectorResult]:
    def score(query: str, passages: Sequence[str], answer: str) -> DetectorResult:
        evidence = tuple(Passage(text, Provenance.DOCUMENTS) for text in passages if text.strip())
        exchange = Exchange(Endpoint.CHAT, "", query, evidence)
        return encoder.detect(exchange, Answer(0, AnswerKind.TEXT, answer))

    return score


def _show(result: dict[str, Any]) -> None:
    table = Table(title=result["model"])
    for column in (
        "file",
        "rows",
        "AUROC",
        "AUPRC",
        "P",
        "R",
        "F1",
        "char P",
        "char R",
        "char F1",
        "ECE",
        "p50 ms",
        "p99 ms",
    ):
        table.add_column(column, justify="left" if column == "file" else "right")
    for row in result["files"]:
        example, char, latency = row["example"], row["char"], row["latency_ms"]
        figures = [example[k] for k in ("auroc", "auprc", "precision", "recall", "f1")]
        figures += [char[k] for k in ("precision", "recall", "f1")] + [row["ece"]]
        table.add_row(
            Path(row["file"]).name,
            str(row["rows"]),
            *("–" if value is None else f"{value:.3f}" for value in figures),
            *("–" if latency[k] is None else f"{latency[k]:.1f}" for k in ("p50", "p99")),
        )
    out.print(table)

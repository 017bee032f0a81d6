"""``models``: the models that can score answers, and the way from a checkpoint to one that serves well."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.progress import track as rich_track
from rich.table import Column, Table
from rich.text import Text

from truthlens.cli import options
from truthlens.core.errors import ModelError
from truthlens.detection.encoder.inputs.manifest import load_manifest
from truthlens.detection.similarity.model import load_similarity_manifest
from truthlens.model_store import SIMILARITY_MODEL
from truthlens.settings import models_folder

# Names of folders may hold brackets, which are no markup.
out = Console(highlight=False, markup=False)
# Progress goes where it does not mix with results.
progress_out = Console(stderr=True, highlight=False)

Folder = Annotated[Path, typer.Argument(help="Model folder.", exists=True, file_okay=False)]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        file_okay=False,
        help="Folder to write (default: the same folder).",
        show_default=False,
    ),
]
Threads = Annotated[int, typer.Option(envvar="TRUTHLENS_THREADS", min=1, help="CPU threads.")]


def list_models(
    models: options.Models = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the models in the models folder, with kind, base, languages, window, prompt template and size.

    A detector scores answers (model_id of a policy); a similarity model compares answers for the modes that ask several.
    """
    shelf = models_folder(models)
    if not shelf.is_dir():
        raise ModelError(f"there is no folder {shelf}; give another with --models")
    rows = [_row(folder) for folder in _folders(shelf)]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table()
    columns = {
        "name": "name",
        "kind": "kind",
        "base": "base",
        "languages": "languages",
        "max_tokens": "tokens",
        "template": "template",
        "megabytes": "MB",
    }
    for column in columns.values():
        table.add_column(column, overflow="fold", no_wrap=column == "kind")
    for row in rows:
        if "error" in row:
            table.add_row(str(row["name"]), str(row["kind"]), Text("cannot be used", "red"))
            continue
        table.add_row(
            *(", ".join(row[key]) if isinstance(row[key], list) else str(row[key] or "") for key in columns)
        )
    out.print(table if rows else f"no models in {shelf}")
    for row in rows:
        if "error" in row:
            out.print(str(row["error"]), style="red")


def _folders(shelf: Path) -> list[Path]:
    # A leading dot marks a folder that a pull is still filling.
    return sorted(path for path in shelf.iterdir() if path.is_dir() and not path.name.startswith("."))


def _row(folder: Path) -> dict[str, Any]:
    kind = "similarity" if folder.name == SIMILARITY_MODEL else "detector"
    try:
        figures = _similarity(folder) if kind == "similarity" else _detector(folder)
    except ModelError as error:
        return {"name": folder.name, "kind": kind, "folder": str(folder), "error": str(error)}
    return {"name": figures.pop("name"), "kind": kind, "folder": str(folder), **figures}


def _detector(folder: Path) -> dict[str, Any]:
    manifest = load_manifest(folder)
    weights = [
        file for pattern in ("**/*.onnx", "**/*.onnx.data", "*.safetensors") for file in folder.glob(pattern)
    ]
    return {
        "name": manifest.name,
        "base": manifest.base,
        "revision": manifest.revision,
        "languages": list(manifest.languages),
        "max_tokens": manifest.input.max_tokens,
        "template": manifest.input.template,
        "aggregation": manifest.aggregation.value,
        "threshold": manifest.recommended_threshold,
        "weights": sorted(str(file.relative_to(folder)) for file in weights),
        "megabytes": round(sum(file.stat().st_size for file in weights) / 1e6, 1),
    }


def _similarity(folder: Path) -> dict[str, Any]:
    manifest = load_similarity_manifest(folder)
    return {
        "name": manifest.name,
        "base": manifest.base,
        "languages": list(manifest.languages),
        "max_tokens": manifest.max_tokens,
        "template": "similarity",
        "megabytes": round(sum(file.stat().st_size for file in folder.glob("*.onnx")) / 1e6, 1),
    }


def pull_model(
    name: Annotated[
        str,
        typer.Argument(
            help="A known name (--known lists them), or OWNER/NAME on the hub.", show_default=False
        ),
    ] = "",
    revision: Annotated[
        str, typer.Option(help="Branch, tag or commit; its commit is kept in the manifest.")
    ] = "main",
    template: Annotated[
        str | None,
        typer.Option(
            help="Prompt template, where the name is not known (default: by layout).", show_default=False
        ),
    ] = None,
    folder_name: Annotated[
        str | None,
        typer.Option("--as", help="Name of the new folder (default: the model's).", show_default=False),
    ] = None,
    models: options.Models = None,
    endpoint: Annotated[
        str, typer.Option(envvar="HF_ENDPOINT", help="Address of the hub, or of a mirror.")
    ] = "https://huggingface.co",
    token: Annotated[
        str | None,
        typer.Option(envvar="HF_TOKEN", help="For repositories that are not public.", show_default=False),
    ] = None,
    known: Annotated[bool, typer.Option("--known", help="List the names that are known, and stop.")] = False,
) -> None:
    """Fetch a model of the Hugging Face hub into the models folder: revision pinned, every file checked by its digest."""
    from truthlens.training.fetch.hf_client import Hub
    from truthlens.training.fetch.known_checkpoints import KNOWN
    from truthlens.training.fetch.pull import pull

    if known:
        # A name is to be typed: it is folded, never cut.
        table = Table(Column("name", overflow="fold"), "template", "max tokens", "languages", "licence")
        for model in KNOWN.values():
            table.add_row(
                model.name, model.template, str(model.max_tokens), ", ".join(model.languages), model.licence
            )
        out.print(table)
        return
    if not name:
        raise typer.BadParameter("give a model; --known lists names", param_hint="NAME")
    with _downloads() as begin:
        pulled = pull(
            Hub(endpoint, token=token),
            name,
            models_folder(models),
            revision=revision,
            template=template,
            folder_name=folder_name,
            begin=begin,
        )
    what = f"{pulled.manifest.base} at {pulled.manifest.revision[:12]}"
    if not pulled.fetched:
        out.print(f"{what} is in {pulled.folder} already")
        return
    out.print(
        f"{what} is in {pulled.folder}: {pulled.bytes / 1e6:.1f} MB, {len(pulled.manifest.files)} files checked"
    )
    out.print(f"faster on a CPU: truthlens models export {pulled.folder}")


@contextmanager
def _downloads() -> Iterator[Callable[[str, int], Callable[[int], None]]]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=progress_out) as progress:

        def begin(name: str, size: int) -> Callable[[int], None]:
            task = progress.add_task(name, total=size)
            return lambda received: progress.advance(task, received)

        yield begin


def export_model(
    folder: Folder,
    output: Output = None,
    tolerance: Annotated[
        float, typer.Option(min=0, max=1, help="Largest difference of token probabilities that is accepted.")
    ] = 1e-4,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    threads: Threads = 1,
) -> None:
    """Write a Hugging Face token classifier as ONNX (float32) and compare it with the original.

    ModernBERT layouts get block-local attention. Needs the extra: pip install 'truthlens[torch]'.
    """
    with _workshop("exporting"):
        from truthlens.training.export.convert import export_folder
    target = output or folder
    report = export_folder(folder, target, tolerance=tolerance, threads=threads)
    if as_json:
        typer.echo(json.dumps(_plain(report)))
        return
    out.print(
        f"{target / 'model.onnx'}: {report.layout} attention; largest difference of token probabilities "
        f"{report.alone:.1e}, in a padded batch {report.padded:.1e} ({report.tokens} tokens, {report.windows} windows "
        f"of up to {report.longest})"
    )
    out.print(f"smaller and faster: truthlens models quantize {target}")


def quantize_model(
    folder: Folder,
    output: Output = None,
    data: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Labelled JSON lines to measure AUROC and F1 on.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows of --data, evenly chosen, that are scored.")] = 300,
    force: Annotated[bool, typer.Option("--force", help="Keep the int8 file whatever it costs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    threads: Threads = 1,
) -> None:
    """Round a model's ONNX file to int8, say what that cost, and keep it only within bounds.

    Bounds: 99th percentile of the change of token probabilities 0.03, and with --data 0.5 points of AUROC and of F1.
    Beyond them float32 is kept and the exit status is 1. Needs the extra: pip install 'truthlens[torch]'.
    """
    with _workshop("rounding"):
        from truthlens.training.data.dataset import read_examples
        from truthlens.training.export.quantize import quantize_folder
    rows = [] if data is None else read_examples(data)
    rows = rows[:: max(1, -(-len(rows) // limit))]
    target = output or folder
    scored = rich_track(rows, description="scoring", console=progress_out) if rows else ()
    report = quantize_folder(folder, target, rows=scored, force=force, threads=threads)
    if as_json:
        typer.echo(json.dumps(_plain(report)))
    else:
        _show_cost(report, target)
    if report.refused and not force:
        raise typer.Exit(1)


def _show_cost(report: Any, target: Path) -> None:
    smaller = f"{report.bytes_before / 1e6:.1f} → {report.bytes_after / 1e6:.1f} MB"
    out.print(
        f"int8: {smaller}; change of token probabilities: 99th percentile {report.change_p99:.4f}, largest "
        f"{report.change_max:.4f}; {100 * report.agreement:.1f} % of {report.tokens} tokens decided alike"
    )
    if report.quality is None:
        out.print("accuracy was not measured: give labelled answers with --data")
    else:
        quality = report.quality
        ranked = (
            "–" if quality.auroc_before is None else f"{quality.auroc_before:.4f} → {quality.auroc_after:.4f}"
        )
        out.print(
            f"{quality.rows} answers: AUROC {ranked}, F1 {quality.f1_before:.4f} → {quality.f1_after:.4f}"
        )
    if report.refused:
        refused = f"beyond the bounds: {report.refused}. float32 is kept, unless you use --force"
        out.print(refused, style="red")
    else:
        out.print(f"kept in {target}")


@contextmanager
def _workshop(doing: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ModelError(
            f"{doing} needs {error.name}; install it with: pip install 'truthlens[torch]'"
        ) from error


def _plain(report: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(report)

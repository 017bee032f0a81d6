"""``models``: the way from a checkpoint to a model that serves well; ``model_list`` lists those that are there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.progress import track as rich_track
from rich.table import Column, Table

from truthlens.cli import options
from truthlens.cli.model_list import list_models
from truthlens.detection.detectors.reader.template import SENTENCE_PAIR
from truthlens.process.settings import models_folder


class ModelKind(StrEnum):
    """What a fetched model becomes."""

    DETECTOR = "detector"
    READER = "reader"


# Names of folders may hold brackets, which are no markup.
out = Console(highlight=False, markup=False)
# Progress goes where it does not mix with results.
progress_out = Console(stderr=True, highlight=False)

Folder = Annotated[Path, typer.Argument(help="Model folder.", exists=True, file_okay=False)]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", file_okay=False, help="Folder to write (default: the same folder)."),
]


def pull_model(
    name: Annotated[
        str, typer.Argument(help="A known name (--known lists them), or OWNER/NAME on the hub.")
    ] = "",
    revision: Annotated[
        str, typer.Option(help="Branch, tag or commit; its commit is kept in the manifest.")
    ] = "main",
    kind: Annotated[
        ModelKind,
        typer.Option(
            "--as",
            help="detector: a token classifier (model_id of a policy); reader: a sequence classifier for the detector reader.",
        ),
    ] = ModelKind.DETECTOR,
    template: Annotated[
        str | None,
        typer.Option(
            help="Name of a prompt template, where the model is not known (default: by layout). Of a reader the text that it reads, "
            "with {evidence} and {claim}, and {pair} between the two of a pair (default: {evidence}{pair}{claim})."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Of a reader: what its classes mean, in order, where config.json does not tell; such as entailment,neutral,contradiction."
        ),
    ] = None,
    evidence_tokens: Annotated[
        int, typer.Option(min=32, help="Of a reader: tokens of evidence that are read with a claim.")
    ] = 96,
    folder_name: Annotated[
        str | None, typer.Option("--folder", help="Name of the new folder (default: the model's).")
    ] = None,
    models: options.Models = None,
    endpoint: Annotated[
        str, typer.Option(envvar="HF_ENDPOINT", help="Address of the hub, or of a mirror.")
    ] = "https://huggingface.co",
    token: Annotated[
        str | None, typer.Option(envvar="HF_TOKEN", help="For repositories that are not public.")
    ] = None,
    known: Annotated[bool, typer.Option("--known", help="List the names that are known, and stop.")] = False,
    threads: options.Threads = 1,
) -> None:
    """Fetch a model of the Hugging Face hub into the models folder: revision pinned, every file checked by its digest.

    With --as reader NAME may also be a folder; the checkpoint is exported, rounded to int8 and compared with the original, which
    needs the extra: pip install 'truthlens[torch]'.
    """
    from truthlens.lab.fetch.hf_client import Hub
    from truthlens.lab.fetch.known_checkpoints import KNOWN
    from truthlens.lab.fetch.pull import pull

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
    if kind is ModelKind.READER:
        with options.needing("torch", "making a reader"):
            from truthlens.lab.export.reader_checkpoint import ReaderWishes
            from truthlens.lab.fetch.pull_reader import pull_reader
        wishes = ReaderWishes(
            tuple(labels.split(",")) if labels else None, template or SENTENCE_PAIR, evidence_tokens
        )
        with _downloads() as begin:
            made = pull_reader(
                Hub(endpoint, token=token),
                name,
                models_folder(models),
                wishes,
                revision=revision,
                folder_name=folder_name,
                begin=begin,
                threads=threads,
            )
        _show_reader(made)
        return
    if labels is not None:
        raise typer.BadParameter("--labels goes with --as reader")
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


def _show_reader(made: Any) -> None:
    manifest, made_of = made.manifest, made.conversion
    what = f"{manifest.base} at {manifest.commit[:12]}" if manifest.commit else manifest.base
    if made_of is None:
        out.print(f"{what} is in {made.folder} already")
        return
    out.print(f"{what} is in {made.folder}: {made_of.megabytes:.1f} MB; licence {manifest.licence}")
    out.print(f"classes: {', '.join(label.replace('_', ' ') for label in manifest.labels)}")
    if "contradicted" not in manifest.labels:
        out.print("it never says that a claim is contradicted, only that it is not stated")
    out.print(f"as in PyTorch within {made_of.export:.1e}, over {made_of.pairs} pairs")
    if made_of.rounded:
        out.print(f"int8: 99th percentile of the change of a probability {made_of.rounding_p99:.4f}")
    else:
        changed = (
            f"int8 changes probabilities by {made_of.rounding_p99:.4f} (99th percentile), more than 0.02"
        )
        out.print(f"{changed}: float32 is kept, of four times the size and twice the time", style="red")
    out.print(f"in a policy: detectors: [encoder, numbers, {{name: reader, model: {made.folder.name}}}]")
    out.print("then fit the weights of the verdict: truthlens calibrate --fusion --config POLICY --write")


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
    threads: options.Threads = 1,
) -> None:
    """Write a Hugging Face token classifier as ONNX (float32) and compare it with the original.

    ModernBERT layouts get block-local attention. Needs the extra: pip install 'truthlens[torch]'.
    """
    with options.needing("torch", "exporting"):
        from truthlens.lab.export.convert import export_folder
    target = output or folder
    report = export_folder(folder, target, tolerance=tolerance, threads=threads)
    if as_json:
        typer.echo(json.dumps(asdict(report)))
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
        typer.Option(exists=True, dir_okay=False, help="Labelled JSON lines to measure AUROC and F1 on."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows of --data, evenly chosen, that are scored.")] = 300,
    force: Annotated[bool, typer.Option("--force", help="Keep the int8 file whatever it costs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    threads: options.Threads = 1,
) -> None:
    """Round a model's ONNX file to int8, say what that cost, and keep it only within bounds.

    Bounds: 99th percentile of the change of token probabilities 0.03, and with --data 0.5 points of AUROC and of F1.
    Beyond them float32 is kept and the exit status is 1. Needs the extra: pip install 'truthlens[torch]'.
    """
    with options.needing("torch", "rounding"):
        from truthlens.lab.data.dataset import read_examples
        from truthlens.lab.export.quantize import quantize_folder
    rows = [] if data is None else read_examples(data)
    rows = rows[:: max(1, -(-len(rows) // limit))]
    target = output or folder
    scored = rich_track(rows, description="scoring", console=progress_out) if rows else ()
    report = quantize_folder(folder, target, rows=scored, force=force, threads=threads)
    if as_json:
        typer.echo(json.dumps(asdict(report)))
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


models = typer.Typer(
    help="The models that score answers, and those that compare them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
models.command("list")(list_models)
models.command("pull")(pull_model)
models.command("export")(export_model)
models.command("quantize")(quantize_model)

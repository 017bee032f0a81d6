"""``models list``: the models in the models folder, and what each is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from truthlens.cli import options
from truthlens.core.errors import ModelError
from truthlens.detection.detectors.reader.model import is_reader, load_reader_manifest
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.detection.similarity import load_similarity_manifest
from truthlens.process.model_store import SIMILARITY_MODEL
from truthlens.process.settings import models_folder

# Names of folders may hold brackets, which are no markup.
out = Console(highlight=False, markup=False)


def list_models(
    models: options.Models = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the models in the models folder, with kind, base, languages, window, prompt template and size.

    A detector scores answers (model_id of a policy), a reader judges claims for the detector of that name; a similarity model
    compares answers for the modes that ask several.
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
        # A reader's template is a text, of several lines perhaps.
        cells = row | {"template": "" if row["kind"] == "reader" else row["template"]}
        table.add_row(
            *(", ".join(cell) if isinstance(cell := cells[key], list) else str(cell or "") for key in columns)
        )
    out.print(table if rows else f"no models in {shelf}")
    for row in rows:
        if "error" in row:
            out.print(str(row["error"]), style="red")


def _folders(shelf: Path) -> list[Path]:
    # A leading dot marks a folder that a pull is still filling.
    return sorted(path for path in shelf.iterdir() if path.is_dir() and not path.name.startswith("."))


def _row(folder: Path) -> dict[str, Any]:
    kind, figures_of = "detector", _detector
    if folder.name == SIMILARITY_MODEL:
        kind, figures_of = "similarity", _similarity
    elif is_reader(folder):
        kind, figures_of = "reader", _reader
    try:
        figures = figures_of(folder)
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


def _reader(folder: Path) -> dict[str, Any]:
    manifest = load_reader_manifest(folder)
    return {
        "name": manifest.name,
        "base": manifest.base,
        "revision": manifest.commit,
        "licence": manifest.licence,
        "languages": list(manifest.languages),
        "labels": list(manifest.labels),
        "max_tokens": manifest.input.max_tokens,
        "template": manifest.input.template or "reader",
        "megabytes": round(sum((folder / name).stat().st_size for name in manifest.files) / 1e6, 1),
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

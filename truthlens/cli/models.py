"""``models``: the models that can score answers."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from truthlens.cli import options
from truthlens.detection.manifest import load_manifest
from truthlens.settings import models_folder

out = Console(highlight=False)


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

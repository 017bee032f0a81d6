"""``index``: make the index of a folder of documents, or bring it up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.updating import UpdateReport, update_index

# Names of files may hold brackets, which are no markup.
out = Console(soft_wrap=True, highlight=False, markup=False)
progress_out = Console(stderr=True, highlight=False)

_WAIT_S = 10.0


def index(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder of Markdown, text, HTML and PDF files.",
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            dir_okay=False,
            help="Index file: `index` of the source in the policy (default: the source's own default).",
        ),
    ] = None,
    patterns: Annotated[
        list[str] | None,
        typer.Option("--pattern", help="Files that are read, such as '*.md'; may be given again."),
    ] = None,
    piece_chars: Annotated[
        int | None, typer.Option(min=200, max=10_000, help="Characters of a passage, roughly.")
    ] = None,
    max_file_bytes: Annotated[int | None, typer.Option(min=1, help="Larger files are skipped.")] = None,
    max_files: Annotated[int | None, typer.Option(min=1, help="Files that are read at most.")] = None,
) -> None:
    """Make the index of a folder for the source `folder`, or bring it up to date.

    Only files that changed are read, and a gateway may search meanwhile. Give the options that the policy
    gives its source: an index of others is made anew.

    truthlens index handbook/

    truthlens index handbook/ --out handbook.db --pattern '*.md' --pattern '*.pdf'
    """
    given = {
        "index": str(file) if file is not None else None,
        "patterns": tuple(patterns) if patterns else None,
        "piece_chars": piece_chars,
        "max_file_bytes": max_file_bytes,
        "max_files": max_files,
    }
    try:
        options = FolderOptions(
            path=str(folder), **{name: value for name, value in given.items() if value is not None}
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise typer.BadParameter(f"{first['loc'][0]}: {first['msg']}") from None
    base = Path.cwd()
    target = options.index_file(base)
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=progress_out, transient=True, disable=not progress_out.is_terminal
    ) as shown:
        task = shown.add_task("reading", total=None)
        report = update_index(
            options.root(base),
            target,
            options,
            wait_s=_WAIT_S,
            progress=lambda done, total: shown.update(task, completed=done, total=total),
        )
    _print(report, target)


def _print(report: UpdateReport, file: Path) -> None:
    out.print(
        f"{report.files} files, {report.pieces} passages ({report.read} read, {report.removed} removed)"
    )
    if report.skipped:
        out.print(f"{len(report.skipped)} skipped:")
        for each in report.skipped:
            out.print(f"  {each.path}: {each.reason}")
    out.print(f"index: {file}")

"""``review export`` and ``review import``."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from truthlens.cli import options
from truthlens.cli.review.filters import filtered
from truthlens.cli.review.opening import opened
from truthlens.cli.review.resolving import Reviewer, reviewer_name
from truthlens.cli.review.terminal import harmless
from truthlens.desk.labelled import labelled_rows
from truthlens.review.records import Filters
from truthlens.review.store.transfer import MOST_LINE, entry_lines, import_lines


@filtered
def export(
    filters: Filters,
    database: options.QueueDatabase = None,
    to: Annotated[
        Path | None,
        typer.Option(help="File to write, in one step (default: standard output).", dir_okay=False),
    ] = None,
    entries: Annotated[
        bool,
        typer.Option("--entries", help="Whole entries, for `truthlens review import` into another queue."),
    ] = False,
) -> None:
    """Write settled entries as labelled JSON lines, which `eval`, `calibrate` and `train` read; or whole entries.

    Entries without texts give no labelled row; how many they are is said on standard error.
    """
    left_out: Counter[str] = Counter()
    with opened(database) as queue:
        rows = entry_lines(queue, filters) if entries else labelled_rows(queue, filters, left_out=left_out)
        with _output(to) as stream:
            count = _write(rows, stream)
    what = "entries" if entries else "labelled rows"
    typer.echo(f"{count} {what}{f' in {to}' if to else ''}", err=True)
    for why, number in left_out.items():
        typer.echo(f"{number} settled entries left out: {why}", err=True)


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="JSON lines of `truthlens review export --entries`, or verdicts: {id, label} or {id, status}; - for standard input."
        ),
    ],
    database: options.QueueDatabase = None,
    reviewer: Reviewer = None,
) -> None:
    """Add exported entries, or settle entries by labelled lines. Exit status 1 where lines could not be taken.

    Entries keep their ids; those that are there already stay as they are. A verdict does not change one that is there.
    """
    with opened(database) as queue:
        try:
            if str(file) == "-":
                done = import_lines(queue, _lines(sys.stdin), actor=reviewer_name(reviewer))
            else:
                with file.open(encoding="utf-8") as stream:
                    done = import_lines(queue, _lines(stream), actor=reviewer_name(reviewer))
        except UnicodeDecodeError as error:
            raise typer.BadParameter(f"{file} is not UTF-8 text") from error
    for problem in done.problems:
        typer.echo(harmless(problem), err=True)
    typer.echo(
        f"{done.added} entries added, {done.known} there already, {done.settled} settled, {done.unchanged} unchanged, {done.failed} failed"
    )
    if done.failed:
        raise typer.Exit(1)


def _lines(stream: TextIO) -> Iterator[str]:
    # One character more, so that what is too long is seen to be.
    while line := stream.readline(MOST_LINE + 1):
        yield line
        while len(line) > MOST_LINE and not line.endswith("\n") and line:
            line = stream.readline(MOST_LINE)


def _write(rows: Iterable[dict[str, Any]], stream: TextIO) -> int:
    count = 0
    for row in rows:
        # ASCII, for standard output may be a terminal, and the texts are users'.
        stream.write(json.dumps(row) + "\n")
        count += 1
    return count


@contextmanager
def _output(to: Path | None) -> Iterator[TextIO]:
    """Open what is written to: a file is replaced when all of it is there, and readable by its owner alone."""
    if to is None:
        yield sys.stdout
        return
    target = to.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)

"""``review migrate``."""

from __future__ import annotations

from typing import Annotated

import typer

from truthlens.cli import options
from truthlens.cli.review.opening import is_there, opened_database
from truthlens.review.records import QueueUnavailableError
from truthlens.review.store.database import REVISIONS


def migrate(
    database: options.QueueDatabase = None,
    to: Annotated[
        str | None,
        typer.Option(help="Version of the tables, such as 0001 (default: the newest).", show_default=False),
    ] = None,
    down: Annotated[
        bool,
        typer.Option(
            "--down", help="Allow going back to an older version: what only newer ones keep is lost."
        ),
    ] = False,
) -> None:
    """Make the tables of the queue, or bring them to this version's. `--to base --down` drops them with all entries."""
    known = REVISIONS
    wanted = known[-1] if to is None else to
    if wanted != "base" and wanted not in known:
        raise typer.BadParameter(f"there is no version {wanted!r}; known: base, {', '.join(known)}")
    with opened_database(database) as opened:
        if down and not is_there(opened):
            raise QueueUnavailableError(f"the review database {opened.shown} is not there")
        before = opened.revision() if is_there(opened) else None
        if before is not None and before not in known:
            raise QueueUnavailableError(
                f"the review database {opened.shown} has tables of a newer version ({before}; known: up to {known[-1]}); use that version of"
                " TruthLens"
            )
        order = ("base", *known)
        older = order.index(wanted) < order.index(before or "base")
        if older and not down:
            raise typer.BadParameter(f"{wanted} is older than {before}; going back needs --down")
        if down and to is None:
            raise typer.BadParameter("--down needs --to VERSION")
        if older:
            opened.downgrade(wanted)
        elif wanted != "base":
            opened.upgrade(wanted)
        after = opened.revision()
    shown = f"{before or 'none'} -> {after or 'none'}" if before != after else f"{after} already"
    typer.echo(f"review database {opened.shown}: tables of version {shown} (newest: {known[-1]})")

"""``review migrate``, and the queue's database opened for a command; if that fails, a line and exit status 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from truthlens.cli import options
from truthlens.cli.review.terminal import harmless
from truthlens.core.errors import StartError
from truthlens.review.records import QueueUnavailableError
from truthlens.review.store.database import REVISIONS, ReviewDatabase, checked_url, default_url
from truthlens.review.store.queue import ReviewQueue

MIGRATE = "make it with: truthlens review migrate"


@contextmanager
def opened_database(url: str | None) -> Iterator[ReviewDatabase]:
    """Open the database of ``url``, or the default one, whatever tables it has.

    Raises:
        typer.Exit: it cannot be used; why is on standard error.
    """
    database = None
    try:
        database = ReviewDatabase(checked_url(url or default_url()))
        yield database
    except (StartError, QueueUnavailableError) as error:
        typer.echo(f"error: {harmless(str(error))}", err=True)
        raise typer.Exit(2) from error
    finally:
        if database is not None:
            database.dispose()


@contextmanager
def opened(url: str | None) -> Iterator[ReviewQueue]:
    """Open the queue of ``url``, or the default one; its tables have to be there, and of this version.

    Raises:
        typer.Exit: it cannot be used; why is on standard error.
    """
    with opened_database(url) as database:
        if not _is_there(database):
            raise QueueUnavailableError(f"the review database {database.shown} is not there; {MIGRATE}")
        current, known = database.revision(), REVISIONS
        if current is None:
            raise QueueUnavailableError(
                f"the review database {database.shown} has no tables of the queue; {MIGRATE}"
            )
        _demand_known(database, current, known)
        if current != known[-1]:
            raise QueueUnavailableError(
                f"the review database {database.shown} has tables of version {current}, expected {known[-1]}; upgrade it with: truthlens review"
                " migrate"
            )
        yield ReviewQueue(database)


def _is_there(database: ReviewDatabase) -> bool:
    """Return whether there is a file; a database behind an address is asked only when it is used."""
    return not database.is_sqlite or Path(database.shown).exists()


def _demand_known(database: ReviewDatabase, revision: str, known: Sequence[str]) -> None:
    if revision not in known:
        raise QueueUnavailableError(
            f"the review database {database.shown} has tables of a newer version ({revision}; known: up to {known[-1]}); use that version of"
            " TruthLens"
        )


def migrate(
    database: options.QueueDatabase = None,
    to: Annotated[
        str | None, typer.Option(help="Version of the tables, such as 0001 (default: the newest).")
    ] = None,
    down: Annotated[
        bool,
        typer.Option(
            "--down", help="Allow going back to an older version: what only newer ones keep is lost."
        ),
    ] = False,
) -> None:
    """Make the tables of the queue, or bring them to this version's. `--to base --down` drops them with all entries."""
    order = ("base", *REVISIONS)
    newest = order[-1]
    wanted = newest if to is None else to
    if wanted not in order:
        raise typer.BadParameter(f"there is no version {wanted!r}; known: {', '.join(order)}")
    if down and to is None:
        raise typer.BadParameter("--down needs --to VERSION")
    with opened_database(database) as found:
        exists = _is_there(found)
        if down and not exists:
            raise QueueUnavailableError(f"the review database {found.shown} is not there")
        before = (found.revision() if exists else None) or "base"
        _demand_known(found, before, order)
        older = order.index(wanted) < order.index(before)
        if older and not down:
            raise typer.BadParameter(f"{wanted} is older than {before}; going back needs --down")
        if older:
            found.downgrade(wanted)
        elif wanted != "base":
            found.upgrade(wanted)
        after = found.revision() or "base"
    shown = f"{before} -> {after}" if before != after else f"{after} already"
    shown = shown.replace("base", "none")
    typer.echo(f"review database {found.shown}: tables of version {shown} (newest: {newest})")

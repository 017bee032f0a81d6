"""Open the database of the review queue for one command; where that fails, one line and exit status 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

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
        if not is_there(database):
            raise QueueUnavailableError(f"the review database {database.shown} is not there; {MIGRATE}")
        current, known = database.revision(), REVISIONS
        if current is None:
            raise QueueUnavailableError(
                f"the review database {database.shown} has no tables of the queue; {MIGRATE}"
            )
        if current not in known:
            raise QueueUnavailableError(
                f"the review database {database.shown} has tables of a newer version ({current}; known: up to {known[-1]}); use that version of"
                " TruthLens"
            )
        if current != known[-1]:
            raise QueueUnavailableError(
                f"the review database {database.shown} has tables of version {current}, expected {known[-1]}; upgrade it with: truthlens review"
                " migrate"
            )
        yield ReviewQueue(database)


def is_there(database: ReviewDatabase) -> bool:
    """Return whether there is a file; a database behind an address is asked only when it is used."""
    return not database.is_sqlite or Path(database.shown).exists()

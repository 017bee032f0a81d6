"""``review resolve``."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from truthlens.cli import options
from truthlens.cli.review.opening import opened
from truthlens.cli.review.terminal import harmless
from truthlens.review.records import Change, Changed, ReviewStatus, UnknownEntryError
from truthlens.review.store.queue import MOST_CHANGED, ReviewQueue

Reviewer = Annotated[
    str | None, typer.Option("--reviewer", help="Name for the audit trail (default: the login name).")
]


def resolve(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of entries.")],
    database: options.QueueDatabase = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="The answer is correct: the flag was a false positive.")
    ] = False,
    reject: Annotated[bool, typer.Option("--reject", help="The answer is a hallucination.")] = False,
    take_up: Annotated[bool, typer.Option("--take-up", help="You are looking at it.")] = False,
    put_back: Annotated[bool, typer.Option("--put-back", help="It awaits review again.")] = False,
    note: Annotated[str | None, typer.Option(help="Note to keep with it.")] = None,
    version: Annotated[
        int | None, typer.Option(min=1, help="Only if the entry is still at this version (with one ID).")
    ] = None,
    reviewer: Reviewer = None,
) -> None:
    """Settle entries, take them up or put them back. Exit status 1 where some could not be changed."""
    chosen = {
        ReviewStatus.APPROVED: approve,
        ReviewStatus.REJECTED: reject,
        ReviewStatus.REVIEWED: take_up,
        ReviewStatus.PENDING: put_back,
    }
    if sum(chosen.values()) != 1:
        raise typer.BadParameter("give one of --approve, --reject, --take-up and --put-back")
    (status,) = (each for each, given in chosen.items() if given)
    wanted = list(dict.fromkeys(ids))
    if version is not None and len(wanted) > 1:
        raise typer.BadParameter("--version goes with one ID")
    with opened(database) as queue:
        done: list[Changed] = []
        for start in range(0, len(wanted), MOST_CHANGED):
            part = wanted[start : start + MOST_CHANGED]
            done += _changed(queue, part, status, note, version, actor=reviewer_name(reviewer))
    failed = [each for each in done if each.entry is None]
    for each in failed:
        typer.echo(f"{harmless(each.id)}: {harmless(each.problem)}", err=True)
    typer.echo(f"{len(done) - len(failed)} now {status}" + (f", {len(failed)} failed" if failed else ""))
    if failed:
        raise typer.Exit(1)


def reviewer_name(given: str | None) -> str:
    """Return the name for the audit trail: the one that was given, else the login name.

    Raises:
        typer.BadParameter: there is none.
    """
    if given is not None and given.strip():
        return given.strip()
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:  # a user without a name, as in some containers
        raise typer.BadParameter("this user has no login name; give --reviewer NAME") from error


def _changed(
    queue: ReviewQueue,
    ids: list[str],
    status: ReviewStatus,
    note: str | None,
    version: int | None,
    *,
    actor: str,
) -> list[Changed]:
    changes, missing = [], []
    for each in ids:
        try:
            at = queue.get(each).summary.version if version is None else version
        except UnknownEntryError as error:
            missing.append(Changed(each, None, str(error)))
        else:
            changes.append(Change(each, at, status, note=note))
    return [*queue.change_many(changes, actor=actor), *missing]

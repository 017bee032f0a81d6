"""The options that say which entries a command is about, the same for all of them."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Any

import typer

from truthlens.review.records import Filters, ReviewStatus

_UNITS = {"h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_AGO = re.compile(r"(\d{1,6}(?:\.\d+)?)([hdw])")


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` the options of filters in place of its parameter ``filters``."""
    own = [
        each
        for each in inspect.signature(command, eval_str=True).parameters.values()
        if each.name != "filters"
    ]
    names = set(inspect.signature(_filters).parameters)

    @wraps(command)
    def wrapper(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in names}
        command(**given, filters=_filters(**chosen))

    added = list(inspect.signature(_filters, eval_str=True).parameters.values())
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *added)]
    # What typer reads of a command.
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    del wrapper.__wrapped__
    return wrapper


def moment_of(text: str | None) -> float | None:
    """Return an ISO 8601 date or time (UTC where it names no zone), or how long ago, such as ``36h``, ``7d`` or ``2w``, as seconds since 1970.

    Raises:
        typer.BadParameter: it is neither.
    """
    if text is None:
        return None
    if ago := _AGO.fullmatch(text.strip()):
        return time.time() - float(ago[1]) * _UNITS[ago[2]]
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time; expected 2025-11-30, 2025-11-30T12:00 or 7d"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _filters(
    status: Annotated[
        list[ReviewStatus] | None, typer.Option(help="Only these; repeat for several.", show_default=False)
    ] = None,
    decision: Annotated[str, typer.Option(help="Decision of the policy.", show_default=False)] = "",
    detector: Annotated[str, typer.Option(help="Detector that found something.", show_default=False)] = "",
    kind: Annotated[str, typer.Option(help="What is wrong, as explained.", show_default=False)] = "",
    level: Annotated[str, typer.Option(help="Risk level.", show_default=False)] = "",
    mode: Annotated[str, typer.Option(help="Mode that ran.", show_default=False)] = "",
    rule: Annotated[str, typer.Option(help="Rule that queued it.", show_default=False)] = "",
    reviewer: Annotated[str, typer.Option(help="Who settled or took it up.", show_default=False)] = "",
    query_id: Annotated[str, typer.Option(help="Id of the request.", show_default=False)] = "",
    flagged: Annotated[
        bool | None,
        typer.Option("--flagged/--unflagged", help="Flagged answers only, or others.", show_default=False),
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="From this score on.", show_default=False)
    ] = None,
    max_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="Below this score.", show_default=False)
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            help="Answers from this time on: 2025-11-30T12:00 (UTC), or 36h, 7d ago.", show_default=False
        ),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Answers before this time.", show_default=False)] = None,
) -> Filters:
    return Filters(
        statuses=tuple(status or ()),
        decision=decision,
        detector=detector,
        kind=kind,
        level=level,
        mode=mode,
        rule=rule,
        reviewer=reviewer,
        query_id=query_id,
        flagged=flagged,
        min_score=min_score,
        max_score=max_score,
        since=moment_of(since),
        until=moment_of(until),
    )

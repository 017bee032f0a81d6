"""The options that say which entries a command is about, the same for all of them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from truthlens.cli.options import in_place_of
from truthlens.review.records import Filters, ReviewStatus

_UNITS = {"h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_AGO = re.compile(r"(\d{1,6}(?:\.\d+)?)([hdw])")


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
    status: Annotated[list[ReviewStatus] | None, typer.Option(help="Only these; repeat for several.")] = None,
    decision: Annotated[str, typer.Option(help="Decision of the policy.")] = "",
    detector: Annotated[str, typer.Option(help="Detector that found something.")] = "",
    kind: Annotated[str, typer.Option(help="What is wrong, as explained.")] = "",
    level: Annotated[str, typer.Option(help="Risk level.")] = "",
    mode: Annotated[str, typer.Option(help="Mode that ran.")] = "",
    rule: Annotated[str, typer.Option(help="Rule that queued it.")] = "",
    reviewer: Annotated[str, typer.Option(help="Who settled or took it up.")] = "",
    query_id: Annotated[str, typer.Option(help="Id of the request.")] = "",
    flagged: Annotated[
        bool | None, typer.Option("--flagged/--unflagged", help="Flagged answers only, or others.")
    ] = None,
    min_score: Annotated[float | None, typer.Option(min=0, max=1, help="From this score on.")] = None,
    max_score: Annotated[float | None, typer.Option(min=0, max=1, help="Below this score.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Answers from this time on: 2025-11-30T12:00 (UTC), or 36h, 7d ago.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Answers before this time.")] = None,
) -> Filters:
    given = dict(locals())
    times = {name: moment_of(given.pop(name)) for name in ("since", "until")}
    return Filters(statuses=tuple(given.pop("status") or ()), **given | times)


filtered = in_place_of("filters", _filters)
"""Gives a command the options of filters."""

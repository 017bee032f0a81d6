"""``review stats``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from truthlens.cli import options
from truthlens.cli.accuracy import accuracy_figures, report_text, target_percent
from truthlens.cli.review.filters import filtered
from truthlens.cli.review.opening import opened
from truthlens.cli.review.terminal import harmless, moment
from truthlens.desk.accuracy import Estimate
from truthlens.desk.report import ReviewReport, report
from truthlens.detection.detectors.numbers.options import Options as NumberOptions
from truthlens.review.records import Filters

out = Console(highlight=False, markup=False, emoji=False)
_DAYS = 14


@filtered
def stats(
    filters: Filters,
    database: options.QueueDatabase = None,
    target_rate: options.TargetRate = None,
    as_json: options.AsJson = False,
) -> None:
    """Say how right the flags were, what passed unflagged, and how much awaits review."""
    with opened(database) as queue:
        found = report(queue.summaries(filters))
    # Entries of many policies are counted together: of the options only the environment holds for all of them.
    target = target_percent(target_rate, NumberOptions())
    figures = accuracy_figures(found.counts, target_percent=target)
    if as_json:
        typer.echo(json.dumps(_as_object(found, figures)))
        return
    out.print(", ".join(f"{count} {status}" for status, count in found.statuses.items()))
    waiting = (
        "" if found.oldest_pending is None else f", oldest pending of {moment(found.oldest_pending)} UTC"
    )
    out.print(f"backlog {found.backlog}{waiting}")
    out.print(_rates(found))
    if found.unflagged is None:
        out.print(
            "No unflagged answers were settled: what passes unflagged is not known. Sample some with a rule of `review`"
            " with `flagged: false`."
        )
    if found.days:
        out.print(_days(found))
    out.print(
        "The shares above weigh each entry by 1 / its sample; the report counts settled entries as they are."
    )
    typer.echo(report_text(figures))


def _as_object(found: ReviewReport, figures: dict[str, Any]) -> dict[str, Any]:
    days = {day: asdict(each) | {"unverified_rate": each.unverified_rate} for day, each in found.days.items()}
    kept = {name: value for name, value in asdict(found).items() if name != "counts"}
    return {**kept, "backlog": found.backlog, "days": days, "accuracy": figures}


def _rates(found: ReviewReport) -> Table:
    table = Table()
    for column in ("share", "of", "value", "95 %", "settled"):
        table.add_column(column, justify="left" if column in ("share", "of") else "right")

    def row(share: str, of: str, rate: Estimate | None) -> None:
        if rate is None:
            table.add_row(share, Text(harmless(of)), "-", "-", "0")
            return
        interval = f"{rate.low:.1%} to {rate.high:.1%}"
        table.add_row(share, Text(harmless(of)), f"{rate.share:.1%}", interval, str(rate.count))

    row("hallucinations (precision)", "flagged answers", found.precision)
    for name, rates in found.precision_by.items():
        for value, rate in rates.items():
            row("", f"{name} {value}", rate)
    row("hallucinations", "unflagged answers", found.unflagged)
    row("flagged (recall)", "hallucinations", found.recall)
    return table


def _days(found: ReviewReport) -> Table:
    table = Table()
    for column in ("day (UTC)", "approved", "rejected", "claims", "unverified"):
        table.add_column(column, justify="left" if column.startswith("day") else "right")
    for day, each in list(found.days.items())[-_DAYS:]:
        rate = each.unverified_rate
        share = "-" if rate is None else f"{rate:.2%}"
        table.add_row(day, str(each.approved), str(each.rejected), str(each.total_claims), share)
    return table

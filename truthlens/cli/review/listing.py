"""``review list`` and ``review show``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain, repeat
from typing import Annotated, Any

import typer

from truthlens.cli import options
from truthlens.cli.review.filters import filtered
from truthlens.cli.review.opening import opened
from truthlens.cli.review.terminal import harmless, harmless_lines, moment
from truthlens.review.records import Entry, EntrySummary, Filters, Order
from truthlens.review.store.queue import MOST_LISTED


@filtered
def list_entries(
    filters: Filters,
    database: options.QueueDatabase = None,
    order: Annotated[Order, typer.Option(help="How they are sorted.")] = Order.NEWEST,
    limit: Annotated[int, typer.Option(min=1, help="Entries at most.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on where a list ended, as it says.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """List the entries of the queue."""
    found: list[EntrySummary] = []
    with opened(database) as queue:
        while True:
            page = queue.listed(
                filters, order=order, cursor=cursor, limit=min(MOST_LISTED, limit - len(found))
            )
            found += page.entries
            cursor = page.cursor
            if cursor is None or len(found) >= limit:
                break
        statuses = queue.counts(filters)
    if as_json:
        for each in found:
            typer.echo(json.dumps(asdict(each)))
    else:
        for line in _listed(found):
            typer.echo(line)
        typer.echo(", ".join(f"{count} {status}" for status, count in statuses.items()))
    if cursor is not None:
        typer.echo(f"there are more: --cursor {cursor}", err=True)


def show(
    entry_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the entry.")],
    database: options.QueueDatabase = None,
    as_json: options.AsJson = False,
) -> None:
    """Show all that is kept of an entry."""
    with opened(database) as queue:
        entry = queue.get(entry_id)
    if as_json:
        typer.echo(json.dumps(asdict(entry)))
        return
    for line in _lines(entry):
        typer.echo(line)


def _listed(found: list[EntrySummary]) -> Iterator[str]:
    """Two lines an entry: a table of them all would leave its texts no room in a common terminal."""
    for each in found:
        state = f"{each.status}{f' by {each.reviewer}' if each.reviewer else ''}"
        flagged = "flagged" if each.flagged else "not flagged"
        told = f"{each.id}  {moment(each.created)[:16]}  {state}  {each.decision}  {flagged} {each.score:.2f}"
        yield harmless(f"{told}  {', '.join(each.kinds)}").rstrip()
        if each.excerpt:
            yield f"    {harmless(each.excerpt)}"


def _lines(entry: Entry) -> list[str]:
    summary = asdict(entry.summary)
    times = {name: moment(summary[name]) for name in ("created", "updated", "settled")}
    lines = [f"{name:20} {_value(value)}" for name, value in (summary | times).items() if name != "note"]
    texts: dict[str, Any] = entry.content.get("texts") or {}
    if entry.summary.note:
        lines += ["note", harmless_lines(entry.summary.note)]
    if texts:
        lines += ["query", harmless_lines(texts["query"])]
        for place, passage in enumerate(texts["passages"]):
            title = harmless(passage["title"])
            lines += [f"passage {place}  {title}".rstrip(), harmless_lines(passage["text"])]
    elif why := entry.content.get("texts_dropped"):
        lines.append(f"{'texts dropped':20} {harmless(str(why))}")
    answers = chain(texts.get("answers", ()), repeat(""))
    for place, (choice, answer) in enumerate(zip(entry.content.get("choices", ()), answers, strict=False)):
        lines.append(f"answer {place}  score {choice.get('score', '-')}  {choice.get('status', '-')}")
        if answer:
            lines.append(harmless_lines(answer))
        lines += [f"  mark {_mark(span, answer)}" for span in choice.get("spans", ())]
        lines += [
            f"  detector {each.get('name')}  score {each.get('score')}  {harmless(str(each.get('explanation', '')))}"
            for each in choice.get("detectors", ())
        ]
    lines += [f"reviewer's mark  answer {each.choice}  {each.start}-{each.end}" for each in entry.spans or ()]
    for each in entry.events:
        step = f"{moment(each.at)}  {harmless(each.actor)}  {harmless(each.action)}"
        lines.append(f"{step}  -> {each.status} (version {each.version})  {harmless(each.note)}".rstrip())
    return lines


def _mark(span: dict[str, Any], answer: str) -> str:
    start, end = span["start"], span["end"]
    words = f"  {harmless(answer[start:end])}" if answer else ""
    kind = f"  {harmless(str(span['kind']))}" if "kind" in span else ""
    return f"{start}-{end}  {span['score']:.2f}  {harmless(str(span['detector']))}{kind}{words}"


def _value(value: object) -> str:
    match value:
        case dict():
            shown = ", ".join(f"{name} {each}" for name, each in value.items())
        case list() | tuple():
            shown = ", ".join(map(str, value))
        case float():
            shown = f"{value:.4g}"
        case _:
            shown = str(value)
    return harmless(shown) or "-"

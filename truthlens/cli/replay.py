"""``replay`` and ``capture``: another policy on captured exchanges, and capturing a set that is written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from truthlens.cli import options
from truthlens.cli.plan_target import offline_settings
from truthlens.cli.serving import run
from truthlens.core.errors import TruthLensError
from truthlens.core.net import Upstream
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.desk.replay_page import ShownChange, replay_page, shown_answers
from truthlens.detection.models.runtime import cpu_quota
from truthlens.lab.replay.comparing import Replayed, ReplayFigures, compared
from truthlens.lab.replay.planned import capture_planned, planned
from truthlens.lab.replay.reading import Captured, read_captures
from truthlens.lab.replay.running import replayed
from truthlens.policy import Policy
from truthlens.process.settings import CaptureSettings
from truthlens.telemetry import logs

out = Console(soft_wrap=True, highlight=False, markup=False)
told = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)

_CHANGED, _OPEN = 2, 3
_WIDEST = 1 << 40


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Captured exchanges, plain or .gz; several, oldest first.",
            exists=True,
            dir_okay=False,
        ),
    ],
    config: options.Config = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Threshold of all decisions, in place of the policy's.")
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Ask models, and search sources, whose replies were not kept. That costs what it costs.",
        ),
    ] = False,
    as_json: options.AsJson = False,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Page to write, with the answers that change: one file, WITH TEXTS.", dir_okay=False
        ),
    ] = None,
    fail_on_change: Annotated[
        bool,
        typer.Option(
            "--fail-on-change",
            help="Exit with 2 if a verdict, a decision or an action changes; with 3 if none does, and the end of some is not known.",
        ),
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="First exchanges of each file only.")] = None,
    upstream: options.Upstream = None,
    models: options.Models = None,
    threads: options.Threads = 1,
    workers: options.Workers = None,
) -> None:
    """Say what another policy would do with captured exchanges.

    They pass through the parts of `serve`, with the replies that models and sources gave then, and without deadlines: the same file and
    policy give the same output. A call that has no kept reply is counted (would ask), and made with --live alone.

    In CI:   truthlens replay capture.jsonl --config new.yaml --fail-on-change

    To read: truthlens replay capture.jsonl --config new.yaml --html changes.html
    """
    logs.configure(level="error", form=logs.LogFormat.CONSOLE)
    captured = read_captures(files, limit=limit)
    _remark(captured)
    settings = replace(
        offline_settings(config, models, threads=threads),
        workers=workers or max(1, cpu_quota() // threads),
        upstream=None if upstream is None else Upstream.parse(upstream),
    )
    rows: list[Replayed] = []
    policies: list[Policy] = []

    async def work() -> None:
        with _progress(len(captured.exchanges)) as advance:
            found, policy = await replayed(
                captured.exchanges,
                settings,
                threshold=threshold,
                live=live,
                show=shown_answers if html else None,
                progress=advance,
            )
        rows.extend(found)
        policies.append(policy)

    run(work())
    comparison = compared(rows)
    named = {"file": str(settings.config), "version": policies[0].version}
    figures = comparison.as_json(named if threshold is None else {**named, "threshold": threshold})
    if html is not None:
        html.touch(mode=0o600)
        html.write_text(replay_page(figures, [_shown(row) for row in comparison.told]), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(figures, ensure_ascii=False))
    else:
        _print(comparison, figures)
    if fail_on_change and (comparison.total.changed or comparison.total.open or comparison.not_replayed):
        raise typer.Exit(_CHANGED if comparison.total.changed else _OPEN)


def capture(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help='JSON lines, plain or .gz: {"request": {...}, "response": {...} or text}, or {"context", "query", "response"}, as `truthlens '
            "review export` and the data of `eval` have them.",
            exists=True,
            dir_okay=False,
        ),
    ],
    to: Annotated[
        Path, typer.Option(help="File of captured exchanges to write or to add to.", dir_okay=False)
    ],
    config: options.Config = None,
    limit: options.Limit = None,
    upstream: options.Upstream = None,
    models: options.Models = None,
    threads: options.Threads = 1,
) -> None:
    """Capture a planned set: take exchanges through a policy here, without a gateway, as the first half of a replay.

    Models are asked as the policy says, and their replies kept. To capture live traffic, give `truthlens serve` --capture FILE.
    """
    logs.configure(level="warning", form=logs.LogFormat.CONSOLE)
    exchanges = list(planned(files, limit=limit))
    settings = replace(
        offline_settings(config, models, threads=threads),
        upstream=None if upstream is None else Upstream.parse(upstream),
        capture=CaptureSettings(to, most_exchanges=None, most_bytes=_WIDEST, files=1),
    )
    kept: list[int] = []

    async def work() -> None:
        with _progress(len(exchanges)) as advance:
            kept.extend(await capture_planned(exchanges, settings, progress=advance))

    run(work())
    told.print(f"{kept[0]} exchanges captured with their texts in {to}")
    if kept[1]:
        raise TruthLensError(f"{kept[1]} exchanges were not captured; the log above says why")


def _remark(captured: Captured) -> None:
    for file in captured.unfinished:
        told.print(f"{file}: its last line is unfinished, and left out", style="yellow")
    if captured.scoring_versions - {SCORING_VERSION}:
        told.print(
            "the capture was made by a version of TruthLens that scores otherwise: changes may come from that",
            style="yellow",
        )


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    with Progress(console=told, transient=True, disable=not told.is_terminal) as bar:
        task = bar.add_task("exchanges", total=total)
        yield lambda: bar.advance(task)


def _shown(row: Replayed) -> ShownChange:
    asked = [f"{each.model} ({each.role})" for each in row.would_ask]
    return ShownChange(
        row.kept.id, row.kept.time, row.changes, row.then, row.now or {}, row.kept.redacted, asked, row.shown
    )


def _print(comparison: ReplayFigures, figures: dict[str, Any]) -> None:
    table = Table(
        "decision",
        "mode",
        "exchanges",
        "checked",
        "flagged",
        "changed",
        "open",
        "model calls",
        "tokens",
        "would ask",
    )
    for group in (*figures["groups"], {**figures["total"], "decision": "all", "mode": ""}):
        table.add_row(
            group["decision"],
            group["mode"],
            str(group["exchanges"]),
            *(_pair(group[name]) for name in ("checked", "flagged")),
            str(group["changed"]),
            str(group["open"]),
            *(_pair(group[name]) for name in ("model_calls", "model_tokens")),
            f"{group['would_ask']} ({group['would_ask_prompt_tokens']} tokens)"
            if group["would_ask"]
            else "0",
        )
    Console(highlight=False, markup=False, width=None if out.is_terminal else 140).print(table)
    for name, count in comparison.changes.items():
        out.print(f"  {count} × {name}")
    if not comparison.total.changed:
        out.print("nothing changes")
    for why, count in comparison.not_replayed.items():
        out.print(f"{count} could not be replayed: {why}")
    if comparison.total.open:
        out.print(
            f"{comparison.total.open} depend on models or sources that were not asked: --live asks them"
        )
    if comparison.redacted:
        out.print(
            f"{comparison.redacted} had texts taken out when they were captured, which may change their verdicts"
        )


def _pair(pair: dict[str, int]) -> str:
    return str(pair["then"]) if pair["then"] == pair["now"] else f"{pair['then']} → {pair['now']}"

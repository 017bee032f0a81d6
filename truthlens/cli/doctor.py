"""``doctor``: what is wrong with a set-up, planned or running, why, and what to change."""

from __future__ import annotations

import asyncio
import json
from itertools import groupby
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.text import Text

from truthlens.cli import options
from truthlens.core.errors import StartError
from truthlens.core.net import Address, Upstream
from truthlens.process.doctor.examination import GROUPS, examine
from truthlens.process.doctor.findings import CheckLevel, CheckResult, exit_status
from truthlens.process.doctor.memory import free_memory
from truthlens.process.doctor.setup import DEFAULT_TIMEOUT_S, Setup
from truthlens.process.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings, shipped_policy
from truthlens.review.store.database import default_url

out = Console(soft_wrap=True, highlight=False)

_STYLES = {
    CheckLevel.OK: "green",
    CheckLevel.WARNING: "yellow",
    CheckLevel.ERROR: "bold red",
    CheckLevel.UNKNOWN: "magenta",
}
_WIDTH = 9


def doctor(
    *,
    config: options.Config = None,
    envoy: Annotated[
        list[Path] | None,
        typer.Option(
            "--envoy",
            help="Envoy bootstrap (YAML or JSON) in front. Repeat for several.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    admin: Annotated[
        str | None,
        options.setting(
            "envoy-admin", "Admin interface of a running Envoy, such as http://127.0.0.1:9901.", metavar="URL"
        ),
    ] = None,
    extproc: options.Extproc = DEFAULT_EXTPROC,
    console: options.ConsoleAddress = DEFAULT_CONSOLE,
    health: options.Health = None,
    models: options.Models = None,
    upstream: options.BackendUpstream = None,
    redis: options.Redis = None,
    review_database: options.ReviewDatabase = None,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
    tls_client_ca: options.TlsClientCa = None,
    drain_grace: Annotated[
        float, options.setting("drain-grace", "Seconds that exchanges in flight may take at a stop.", min=0)
    ] = 65.0,
    timeout: Annotated[
        float, typer.Option(help="Seconds that one look over the network may take.", min=0.1, max=60)
    ] = DEFAULT_TIMEOUT_S,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings as well.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Look at a set-up, planned or running, and say what is wrong, why, and what to change.

    Give it the options and environment variables of `truthlens serve`. Nothing is changed, no text is sent to
    a model, no key is printed. Exit status: 0 nothing wrong, 1 something wrong, 2 it could not look.
    """
    try:
        settings = Settings(
            extproc=Address.parse(extproc, name="--extproc"),
            console=Address.parse(console, name="--console"),
            health=None if health is None else Address.parse(health, name="--health"),
            config=config or shipped_policy(),
            models=models,
            upstream=None if upstream is None else Upstream.parse(upstream),
            redis=redis,
            review_database=None if review_database == "none" else review_database or default_url(),
            **options.tls_of(tls_cert, tls_key, tls_client_ca, None),
            drain_grace_s=drain_grace,
        )
    except StartError as unfit:
        raise typer.BadParameter(str(unfit)) from None
    setup = Setup(settings, tuple(envoy or ()), _admin(admin), timeout, free_memory=free_memory)
    found = asyncio.run(examine(setup))
    if as_json:
        typer.echo(json.dumps([each.as_json() for each in found], indent=1, ensure_ascii=False))
    else:
        _print(found)
    raise typer.Exit(exit_status(found, strict=strict))


def _admin(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise typer.BadParameter("--envoy-admin is no URL; expected http://HOST:PORT")
    return parts.geturl()


def _print(found: list[CheckResult]) -> None:
    for group, members in groupby(found, key=lambda each: each.group):
        out.print(Text(GROUPS[group], "bold"))
        for each in members:
            out.print(
                Text(f"  {each.severity.value:<{_WIDTH}}", _STYLES[each.severity]), Text(each.what), sep=""
            )
            for name, text in (("why", each.why), ("change", each.change)):
                if text:
                    out.print(Text(f"  {'':<{_WIDTH}}{name + ':':<8}", "dim"), Text(text), sep="")
    counts = [(level, sum(each.severity is level for each in found)) for level in CheckLevel]
    out.print(Text(", ".join(f"{count} {level.value}" for level, count in counts if count), "bold"))

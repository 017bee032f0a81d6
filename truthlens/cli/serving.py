"""``serve`` and ``desk``: a process of a deployment, and what all commands that run one share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop
from rich.console import Console
from rich.text import Text

from truthlens.cli import options
from truthlens.cli.console_access import takes_console_access
from truthlens.cli.plan_lines import described
from truthlens.cli.secret_files import read_secret
from truthlens.core.net import Address, Upstream
from truthlens.detection.models.runtime import cpu_quota
from truthlens.process.app import Node
from truthlens.process.app import serve as serve_node
from truthlens.process.endpoints import WebApp, endpoints_app
from truthlens.process.settings import (
    DEFAULT_CONSOLE,
    DEFAULT_DRAIN_GRACE_S,
    DEFAULT_EXTPROC,
    DEFAULT_SOCKET_MODE,
    Access,
    CaptureSettings,
    Settings,
    shipped_policy,
)
from truthlens.telemetry import logs

out = Console(soft_wrap=True, highlight=False)


@takes_console_access
@options.takes_capture
def serve(
    *,
    config: options.Config = None,
    extproc: options.Extproc = DEFAULT_EXTPROC,
    console: options.ConsoleAddress = DEFAULT_CONSOLE,
    health: options.Health = None,
    access: Access,
    models: options.Models = None,
    threads: options.Threads = 1,
    workers: options.Workers = None,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
    tls_client_ca: options.TlsClientCa = None,
    tls_client_name: options.TlsClientName = None,
    socket_mode: options.SocketMode = f"{DEFAULT_SOCKET_MODE:o}",
    drain_notice: Annotated[
        float,
        options.setting("drain-notice", "Seconds of NOT_SERVING before new streams are refused.", min=0),
    ] = 3.0,
    drain_grace: Annotated[
        float, options.setting("drain-grace", "Seconds that exchanges in flight may then take.", min=0)
    ] = DEFAULT_DRAIN_GRACE_S,
    upstream: options.BackendUpstream = None,
    redis: options.Redis = None,
    review_database: options.ReviewDatabase = None,
    secret_file: options.SecretFile = None,
    captured: CaptureSettings | None,
    desk: Annotated[
        bool,
        typer.Option(
            "--desk/--no-desk",
            envvar="TRUTHLENS_DESK",
            help="Serve the pages for people on --console as well.",
        ),
    ] = False,
    reload: options.Reload = True,
    log_level: options.LogLevel = "info",
    log_format: options.LogFormat = logs.LogFormat.JSON,
) -> None:
    """Run the ext_proc server (production): one process per core, one Envoy endpoint each.

    --console has probes, metrics, /v1/detect, /v1/evidence and /v1/ask; the pages are served with --desk, or by `truthlens desk` once for all
    processes.

    SIGTERM drains: health turns NOT_SERVING, Envoy moves on, exchanges in flight end.
    """
    logs.configure(level=log_level, form=log_format)
    settings = settings_of(
        console, config, models, threads, workers, extproc=extproc, health=health, drain_notice_s=drain_notice,
        drain_grace_s=drain_grace, **options.tls_of(tls_cert, tls_key, tls_client_ca, tls_client_name),
        socket_mode=options.socket_mode_of(socket_mode), reload=reload, upstream=upstream, redis=redis, review_database=review_database, access=access,
        secret=read_secret(secret_file, "--secret-file"), capture=captured,
    )  # fmt: skip
    run(serve_node(settings, started=_announce_node, web_app=_desk_app() if desk else endpoints_app))


@takes_console_access
def desk(
    *,
    config: options.Config = None,
    console: options.ConsoleAddress = DEFAULT_CONSOLE,
    access: Access,
    models: options.Models = None,
    threads: options.Threads = 1,
    workers: options.Workers = None,
    upstream: options.BackendUpstream = None,
    review_database: options.ReviewDatabase = None,
    reload: options.Reload = True,
    log_level: options.LogLevel = "info",
    log_format: options.LogFormat = logs.LogFormat.JSON,
) -> None:
    """Run the pages alone: reviews, decisions, playground and evidence, on the policy and the review database of the sidecars.

    It checks no traffic, so its own figures and exchanges stay empty.
    """
    logs.configure(level=log_level, form=log_format)
    settings = settings_of(
        console, config, models, threads, workers, drain_notice_s=0.0, reload=reload, upstream=upstream,
        review_database=review_database, access=access,
    )  # fmt: skip
    run(serve_node(settings, started=_announce_desk, web_app=_desk_app(), gateway=False))


def _desk_app() -> WebApp:
    """Return what makes the pages; a sidecar without them never imports them."""
    from truthlens.desk.app import desk_app

    return desk_app


def _review_database(url: str | None) -> str | None:
    """Return where reviews are kept; ``None`` where the queue is switched off."""
    if url == "none":
        return None
    from truthlens.review.store.database import default_url

    return url or default_url()


def _announce_node(running: Node) -> None:
    say(f"ext_proc on {running.settings.extproc}, console on http://{running.settings.console}")
    default = running.policy.current.default
    say(f"policy {running.settings.config}, decision {described(default, default.threshold)}")
    if running.settings.capture is not None:
        say(f"exchanges are captured with their texts to {running.settings.capture.file}", "yellow")


def _announce_desk(running: Node) -> None:
    say(f"pages on http://{running.settings.console}")


def say(text: str, style: str = "") -> None:
    """Print text in which brackets are not markup."""
    out.print(Text(text, style))


def settings_of(
    console: str, config: Path | None, models: Path | None, threads: int, workers: int | None, *,
    extproc: str = DEFAULT_EXTPROC, health: str | None = None, upstream: str | None = None,
    review_database: str | None, **more: Any,
) -> Settings:  # fmt: skip
    """Return the settings of a process from the values of its options."""
    return Settings(
        extproc=Address.parse(extproc, name="--extproc"),
        console=Address.parse(console, name="--console"),
        health=None if health is None else Address.parse(health, name="--health"),
        config=config or shipped_policy(),
        models=models,
        threads=threads,
        workers=workers or max(1, cpu_quota() // threads),
        upstream=None if upstream is None else Upstream.parse(upstream),
        review_database=_review_database(review_database),
        **more,
    )


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run ``main`` on the event loop of the product."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)

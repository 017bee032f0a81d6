"""``up``, ``serve`` and ``envoy-config``: the gateway's commands."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop
from rich.console import Console
from rich.text import Text

from truthlens import __version__
from truthlens.app import Node, node, until_stopped, web_server
from truthlens.app import serve as serve_node
from truthlens.cli import options
from truthlens.cli.console_access import takes_console_access
from truthlens.cli.secret_files import read_secret
from truthlens.core.errors import StartError
from truthlens.core.net import Address, Upstream
from truthlens.demo import curl_lines, demo_app
from truthlens.detection.models.runtime import cpu_quota
from truthlens.envoy.config import DEFAULT_ROUTER_HEADERS, EnvoySettings, render
from truthlens.envoy.process import Envoy, is_listening
from truthlens.review.store.database import default_url
from truthlens.settings import (
    DEFAULT_CONSOLE,
    DEFAULT_EXTPROC,
    DEFAULT_LISTEN,
    Access,
    Settings,
    shipped_policy,
)
from truthlens.telemetry import logs, tracing

out = Console(soft_wrap=True, highlight=False)

# About as fast as a model writes, so that a stream can be seen to be one.
_DEMO_PACE_S = 0.02


@takes_console_access
def up(
    *,
    upstream: Annotated[
        str | None,
        typer.Option(
            envvar="TRUTHLENS_UPSTREAM",
            help="OpenAI-compatible backend, http(s)://HOST:PORT. Left out: a demo backend with example conversations.",
            show_default=False,
        ),
    ] = None,
    config: options.Config = None,
    listen: options.Listen = DEFAULT_LISTEN,
    extproc: options.Extproc = DEFAULT_EXTPROC,
    console: options.ConsoleAddress = DEFAULT_CONSOLE,
    access: Access,
    failure_mode_allow: Annotated[
        bool,
        typer.Option(
            "--fail-open/--fail-closed",
            envvar="TRUTHLENS_FAIL_OPEN",
            help="What Envoy does while the sidecar is down: pass answers marked as unchecked, or refuse them.",
        ),
    ] = True,
    models: options.Models = None,
    redis: options.Redis = None,
    review_database: options.ReviewDatabase = None,
    threads: options.Threads = 1,
    workers: options.Workers = None,
    log_level: options.LogLevel = "warning",
    envoy_log: Annotated[
        Path | None,
        typer.Option(
            envvar="TRUTHLENS_ENVOY_LOG",
            dir_okay=False,
            help="Where Envoy logs (default: a temporary file).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run everything on one machine and stay up until Ctrl-C.

    Starts the ext_proc server, the console, a real Envoy and, without --upstream, a demo backend; then prints
    where they are and, for the demo, four lines to paste.
    """
    logs.configure(level=log_level, console=True)
    tracing.configure(__version__)
    settings = _settings(
        extproc,
        console,
        config,
        models,
        threads,
        workers,
        drain_notice_s=0.0,
        drain_grace_s=3.0,
        redis=redis,
        review_database=_review_database(review_database),
        access=access,
    )
    listener = Address.parse(listen, name="--listen")
    backend = Upstream.parse(upstream) if upstream is not None else None
    _run(_up(settings, listener, backend, failure_mode_allow=failure_mode_allow, envoy_log=envoy_log))


async def _up(
    settings: Settings,
    listen: Address,
    backend: Upstream | None,
    *,
    failure_mode_allow: bool,
    envoy_log: Path | None,
) -> None:
    gateway_url = f"http://{listen}"
    addresses = [
        ("gateway", f"{gateway_url}/v1"),
        ("console", f"http://{settings.console}"),
        ("ext_proc", str(settings.extproc)),
    ]
    async with contextlib.AsyncExitStack() as stack:
        demo = backend is None
        if backend is None:
            backend = Upstream("127.0.0.1", _free_port(), tls=False)
            await stack.enter_async_context(
                web_server(demo_app(pace_s=_DEMO_PACE_S), Address(backend.host, backend.port))
            )
        settings = replace(settings, upstream=backend)
        with out.status("Loading the policy and the model …"):
            await stack.enter_async_context(node(settings, addresses=lambda: addresses))
        addresses.append(("backend", f"{backend}{' (demo)' if demo else ''}"))
        envoy_settings = EnvoySettings(
            listen=listen, extproc=[settings.extproc], upstream=backend, failure_mode_allow=failure_mode_allow
        )
        with out.status("Starting Envoy …"):
            envoy = await stack.enter_async_context(Envoy(envoy_settings, log_path=envoy_log))
        _announce(addresses, settings, demo_url=gateway_url if demo else None)
        if not demo and not await asyncio.to_thread(is_listening, Address(backend.host, backend.port)):
            _say(
                f"\nNothing answers at {backend} yet: requests get 503 until the backend is up there.",
                "yellow",
            )
        await _until_stopped_or_dead(envoy)
        out.print("\nStopping …")


async def _until_stopped_or_dead(envoy: Envoy) -> None:
    stopped, dead = asyncio.create_task(until_stopped()), asyncio.create_task(envoy.wait())
    done, pending = await asyncio.wait({stopped, dead}, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    if dead in done:
        raise StartError(f"Envoy ended with status {dead.result()}; see {envoy.log_path}")


def _announce(addresses: list[tuple[str, str]], settings: Settings, *, demo_url: str | None) -> None:
    out.print("\n[bold green]TruthLens is up.[/bold green] Ctrl-C stops it.\n")
    policy = f"{settings.config} (edit it: the next answer is checked by it)"
    for name, value in (*addresses, ("policy", policy)):
        out.print(Text(f"{name:<10}", "bold"), Text(value), sep="")
    if demo_url is not None:
        out.print("\nPaste one of these into another terminal and look at the x-truthlens-* headers:\n")
        for title, command in curl_lines(demo_url):
            _say(f"# {title}", "dim")
            # Plain output: the line must be the same bytes that a shell is to read.
            print(command + "\n")


def _say(text: str, style: str = "") -> None:
    """Print text in which brackets are not markup."""
    out.print(Text(text, style))


@takes_console_access
def serve(
    *,
    config: options.Config = None,
    extproc: options.Extproc = DEFAULT_EXTPROC,
    console: options.ConsoleAddress = DEFAULT_CONSOLE,
    access: Access,
    models: options.Models = None,
    threads: options.Threads = 1,
    workers: options.Workers = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(envvar="TRUTHLENS_TLS_CERT", help="PEM certificate chain for ext_proc.", exists=True),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(envvar="TRUTHLENS_TLS_KEY", help="PEM key that belongs to it.", exists=True)
    ] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(
            envvar="TRUTHLENS_TLS_CLIENT_CA", help="PEM roots of accepted client certificates.", exists=True
        ),
    ] = None,
    drain_notice: Annotated[
        float,
        typer.Option(
            envvar="TRUTHLENS_DRAIN_NOTICE",
            min=0,
            help="Seconds of NOT_SERVING before new streams are refused.",
        ),
    ] = 3.0,
    drain_grace: Annotated[
        float,
        typer.Option(
            envvar="TRUTHLENS_DRAIN_GRACE", min=0, help="Seconds that exchanges in flight may then take."
        ),
    ] = 65.0,
    upstream: Annotated[
        str | None,
        typer.Option(
            envvar="TRUTHLENS_UPSTREAM",
            help="The backend behind Envoy, http(s)://HOST:PORT: the modes that refine ask it directly.",
            show_default=False,
        ),
    ] = None,
    redis: options.Redis = None,
    review_database: options.ReviewDatabase = None,
    secret_file: options.SecretFile = None,
    reload: Annotated[bool, typer.Option(envvar="TRUTHLENS_RELOAD", help="Watch the policy file.")] = True,
    log_level: options.LogLevel = "info",
) -> None:
    """Run the ext_proc server and the console alone (production): one process per core, one Envoy endpoint each.

    SIGTERM drains: health turns NOT_SERVING, Envoy moves on, exchanges in flight end.
    """
    if (tls_cert is None) != (tls_key is None):
        raise StartError("--tls-cert and --tls-key go together; give both, or neither for plaintext")
    logs.configure(level=log_level)
    tracing.configure(__version__)
    settings = _settings(
        extproc,
        console,
        config,
        models,
        threads,
        workers,
        tls_certificate=tls_cert,
        tls_key=tls_key,
        tls_client_ca=tls_client_ca,
        drain_notice_s=drain_notice,
        drain_grace_s=drain_grace,
        reload=reload,
        upstream=Upstream.parse(upstream) if upstream is not None else None,
        redis=redis,
        review_database=_review_database(review_database),
        secret=read_secret(secret_file, "--secret-file"),
        access=access,
    )
    _run(serve_node(settings, started=_announce_node))


def _review_database(url: str | None) -> str | None:
    return None if url == "none" else url or default_url()


def _announce_node(running: Node) -> None:
    _say(f"ext_proc on {running.settings.extproc}, console on http://{running.settings.console}")


def envoy_config(
    upstream: Annotated[
        str, typer.Option(help="OpenAI-compatible backend, http(s)://HOST:PORT.")
    ] = "http://127.0.0.1:8000",
    listen: options.Listen = DEFAULT_LISTEN,
    extproc: Annotated[
        list[str] | None,
        typer.Option(
            help="Address of a sidecar process; repeat for one endpoint per process.", show_default=False
        ),
    ] = None,
    fail_open: Annotated[
        bool, typer.Option("--fail-open/--fail-closed", help="What happens while no sidecar answers.")
    ] = True,
    router: Annotated[
        str | None,
        typer.Option(
            help="Address of another external processor, such as a semantic router: asked before TruthLens, with headers "
            "and body of each request.",
            show_default=False,
        ),
    ] = None,
    router_header: Annotated[
        list[str] | None,
        typer.Option(
            help="Request header that only the router may set, x-domain unless given; removed from what clients send. "
            "Repeat for several.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print an Envoy configuration for this gateway (JSON, which Envoy reads as it does YAML)."""
    settings = EnvoySettings(
        listen=Address.parse(listen, name="--listen"),
        extproc=[Address.parse(each, name="--extproc") for each in extproc or [DEFAULT_EXTPROC]],
        upstream=Upstream.parse(upstream),
        failure_mode_allow=fail_open,
        router=Address.parse(router, name="--router") if router is not None else None,
        router_headers=[name.lower() for name in router_header or DEFAULT_ROUTER_HEADERS],
    )
    typer.echo(render(settings))


def _settings(
    extproc: str,
    console: str,
    config: Path | None,
    models: Path | None,
    threads: int,
    workers: int | None,
    **more: Any,
) -> Settings:
    return Settings(
        extproc=Address.parse(extproc, name="--extproc"),
        console=Address.parse(console, name="--console"),
        config=config or shipped_policy(),
        models=models,
        threads=threads,
        workers=workers or max(1, cpu_quota() // threads),
        **more,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)

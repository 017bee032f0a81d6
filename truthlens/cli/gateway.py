"""``up`` and ``envoy-config``: the gateway on one machine, and Envoy's part of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from truthlens.cli import options
from truthlens.cli.console_access import takes_console_access
from truthlens.cli.plan_lines import described
from truthlens.cli.serving import out, run, say, settings_of
from truthlens.core.errors import StartError
from truthlens.core.net import Address, Upstream
from truthlens.demo import curl_lines, demo_app
from truthlens.desk.app import desk_app
from truthlens.envoy.config import DEFAULT_ROUTER_HEADERS, EnvoySettings, render
from truthlens.envoy.ports import is_listening
from truthlens.envoy.process import Envoy
from truthlens.envoy.sidecar_tls import SidecarTls
from truthlens.process.app import Node, node, until_stopped, web_server
from truthlens.process.settings import (
    DEFAULT_CONSOLE,
    DEFAULT_EXTPROC,
    DEFAULT_LISTEN,
    Access,
    CaptureSettings,
    Settings,
)
from truthlens.review.store.database import checked_url, shown_url
from truthlens.telemetry import logs

# About as fast as a model writes, so that a stream can be seen to be one.
_DEMO_PACE_S = 0.02


@takes_console_access
@options.takes_capture
def up(
    *,
    upstream: Annotated[
        str | None,
        options.setting(
            "upstream",
            "OpenAI-compatible backend, http(s)://HOST:PORT. Left out: a demo backend with example conversations.",
        ),
    ] = None,
    config: options.Config = None,
    listen: options.Listen = DEFAULT_LISTEN,
    extproc: options.Extproc = DEFAULT_EXTPROC,
    console: options.ConsoleAddress = DEFAULT_CONSOLE,
    health: options.Health = None,
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
    captured: CaptureSettings | None,
    log_level: options.LogLevel = "warning",
    log_format: options.LogFormat = logs.LogFormat.CONSOLE,
    envoy_log: Annotated[
        Path | None,
        options.setting("envoy-log", "Where Envoy logs (default: a temporary file).", dir_okay=False),
    ] = None,
    admin: options.EnvoyAdminAddress = None,
) -> None:
    """Run everything on one machine and stay up until Ctrl-C.

    Starts the ext_proc server, the console, a real Envoy and, without --upstream, a demo backend; then prints
    where they are and, for the demo, four lines to paste.
    """
    logs.configure(level=log_level, form=log_format)
    settings = settings_of(
        console, config, models, threads, workers, extproc=extproc, health=health, drain_notice_s=0.0,
        drain_grace_s=3.0, redis=redis, review_database=review_database, access=access, capture=captured,
    )  # fmt: skip
    listener = Address.parse(listen, name="--listen")
    backend = Upstream.parse(upstream) if upstream is not None else None
    run(
        _up(
            settings,
            listener,
            backend,
            failure_mode_allow=failure_mode_allow,
            envoy_log=envoy_log,
            admin=_admin_address(admin),
        )
    )


async def _up(
    settings: Settings,
    listen: Address,
    backend: Upstream | None,
    *,
    failure_mode_allow: bool,
    envoy_log: Path | None,
    admin: Address | None,
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
            running = await stack.enter_async_context(
                node(settings, addresses=lambda: addresses, web_app=desk_app)
            )
        addresses.append(("backend", f"{backend}{' (demo)' if demo else ''}"))
        envoy_settings = EnvoySettings(
            listen=listen,
            extproc=[settings.extproc],
            upstream=backend,
            admin=admin,
            failure_mode_allow=failure_mode_allow,
            health=[settings.health] if settings.health is not None else None,
        )
        with out.status("Starting Envoy …"):
            envoy = await stack.enter_async_context(Envoy(envoy_settings, log_path=envoy_log))
        _announce(addresses, running, demo_url=gateway_url if demo else None)
        if not demo and not await asyncio.to_thread(is_listening, Address(backend.host, backend.port)):
            say(
                f"\nNothing answers at {backend} yet: requests get 503 until the backend is up there.",
                "yellow",
            )
        if settings.capture is not None:
            say(f"exchanges are captured with their texts to {settings.capture.file}", "yellow")
        await _until_stopped_or_dead(envoy)
        out.print("\nStopping …")


async def _until_stopped_or_dead(envoy: Envoy) -> None:
    stopped, dead = asyncio.create_task(until_stopped()), asyncio.create_task(envoy.wait())
    done, pending = await asyncio.wait({stopped, dead}, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    if dead in done:
        raise StartError(f"Envoy ended with status {dead.result()}; see {envoy.log_path}")


def _announce(addresses: list[tuple[str, str]], running: Node, *, demo_url: str | None) -> None:
    out.print("\n[bold green]TruthLens is up.[/bold green] Ctrl-C stops it.\n")
    policy = f"{running.settings.config} (edit it: the next answer is checked by it)"
    default = running.policy.current.default
    queue = running.settings.review_database
    reviews = shown_url(checked_url(queue)) if queue else "off"
    decision = described(default, default.threshold)
    for name, value in (*addresses, ("policy", policy), ("decision", decision), ("reviews", reviews)):
        out.print(Text(f"{name:<10}", "bold"), Text(value), sep="")
    if demo_url is not None:
        out.print("\nPaste one of these into another terminal and look at the x-truthlens-* headers:\n")
        for title, command in curl_lines(demo_url):
            say(f"# {title}", "dim")
            # Plain output: the line must be the same bytes that a shell is to read.
            print(command + "\n")


def envoy_config(
    upstream: Annotated[
        str, typer.Option(help="OpenAI-compatible backend, http(s)://HOST:PORT.")
    ] = "http://127.0.0.1:8000",
    listen: options.Listen = DEFAULT_LISTEN,
    extproc: Annotated[
        list[str] | None,
        typer.Option(help="Address of a sidecar process; repeat for one endpoint per process."),
    ] = None,
    health: Annotated[
        list[str] | None,
        typer.Option(
            help="Where a sidecar process answers health checks, as its own --health says; repeat, one for each --extproc. "
            "Left out: its port plus 1000."
        ),
    ] = None,
    fail_open: Annotated[
        bool, typer.Option("--fail-open/--fail-closed", help="What happens while no sidecar answers.")
    ] = True,
    router: Annotated[
        str | None,
        typer.Option(
            help="Address of another external processor, such as a semantic router: asked before TruthLens, with headers "
            "and body of each request."
        ),
    ] = None,
    router_header: Annotated[
        list[str] | None,
        typer.Option(
            help="Request header that only the router may set, x-domain unless given; removed from what clients send. "
            "Repeat for several."
        ),
    ] = None,
    extproc_ca: Annotated[
        str | None,
        typer.Option(help="TLS to the sidecars: PEM roots of their certificates, as a path that Envoy sees."),
    ] = None,
    extproc_name: Annotated[
        str, typer.Option(help="Alternative name (DNS) that their certificates have.")
    ] = "truthlens",
    extproc_cert: Annotated[
        str | None, typer.Option(help="PEM certificate chain that Envoy shows them (serve --tls-client-ca).")
    ] = None,
    extproc_key: Annotated[str | None, typer.Option(help="PEM key that belongs to it.")] = None,
    extproc_secrets: Annotated[
        str | None,
        typer.Option(
            help="Folder, as Envoy sees it, of the files of --write-secrets, by which Envoy takes new certificates over "
            "without a restart."
        ),
    ] = None,
    write_secrets: Annotated[
        Path | None,
        typer.Option(
            help="Write the files of --extproc-secrets into this folder.", file_okay=False, exists=True
        ),
    ] = None,
    admin: options.EnvoyAdminAddress = None,
) -> None:
    """Print an Envoy configuration for this gateway (JSON, which Envoy reads as it does YAML)."""
    tls = _sidecar_tls(extproc_ca, extproc_name, extproc_cert, extproc_key, extproc_secrets)
    if write_secrets is not None:
        if tls is None or tls.secrets is None:
            raise StartError("--write-secrets needs --extproc-ca and --extproc-secrets")
        for file, content in tls.secret_files().items():
            (write_secrets / file).write_text(json.dumps(content, indent=1), encoding="utf-8")
    settings = EnvoySettings(
        listen=Address.parse(listen, name="--listen"),
        extproc=[Address.parse(each, name="--extproc") for each in extproc or [DEFAULT_EXTPROC]],
        upstream=Upstream.parse(upstream),
        admin=_admin_address(admin),
        health=[Address.parse(each, name="--health") for each in health] if health else None,
        failure_mode_allow=fail_open,
        router=Address.parse(router, name="--router") if router is not None else None,
        router_headers=[name.lower() for name in router_header or DEFAULT_ROUTER_HEADERS],
        sidecar_tls=tls,
    )
    typer.echo(render(settings))


def _sidecar_tls(
    ca: str | None, name: str, cert: str | None, key: str | None, secrets: str | None
) -> SidecarTls | None:
    if ca is None:
        if cert or key or secrets:
            raise StartError("--extproc-cert, --extproc-key and --extproc-secrets need --extproc-ca")
        return None
    return SidecarTls(ca, name, cert, key, secrets)


def _admin_address(text: str | None) -> Address | None:
    """Return where Envoy's admin interface listens, also where its URL is given, as `doctor` takes it."""
    if text is None:
        return None
    return Address.parse(text.removeprefix("http://").rstrip("/"), name="--envoy-admin")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port

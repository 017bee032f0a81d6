"""Run the application: what is composed, its servers, and the order in which they start and stop.

Order of start: policy, models, warm-up, ext_proc (health NOT_SERVING), console, then SERVING. Order of stop:
NOT_SERVING, wait for Envoy to notice, let exchanges in flight finish, stop the console.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog
import uvicorn

from truthlens.core.errors import StartError
from truthlens.core.net import Address
from truthlens.envoy.ports import ensure_free
from truthlens.gateway.server import Server
from truthlens.pipeline import Pipeline
from truthlens.policy import PolicyHolder
from truthlens.process.composition import Seams, Traces, composed, follow_policy, settle
from truthlens.process.endpoints import Readiness, WebApp, WebParts, endpoints_app
from truthlens.process.settings import Access, Login, Settings
from truthlens.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from truthlens.gateway.certificates import Certificates
    from truthlens.process.capture.capture import Capture

log = structlog.get_logger("truthlens.process.app")

# How long a thread that reads a large body may keep the interpreter from the event loop, which needs it
# several times for each exchange. Python's own 5 ms made others wait a tenth of a second.
_SWITCH_S = 0.0005
# Objects made before the garbage collector looks at the youngest. At Python's own 700 it looks at all objects
# of a large body several times while they are made, each time for longer, and everybody waits.
_YOUNG_OBJECTS = 5_000


@dataclass(frozen=True, slots=True)
class Node:
    """The parts of a running process that others may want to look at."""

    settings: Settings
    policy: PolicyHolder
    pipeline: Pipeline
    signals: Metrics
    readiness: Readiness


@asynccontextmanager
async def node(
    settings: Settings,
    *,
    addresses: Callable[[], list[tuple[str, str]]] = list,
    web_app: WebApp = endpoints_app,
    gateway: bool = True,
) -> AsyncIterator[Node]:
    """Run the ext_proc server with its endpoints; on leaving everything has been closed.

    Args:
        settings: where to listen and what to load.
        addresses: (name, address) pairs that the pages show.
        web_app: makes what is served on ``settings.console``: the endpoints alone, or the desk's pages with them.
        gateway: False for a process that serves pages and checks no traffic: no ext_proc server is started.

    Raises:
        PolicyError: the policy file cannot be used, or needs a model that cannot be used here.
        StartError: an address is taken, or the console would be open to other machines.
    """
    _check_addresses(settings, gateway=gateway)
    signals = Metrics()
    capture = _capture(settings, signals)
    built = await composed(settings, signals, capture.seams if capture else Seams(), Traces.opened(signals))
    holder, pipeline, readiness, reviews = built.holder, built.pipeline, built.readiness, built.reviews
    server = _server(pipeline, settings, signals) if gateway else None
    app = web_app(
        WebParts(
            policy=holder,
            pipeline=pipeline,
            signals=signals,
            recent=built.recent,
            readiness=readiness,
            addresses=addresses,
            access=_console_access(settings),
            reviews_waiting=reviews.pending if reviews else None,
            reviews=reviews.queue if reviews else None,
            questions=built.questions,
            gateway=gateway,
            retrieval=built.parts.retrieval,
        )
    )
    sys.setswitchinterval(_SWITCH_S)
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    async with asyncio.TaskGroup() as tasks:
        if server is not None:
            await server.start()
        web = await _start_web(app, settings.console, tasks)
        working = [follow_policy(built, signals)] if settings.reload else []
        if reviews is not None:
            working.append(reviews.teach(built.parts.modes.bandit, lambda: holder.current))
        background = [tasks.create_task(each) for each in working]
        settle()
        if server is not None:
            await server.set_serving(True)
        readiness.warm = True
        try:
            yield Node(settings, holder, pipeline, signals, readiness)
        finally:
            readiness.draining = True
            if server is not None:
                await server.drain(notice_s=settings.drain_notice_s, grace_s=settings.drain_grace_s)
            for task in background:
                task.cancel()
            web.should_exit = True
            await built.aclose()
            if capture is not None:
                await asyncio.to_thread(capture.close)


def _capture(settings: Settings, signals: Metrics) -> Capture | None:
    """Begin to capture exchanges; a process that captures none imports nothing of it."""
    if settings.capture is None:
        return None
    from truthlens.process.capture.capture import Capture

    log.warning(
        "exchanges are captured with their texts",
        file=str(settings.capture.file),
        sample=settings.capture.sample,
        most_exchanges=settings.capture.most_exchanges,
        remedy="start without --capture to end it; the file is readable by its owner alone",
    )
    return Capture.opened(settings.capture, signals)


def _check_addresses(settings: Settings, *, gateway: bool) -> None:
    ensure_free(settings.console, flag="--console")
    _check_login(settings)
    if not gateway:
        return
    ensure_free(settings.extproc, flag="--extproc")
    if (health := settings.health or settings.extproc.health) is not None:
        ensure_free(health, flag="--health")


def _check_login(settings: Settings) -> None:
    if settings.access.login is Login.NONE and not settings.console.is_local:
        raise StartError(
            f"--console {settings.console} can be reached from other machines, and nobody would have to log in; give it"
            " a token (--console-token-file FILE), another --console-login, or an address of 127.0.0.1"
        )


def _console_access(settings: Settings) -> Access:
    console, access = settings.console, settings.access
    hosts = frozenset({console.host, *(access.hosts or ())}) if console.port else None
    return replace(access, hosts=hosts)


def _server(pipeline: Pipeline, settings: Settings, signals: Metrics) -> Server:
    return Server(
        pipeline,
        address=str(settings.extproc),
        certificates=_certificates(settings, signals),
        health_at=settings.health or settings.extproc.health,
        socket_mode=None if settings.extproc.port else settings.socket_mode,
    )


def _certificates(settings: Settings, signals: Metrics) -> Certificates | None:
    """Read the certificates of ext_proc; a process without TLS imports nothing for them."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    from truthlens.gateway.certificates import Certificates, Tls

    names = settings.tls_client_names
    return Certificates(
        Tls(settings.tls_certificate, settings.tls_key, settings.tls_client_ca, names), signals
    )


class _Web(uvicorn.Server):
    """Uvicorn without signal handlers of its own: the process has one place that decides when to stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _start_web(app: Any, address: Address, tasks: asyncio.TaskGroup) -> _Web:
    where = {"uds": address.host} if not address.port else {"host": address.host, "port": address.port}
    web = _Web(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            # Whose forwarded headers are believed is for the console to say: it needs the connection's own address.
            proxy_headers=False,
            **where,
        )
    )
    serving = tasks.create_task(web.serve())
    while not web.started:
        if serving.done():
            raise StartError(f"cannot listen on {address}")
        await asyncio.sleep(0.01)
    return web


@asynccontextmanager
async def web_server(app: Any, address: Address) -> AsyncIterator[None]:
    """Serve an ASGI application on ``address`` until left (the demo backend)."""
    async with asyncio.TaskGroup() as tasks:
        web = await _start_web(app, address, tasks)
        try:
            yield
        finally:
            web.should_exit = True
            web.force_exit = True


async def until_stopped() -> None:
    """Wait for SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


async def serve(
    settings: Settings,
    *,
    started: Callable[[Node], None],
    web_app: WebApp = endpoints_app,
    gateway: bool = True,
) -> None:
    """Run what ``node`` runs until SIGTERM or SIGINT, then drain."""
    async with node(settings, web_app=web_app, gateway=gateway) as running:
        started(running)
        await until_stopped()
        log.info("draining", notice_s=settings.drain_notice_s, grace_s=settings.drain_grace_s)

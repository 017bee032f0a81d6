"""Compose the application: build every part once, connect them, and run them until told to stop.

Order of start: policy, models, warm-up, ext_proc (health NOT_SERVING), console, then SERVING. Order of stop:
NOT_SERVING, wait for Envoy to notice, let exchanges in flight finish, stop the console.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog
import uvicorn

from truthlens.console import Readiness, console_app
from truthlens.core.errors import PolicyError, StartError
from truthlens.core.net import Address
from truthlens.detection.engine import Engine
from truthlens.envoy.process import ensure_free
from truthlens.gateway.server import Server, Tls
from truthlens.llm.client import LlmClient
from truthlens.llm.loop_guard import Marks
from truthlens.llm.shared_secret import host_secret
from truthlens.mitigation.auto.bandit import Bandit
from truthlens.mitigator import Mitigator
from truthlens.model_store import ModelShelf, SimilarityShelf
from truthlens.pipeline import Pipeline
from truthlens.policy import Policy, PolicyHolder, default_policy, load_policy
from truthlens.policy.watch import watch
from truthlens.reading_pool import Pool
from truthlens.review.service import ReviewService
from truthlens.settings import Access, Login, Settings
from truthlens.start_checks import Ready, called, make_ready
from truthlens.store.arm_store import MemoryArms
from truthlens.store.redis_arm_store import RedisArms
from truthlens.store.redis_result_cache import RedisResults
from truthlens.store.result_cache import CachedResults
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent
from truthlens.telemetry.result_cache_metrics import result_cache_metrics
from truthlens.telemetry.tracing import Tracer

log = structlog.get_logger("truthlens.app")

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
    server: Server
    readiness: Readiness


@asynccontextmanager
async def node(
    settings: Settings, *, addresses: Callable[[], list[tuple[str, str]]] = list
) -> AsyncIterator[Node]:
    """Run the ext_proc server with its console; on leaving everything has been closed.

    Args:
        settings: where to listen and what to load.
        addresses: (name, address) pairs that the console shows.

    Raises:
        PolicyError: the policy file cannot be used, or needs a model that cannot be used here.
        StartError: an address is taken, or the console would be open to other machines.
    """
    _check_addresses(settings)
    signals, recent, readiness = Metrics(), Recent(), Readiness()
    stores = _Stores.opened(settings.redis)
    shelf = ModelShelf(settings, signals, cache=stores.results)
    policy = _loaded_policy(settings, shelf)
    holder = PolicyHolder(policy)
    similarity, tracer = SimilarityShelf(settings), Tracer()
    ready = await make_ready(policy, shelf, similarity, environ=os.environ)
    engine = Engine(
        ready.detectors,
        workers=settings.workers,
        queue_limit=policy.limits.queue_limit,
        queue_observer=signals.queue_seconds.observe,
        unexplained=_unexplained(signals),
    )
    reviews = ReviewService.opened(settings.review_database, lambda: holder.current.review, signals)
    marks = Marks(settings.secret or host_secret())
    client = LlmClient(
        upstream=str(settings.upstream) if settings.upstream else None, environ=os.environ, marks=marks
    )
    bandit = Bandit(stores.arms)
    stores.observe(bandit, signals)
    mitigator = Mitigator(engine, client, bandit, signals, load_similarity=similarity, tracer=tracer)
    parts = Parts(
        engine,
        client,
        bandit,
        stores.results,
        settings.drain_grace_s if settings.drain_notice_s > 0 else None,
    )
    parts.prepare(policy, environ=os.environ)
    _describe(readiness, policy, ready)
    del ready  # its models leave memory when a reload names others
    pool = Pool()
    pipeline = Pipeline(
        holder,
        engine,
        signals,
        recent,
        mitigator=mitigator,
        marks=marks,
        pool=pool,
        tracer=tracer,
        reviews=reviews.intake if reviews else None,
    )
    server = Server(pipeline, address=str(settings.extproc), tls=_tls(settings))
    app = console_app(
        policy=holder,
        pipeline=pipeline,
        signals=signals,
        recent=recent,
        readiness=readiness,
        addresses=addresses,
        access=_console_access(settings),
        reviews_waiting=reviews.pending if reviews else None,
        reviews=reviews.queue if reviews else None,
    )
    _shorten_pauses()
    async with asyncio.TaskGroup() as tasks:
        await server.start()
        web = await _start_web(app, settings.console, tasks)
        work = [
            reviews.teach(bandit, lambda: holder.current) if reviews is not None else None,
            _watching(settings, holder, shelf, similarity, parts=parts, signals=signals, readiness=readiness),
        ]
        background = [tasks.create_task(each) for each in work if each is not None]
        _settle()
        await server.set_serving(True)
        readiness.warm = True
        try:
            yield Node(settings, holder, pipeline, signals, server, readiness)
        finally:
            readiness.draining = True
            await server.drain(notice_s=settings.drain_notice_s, grace_s=settings.drain_grace_s)
            for task in background:
                task.cancel()
            web.should_exit = True
            await mitigator.aclose()
            if reviews is not None:
                await asyncio.to_thread(reviews.close)
            await stores.aclose()
            await client.aclose()
            await pool.aclose()
            await engine.aclose()


def _loaded_policy(settings: Settings, shelf: ModelShelf) -> Policy:
    if settings.config is None:
        return default_policy()
    return load_policy(settings.config, model_exists=shelf.has, identify=shelf.identity)


def _shorten_pauses() -> None:
    sys.setswitchinterval(_SWITCH_S)
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


@dataclass(frozen=True, slots=True)
class _Stores:
    """What is kept of mode auto and of what models said, in memory and, where there is one, in Redis."""

    arms: MemoryArms | RedisArms
    results: CachedResults
    shared: RedisResults | None

    @classmethod
    def opened(cls, redis: str | None) -> _Stores:
        shared = RedisResults(redis) if redis else None
        return cls(RedisArms(redis) if redis else MemoryArms(), CachedResults(shared=shared), shared)

    def observe(self, bandit: Bandit, signals: Metrics) -> None:
        """Bring the metrics of both up to date whenever somebody reads them."""
        signals.on_scrape(result_cache_metrics(self.results, signals))
        signals.on_scrape(_arm_metrics(bandit, self.arms, signals))

    async def aclose(self) -> None:
        for each in (self.arms, self.shared):
            if isinstance(each, RedisArms | RedisResults):
                await each.aclose()


def _arm_metrics(bandit: Bandit, store: MemoryArms | RedisArms, signals: Metrics) -> Callable[[], None]:
    """Return what brings ``truthlens_auto_*`` up to date whenever somebody reads the metrics."""
    told = 0

    def collect() -> None:
        nonlocal told
        signals.auto_arm.clear()
        for decision, arms in bandit.snapshot().items():
            for mode, arm in arms.items():
                signals.auto_arm.labels(decision, mode.value, "alpha").set(arm.alpha)
                signals.auto_arm.labels(decision, mode.value, "beta").set(arm.beta)
        if isinstance(store, RedisArms):
            errors, told = store.errors - told, store.errors
            signals.auto_store_errors.inc(errors)

    return collect


def _unexplained(signals: Metrics) -> Callable[[Exception], None]:
    def note(error: Exception) -> None:
        log.warning("spans are given without explanations or phrases", error=type(error).__name__)
        signals.unexplained.inc()

    return note


def _check_addresses(settings: Settings) -> None:
    ensure_free(settings.console, flag="--console")
    ensure_free(settings.extproc, flag="--extproc")
    _check_login(settings)


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


def _tls(settings: Settings) -> Tls | None:
    if settings.tls_certificate and settings.tls_key:
        return Tls(settings.tls_certificate, settings.tls_key, settings.tls_client_ca)
    return None


def _settle() -> None:
    """Exclude what is loaded from garbage collection: a round over all of it stops streams for tens of ms."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a reloaded policy changes."""

    engine: Engine
    client: LlmClient
    bandit: Bandit
    results: CachedResults
    # None where a stop is to be quick whatever is lost, as on a developer's machine.
    drain_grace_s: float | None

    def prepare(self, policy: Policy, *, environ: Mapping[str, str]) -> None:
        """Give the models of ``policy`` to their callers, and report what this process cannot call."""
        models = policy.models or {}
        plans = [plan for plan in (policy.default, *policy.plans) if plan.calls_models]
        self.client.use(models)
        # A name that is moved to another server is another model.
        places = [f"{name} {spec.base_url or ''}" for name, spec in sorted(models.items())]
        self.results.use(policy.cache, scope=places)
        self.bandit.keep(policy.decision_names)
        for name in sorted({name for plan in plans for name in called(plan)}):
            spec = models.get(name)
            has_key = spec is None or not spec.api_key_env or environ.get(spec.api_key_env)
            if has_key and not self.client.reachable(name):
                remedy = "give it a base_url under models, or start with --upstream"
                log.warning("a model cannot be reached", model=name, remedy=remedy)
        longest_s = max((plan.hold_s for plan in plans), default=0.0)
        if self.drain_grace_s is not None and longest_s > self.drain_grace_s:
            log.warning(
                "a stop cuts answers that are being corrected",
                longest_hold_s=longest_s,
                drain_grace_s=self.drain_grace_s,
                remedy="raise --drain-grace above the longest mitigation.deadline_s",
            )
        correcting = [plan for plan in plans if plan.corrects]
        if correcting and not self.client.reachable(""):
            log.warning(
                "answers can only be refined by models that have a base_url",
                decisions=sorted(plan.decision for plan in correcting),
                remedy="start with --upstream",
            )


def _describe(readiness: Readiness, policy: Policy, ready: Ready) -> None:
    readiness.models = list(ready.detectors.models)
    for warning in (*policy.warnings, *ready.warnings):
        log.warning("policy", warning=warning.render())


def _watching(settings: Settings, *given: Any, **more: Any) -> Coroutine[Any, Any, None] | None:
    """What takes over edits of the policy, where that is wanted."""
    if settings.config is None or not settings.reload:
        return None
    return _watch(settings.config, *given, **more)


async def _watch(
    path: Path,
    holder: PolicyHolder,
    shelf: ModelShelf,
    similarity: SimilarityShelf,
    *,
    parts: Parts,
    signals: Metrics,
    readiness: Readiness,
) -> None:
    async def use(policy: Policy) -> None:
        # Models first: the plan that needs one must never be in force without it, and a policy that is
        # refused must change nothing.
        ready = await make_ready(policy, shelf, similarity, environ=os.environ)
        parts.prepare(policy, environ=os.environ)
        parts.engine.use(ready.detectors)
        holder.swap(policy)
        signals.score_history.keep(policy.decision_names)
        _settle()
        _describe(readiness, policy, ready)
        signals.policy_reloads.labels("ok").inc()
        log.info("policy reloaded", version=policy.version, decisions=len(policy.plans))

    async def refuse(error: PolicyError) -> None:
        holder.last_error = error
        signals.policy_reloads.labels("failed").inc()
        log.error("policy not reloaded, the one before it stays in force", error=str(error))

    await watch(
        path,
        reload=use,
        failed=refuse,
        loaded=holder.current.version,
        model_exists=shelf.has,
        identify=shelf.identity,
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


async def serve(settings: Settings, *, started: Callable[[Node], None]) -> None:
    """Run the ext_proc server and the console until SIGTERM or SIGINT, then drain."""
    async with node(settings) as running:
        started(running)
        await until_stopped()
        log.info("draining", notice_s=settings.drain_notice_s, grace_s=settings.drain_grace_s)

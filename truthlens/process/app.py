"""Compose the application: build every part once, connect them, and run them until told to stop.

Order of start: policy, models, warm-up, ext_proc (health NOT_SERVING), console, then SERVING. Order of stop:
NOT_SERVING, wait for Envoy to notice, let exchanges in flight finish, stop the console.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
import uvicorn

from truthlens import __version__
from truthlens.core.errors import PolicyError, StartError
from truthlens.core.net import Address
from truthlens.core.records.calls import ModelSpec
from truthlens.detection.engine import Engine
from truthlens.envoy.ports import ensure_free
from truthlens.exchange.assessor import Assessor
from truthlens.exchange.corrector import Corrector
from truthlens.exchange.reading_pool import Pool
from truthlens.gateway.server import Server
from truthlens.llm.loop_guard import Marks
from truthlens.llm.shared_secret import host_secret
from truthlens.pipeline import Pipeline
from truthlens.policy import Policy, PolicyHolder, load_policy
from truthlens.policy.watch import watch
from truthlens.process.endpoints import Readiness, WebApp, WebParts, endpoints_app
from truthlens.process.model_calls import ModelCalls, PolicyModes, PolicyQuestions
from truthlens.process.model_store import ModelShelf, SimilarityShelf
from truthlens.process.policy_retrieval import PolicyRetrieval
from truthlens.process.settings import Access, Login, Settings
from truthlens.process.start_checks import Ready, called, make_ready
from truthlens.store.result_cache import CachedResults
from truthlens.telemetry.metrics import Metrics, result_cache_metrics
from truthlens.telemetry.recent_exchanges import Recent
from truthlens.telemetry.tracing import Tracer, signals_sent

if TYPE_CHECKING:
    from truthlens.gateway.certificates import Certificates
    from truthlens.llm.client import LlmClient
    from truthlens.mitigation.auto.bandit import Bandit
    from truthlens.process.capture.capture import Capture
    from truthlens.retrieval.retriever import Retriever
    from truthlens.review.service import ReviewService
    from truthlens.store.redis_arm_store import RedisArms
    from truthlens.store.redis_result_cache import RedisResults
    from truthlens.telemetry.evaluations import Evaluations
    from truthlens.telemetry.otlp import Exports

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
    _shorten_pauses()
    async with asyncio.TaskGroup() as tasks:
        if server is not None:
            await server.start()
        web = await _start_web(app, settings.console, tasks)
        background = []
        if reviews is not None:
            background.append(
                tasks.create_task(reviews.teach(built.parts.modes.bandit, lambda: holder.current))
            )
        if settings.reload:
            background.append(
                tasks.create_task(
                    _watch(
                        holder,
                        built.shelf,
                        built.similarity,
                        parts=built.parts,
                        signals=signals,
                        readiness=readiness,
                    )
                )
            )
        _settle()
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


@dataclass(frozen=True, slots=True)
class Seams:
    """What stands in the place of parts of a process whose exchanges are captured or replayed; left out, the parts themselves.

    ``policy`` changes the policy that is loaded, ``draw`` gives the numbers in 0..1 by which answers are sampled.
    """

    pipeline: Callable[..., Pipeline] = Pipeline
    client: Callable[..., LlmClient] | None = None
    retriever: Callable[..., Retriever] | None = None
    bandit: Callable[[], Bandit] | None = None
    draw: Callable[[], float] = random.random
    policy: Callable[[Policy], Policy] = lambda policy: policy


@dataclass(frozen=True, slots=True)
class Composed:
    """The parts that exchanges go through, connected; close them at the end."""

    holder: PolicyHolder
    pipeline: Pipeline
    recent: Recent
    readiness: Readiness
    shelf: ModelShelf
    similarity: SimilarityShelf
    reviews: ReviewService | None
    questions: PolicyQuestions
    parts: Parts
    closing: tuple[Callable[[], Awaitable[None]], ...]

    async def aclose(self) -> None:
        """End all work that is under way, and close what was opened."""
        for each in self.closing:
            await each()


async def composed(
    settings: Settings, signals: Metrics, seams: Seams, traces: Traces | None = None
) -> Composed:
    """Build every part of a process once, and connect them; nothing is served, and without ``traces`` no span is made.

    Raises:
        PolicyError: the policy file cannot be used, or needs a model that cannot be used here.
    """
    recent, readiness = Recent(), Readiness()
    stores = _Stores.opened(settings.redis)
    shelf = ModelShelf(settings, signals, cache=stores.results)
    policy = seams.policy(load_policy(settings.config, model_exists=shelf.has, identify=shelf.identity))
    holder, similarity, traces = PolicyHolder(policy), SimilarityShelf(settings), traces or Traces(Tracer())
    ready = await make_ready(policy, shelf, similarity, environ=os.environ)
    engine = Engine(
        ready.detectors,
        workers=settings.workers,
        queue_limit=policy.limits.queue_limit,
        queue_observer=signals.queue_seconds.observe,
        unexplained=_unexplained(signals),
        draw=seams.draw,
    )
    reviews = _reviews(settings, holder, signals)
    marks, pool = Marks(settings.secret or host_secret()), Pool()
    calls = ModelCalls(
        signals,
        upstream=str(settings.upstream) if settings.upstream else None,
        environ=os.environ,
        marks=marks,
        tracer=traces.tracer,
        make_client=seams.client,
    )
    retrieval = PolicyRetrieval(
        signals, environ=os.environ, load_similarity=similarity, make_retriever=seams.retriever
    )
    assessor = Assessor(engine, calls, retrieval=retrieval, tracer=traces.tracer)
    modes = PolicyModes(
        assessor,
        signals,
        load_similarity=similarity,
        retrieval=retrieval,
        tracer=traces.tracer,
        arms=stores.arms,
        make_bandit=seams.bandit,
    )
    questions = PolicyQuestions(assessor, calls, retrieval=retrieval, signals=signals)
    stores.observe(signals)
    parts = Parts(engine, calls, modes, retrieval, stores.results, settings)
    parts.prepare(policy, environ=os.environ)
    _describe(readiness, policy, ready)
    del ready  # its models leave memory when a reload names others
    pipeline = seams.pipeline(
        holder,
        engine,
        signals,
        recent,
        assessor=assessor,
        corrector=Corrector(assessor, modes),
        marks=marks,
        pool=pool,
        tracer=traces.tracer,
        retrieval=retrieval,
        reviews=reviews.intake if reviews else None,
        evaluations=traces.evaluations,
    )
    # Questions first: the server's stop waits for its replies, and a run may take minutes.
    closing: list[Callable[[], Awaitable[None]]] = [
        questions.aclose,
        modes.aclose,
        *([] if reviews is None else [partial(asyncio.to_thread, reviews.close)]),
        retrieval.aclose,
        stores.aclose,
        calls.aclose,
        pool.aclose,
        engine.aclose,
        traces.aclose,
    ]
    return Composed(
        holder, pipeline, recent, readiness, shelf, similarity, reviews, questions, parts, tuple(closing)
    )


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


def _shorten_pauses() -> None:
    sys.setswitchinterval(_SWITCH_S)
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


@dataclass(frozen=True, slots=True)
class _Stores:
    """What is kept of what models said and, in Redis where there is one, of mode auto."""

    results: CachedResults
    arms: RedisArms | None = None
    shared: RedisResults | None = None

    @classmethod
    def opened(cls, redis: str | None) -> _Stores:
        if redis is None:
            return cls(CachedResults(shared=None))
        from truthlens.store.redis_arm_store import RedisArms
        from truthlens.store.redis_result_cache import RedisResults

        shared = RedisResults(redis)
        return cls(CachedResults(shared=shared), RedisArms(redis), shared)

    def observe(self, signals: Metrics) -> None:
        """Bring the metrics of the results up to date whenever somebody reads them."""
        signals.on_scrape(result_cache_metrics(self.results, signals))

    async def aclose(self) -> None:
        for each in (self.arms, self.shared):
            if each is not None:
                await each.aclose()


def _reviews(settings: Settings, holder: PolicyHolder, signals: Metrics) -> ReviewService | None:
    """Open the review queue; a process without one imports nothing of it."""
    if settings.review_database is None:
        return None
    from truthlens.review.service import ReviewService

    return ReviewService.opened(settings.review_database, lambda: holder.current.review, signals)


@dataclass(frozen=True, slots=True)
class Traces:
    """What makes spans and, where the environment names a receiver, what sends them and evaluations."""

    tracer: Tracer
    exports: Exports | None = None

    @classmethod
    def opened(cls, signals: Metrics) -> Traces:
        """Begin to send what the environment says."""
        wanted = signals_sent(os.environ)
        if not wanted:
            return cls(Tracer())  # nothing that sends is imported
        try:
            from truthlens.telemetry.otlp import Exports

            exports = Exports(os.environ, signals=wanted, version=__version__, count=signals.count_otlp)
        except ImportError as error:
            log.error("traces are not sent", missing=error.name, remedy="pip install 'truthlens[otel]'")
            return cls(Tracer())
        return cls(Tracer(exports.tracer_provider), exports)

    @property
    def evaluations(self) -> Evaluations | None:
        """What tells verdicts, ``None`` where nothing is sent."""
        return None if self.exports is None else self.exports.evaluations

    async def aclose(self) -> None:
        """Send what waits."""
        if self.exports is not None:
            await self.exports.aclose()


def _unexplained(signals: Metrics) -> Callable[[Exception], None]:
    def note(error: Exception) -> None:
        log.warning("spans are given without explanations or phrases", error=type(error).__name__)
        signals.unexplained.inc()

    return note


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


def _settle() -> None:
    """Exclude what is loaded from garbage collection: a round over all of it stops streams for tens of ms."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a reloaded policy changes."""

    engine: Engine
    calls: ModelCalls
    modes: PolicyModes
    retrieval: PolicyRetrieval
    results: CachedResults
    settings: Settings

    def prepare(self, policy: Policy, *, environ: Mapping[str, str]) -> None:
        """Give models and sources of ``policy`` to what uses them, and report what this process cannot call.

        Raises:
            PolicyError: a source cannot be used here; nothing has been changed.
        """
        models = policy.models or {}
        self.retrieval.use(policy)
        self.calls.use(policy)
        # A name that is moved to another server is another model.
        places = [f"{name} {spec.base_url or ''}" for name, spec in sorted(models.items())]
        self.results.use(policy.cache, scope=places)
        self.modes.use(policy)
        for message, told in self._warnings(policy, environ):
            log.warning(message, **told)

    def _warnings(self, policy: Policy, environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
        models, plans = policy.models or {}, [plan for plan in policy.all_plans if plan.calls_models]
        for name in sorted({name for plan in plans for name in called(plan)}):
            key = models.get(name, ModelSpec(name)).api_key_env
            if (not key or environ.get(key)) and not self.calls.reachable(name):
                remedy = "give it a base_url under models, or start with --upstream"
                yield "a model cannot be reached", {"model": name, "remedy": remedy}
        longest_s, grace_s = max((plan.hold_s for plan in plans), default=0.0), self.settings.drain_grace_s
        # Without a notice a stop is to be quick whatever is lost, as on a developer's machine.
        if longest_s > grace_s and self.settings.drain_notice_s > 0:
            remedy = "raise --drain-grace above the longest mitigation.deadline_s"
            told = {"longest_hold_s": longest_s, "drain_grace_s": grace_s, "remedy": remedy}
            yield "a stop cuts answers that are being corrected", told
        correcting = sorted(plan.decision for plan in plans if plan.corrects)
        if correcting and not self.calls.reachable(""):
            told = {"decisions": correcting, "remedy": "start with --upstream"}
            yield "answers can only be refined by models that have a base_url", told


def _describe(readiness: Readiness, policy: Policy, ready: Ready) -> None:
    readiness.models = list(ready.detectors.models)
    for warning in (*policy.warnings, *ready.warnings):
        log.warning("policy", warning=warning.render())


async def _watch(
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
        shelf.settings.config,
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

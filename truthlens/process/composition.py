"""Build every part that exchanges go through, and connect them: for ``truthlens serve`` and for a replay of captured ones."""

from __future__ import annotations

import asyncio
import gc
import os
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from truthlens import __version__
from truthlens.core.errors import PolicyError
from truthlens.core.records.calls import ModelSpec
from truthlens.detection.engine import Engine
from truthlens.exchange.assessor import Assessor
from truthlens.exchange.corrector import Corrector
from truthlens.exchange.reading_pool import Pool
from truthlens.llm.loop_guard import Marks
from truthlens.llm.shared_secret import host_secret
from truthlens.pipeline import Pipeline
from truthlens.policy import Policy, PolicyHolder, load_policy
from truthlens.policy.watch import watch
from truthlens.process.endpoints import Readiness
from truthlens.process.model_calls import ModelCalls, PolicyModes, PolicyQuestions
from truthlens.process.model_store import ModelShelf, SimilarityShelf
from truthlens.process.policy_retrieval import PolicyRetrieval
from truthlens.process.settings import Settings
from truthlens.process.start_checks import Ready, called, make_ready
from truthlens.store.result_cache import CachedResults
from truthlens.telemetry.metrics import Metrics, result_cache_metrics
from truthlens.telemetry.recent_exchanges import Recent
from truthlens.telemetry.tracing import Tracer, signals_sent

if TYPE_CHECKING:
    from truthlens.llm.client import LlmClient
    from truthlens.mitigation.auto.bandit import Bandit
    from truthlens.retrieval.retriever import Retriever
    from truthlens.review.service import ReviewService
    from truthlens.store.redis_arm_store import RedisArms
    from truthlens.store.redis_result_cache import RedisResults
    from truthlens.telemetry.evaluations import Evaluations
    from truthlens.telemetry.otlp import Exports

log = structlog.get_logger("truthlens.process.composition")


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
        unexplained=partial(_unexplained, signals),
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


def _unexplained(signals: Metrics, error: Exception) -> None:
    log.warning("spans are given without explanations or phrases", error=type(error).__name__)
    signals.unexplained.inc()


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


async def follow_policy(built: Composed, signals: Metrics) -> None:
    """Take over each change of the policy file that can be used, until cancelled."""
    holder, shelf, parts = built.holder, built.shelf, built.parts

    async def use(policy: Policy) -> None:
        # Models first: the plan that needs one must never be in force without it, and a policy that is
        # refused must change nothing.
        ready = await make_ready(policy, shelf, built.similarity, environ=os.environ)
        parts.prepare(policy, environ=os.environ)
        parts.engine.use(ready.detectors)
        holder.swap(policy)
        signals.score_history.keep(policy.decision_names)
        settle()
        _describe(built.readiness, policy, ready)
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


def settle() -> None:
    """Exclude what is loaded from garbage collection: a round over all of it stops streams for tens of ms."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()

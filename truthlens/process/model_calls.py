"""Make what only plans that call models need: the client that asks them, and what runs modes.

Each is made, and its modules are imported, when a policy with such a plan is prepared and not yet in force: a
sidecar that only detects carries neither, and no exchange waits for them. What answers questions is made at
the first one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from truthlens.core.records.calls import ModelSpec
from truthlens.exchange.assessor import Assessor, Case
from truthlens.llm.loop_guard import Marks
from truthlens.policy import Policy
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.tracing import Tracer

if TYPE_CHECKING:
    from truthlens.detection.similarity import Similarity
    from truthlens.exchange.agentic_mode import AgenticMode
    from truthlens.exchange.callers import Callers
    from truthlens.exchange.mode_runner import ModeRunner
    from truthlens.exchange.retrieval_step import RetrievalStep
    from truthlens.llm.caller import Caller
    from truthlens.llm.client import LlmClient
    from truthlens.mitigation.auto.bandit import Bandit
    from truthlens.process.policy_retrieval import PolicyRetrieval
    from truthlens.process.questions.service import QuestionService
    from truthlens.store.redis_arm_store import RedisArms


class ModelCalls:
    """Asks the models of policies, by one client, from the first policy on that has models or asks some.

    Args:
        signals: counts the calls.
        upstream: the backend that models without a base URL are asked at, ``None`` for none.
        environ: where the keys of models come from.
        marks: put on every call.
        tracer: given a span for each call.
        make_client: makes the client; ``None`` for one that asks over the network.
    """

    def __init__(
        self,
        signals: Metrics,
        *,
        upstream: str | None,
        environ: Mapping[str, str],
        marks: Marks,
        tracer: Tracer,
        make_client: Callable[..., LlmClient] | None = None,
    ) -> None:
        self._make_client = make_client
        self._signals, self._upstream, self._environ = signals, upstream, environ
        self._marks, self._tracer = marks, tracer
        self._client: LlmClient | None = None
        self._callers: Callers | None = None

    def use(self, policy: Policy) -> None:
        """Use the models of ``policy`` from now on."""
        models = policy.models or {}
        if self._client or models or any(plan.calls_models for plan in policy.all_plans):
            self._made(models).use(models)

    def reachable(self, name: str) -> bool:
        """Return whether model ``name`` has an address and, if needed, a key. No server is asked."""
        return self._made({}).reachable(name)

    def __call__(self, case: Case) -> Caller:
        """Return what asks models for ``case``."""
        self._made(case.models or {})
        assert self._callers is not None
        return self._callers(case)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()

    def _made(self, models: Mapping[str, ModelSpec]) -> LlmClient:
        if self._client is None:
            from truthlens.exchange.callers import Callers
            from truthlens.llm.client import LlmClient

            make = self._make_client or LlmClient
            self._client = make(upstream=self._upstream, environ=self._environ, marks=self._marks)
            self._client.use(models)
            self._callers = Callers(self._client, self._signals, tracer=self._tracer)
        return self._client


class PolicyModes:
    """Runs the modes of policies, from the first policy on that has a plan which corrects answers.

    Args:
        assessor: scores what modes write.
        signals: shows what mode auto has learned.
        load_similarity: loads the model by which answers are compared.
        retrieval: gives what searches the sources of policies, for mode agentic.
        tracer: given a span for the work of a mode.
        arms: keeps what mode auto has learned; ``None`` for this process's memory.
        make_bandit: makes what chooses for mode auto, in the place of one that learns.
    """

    def __init__(
        self,
        assessor: Assessor,
        signals: Metrics,
        *,
        load_similarity: Callable[[], Awaitable[Similarity]],
        retrieval: Callable[[], RetrievalStep | None],
        tracer: Tracer,
        arms: RedisArms | None,
        make_bandit: Callable[[], Bandit] | None = None,
    ) -> None:
        self._make_bandit = make_bandit
        self._assessor, self._signals, self._tracer = assessor, signals, tracer
        self._load_similarity, self._arms = load_similarity, arms
        self._retrieval = retrieval
        self._runner: ModeRunner | None = None
        self._agentic: AgenticMode | None = None

    def use(self, policy: Policy) -> None:
        """Be ready for the plans of ``policy``."""
        if any(plan.corrects for plan in policy.all_plans):
            self()
        if any(plan.corrects and plan.may_search for plan in policy.all_plans):
            self._search()
        if self._runner is not None:
            self._runner.bandit.keep(policy.decision_names)

    def __call__(self) -> ModeRunner:
        """Return what runs modes."""
        if self._runner is None:
            from truthlens.exchange.mode_runner import ModeRunner
            from truthlens.mitigation.auto.bandit import Bandit
            from truthlens.store.arm_store import MemoryArms

            bandit = self._make_bandit() if self._make_bandit else Bandit(self._arms or MemoryArms())
            self._signals.on_scrape(_arm_metrics(bandit, self._arms, self._signals))
            loads, tracer = self._load_similarity, self._tracer
            self._runner = ModeRunner(
                self._assessor,
                bandit,
                self._signals,
                load_similarity=loads,
                agentic=self._search,
                tracer=tracer,
            )
        return self._runner

    def _search(self) -> AgenticMode:
        if self._agentic is None:
            from truthlens.exchange.agentic_mode import AgenticMode

            self._agentic = AgenticMode(
                self._assessor, self._retrieval, observe=self._signals.observe_step, tracer=self._tracer
            )
        return self._agentic

    def bandit(self) -> Bandit | None:
        """Return what chooses for mode auto and learns; ``None`` where no policy had a plan that corrects."""
        return None if self._runner is None else self._runner.bandit

    async def aclose(self) -> None:
        """Wait until what was learned has been written."""
        if self._runner is not None:
            await self._runner.aclose()


class PolicyQuestions:
    """Answers questions by the sources of policies (``/v1/ask``), from the first question on.

    Args:
        assessor: scores what is answered.
        calls: asks models.
        retrieval: searches the sources.
        signals: counts the ends of runs.
    """

    def __init__(
        self, assessor: Assessor, calls: ModelCalls, *, retrieval: PolicyRetrieval, signals: Metrics
    ) -> None:
        self._assessor, self._calls, self._signals = assessor, calls, signals
        self._retrieval = retrieval
        self._questions: QuestionService | None = None

    async def __call__(self) -> QuestionService:
        """Return what answers questions; a policy in force has had sources by then."""
        if self._questions is None:
            # Many modules, which exchanges do not wait for.
            made = await asyncio.to_thread(_load_questions)
            retriever = self._retrieval.retriever
            assert retriever is not None
            # Whoever asked at the same time may have been first.
            self._questions = self._questions or made(
                self._assessor,
                self._calls,
                reachable=self._calls.reachable,
                retriever=retriever,
                signals=self._signals,
            )
        return self._questions

    async def aclose(self) -> None:
        """Cancel what is being answered."""
        if self._questions is not None:
            await self._questions.aclose()


def _load_questions() -> type[QuestionService]:
    import truthlens.exchange.callers  # noqa: F401 - what asking the first model imports
    from truthlens.process.questions.service import QuestionService

    return QuestionService


def _arm_metrics(bandit: Bandit, shared: RedisArms | None, signals: Metrics) -> Callable[[], None]:
    """Return what brings ``truthlens_auto_*`` up to date whenever somebody reads the metrics."""
    told = 0

    def collect() -> None:
        nonlocal told
        signals.auto_arm.clear()
        for decision, arms in bandit.snapshot().items():
            for mode, arm in arms.items():
                signals.auto_arm.labels(decision, mode.value, "alpha").set(arm.alpha)
                signals.auto_arm.labels(decision, mode.value, "beta").set(arm.beta)
        if shared is not None:
            errors, told = shared.errors - told, shared.errors
            signals.auto_store_errors.inc(errors)

    return collect

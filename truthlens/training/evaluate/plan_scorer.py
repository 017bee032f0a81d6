"""Score labelled answers with all detectors of a plan, as the gateway does but for its deadline.

Beside the verdict it keeps what each detector had in it, so that an evaluation can say what each one adds, and the
encoder's token scores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import Reason
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Coverage, DetectorResult, Span, Verdict
from truthlens.core.thresholds import EVEN_ODDS
from truthlens.detection.building import LateModel, build_engine
from truthlens.detection.engine import Engine
from truthlens.detection.fusion import fuse
from truthlens.llm.offline import OfflineModels
from truthlens.training.data.dataset import as_exchange
from truthlens.training.evaluate.score_table import DetectorShare
from truthlens.training.evaluate.served_encoder import ServedAnswer, ServedEncoder, TokenReading, load_served

NO_DEADLINE_S = 86_400.0
FAILURES = frozenset({Reason.DETECTOR_ERROR, Reason.TIMEOUT, Reason.OVERLOADED})
"""With one of these the score is not what the plan gives when nothing goes wrong."""


def failure_of(verdict: Verdict) -> Reason | None:
    """Return why a detector failed, whatever else kept the verdict from being whole; ``None`` where none did."""
    reasons = (verdict.reason, *(result.reason for result in verdict.results))
    return next((reason for reason in reasons if reason in FAILURES), None)


def demand_models(plan: Plan, models: OfflineModels | None) -> None:
    """Check that the plan's detectors have models to ask, where they ask any.

    Raises:
        DetectorError: they have not.
    """
    if plan.asking and models is None:
        names = ", ".join(spec.name for spec in plan.asking)
        raise DetectorError(f"{names}: asks models, which this command cannot; leave it out of the plan")


async def verdict_of(
    engine: Engine, plan: Plan, exchange: Exchange, answer: Answer, models: OfflineModels | None
) -> Verdict:
    """Return the verdict of all detectors of ``plan`` on one answer, of both stages."""
    (verdict,) = verdicts = await engine.detect(plan, exchange, (answer,))
    if models is None or not plan.asking:
        return verdict
    (verdict,) = await engine.examine(
        plan, exchange, (answer,), verdicts, ask=models.caller(plan), time_s=plan.cascade.timeout_s
    )
    return verdict


@dataclass(frozen=True, slots=True, eq=False)
class PlanAnswer:
    """The verdict on one answer, with what the encoder said where the plan has one."""

    verdict: Verdict
    served: ServedAnswer | None
    expected_rate: float = EVEN_ODDS

    @property
    def score(self) -> float | None:
        """Fused score, 0..1, or ``None`` where nothing was scored."""
        return self.verdict.score

    @property
    def spans(self) -> Sequence[Span]:
        """Unsupported parts of the answer, of all detectors."""
        return self.verdict.spans

    @property
    def coverage(self) -> Coverage | None:
        """How much was looked at."""
        return self.verdict.coverage

    @property
    def shares(self) -> tuple[DetectorShare, ...]:
        """What each detector had in the score, in the plan's order."""
        results = self.verdict.results
        return tuple(
            DetectorShare(
                result.detector,
                alone=self._score([result]),
                without=self._score([*results[:place], *results[place + 1 :]]),
                abstained=result.abstained,
            )
            for place, result in enumerate(results)
        )

    def _score(self, results: Sequence[DetectorResult]) -> float | None:
        return fuse(results, threshold=0.0, expected_rate=self.expected_rate).score if results else None

    def reading(self, gold: Sequence[tuple[int, int]] | None) -> TokenReading | None:
        """Return the encoder's token scores, ``None`` where it gave none; see ``ServedAnswer.reading``."""
        return None if self.served is None else self.served.reading(gold)


class PlanScorer:
    """The detectors of one plan: a function from query, passages and answer to ``PlanAnswer``; close it at the end.

    Args:
        plan: what is to be run; its ``timeout_s`` does not count.
        folder: of the model, loaded where a detector of the plan needs one.
        threads: threads of one inference.
        max_windows: most windows for one answer.

        models: asks the models of detectors that need any; closed with the scorer.

    Raises:
        ModelError: the model cannot be used.
        DetectorError: a detector asks models, and there is nothing to ask them with.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        threads: int = 1,
        max_windows: int = 256,
        models: OfflineModels | None = None,
    ) -> None:
        demand_models(plan, models)
        self.models = models
        self.encoder: ServedEncoder | None = None
        self._plan = replace(plan, timeout_s=NO_DEADLINE_S)
        self._folder, self._threads, self._max_windows = folder, threads, max_windows
        self._runner = asyncio.Runner()
        self._engine = build_engine([self._plan], LateModel(self._load), queue_limit=1)

    @property
    def detectors(self) -> tuple[str, ...]:
        """The names of the plan's detectors, in its order."""
        return tuple(spec.name for spec in self._plan.detectors)

    def __call__(self, query: str, passages: Sequence[str], answer: str) -> PlanAnswer:
        """Score one answer.

        Raises:
            DetectorError: a detector failed; figures of the others would not be the plan's.
        """
        exchange, asked = as_exchange(query, passages, answer)
        if self.encoder is not None:
            self.encoder.watch(asked)
        verdict = self._runner.run(verdict_of(self._engine, self._plan, exchange, asked, self.models))
        for result in verdict.results:
            if result.reason in FAILURES:
                why = f" ({result.explanation})" if result.explanation else ""
                raise DetectorError(
                    f"the detector {result.detector} failed on an answer: {result.reason}{why}; fix it, or leave it"
                    " out of the plan"
                )
        served = None if self.encoder is None else self.encoder.served
        return PlanAnswer(verdict, served, self._plan.expected_rate)

    def close(self) -> None:
        """End the workers."""
        if self.models is not None:
            self._runner.run(self.models.aclose())
        self._runner.run(self._engine.aclose())
        self._runner.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _load(self) -> ServedEncoder:
        self.encoder = load_served(
            self._folder, use_cpu=self._plan.use_cpu, threads=self._threads, max_windows=self._max_windows
        )
        self.encoder.warm_up()
        return self.encoder

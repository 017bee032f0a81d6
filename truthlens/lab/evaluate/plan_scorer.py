"""Score labelled answers with all detectors of a plan, as the gateway does but for its deadline.

Beside the verdict it keeps what each detector had in it, so that an evaluation can say what each one adds, and the
encoder's token scores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from truthlens.core.deadline import Deadline
from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import Reason
from truthlens.core.records.exchange import Answer, Exchange, plain_exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Coverage, DetectorResult, Span, Verdict
from truthlens.detection.building import LateModel, build_engine
from truthlens.detection.fusion import Fusion
from truthlens.detection.plain_answers import PlainAnswers
from truthlens.exchange.assessor import Assessor, Case
from truthlens.lab.evaluate.score_table import DetectorShare
from truthlens.lab.evaluate.served_encoder import ServedAnswer, ServedEncoder, TokenReading, load_served
from truthlens.llm.offline import OfflineModels
from truthlens.process.settings import models_folder
from truthlens.text.without_citations import Unmarked

NO_DEADLINE_S = 86_400.0
FAILURES = frozenset({Reason.DETECTOR_ERROR, Reason.TIMEOUT, Reason.OVERLOADED})
"""With one of these the score is not what the plan gives when nothing goes wrong."""


def failure_of(verdict: Verdict) -> Reason | None:
    """Return why a detector failed, whatever else kept the verdict from being whole; ``None`` where none did."""
    reasons = (verdict.reason, *(result.reason for result in verdict.results))
    return next((reason for reason in reasons if reason in FAILURES), None)


@dataclass(frozen=True, slots=True, eq=False)
class PlanAnswer:
    """The verdict of ``plan`` on ``answer``, with what the encoder said where there is one; ``read`` is the answer as it read it."""

    plan: Plan
    exchange: Exchange
    answer: Answer
    verdict: Verdict
    served: ServedAnswer | None
    read: Unmarked

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
        if not results:
            return None
        return Fusion(self.exchange).verdict(self.plan, self.answer, results).score

    def reading(self, gold: Sequence[tuple[int, int]] | None) -> TokenReading | None:
        """Return the encoder's token scores, ``None`` where it gave none; see ``ServedAnswer.reading``."""
        if self.served is None:
            return None
        place = self.read.place
        return self.served.reading(gold and [(place(start), place(end)) for start, end in gold])


class PlanScorer:
    """The detectors of one plan: a function from query, passages and answer to ``PlanAnswer``; close it at the end.

    Args:
        plan: what is to be run; its ``timeout_s`` does not count.
        folder: of the model, loaded where a detector of the plan needs one.
        use_cpu: run it on the CPU; otherwise on a GPU, which must be there. The plan's own ``use_cpu`` does not count.
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
        use_cpu: bool = True,
        threads: int = 1,
        max_windows: int = 256,
        models: OfflineModels | None = None,
    ) -> None:
        if plan.asking and models is None:
            names = ", ".join(spec.name for spec in plan.asking)
            raise DetectorError(f"{names}: asks models, which this command cannot; leave it out of the plan")
        self.models = models
        self.encoder: ServedEncoder | None = None
        self._plan = replace(plan, timeout_s=NO_DEADLINE_S)
        self._load = partial(load_served, folder, use_cpu=use_cpu, threads=threads, max_windows=max_windows)
        self._runner = asyncio.Runner()
        self._engine = build_engine(
            [self._plan],
            LateModel(self._loaded, shelves=(folder.parent, models_folder()), threads=threads),
            queue_limit=1,
        )
        self._assessor = Assessor(
            self._engine, None if models is None else lambda case: models.caller(case.plan)
        )

    @property
    def detectors(self) -> tuple[str, ...]:
        """The names of the plan's detectors, in its order."""
        return tuple(spec.name for spec in self._plan.detectors)

    def __call__(self, query: str, passages: Sequence[str], answer: str) -> PlanAnswer:
        """Score one answer.

        Raises:
            DetectorError: a detector failed; figures of the others would not be the plan's.
        """
        exchange, asked = plain_exchange(query, passages, answer)
        plain = PlainAnswers(exchange).of(asked)
        if self.encoder is not None:
            self.encoder.watch(plain.answer)
        verdict = self.verdict(exchange, asked)
        for result in verdict.results:
            if result.reason in FAILURES:
                why = f" ({result.explanation})" if result.explanation else ""
                raise DetectorError(
                    f"the detector {result.detector} failed on an answer: {result.reason}{why}; fix it, or leave it"
                    " out of the plan"
                )
        served = None if self.encoder is None else self.encoder.served
        return PlanAnswer(self._plan, exchange, asked, verdict, served, plain.reading)

    def verdict(self, exchange: Exchange, answer: Answer) -> Verdict:
        """Return the verdict of all detectors of the plan on one answer, of both stages."""
        return self._runner.run(self._verdict(exchange, answer))

    def verdict_on(self, query: str, passages: Sequence[str], answer: str) -> Verdict:
        """Return the verdict on an answer that comes with its evidence."""
        return self.verdict(*plain_exchange(query, passages, answer))

    async def _verdict(self, exchange: Exchange, answer: Answer) -> Verdict:
        case = Case(self._plan, exchange, (answer,), Deadline.after(NO_DEADLINE_S))
        (verdict,), _ = await self._assessor.assess(case)
        return verdict

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

    def _loaded(self) -> ServedEncoder:
        self.encoder = self._load()
        self.encoder.warm_up()
        return self.encoder

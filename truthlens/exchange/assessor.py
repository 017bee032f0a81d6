"""Assess answers: detect, ask the plan's models, explain. Bodies, streams, ``/v1/detect``, the playground and ``eval`` all do it here.

What a flagged answer becomes is the corrector's business; the order of the stages of an exchange is the pipeline's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import structlog

from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import CallRecord, ModelSpec
from truthlens.core.records.enums import Stage, Trigger
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import OWN_VERIFIER_DETAIL, Verdict
from truthlens.detection.engine import Engine
from truthlens.telemetry.tracing import Tracer

if TYPE_CHECKING:
    from truthlens.exchange.retrieval_step import RetrievalStep
    from truthlens.llm.caller import Caller

log = structlog.get_logger("truthlens.exchange.assessor")

_MOST_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Case:
    """One exchange whose answers are to be assessed.

    ``request_body`` is the client's JSON, ``None`` where it could not be kept, and then nothing is corrected. ``model`` is
    the model that answered, ``path`` and ``authorization`` are what the client sent; ``models`` are the configured ones
    by name.
    """

    plan: Plan
    exchange: Exchange
    answers: tuple[Answer, ...]
    deadline: Deadline
    request_body: bytes | None = None
    model: str = ""
    path: str = ""
    authorization: str | None = None
    models: Mapping[str, ModelSpec] | None = None


class Assessor:
    """Detectors first, then the models that the plan asks about what they leave doubtful.

    Args:
        engine: runs the detectors.
        callers: makes what asks models for one case; ``None`` where models cannot be asked, and plans ask none.
        retrieval: gives what retrieves evidence for answers that are not supported; it gives ``None`` where nothing does.
        tracer: given a span for each step.
    """

    def __init__(
        self,
        engine: Engine,
        callers: Callable[[Case], Caller] | None = None,
        *,
        retrieval: Callable[[], RetrievalStep | None] = lambda: None,
        tracer: Tracer | None = None,
    ) -> None:
        self._engine, self._callers, self._retrieval = engine, callers, retrieval
        self._tracer = tracer or Tracer()
        self._without_logprobs: set[tuple[str, str]] = set()

    def caller(self, case: Case) -> Caller:
        """Return what asks models for ``case``."""
        assert self._callers is not None
        return self._callers(case)

    def scores(self, case: Case) -> bool:
        """Return whether any detector will score the answers of ``case``."""
        return self._engine.scores(case.plan, case.exchange, case.answers)

    async def assess(self, case: Case) -> tuple[tuple[Verdict, ...], tuple[CallRecord, ...]]:
        """Return the verdicts of both stages on answers that are not corrected, and the calls that it took."""
        return await self.ask(*await self.first(case))

    async def first(self, case: Case) -> tuple[Case, tuple[Verdict, ...]]:
        """Return the detectors' verdicts on the answers as they came, and the case with the evidence that was retrieved for them.

        All answers are scored in the time of one detection; those that are flagged once more, if evidence is retrieved.
        """
        verdicts = await self.detect(case, case.answers, within=Deadline.after(case.plan.timeout_s))
        return await self.supported(case, verdicts)

    async def supported(self, case: Case, verdicts: tuple[Verdict, ...]) -> tuple[Case, tuple[Verdict, ...]]:
        """Return the case with evidence retrieved for flagged answers, where its plan says so, and the verdicts by all of it."""
        wanted = case.plan.retrieves(Trigger.UNSUPPORTED) and any(each.flagged for each in verdicts)
        if not wanted or (step := self._retrieval()) is None:
            return case, verdicts
        from truthlens.exchange.retrieval_step import SOURCES_DISAGREE, settled

        own = len(case.exchange.passages)
        with self._tracer.stage("retrieval"):
            exchange = await step.for_flagged(
                case.plan,
                case.exchange,
                case.answers,
                verdicts,
                authorization=case.authorization,
                time_s=case.deadline.remaining_s,
            )
        if len(exchange.passages) == own:
            return replace(case, exchange=exchange), verdicts
        again = [place for place, each in enumerate(verdicts) if each.flagged]
        scored = await self.detect(
            case,
            [case.answers[place] for place in again],
            exchange,
            within=Deadline.after(case.plan.timeout_s),
        )
        found, notes = list(verdicts), list(exchange.notes)
        for place, second in zip(again, scored, strict=True):
            found[place], disagree = settled(verdicts[place], second, own=own)
            notes += [SOURCES_DISAGREE] if disagree else []
        return replace(case, exchange=replace(exchange, notes=tuple(notes))), tuple(found)

    async def detect(
        self,
        case: Case,
        answers: Sequence[Answer],
        exchange: Exchange | None = None,
        *,
        within: Deadline | None = None,
    ) -> tuple[Verdict, ...]:
        """Return the detectors' verdicts on ``answers``, judged by ``exchange`` where it is not the case's own."""
        found: list[Verdict] = []
        with self._tracer.stage("detection"):
            # Claims come by the dozen: one job of all of them would run into the time of one detection.
            for start in range(0, len(answers), _MOST_AT_ONCE):
                left_s = min(each.remaining_s for each in (case.deadline, within) if each is not None)
                plan = replace(case.plan, timeout_s=min(case.plan.timeout_s, left_s))
                part = answers[start : start + _MOST_AT_ONCE]
                found += await self._engine.detect(plan, exchange or case.exchange, part)
        return tuple(found)

    async def ask(
        self, case: Case, verdicts: Sequence[Verdict]
    ) -> tuple[tuple[Verdict, ...], tuple[CallRecord, ...]]:
        """Return the verdicts with what the plan's models say, and the calls that it took."""
        if not case.plan.asking:
            return tuple(verdicts), ()
        caller = self.caller(case)
        found = await self.asked(case, verdicts, caller)
        return found, caller.calls

    async def asked(
        self,
        case: Case,
        verdicts: Sequence[Verdict],
        caller: Caller,
        *,
        answers: Sequence[Answer] | None = None,
        stage: Stage | None = None,
    ) -> tuple[Verdict, ...]:
        """Return the verdicts with what models say of those answers that the cascade asks them about."""
        if not case.plan.asking:
            return tuple(verdicts)
        of = case.answers if answers is None else answers
        left_s = case.deadline.remaining_s
        with self._tracer.stage("cascade"):
            found = await self._engine.examine(
                case.plan, case.exchange, of, verdicts, ask=caller, time_s=left_s, stage=stage
            )
        self._warn_of_no_logprobs(case.plan, found)
        return tuple(_with_own_verifiers(verdict, case) for verdict in found)

    async def explain(
        self,
        case: Case,
        answers: Sequence[Answer],
        verdicts: Sequence[Verdict],
        *,
        time_s: float,
        nearest: bool = True,
    ) -> tuple[Verdict, ...]:
        """Return the verdicts with explanations, and with ``nearest`` of claims, within ``time_s``."""
        return await self._engine.explain(case.exchange, answers, verdicts, time_s=time_s, nearest=nearest)

    def _warn_of_no_logprobs(self, plan: Plan, verdicts: Sequence[Verdict]) -> None:
        """Say once of each detector of a decision that its model's server gives no log probabilities."""
        for result in (result for verdict in verdicts for result in verdict.results):
            key = (plan.decision, result.detector)
            if result.details.get("no_logprobs") and key not in self._without_logprobs:
                self._without_logprobs.add(key)
                log.warning(
                    "a detector has no effect: its model's server gives no log probabilities",
                    decision=plan.decision,
                    detector=result.detector,
                    remedy="name a model whose server gives them, or remove the detector",
                )


def _with_own_verifiers(verdict: Verdict, case: Case) -> Verdict:
    """Return the verdict in which the results of a model that judged its own answer say so."""
    own = {spec.name for spec in case.plan.asking if case.model in spec.models}
    if not own:
        return verdict
    results = (
        replace(each, details=MappingProxyType({**each.details, OWN_VERIFIER_DETAIL: 1.0}))
        if each.detector in own
        else each
        for each in verdict.results
    )
    return replace(verdict, results=tuple(results))

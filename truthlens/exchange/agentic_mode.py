"""Run mode agentic for the answers of one exchange: the loop, and what becomes of the answer that it writes.

Only a process with a plan that may run the mode imports this, and with it the loop and the detectors that
evaluate its answers. What a run collects stands behind the passages of the request; the last word on an answer
is that of the plan's own detectors and models, by all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError, DetectorError
from truthlens.core.records.agentic_run import AgenticRun, AgenticStep, AgenticStop, CollectedPassage
from truthlens.core.records.agentic_settings import ToolName
from truthlens.core.records.calls import Role
from truthlens.core.records.enums import Endpoint, Mode, OnUnchecked, Provenance, Reason, Stage
from truthlens.core.records.exchange import Answer, Passage
from truthlens.core.records.mitigation_result import (
    Attempt,
    CandidateFate,
    CollectedSource,
    Correction,
    Stop,
)
from truthlens.core.records.retrieval import Retrieved, SearchRecord
from truthlens.core.records.verdict import Verdict
from truthlens.core.risk import HIGH_RISK
from truthlens.delivery.warning import takes_warning
from truthlens.detection.cascade import failed_by_models, rejected_by_models
from truthlens.exchange.agentic_loop import judge_of, loop_within, run_loop
from truthlens.exchange.assessor import Assessor, Case
from truthlens.exchange.mode_runner import MITIGATION_ERROR, NOT_BETTER, UNCONFIRMED, log_failure
from truthlens.exchange.retrieval_step import (
    RETRIEVED_RULE,
    SOURCES_DISAGREE,
    RetrievalStep,
    contradicts,
    settled,
    with_passages,
    with_searches,
)
from truthlens.llm.caller import Caller
from truthlens.mitigation.agentic.asking import AgenticForms
from truthlens.mitigation.agentic.collected import REQUEST
from truthlens.mitigation.agentic.interfaces import AgenticTask
from truthlens.mitigation.agentic.models import models_of
from truthlens.mitigation.gain import UNSCORED, ScoredDraft, weighed
from truthlens.telemetry.tracing import Tracer
from truthlens.text.claims.non_claims import is_abstention

FIRST_SUPPORTED = "first-supported"
"""Why the answer of a run is not delivered: nothing is found against the first one."""

_MOST_FORMS = 32
_SEARCHES = frozenset((ToolName.TEXT_SEARCH, ToolName.VECTOR_SEARCH, ToolName.INTERNET_SEARCH))
_STOPS: Mapping[AgenticStop, Stop] = MappingProxyType(
    {
        AgenticStop.ACCEPTED: Stop.DECIDED,
        AgenticStop.REJECTED: Stop.UNDECIDED,
        AgenticStop.CIRCULAR: Stop.NO_GAIN,
        AgenticStop.ITERATIONS: Stop.MAX_ITERATIONS,
        AgenticStop.TOKENS: Stop.BUDGET,
        AgenticStop.BUDGET: Stop.BUDGET,
        AgenticStop.TIME: Stop.DEADLINE,
        AgenticStop.DEADLINE: Stop.DEADLINE,
        AgenticStop.CALL_FAILED: Stop.CALL_FAILED,
        AgenticStop.BAD_DECISION: Stop.FAILED,
        AgenticStop.SEARCH_FAILED: Stop.FAILED,
    }
)


class AgenticMode:
    """Runs the mode, wired once for a process.

    Args:
        assessor: gives the verdicts on answers.
        retrieval: gives what searches the policy's sources.
        observe: told of every step of a run that ended.
        tracer: given a span for each search.
    """

    def __init__(
        self,
        assessor: Assessor,
        retrieval: Callable[[], RetrievalStep | None],
        *,
        observe: Callable[[AgenticStep], None] = lambda step: None,
        tracer: Tracer | None = None,
    ) -> None:
        self._tracer = tracer or Tracer()
        self._assessor, self._retrieval, self._observe = assessor, retrieval, observe
        # How servers take the forms of replies is learned once, for all runs under the same settings.
        self._forms = lru_cache(_MOST_FORMS)(lambda _settings: AgenticForms())

    async def __call__(
        self, case: Case, first: Sequence[Verdict], caller: Caller
    ) -> tuple[Case, tuple[Correction | None, ...]]:
        """Return the case with what was collected, and per answer what became of it, ``None`` for nothing.

        The answers take turns, because what is collected for one is evidence for the next, under the same ids. A run that
        breaks costs its work, never the first answer and its verdict.
        """
        corrections: list[Correction | None] = []
        lacking = case.plan.lacks_evidence(case.exchange.not_checkable)
        for answer, verdict in zip(case.answers, first, strict=True):
            if not _has_work(case, answer, verdict, lacking=lacking):
                corrections.append(None)
                continue
            try:
                case, correction = await self._one(case, answer, verdict, caller)
            except Exception as error:  # noqa: BLE001 - the border of the mode
                log_failure(error, case.plan, Mode.AGENTIC)
                notes = (MITIGATION_ERROR,)
                correction = Correction(answer.text, verdict, Mode.AGENTIC, Stop.FAILED, notes=notes)
            corrections.append(correction)
        return case, tuple(corrections)

    async def _one(
        self, case: Case, answer: Answer, first: Verdict, caller: Caller
    ) -> tuple[Case, Correction]:
        """Return the case with the passages of one run, and what became of the answer."""
        made: list[SearchRecord] = []
        run = await self._run(case, answer, caller, made)
        wider = _Evidence.of(replace(case, exchange=with_searches(case.exchange, made)), run)
        kept, disagree, unrefuted = await self._first_again(wider, answer, first, caller)
        notes = [SOURCES_DISAGREE] if disagree else []
        attempt, verdict = None, None
        if run.answer and run.answer != answer.text:
            candidate = replace(answer, text=run.answer)
            verdict = await self._candidate(wider, candidate, first, caller)
            fate, reason = await _fate(candidate, verdict, answer, kept=kept, first=first, run=run)
            if fate is CandidateFate.BETTER and (unrefuted or first.score is None):
                against = kept.flagged and not unrefuted
                fate, reason = await self._judged(wider.case, run, answer, caller, against=against)
            attempt = _attempt(case, verdict, fate, reason)
        if attempt is not None and attempt.fate is not CandidateFate.BETTER:
            notes.append(UNCONFIRMED if verdict is None else NOT_BETTER)
            verdict = None
        final = verdict or _delivered(case, first, kept, run)
        return wider.case, _correction(case, answer, final, run, attempt=attempt, notes=notes)

    async def _run(self, case: Case, answer: Answer, caller: Caller, made: list[SearchRecord]) -> AgenticRun:
        """Return the run for one answer; its searches are added to ``made``."""
        plan, exchange = case.plan, case.exchange
        step = self._retrieval()
        assert step is not None
        settings = plan.agentic
        # What is left behind the run is for the verdict on its answer, and within it for a fallback answer.
        time_s = max(0.0, case.deadline.remaining_s - plan.detection_s)
        deadline = Deadline.after(time_s, clock=case.deadline.clock)

        async def search(sources: Sequence[str], query: str, k: int, deadline: Deadline) -> Retrieved:
            authorization = case.authorization
            with self._tracer.stage("retrieval"):
                found = await step.search(
                    exchange, sources, query, k=k, deadline=deadline, authorization=authorization
                )
            made.extend(found.searches)
            return found

        task = AgenticTask(
            exchange.query,
            case.model,
            passages=exchange.passages,
            first_answer=answer.text,
            own=exchange.endpoint is Endpoint.CHAT,
        )
        loop = loop_within(time_s, settings, self._forms(settings))
        return await run_loop(
            loop,
            task,
            ask=caller,
            search=search,
            sources=plan.retrieval.sources,
            retriever=step.retriever,
            deadline=deadline,
            observe=self._observe,
        )

    async def _first_again(
        self, wider: _Evidence, answer: Answer, first: Verdict, caller: Caller
    ) -> tuple[Verdict, bool, bool]:
        """Return the verdict on the first answer by all evidence, and two facts.

        The first is whether parts of that disagree, the second whether nothing is found against the answer.
        """
        if not wider.added:
            return first, False, False
        (found,) = await self._assessor.detect(wider.case, [answer])
        disagree = False
        if first.score is not None:
            second = found
            found, disagree = settled(first, second, own=wider.own)
            if found is first:
                return first, disagree, not disagree and second.score is not None and not second.flagged
        kept = await self._asked(wider.case, answer, found, first, caller) or first
        return kept, disagree, kept.score is not None and not kept.flagged

    async def _judged(
        self, case: Case, run: AgenticRun, answer: Answer, caller: Caller, *, against: bool
    ) -> tuple[CandidateFate, str]:
        """Return what becomes of a run's answer where the request's evidence says nothing against the first.

        Detectors miss errors, and take true claims for errors beside near evidence. So the run's judge looks
        at the first answer too, which stays where it finds no high risk. Where the run did not accept its own
        answer, the first one stays unless detectors are ``against`` it; where there is no judgement, it then
        leaves for one that declines alone. A first answer that only declines gives way.
        """
        better, stays = (CandidateFate.BETTER, ""), (CandidateFate.REJECTED, FIRST_SUPPORTED)
        if is_abstention(answer.text):
            return better
        if not (run.accepted or against):
            return stays
        judge = judge_of(case.plan.agentic, own=case.model)
        try:
            judged = await judge.examine(case.exchange, answer, (), ask=caller)
        except (CallError, DetectorError):
            return better if against and is_abstention(run.answer) else stays
        return better if max(judged.score or 0.0, judged.floor) > HIGH_RISK else stays

    async def _candidate(
        self, wider: _Evidence, candidate: Answer, first: Verdict, caller: Caller
    ) -> Verdict | None:
        """Return the verdict on the answer of a run, ``None`` where models have to confirm it and fail."""
        (found,) = await self._assessor.detect(wider.named, [candidate])
        before = replace(
            wider.named.exchange,
            passages=wider.named.exchange.passages[: wider.own],
            unchecked=wider.unchecked,
        )
        if wider.added and not found.flagged and before.not_checkable is None:
            (by_request,) = await self._assessor.detect(wider.named, [candidate], before)
            # What the request contradicts stays flagged, whatever was collected.
            found = by_request if by_request.flagged and contradicts(by_request) else found
        return await self._asked(wider.named, candidate, found, first, caller)

    async def _asked(
        self, case: Case, answer: Answer, verdict: Verdict, first: Verdict, caller: Caller
    ) -> Verdict | None:
        """Return the verdict with what models say, ``None`` where they rejected the first answer and fail.

        What models rejected is released by no detector that asks none.
        """
        if not case.plan.asking or verdict.score is None:
            return verdict
        stage = None if first.stage is Stage.FIRST else Stage.CONFIRM
        (found,) = await self._assessor.asked(case, [verdict], caller, answers=[answer], stage=stage)
        asked = first.stage is not Stage.FIRST
        unknown = asked and failed_by_models(case.plan, found) and rejected_by_models(case.plan, first)
        return None if unknown else found


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The case with what a run collected behind the ``own`` passages that there were, ``added`` of them.

    ``named`` is the same with the ids that the run's answer cites the passages by. ``unchecked`` is why nothing could be
    checked before.
    """

    case: Case
    named: Case
    own: int
    added: int
    unchecked: Reason | None

    @classmethod
    def of(cls, case: Case, run: AgenticRun) -> _Evidence:
        exchange = case.exchange
        found = [each for each in run.passages if each.source != REQUEST and not each.computed]
        # Where there is not room for all, there is for those that the answer rests on.
        found.sort(key=lambda each: not each.cited)
        wider = with_passages(exchange, (_passage(each) for each in found))
        own, added = len(exchange.passages), len(wider.passages) - len(exchange.passages)
        if added and case.plan.lacks_evidence(exchange.not_checkable):
            wider = replace(wider, unchecked=None)
        ids = {each.text: each.document_id for each in run.passages}
        passages = tuple(replace(each, id=ids.get(each.text, each.id)) for each in wider.passages)
        return cls(
            replace(case, exchange=wider),
            replace(case, exchange=replace(wider, passages=passages)),
            own,
            added,
            exchange.unchecked,
        )


def _has_work(case: Case, answer: Answer, verdict: Verdict, *, lacking: bool) -> bool:
    """Return whether a person reads an answer that is flagged, or that there was no evidence for."""
    if not case.exchange.query.strip() or not takes_warning(case.exchange, answer):
        return False
    return verdict.flagged or (lacking and verdict.score is None)


async def _fate(
    candidate: Answer,
    verdict: Verdict | None,
    answer: Answer,
    *,
    kept: Verdict,
    first: Verdict,
    run: AgenticRun,
) -> tuple[CandidateFate, str]:
    """Return whether the answer of a run is delivered; against an unscored one it has to be supported.

    To decline is better than to be wrong; an answer that declines leaves only for one that its run accepted.
    """
    if verdict is None:
        return CandidateFate.REJECTED, UNCONFIRMED
    if first.score is None:
        if verdict.claims_nothing and kept.flagged:
            return CandidateFate.BETTER, ""
        if verdict.score is None:
            return CandidateFate.REJECTED, UNSCORED
        if is_abstention(answer.text) and not run.accepted:
            return CandidateFate.REJECTED, "not-accepted"
        return (CandidateFate.WORSE if verdict.flagged else CandidateFate.BETTER), ""
    if not kept.flagged:
        return CandidateFate.REJECTED, FIRST_SUPPORTED
    return await weighed(ScoredDraft(candidate.text, verdict), ScoredDraft(answer.text, kept), first=first)


def _attempt(case: Case, verdict: Verdict | None, fate: CandidateFate, reason: str) -> Attempt:
    model = models_of(case.plan.agentic, own=case.model).synthesis
    return Attempt(model, Role.SYNTHESIZER, fate, None if verdict is None else verdict.score, reason)


def _correction(
    case: Case,
    answer: Answer,
    final: Verdict,
    run: AgenticRun,
    *,
    attempt: Attempt | None,
    notes: Sequence[str],
) -> Correction:
    is_better = attempt is not None and attempt.fate is CandidateFate.BETTER
    return Correction(
        run.answer if is_better else answer.text,
        final,
        Mode.AGENTIC,
        Stop.RELEASED if run.released else _STOPS[run.stop],
        attempts=() if attempt is None else (attempt,),
        replaced=is_better and attempt is not None and attempt.model != case.model,
        notes=tuple(notes),
        cause=run.stop.value,
        iterations=run.iterations,
        sources=_sources(run.passages, cited=is_better),
        run=run,
    )


def _delivered(case: Case, first: Verdict, kept: Verdict, run: AgenticRun) -> Verdict:
    """Return the verdict on a first answer that stays.

    One that could not be checked, and is not supported now either, is not released as checked where the plan holds
    unchecked answers back.
    """
    if first.score is not None or (kept.score is not None and not kept.flagged):
        return kept
    if kept.flagged and case.plan.on_unchecked is not OnUnchecked.BLOCK:
        return kept
    if any(each.source != REQUEST and not each.computed for each in run.passages):
        return first
    if run.search_failed:
        return replace(first, reason=Reason.RETRIEVAL_FAILED)
    searched = any(step.tool in _SEARCHES for step in run.steps)
    return replace(first, reason=Reason.RETRIEVAL_EMPTY) if searched else first


def _passage(collected: CollectedPassage) -> Passage:
    return Passage(
        collected.text,
        Provenance.RETRIEVED,
        id=collected.document_id,
        title=collected.title,
        rule=RETRIEVED_RULE,
        parent_id=collected.parent_id,
        source=collected.source,
    )


def _sources(passages: Sequence[CollectedPassage], *, cited: bool) -> tuple[CollectedSource, ...]:
    return tuple(
        CollectedSource(each.document_id, each.source, each.title, cited=cited and each.cited)
        for each in passages
        if not each.computed
    )

"""Premium: other models' answers, set against the first one by the plan's mechanism; a judge where there is one.

The first answer is the one to beat: whatever is made of the opinions is scored like it was, and takes its place only
with a lower score. Opinions are asked for elsewhere, side by side with detection (``opinions``). Disclaimers and
``require_consensus`` are the caller's business. Source: white paper 3.3, 5.5; product contract, section 9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from truthlens.core.calls import CallFailure, Role
from truthlens.core.records import Consensus, Mode, Verdict
from truthlens.mitigation import accept
from truthlens.mitigation.agreement import MAJORITY, Agreement
from truthlens.mitigation.asking import Opinion, acceptable, is_structured
from truthlens.mitigation.comparison import Comparison, Voice
from truthlens.mitigation.contract import Attempt, Fate, Mended, Stop, Task, Tools
from truthlens.mitigation.debate import debate
from truthlens.mitigation.differences import compare
from truthlens.mitigation.fusion import weighted_fusion
from truthlens.mitigation.judge import arbitrate
from truthlens.mitigation.replacement import replacement
from truthlens.mitigation.standard import LESS_CHECKED, UNSCORED, Draft, correct, less_checked
from truthlens.mitigation.vote import segment_vote

NO_SECOND_OPINION = "no-second-opinion"
NOT_SPLICED = "not-spliced"
NO_JUDGE = "no-judge"
JUDGE_FAILED = "judge-failed"

_DEFAULT_RELIABILITY = 0.5
_STOPS = {CallFailure.BUDGET: Stop.BUDGET, CallFailure.DEADLINE: Stop.DEADLINE}
_SPLICING = frozenset({Consensus.SEGMENT_VOTE, Consensus.REPLACEMENT})


async def premium(task: Task, tools: Tools, opinions: Sequence[Opinion]) -> Mended:
    """The best answer that the first one, the opinions and the judge make; the first one where none is better.

    Args:
        task: the first answer with its verdict.
        tools: of the exchange. Cancellation goes through; no call outlives it.
        opinions: of the plan's verification models, failed ones included.
    """
    panel = _Panel(task, tools)
    try:
        async with asyncio.timeout(tools.deadline.remaining_s):
            stop = await panel.weigh(opinions)
    except TimeoutError:
        stop = Stop.DEADLINE
    # The loop watches the deadline itself and keeps what it has found until then.
    return panel.mended(await panel.correct() if stop is None else stop)


@dataclass(slots=True)
class _Panel:
    """One run: the best draft so far, whether the models stand behind it, and what was done."""

    task: Task
    tools: Tools
    best: Draft = field(init=False)
    judge: str | None = field(init=False)
    consensus: bool = field(init=False, default=False)
    others: list[Voice] = field(init=False, default_factory=list)
    attempts: list[Attempt] = field(init=False, default_factory=list)
    notes: list[str] = field(init=False, default_factory=list)
    decided: bool = field(init=False, default=False)
    scored: bool = field(init=False, default=False)
    ended: Stop | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.best = Draft(self.task.answer.text, self.task.verdict)
        self.judge = self.task.plan.premium.judge_model

    async def weigh(self, opinions: Sequence[Opinion]) -> Stop | None:
        """Set the opinions against the first answer; ``None`` where the best answer has yet to be corrected."""
        if self.task.verdict.score is None:
            return Stop.UNDECIDED
        await self._hear(opinions)
        if not self.others:
            self.notes.append(NO_SECOND_OPINION)
            return None
        comparison = await self._compared(self.best)
        self.notes += comparison.notes
        self.consensus = _is_held(comparison)
        # Models that agree on what the evidence does not bear are no support for it: a flagged answer goes on.
        if 0.0 < comparison.significance >= self.task.plan.premium.significance:
            await self._settle(comparison)
        elif not self.best.verdict.flagged:
            self.consensus = True
            return Stop.AGREED
        if self.best.verdict.flagged:
            return self.ended
        if self.decided:
            return Stop.DECIDED
        return self.ended or (Stop.NO_GAIN if self.scored else Stop.UNDECIDED)

    async def correct(self) -> Stop:
        """The correction loop on the best draft, by the judge where there is one that answers; why it ended."""
        left = self.task.plan.premium.max_iterations
        if self.judge is not None:
            stop, used = await self._corrected(self.judge, own=False, most=left)
            if stop is not Stop.CALL_FAILED or used >= left:
                return stop
            self._lose_judge()
            left -= used
        return (await self._corrected(self.task.model, own=True, most=left))[0]

    def mended(self, stop: Stop) -> Mended:
        """What is delivered."""
        return Mended(
            text=self.best.text,
            verdict=self.best.verdict,
            mode=Mode.PREMIUM,
            stop=stop,
            attempts=tuple(self.attempts),
            replaced=self.best.replaced,
            consensus=self.consensus,
            notes=tuple(dict.fromkeys(self.notes)),
        )

    async def _hear(self, opinions: Sequence[Opinion]) -> None:
        """Make voices of the opinions that can be used, each scored against the evidence."""
        usable: list[tuple[str, str]] = []
        for given in opinions:
            # Another model owes the first answer neither its length nor its words.
            opinion = acceptable(self.task, given, passing={accept.TOO_LONG, accept.LOST_CONTENT})
            self.attempts += opinion.attempts(Role.VERIFIER)
            if opinion.text is not None:
                usable.append((opinion.model, opinion.text))
        verdicts = await self.tools.rescore([text for _, text in usable]) if usable else ()
        for (model, text), verdict in zip(usable, verdicts, strict=True):
            self.others.append(Voice(model, text, self._weight(model), verdict))
            self._note(model, Role.VERIFIER, text, verdict)

    async def _settle(self, comparison: Comparison) -> None:
        """Let the plan's mechanism, and the judge where it is called for, make candidates."""
        premium = self.task.plan.premium
        mechanism = premium.consensus or (Consensus.JUDGE if self.judge else Consensus.REPLACEMENT)
        if mechanism is Consensus.DEBATE:
            await self._debate(comparison)
            return
        arbitrated = False
        if mechanism is Consensus.JUDGE:
            arbitrated = True
            if self.judge is None:
                self.notes.append(NO_JUDGE)
            elif await self._arbitrate(comparison):
                return
            mechanism = Consensus.REPLACEMENT
        agreement = self._agreement(mechanism, comparison)
        await self._offer_agreement(agreement, comparison)
        if self.judge is not None and not arbitrated and (agreement.undecided or self.best.verdict.flagged):
            await self._arbitrate(comparison)

    def _agreement(self, mechanism: Consensus, comparison: Comparison) -> Agreement:
        if mechanism in _SPLICING and is_structured(self.task):
            self.notes.append(NOT_SPLICED)
            mechanism = Consensus.WEIGHTED_FUSION
        match mechanism:
            case Consensus.SEGMENT_VOTE:
                return segment_vote(comparison, threshold=self.task.plan.threshold)
            case Consensus.WEIGHTED_FUSION:
                return weighted_fusion(comparison)
            case _:
                return replacement(comparison)

    async def _offer_agreement(self, agreement: Agreement, comparison: Comparison) -> None:
        """Offer a mechanism's text: a voice's whole answer is that model's, a spliced one counts as the first model's."""
        voice = next((each for each in comparison.voices if each.text == agreement.text), None)
        if voice is not None:
            passing = {accept.LOST_CONTENT}
            model, known = voice.model, voice.verdict
        else:
            passing = set()
            model, known = self.task.model, None
        await self._offer(
            agreement.text,
            model=model,
            role=Role.VERIFIER,
            replaced=agreement.replaced,
            consensus=agreement.reached,
            known=known,
            passing=passing,
        )

    async def _arbitrate(self, comparison: Comparison) -> bool:
        """Offer the judge's text; whether there was one."""
        assert self.judge is not None
        opinion = await arbitrate(self.task, self.tools, comparison, judge=self.judge)
        if opinion.text is None:
            self.attempts += opinion.attempts(Role.JUDGE)
            if opinion.failure is None:
                self.notes.append(JUDGE_FAILED)
            else:
                self._lose_judge()
                self.ended = _STOPS.get(opinion.failure)
            return False
        await self._offer(opinion.text, model=self.judge, role=Role.JUDGE, replaced=True, consensus=True)
        return True

    async def _debate(self, comparison: Comparison) -> None:
        done = await debate(self.task, self.tools, comparison)
        self.attempts += done.attempts
        self.notes += done.notes
        if done.text is not None:
            await self._offer(
                done.text,
                model=done.closing.writer or self.task.model,
                role=Role.JUDGE if done.closing.writer else Role.PROPOSER,
                replaced=done.closing.replaced,
                consensus=done.closing.reached,
            )
        if done.failure is not None:
            self.ended = _STOPS.get(done.failure)

    async def _offer(
        self,
        text: str,
        *,
        model: str,
        role: Role,
        replaced: bool,
        consensus: bool,
        known: Verdict | None = None,
        passing: Collection[str] = (),
    ) -> None:
        """Take ``text`` for the best draft where it may stand there and scores lower."""
        if text == self.best.text:
            self.decided = consensus
            self.consensus = self.consensus or consensus
            self.attempts.append(Attempt(model, role, Fate.UNCHANGED, self.best.verdict.score))
            return
        code = accept.rejection(self.task, text, finish_reason=None)
        if code is not None and code not in passing:
            self.attempts.append(Attempt(model, role, Fate.REJECTED, reason=code))
            return
        verdict = known or (await self.tools.rescore((text,)))[0]
        if self._note(model, role, text, verdict) is Fate.BETTER:
            self.decided = True
            self.best = Draft(text, verdict, replaced)
            self.consensus = consensus
        self.scored = True

    async def _corrected(self, model: str, *, own: bool, most: int) -> tuple[Stop, int]:
        """Why a loop ended and how many attempts it made; its draft is the best one now."""
        role = Role.REFINER if own else Role.JUDGE
        done = await correct(
            self.task, self.tools, self.best, model=model, own=own, role=role, max_iterations=most
        )
        self.attempts += done.attempts
        self.notes += done.notes
        if done.draft.text != self.best.text:
            self.best = done.draft
            self.consensus = await self._held_still()
        return done.stop, len(done.attempts)

    async def _held_still(self) -> bool:
        """Whether the voices hold the claims of the best draft, which none of them has seen."""
        if not self.others:
            return False
        try:
            async with asyncio.timeout(self.tools.deadline.remaining_s):
                return _is_held(await self._compared(self.best))
        except TimeoutError:
            return False

    async def _compared(self, draft: Draft) -> Comparison:
        """The draft, for the first answer's model, beside the other voices."""
        first = Voice(self.task.model, draft.text, self._weight(self.task.model), draft.verdict)
        return await compare((first, *self.others), self.tools)

    def _note(self, model: str, role: Role, text: str, verdict: Verdict) -> Fate:
        """Account for a scored text: better is what scores lower than the best draft and was checked as well."""
        best, reason = self.best.verdict.score, ""
        if verdict.score is None or best is None:
            fate, reason = Fate.REJECTED, UNSCORED
        elif less_checked(verdict, self.task.verdict):
            fate, reason = Fate.REJECTED, LESS_CHECKED
        elif text == self.best.text:
            fate = Fate.UNCHANGED
        else:
            fate = Fate.BETTER if verdict.score < best else Fate.WORSE
        self.attempts.append(Attempt(model, role, fate, verdict.score, reason))
        return fate

    def _weight(self, model: str) -> float:
        spec = self.task.models.get(model)
        return spec.reliability if spec else _DEFAULT_RELIABILITY

    def _lose_judge(self) -> None:
        self.judge = None
        self.notes.append(JUDGE_FAILED)


def _is_held(comparison: Comparison) -> bool:
    """Whether more than half of the voices, by weight, hold every factual claim of the first one."""
    return all(comparison.held(0, view) > MAJORITY for view in comparison.views[0])

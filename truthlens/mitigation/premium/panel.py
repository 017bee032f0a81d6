"""Run mode premium: compare other models' answers with the first, by the plan's mechanism and a judge.

The first answer is the one to beat: whatever is made of the opinions is scored like it was, and takes its
place only with a lower score. Opinions are asked for elsewhere, side by side with detection (``opinions``).
Disclaimers and ``require_consensus`` are the caller's business. Source: white paper 3.3, 5.5; product
contract, section 9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import Role
from truthlens.core.records.enums import Mode
from truthlens.core.records.mitigation_result import OWN_VERIFIER
from truthlens.core.records.settings import Consensus
from truthlens.mitigation import candidate_checks
from truthlens.mitigation.editing.put_back import put_back
from truthlens.mitigation.gain import ScoredDraft
from truthlens.mitigation.interfaces import FIRST_SCORING_S, STOPS, Correction, Stop, Task, Tools
from truthlens.mitigation.premium.candidate_selection import Contest
from truthlens.mitigation.premium.consensus.alignment import INCOMPLETE
from truthlens.mitigation.premium.consensus.answer_diff import compare
from truthlens.mitigation.premium.consensus.comparison import Comparison, Voice
from truthlens.mitigation.premium.consensus.replacement import replacement
from truthlens.mitigation.premium.consensus.result import Agreement
from truthlens.mitigation.premium.consensus.vote import segment_vote
from truthlens.mitigation.premium.consensus.weighted_fusion import weighted_fusion
from truthlens.mitigation.premium.debate.debate import debate
from truthlens.mitigation.premium.judge import arbitrate
from truthlens.mitigation.questions import Opinion, acceptable, is_structured
from truthlens.mitigation.standard.loop import RELEASED, REWORDED, Corrected, correct

NO_SECOND_OPINION = "no-second-opinion"
NOT_SPLICED = "not-spliced"
NO_JUDGE = "no-judge"
JUDGE_FAILED = "judge-failed"
NO_MAJORITY = "no-majority"

_DEFAULT_RELIABILITY = 0.5
_SPLICING = frozenset({Consensus.SEGMENT_VOTE, Consensus.REPLACEMENT})


async def premium(task: Task, tools: Tools, opinions: Sequence[Opinion]) -> Correction:
    """Return the best answer made of the first one, the opinions and the judge; the first if none is better.

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
    return panel.correction(await panel.correct() if stop is None else stop)


@dataclass(slots=True)
class _Panel:
    """One run: the contest for the best answer, the other voices, and which models can still be asked.

    ``ended`` is set where time or budget ended the asking.
    """

    task: Task
    tools: Tools
    contest: Contest = field(init=False)
    judge: str | None = field(init=False)
    others: list[Voice] = field(init=False, default_factory=list)
    notes: list[str] = field(init=False, default_factory=list)
    ended: Stop | None = field(init=False, default=None)
    scoring_s: float = field(init=False, default=FIRST_SCORING_S)

    def __post_init__(self) -> None:
        self.contest = Contest(self.task, self.tools.rescore)
        self.judge = self.task.plan.premium.judge_model

    async def weigh(self, opinions: Sequence[Opinion]) -> Stop | None:
        """Compare the opinions with the first answer.

        Return ``None`` if the best answer has yet to be corrected.
        """
        if self.task.verdict.score is None:
            return Stop.UNDECIDED
        if self.task.model in self.task.plan.premium.verification_models:
            self.notes.append(OWN_VERIFIER)
        await self._hear(opinions)
        if not self.others:
            self.notes.append(NO_SECOND_OPINION)
            return None
        comparison = await self._compared(self.contest.best)
        self.notes += comparison.notes
        self.contest.consensus = _is_held(comparison)
        # Models that agree on what the evidence does not bear are no support for it: a flagged answer goes
        # on.
        if 0.0 < comparison.significance >= self.task.plan.premium.significance:
            await self._settle(comparison)
        elif not self.contest.best.verdict.flagged:
            if INCOMPLETE in comparison.notes:
                # Nobody is known to disagree, which is not to say that they agree.
                return Stop.UNDECIDED
            self.contest.consensus = self.contest.consensus or comparison.significance == 0.0
            return Stop.AGREED
        if self.contest.best.verdict.flagged:
            return self.ended
        if self.contest.decided:
            return Stop.DECIDED
        return self.ended or (Stop.NO_GAIN if self.contest.scored else Stop.UNDECIDED)

    async def correct(self) -> Stop:
        """Correct the best draft in a loop, by the judge if there is one; return why the loop ended."""
        done = await self._looped(self.task.plan.premium.max_iterations)
        if done.released:
            self.notes.append(RELEASED)
        return done.stop

    async def _looped(self, left: int) -> Corrected:
        if self.judge is not None:
            done = await self._corrected(self.judge, own=False, most=left)
            used = len(done.attempts)
            if done.stop is not Stop.CALL_FAILED or used >= left:
                return done
            self._lose_judge()
            left -= used
        return await self._corrected(self.task.model, own=True, most=left)

    def correction(self, stop: Stop) -> Correction:
        """Return what is delivered."""
        best = self.contest.best
        return Correction(
            text=best.text,
            verdict=best.verdict,
            mode=Mode.PREMIUM,
            stop=stop,
            attempts=tuple(self.contest.attempts),
            replaced=best.replaced,
            consensus=self.contest.consensus,
            notes=tuple(dict.fromkeys(self.notes)),
        )

    async def _hear(self, opinions: Sequence[Opinion]) -> None:
        """Make voices of the opinions that can be used, each scored against the evidence."""
        usable: list[tuple[str, str]] = []
        for given in opinions:
            # Another model owes the first answer neither its length nor its words.
            opinion = await asyncio.to_thread(
                acceptable,
                self.task,
                given,
                passing={candidate_checks.TOO_LONG, candidate_checks.LOST_CONTENT},
            )
            self.contest.attempts += opinion.attempts(Role.VERIFIER)
            if opinion.text is not None:
                usable.append((opinion.model, opinion.text))
        if not usable:
            return
        before = self.tools.deadline.remaining_s
        verdicts = await self.tools.rescore([text for _, text in usable])
        self.scoring_s = max(self.scoring_s, before - self.tools.deadline.remaining_s)
        for (model, text), verdict in zip(usable, verdicts, strict=True):
            self.others.append(Voice(model, text, self._weight(model), verdict))
            await self.contest.entered(text, verdict, model=model, role=Role.VERIFIER)

    async def _settle(self, comparison: Comparison) -> None:
        """Let the plan's mechanism, and the judge where it is needed, make candidates."""
        mechanism = self.task.plan.premium.consensus
        if mechanism is None:
            mechanism = Consensus.JUDGE if self.judge else Consensus.REPLACEMENT
        if mechanism is Consensus.DEBATE:
            await self._debate(comparison)
            return
        may_arbitrate = True
        if mechanism is Consensus.JUDGE:
            may_arbitrate, mechanism = False, Consensus.REPLACEMENT
            if self.judge is None:
                self.notes.append(NO_JUDGE)
            elif await self._arbitrate(comparison):
                return
        if mechanism in _SPLICING and is_structured(self.task):
            self.notes.append(NOT_SPLICED)
            mechanism = Consensus.WEIGHTED_FUSION
        # A long answer takes long to splice: that must not hold up the other exchanges.
        agreement = await asyncio.to_thread(self._agreement, mechanism, comparison)
        if mechanism is Consensus.WEIGHTED_FUSION and agreement.replaced and not agreement.reached:
            # Another model's whole answer, which most others do not hold: its score alone is no reason to
            # swap.
            self.notes.append(NO_MAJORITY)
        else:
            await self._offer(agreement, comparison)
        if self.judge and may_arbitrate and (agreement.undecided or self.contest.best.verdict.flagged):
            await self._arbitrate(comparison)

    def _agreement(self, mechanism: Consensus, comparison: Comparison) -> Agreement:
        match mechanism:
            case Consensus.SEGMENT_VOTE:
                return segment_vote(comparison, threshold=self.task.plan.threshold)
            case Consensus.WEIGHTED_FUSION:
                return weighted_fusion(comparison)
            case _:
                return replacement(comparison)

    async def _offer(self, agreement: Agreement, comparison: Comparison) -> None:
        """Offer a mechanism's text.

        A voice's whole answer is that model's, a mixed one counts as the first model's.
        """
        voice = next((each for each in comparison.voices if each.text == agreement.text), None)
        await self.contest.offer(
            agreement.text,
            model=voice.model if voice else self.task.model,
            role=Role.VERIFIER,
            replaced=agreement.replaced,
            consensus=agreement.reached,
            known=voice.verdict if voice else None,
            passing={candidate_checks.LOST_CONTENT} if voice else (),
        )

    async def _arbitrate(self, comparison: Comparison) -> bool:
        """Offer the judge's text; return whether there was one."""
        assert self.judge is not None
        opinion = await arbitrate(self.task, self._early, comparison, judge=self.judge)
        if opinion.text is not None:
            await self._offer_ruling(opinion.text, comparison, model=self.judge)
            return True
        self.contest.attempts += opinion.attempts(Role.JUDGE)
        if opinion.failure is None:
            self.notes.append(JUDGE_FAILED)
        else:
            self._lose_judge()
            self.ended = STOPS.get(opinion.failure)
        return False

    async def _debate(self, comparison: Comparison) -> None:
        done = await debate(self.task, self._early, comparison)
        self.contest.attempts += done.attempts
        self.notes += done.notes
        self.ended = STOPS.get(done.failure) if done.failure else None
        closing = done.closing
        if closing.text is not None and closing.writer is not None:
            await self._offer_ruling(closing.text, comparison, model=closing.writer)
        elif closing.text is not None:
            await self.contest.offer(
                closing.text,
                model=self.task.model,
                role=Role.PROPOSER,
                replaced=closing.replaced,
                consensus=closing.reached,
            )

    async def _offer_ruling(self, text: str, comparison: Comparison, *, model: str) -> None:
        # What other voices dispute is what the judge was asked about, whatever detection says of it.
        asked = [(view.claim.start, view.claim.end) for view in comparison.views[0] if view.disputed]
        first = self.task.answer.text
        kept = await asyncio.to_thread(put_back, first, self.task.verdict, text, asked=asked)
        text = kept.text
        await self.contest.offer(
            text,
            model=model,
            role=Role.JUDGE,
            replaced=True,
            consensus=False,
            rules=True,
            passing={candidate_checks.LOST_CONTENT},
        )
        if self.contest.best.text == text and text != first:
            if not kept.complete:
                self.notes.append(REWORDED)
            # A judge decides; whether the models agree with it is another question.
            self.contest.consensus = await self._is_still_held()

    async def _corrected(self, model: str, *, own: bool, most: int) -> Corrected:
        """Return what a loop came to; its draft is the best one now."""
        role = Role.REFINER if own else Role.JUDGE
        before = self.contest.best
        done = await correct(
            self.task, self.tools, before, model=model, own=own, role=role, max_iterations=most
        )
        self.contest.attempts += done.attempts
        self.notes += done.notes
        if done.draft.text != before.text:
            self.contest.best = done.draft
            self.contest.consensus = await self._is_still_held()
        return done

    async def _is_still_held(self) -> bool:
        """Return whether the models hold the claims of the best draft, which none of them has seen.

        What the first answer's model corrected itself is its own word; what others wrote has no voice, and
        the first answer represents its model.
        """
        if not self.others:
            return False
        best = self.contest.best
        first = ScoredDraft(self.task.answer.text, self.task.verdict)
        try:
            async with asyncio.timeout(self.tools.deadline.remaining_s):
                if best.replaced:
                    author = Voice("", best.text, 0.0, best.verdict)
                    comparison = await compare((author, self._voice(first), *self.others), self.tools)
                else:
                    comparison = await self._compared(best)
        except TimeoutError:
            return False
        self.notes += comparison.notes
        return _is_held(comparison)

    async def _compared(self, draft: ScoredDraft) -> Comparison:
        """The draft, for the first answer's model, beside the other voices."""
        return await compare((self._voice(draft), *self.others), self.tools)

    def _voice(self, draft: ScoredDraft) -> Voice:
        return Voice(self.task.model, draft.text, self._weight(self.task.model), draft.verdict)

    @property
    def _early(self) -> Tools:
        """The tools with a deadline that leaves time to score what comes of the calls."""
        deadline = self.tools.deadline
        return replace(self.tools, deadline=Deadline(deadline.at - self.scoring_s, deadline.clock))

    def _weight(self, model: str) -> float:
        spec = self.task.models.get(model)
        return spec.reliability if spec else _DEFAULT_RELIABILITY

    def _lose_judge(self) -> None:
        self.judge = None
        self.notes.append(JUDGE_FAILED)


def _is_held(comparison: Comparison) -> bool:
    """Return whether more than half of the voices, by weight, hold every factual claim of the first one."""
    return all(comparison.is_held(0, view) for view in comparison.views[0])

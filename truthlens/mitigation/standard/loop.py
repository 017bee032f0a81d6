"""The correction loop: the model is shown what is doubtful in its answer until the answer is good enough.

Bounded four ways (attempts, gain, time, and the budget behind ``Ask``), and never worse: a candidate is taken
only where it is clearly better (``gain``). What a judge accepts is good enough below the threshold; what it
rejects is released, marked, and not tried again near the limit. What this does not do: it brings in no second opinion (``panel``),
and it adds no disclaimer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, Completion, ModelRequest, Role
from truthlens.core.records.enums import Endpoint, Mode, Risk
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.core.risk import Decision, is_near_limit, risk_of
from truthlens.mitigation import candidate_checks, follow_up
from truthlens.mitigation.editing.put_back import put_back
from truthlens.mitigation.gain import LESS_CHECKED, UNSCORED, ScoredDraft, weighed
from truthlens.mitigation.interfaces import (
    FIRST_SCORING_S,
    STOPS,
    Attempt,
    CandidateFate,
    Correction,
    Stop,
    Task,
    Tools,
    failed,
)
from truthlens.mitigation.standard.correction_prompt import MOST_CHARS, correction_prompt
from truthlens.mitigation.standard.self_check import self_check
from truthlens.prompts import model_requests, render
from truthlens.prompts.model_requests import with_evidence

RELEASED = "released-high-risk"
UNCHANGED = "unchanged"
REWORDED = "supported-reworded"
WORSE = "worse"

# A model that missed once may hit the next time: sampling differs, and the prompt says what was wrong with
# its last try, so that no model is asked the same twice.
_MOST_MISSES = 2
# Of the time that is left: a check that takes longer would leave no time to correct.
_SELF_CHECK_SHARE = 0.5
# About: what is reserved for a text as long as the answer.
_CHARS_PER_TOKEN = 3
# Tags and prefaces may double a text; what is longer still is not worth the time of reading it.
_MOST_WRAPPING = 2


@dataclass(frozen=True, slots=True)
class Corrected:
    """The best draft of a loop, why the loop ended, and every candidate in the order in which they came.

    ``released``: the draft is of high risk, and leaves because hardly an iteration was left.
    """

    draft: ScoredDraft
    stop: Stop
    attempts: tuple[Attempt, ...]
    notes: tuple[str, ...]
    released: bool = False


async def standard(task: Task, tools: Tools) -> Correction:
    """Return the answer as corrected by the model that gave it. Source: white paper 3.2, 5.4."""
    done = await correct(
        task,
        tools,
        ScoredDraft(task.answer.text, task.verdict),
        model=task.model,
        own=True,
        role=Role.REFINER,
        max_iterations=task.plan.standard.max_iterations,
    )
    return Correction(
        text=done.draft.text,
        verdict=done.draft.verdict,
        mode=Mode.STANDARD,
        stop=done.stop,
        attempts=done.attempts,
        replaced=done.draft.replaced,
        notes=(*done.notes, RELEASED) if done.released else done.notes,
    )


async def correct(
    task: Task, tools: Tools, draft: ScoredDraft, *, model: str, own: bool, role: Role, max_iterations: int
) -> Corrected:
    """Return the best of ``draft`` and its corrections by ``model``.

    Nothing is asked where ``draft`` was not scored or its score does not reach the plan's threshold.

    Args:
        task: the first answer: what a candidate must keep and be like.
        tools: of the exchange. Cancellation goes through; no call outlives it.
        draft: the text to begin with.
        model: who corrects.
        own: whether that is the model that gave the first answer.
        role: for the accounts.
        max_iterations: corrections asked for at most, those that failed included.
    """
    loop = _Loop(task, tools, draft, model=model, own=own, role=role)
    stop = await loop.run(max_iterations)
    released = stop is not Stop.CLEAN and loop.is_released(max_iterations)
    return Corrected(loop.best, stop, tuple(loop.attempts), tuple(dict.fromkeys(loop.notes)), released)


def target_of(plan: Plan) -> float:
    """Return the score (0..1) below which an answer counts as corrected: never above the threshold."""
    convergence = plan.standard.convergence_threshold
    return plan.threshold if convergence is None else min(plan.threshold, convergence)


@dataclass(slots=True)
class _Loop:
    """One run of the loop: the best draft so far and what was seen on the way."""

    task: Task
    tools: Tools
    best: ScoredDraft
    model: str = field(kw_only=True)
    own: bool = field(kw_only=True)
    role: Role = field(kw_only=True)
    attempts: list[Attempt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    first: ScoredDraft = field(init=False)
    seen: set[str] = field(init=False)
    checks: str = field(init=False, default="")
    scoring_s: float = field(init=False, default=FIRST_SCORING_S)
    iteration: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.first = self.best
        self.seen = {self.best.text.strip()}

    async def run(self, max_iterations: int) -> Stop:
        plan = self.task.plan
        score = self.best.verdict.score
        if score is None or score < plan.threshold:
            return Stop.CLEAN
        if max_iterations > 0 and plan.standard.self_check and self._time_s > 0.0:
            await self._self_check()
        missed, misses = "", 0
        for self.iteration in range(1, max_iterations + 1):
            if self._time_s <= 0.0:
                return Stop.DEADLINE
            outcome = await self._round(missed)
            if isinstance(outcome, Stop):
                return outcome
            # Where scores saturate they tell nothing of a gain: whatever is clearly better is one.
            missed, misses = outcome, misses + 1 if outcome else 0
            decision = self.best.verdict.decision
            target = plan.threshold if decision is Decision.SYNTHESIZE else target_of(plan)
            if self._score < target:
                return Stop.CONVERGED
            if misses and decision is Decision.REJECT and self.is_released(max_iterations):
                return Stop.RELEASED
            if misses == _MOST_MISSES:
                return Stop.NO_GAIN
        return Stop.MAX_ITERATIONS

    def is_released(self, max_iterations: int) -> bool:
        """Return whether the best draft leaves with a high risk because hardly an iteration is left."""
        score = self.best.verdict.score
        is_high = score is not None and risk_of(score) is Risk.HIGH
        return is_high and max_iterations > 0 and is_near_limit(self.iteration, max_iterations)

    @property
    def _score(self) -> float:
        """Of the best draft; one that claims nothing has nothing left to mend."""
        verdict = self.best.verdict
        assert verdict.score is not None or verdict.claims_nothing
        return verdict.score or 0.0

    @property
    def _time_s(self) -> float:
        """Seconds that a call may take so that its text can still be scored."""
        return self.tools.deadline.remaining_s - self.scoring_s

    async def _round(self, missed: str) -> Stop | str:
        """Run one correction; return why the loop ends or why the candidate is not the best now, else ``""``.

        Args:
            missed: the same of the round before, for the model to know.
        """
        # Much evidence takes long to choose from: that must not hold up the other exchanges.
        completion = await self._ask(await asyncio.to_thread(self._question, missed))
        if isinstance(completion, Stop):
            return completion
        first = self.task.answer.text
        if len(completion.text) > _MOST_WRAPPING * candidate_checks.most_chars(first):
            self._note(CandidateFate.REJECTED, reason=candidate_checks.TOO_LONG)
            return candidate_checks.TOO_LONG
        text = candidate_checks.clean(completion.text, first=first)
        best = self.best
        kept = await asyncio.to_thread(put_back, best.text, best.verdict, text)
        text = kept.text
        if text.strip() in self.seen:
            self._note(CandidateFate.UNCHANGED)
            return UNCHANGED
        self.seen.add(text.strip())
        # As above: whether a text is about the matter is looked up in all of the evidence.
        code = await asyncio.to_thread(
            candidate_checks.rejection, self.task, text, finish_reason=completion.finish_reason
        )
        if code is not None:
            self._note(CandidateFate.REJECTED, reason=code)
            return code
        outcome = await self._assess(text)
        if self.best.text == text and not kept.complete:
            self.notes.append(REWORDED)
        return outcome

    async def _assess(self, text: str) -> Stop | str:
        """Score the candidate and keep it where it is better."""
        verdict = await self._score_of(text)
        if verdict is None:
            self._note(CandidateFate.REJECTED, reason=UNSCORED)
            return Stop.DEADLINE
        candidate = ScoredDraft(text, verdict, self.best.replaced or not self.own)
        fate, reason = await weighed(candidate, self.best, first=self.first.verdict)
        self._note(fate, score=verdict.score, reason=reason)
        if fate is CandidateFate.BETTER:
            self.best = candidate
            return ""
        return Stop.NO_GAIN if reason in (UNSCORED, LESS_CHECKED) else reason or WORSE

    async def _ask(self, asked: ModelRequest) -> Completion | Stop:
        try:
            async with asyncio.timeout(self._time_s):
                return await self.tools.ask(asked)
        except CallError as error:
            self.attempts.append(failed(self.model, self.role, error.code))
            return STOPS.get(error.failure, Stop.CALL_FAILED)
        except TimeoutError:
            self.attempts.append(failed(self.model, self.role, CallFailure.DEADLINE.value))
            return Stop.DEADLINE

    async def _score_of(self, text: str) -> Verdict | None:
        """Return the verdict on ``text``; ``None`` if the deadline came first."""
        deadline = self.tools.deadline
        before = deadline.remaining_s
        try:
            async with asyncio.timeout(before):
                (verdict,) = await self.tools.rescore((text,))
        except TimeoutError:
            return None
        self.scoring_s = max(self.scoring_s, before - deadline.remaining_s)
        return verdict

    async def _self_check(self) -> None:
        try:
            async with asyncio.timeout(self._time_s * _SELF_CHECK_SHARE):
                found = await self_check(
                    self.task, self.tools, self.best.text, self.best.verdict, model=self.model, own=self.own
                )
        except TimeoutError:
            found = None
        self.checks = found or ""
        if not found:
            self.notes.append("self-check-failed")

    @property
    def _as_client(self) -> bool:
        """Whether the model is asked as the client asked: with its sampling, format and limits.

        A model that did not answer a completions request is a chat model to us.
        """
        return self.own or self.task.exchange.endpoint is Endpoint.CHAT

    def _question(self, missed: str) -> ModelRequest:
        as_client, best = self._as_client, self.best

        def body(most_chars: int) -> dict[str, object]:
            prompt = correction_prompt(
                self.task.exchange,
                best.text,
                best.verdict,
                checks=self.checks,
                missed=missed,
                cue=None if as_client else False,
                most_chars=most_chars,
            )
            if as_client:
                return follow_up.follow_up(self.task, prompt=prompt, own=self.own)
            chinese = render.in_chinese(best.text, self.task.exchange.query)
            return model_requests.stand_alone(system=render.render("system", chinese=chinese), user=prompt)

        endpoint = self.task.exchange.endpoint if as_client else Endpoint.CHAT
        asked = ModelRequest(
            self.model,
            self.role,
            {},
            endpoint,
            self.own,
            answer_tokens=len(self.task.answer.text) // _CHARS_PER_TOKEN,
        )
        return with_evidence(asked, self.task.exchange, body, most_chars=MOST_CHARS)

    def _note(self, fate: CandidateFate, *, score: float | None = None, reason: str = "") -> None:
        self.attempts.append(Attempt(self.model, self.role, fate, score, reason))

"""The best text so far, and the account of every text that was set against it.

A text wins only with a clear gain (``gain``) that rests on as much checking. Where texts come from is not
known here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from truthlens.core.records.calls import Role
from truthlens.core.records.verdict import Verdict
from truthlens.mitigation import candidate_checks
from truthlens.mitigation.gain import ScoredDraft, weighed
from truthlens.mitigation.interfaces import Attempt, CandidateFate, Rescore, Task


@dataclass(slots=True)
class Contest:
    """One answer's contest.

    ``consensus`` is whether the models agree on the best text. ``decided`` is true once a text that they
    agree on, a ruling that upholds the best one, or a better one, has settled the matter; ``scored`` once any
    candidate was scored.
    """

    task: Task
    rescore: Rescore
    best: ScoredDraft = field(init=False)
    attempts: list[Attempt] = field(init=False, default_factory=list)
    consensus: bool = field(init=False, default=False)
    decided: bool = field(init=False, default=False)
    scored: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.best = ScoredDraft(self.task.answer.text, self.task.verdict)

    async def offer(
        self,
        text: str,
        *,
        model: str,
        role: Role,
        replaced: bool,
        consensus: bool,
        rules: bool = False,
        known: Verdict | None = None,
        passing: Collection[str] = (),
    ) -> None:
        """Make ``text`` the best answer if it may replace the first answer and is better.

        Args:
            text: the candidate.
            model: whose words they are, for the account.
            role: of that model.
            replaced: whether it contains words of another model than the first answer's.
            consensus: whether the models agree on it.
            rules: whether it is a judge's ruling, which settles the matter and is no agreement.
            known: its verdict, where it was scored before.
            passing: codes of ``candidate_checks.rejection`` that are no hindrance.
        """
        if text == self.best.text:
            self.decided = self.decided or consensus or rules
            self.consensus = self.consensus or consensus
            self.attempts.append(Attempt(model, role, CandidateFate.UNCHANGED, self.best.verdict.score))
            return
        # Much evidence takes long to look through: that must not hold up the other exchanges.
        code = await asyncio.to_thread(candidate_checks.rejection, self.task, text, finish_reason=None)
        if code is not None and code not in passing:
            self.attempts.append(Attempt(model, role, CandidateFate.REJECTED, reason=code))
            return
        verdict = known or (await self.rescore((text,)))[0]
        self.scored = True
        if await self.entered(text, verdict, model=model, role=role) is CandidateFate.BETTER:
            self.best = ScoredDraft(text, verdict, replaced)
            self.consensus = consensus
            self.decided = True

    async def entered(self, text: str, verdict: Verdict, *, model: str, role: Role) -> CandidateFate:
        """Record the attempt for a scored text, and return how it compares with the best one, which stays."""
        if text == self.best.text:
            fate, reason = CandidateFate.UNCHANGED, ""
        else:
            fate, reason = await weighed(ScoredDraft(text, verdict), self.best, first=self.task.verdict)
        self.attempts.append(Attempt(model, role, fate, verdict.score, reason))
        return fate

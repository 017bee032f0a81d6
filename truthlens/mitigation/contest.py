"""The best text so far, and the account of every text that was set against it.

A text wins only with a lower score that rests on as much checking. Where texts come from is not known here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from truthlens.core.calls import Role
from truthlens.core.records import Verdict
from truthlens.mitigation import accept
from truthlens.mitigation.contract import Attempt, Fate, Rescore, Task
from truthlens.mitigation.standard import LESS_CHECKED, UNSCORED, Draft, less_checked

SMALL_GAIN = "small-gain"
# An answer that is not flagged gives way only to a clear gain: below it, on real answers, swaps did about as often harm as
# good and cost supported text (docs/mitigation-figures.md).
LEAST_GAIN = 0.03


@dataclass(slots=True)
class Contest:
    """One answer's contest.

    ``consensus`` is whether the models stand behind the best text. ``decided`` is true once a text that they stand
    behind, or a better one, has settled the matter; ``scored`` once any candidate was scored.
    """

    task: Task
    rescore: Rescore
    best: Draft = field(init=False)
    attempts: list[Attempt] = field(init=False, default_factory=list)
    consensus: bool = field(init=False, default=False)
    decided: bool = field(init=False, default=False)
    scored: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.best = Draft(self.task.answer.text, self.task.verdict)

    async def offer(
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
        """Take ``text`` for the best one where it may stand in for the answer and is better.

        Args:
            text: the candidate.
            model: whose words they are, for the account.
            role: of that model.
            replaced: whether another model's words than the first answer's stand in it.
            consensus: whether the models stand behind it.
            known: its verdict, where it was scored before.
            passing: codes of ``accept`` that are no hindrance.
        """
        if text == self.best.text:
            self.decided = self.decided or consensus
            self.consensus = self.consensus or consensus
            self.attempts.append(Attempt(model, role, Fate.UNCHANGED, self.best.verdict.score))
            return
        code = accept.rejection(self.task, text, finish_reason=None)
        if code is not None and code not in passing:
            self.attempts.append(Attempt(model, role, Fate.REJECTED, reason=code))
            return
        verdict = known or (await self.rescore((text,)))[0]
        self.scored = True
        if self.entered(text, verdict, model=model, role=role) is Fate.BETTER:
            self.best = Draft(text, verdict, replaced)
            self.consensus = consensus
            self.decided = True

    def entered(self, text: str, verdict: Verdict, *, model: str, role: Role) -> Fate:
        """Account for a text that was scored, and say how it compares with the best one, which stays."""
        best, reason = self.best.verdict.score, ""
        if verdict.score is None or best is None:
            fate, reason = Fate.REJECTED, UNSCORED
        elif less_checked(verdict, self.task.verdict):
            fate, reason = Fate.REJECTED, LESS_CHECKED
        elif text == self.best.text:
            fate = Fate.UNCHANGED
        elif verdict.score >= best:
            fate = Fate.WORSE
        elif not self.best.verdict.flagged and best - verdict.score < LEAST_GAIN:
            fate, reason = Fate.REJECTED, SMALL_GAIN
        else:
            fate = Fate.BETTER
        self.attempts.append(Attempt(model, role, fate, verdict.score, reason))
        return fate

"""Turn the end of a debate into an answer: written by a judge, or the first answer with cuts."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from truthlens.core.records.calls import CallFailure, Role
from truthlens.mitigation.interfaces import Attempt, Task, Tools
from truthlens.mitigation.premium.consensus.comparison import Comparison
from truthlens.mitigation.premium.consensus.result import Pick, mixed, variants
from truthlens.mitigation.premium.debate.argumentation import ArgumentGraph, defeated, grounded_extension
from truthlens.mitigation.premium.debate.setup import GROUNDED, Opening, Position
from truthlens.mitigation.questions import is_structured, prompted, written
from truthlens.prompts import delimiters


@dataclass(frozen=True, slots=True)
class Closing:
    """The answer that a debate led to.

    ``text`` is the first answer's own where all of its claims survived, and ``None`` where no text could be
    made. ``accepted`` are the claims (indices in the graph) in the grounded extension about which a critic
    answered, and ``unexamined`` those there about which none did. ``writer`` is the model that wrote the
    text, ``None`` where it was put together from claims; ``replaced`` says that it contains words that are
    not the first answer's, ``reached`` that more than half of the voices, by weight, hold its claims; of a
    text that a model wrote, the caller finds out.
    """

    text: str | None
    accepted: frozenset[int]
    unexamined: frozenset[int] = frozenset()
    writer: str | None = None
    replaced: bool = False
    reached: bool = False
    attempts: tuple[Attempt, ...] = ()
    failure: CallFailure | None = None


async def close(
    task: Task,
    tools: Tools,
    comparison: Comparison,
    start: Opening,
    graph: ArgumentGraph,
    *,
    examined: Collection[int],
    asking: bool,
) -> Closing:
    """Return the answer that the grounded extension of ``graph`` makes.

    The judge writes it, else the second voice's model; where that fails, the defeated claims are cut out of
    the first answer or give way to the claims that defeated them. A structured answer is never cut. A claim
    that nobody answered about was not attacked, which is not to say that it withstood an attack: the judge is
    told which those are.

    Args:
        task: the answer to be corrected.
        tools: one call is made at most.
        comparison: of the voices.
        start: the claims, which are the first arguments of ``graph``.
        graph: at the end of the debate.
        examined: the claims about which at least one critic answered.
        asking: whether a model may still be asked.
    """
    end = _End(start, grounded_extension(graph), graph, examined)
    text = task.answer.text
    own = {index: position for index, position in enumerate(start.positions) if position.own is not None}
    if all(index in end.accepted for index in own):
        reached = all(
            comparison.is_held(0, comparison.views[0][position.holders[0][1]]) for position in own.values()
        )
        return Closing(text, end.accepted, end.unexamined, reached=reached)
    attempts: tuple[Attempt, ...] = ()
    failure = None
    if asking:
        judge = task.plan.premium.judge_model or comparison.voices[1].model
        asked = await asyncio.to_thread(
            prompted, task, "synthesise", model=judge, role=Role.JUDGE, values=end.shown(task)
        )
        opinion = await written(task, tools, asked)
        if opinion.text is not None:
            return Closing(opinion.text, end.accepted, end.unexamined, judge, replaced=True)
        attempts, failure = opinion.attempts(Role.JUDGE), opinion.failure
    if is_structured(task):
        return Closing(None, end.accepted, end.unexamined, attempts=attempts, failure=failure)
    choices = {
        position.holders[0][1]: end.winner(comparison, index)
        for index, position in own.items()
        if index in end.beaten or (index in end.open and position.grounding < GROUNDED)
    }
    cut = await asyncio.to_thread(mixed, comparison, choices)
    return Closing(
        cut.text if cut.text != text else None,
        end.accepted,
        end.unexamined,
        replaced=cut.replaced,
        reached=cut.reached,
        attempts=attempts,
        failure=failure,
    )


class _End:
    """What survived a debate, what was not examined, what was defeated, and what was left open."""

    def __init__(
        self, start: Opening, extension: frozenset[int], graph: ArgumentGraph, examined: Collection[int]
    ) -> None:
        claims = frozenset(range(len(start.positions)))
        self.positions: Sequence[Position] = start.positions
        self.accepted = claims & extension & frozenset(examined)
        self.unexamined = (claims & extension) - self.accepted
        self.beaten = claims & defeated(graph, extension)
        self.open = claims - extension - self.beaten
        self._graph = graph

    def shown(self, task: Task) -> dict[str, object]:
        """Return what the judge's prompt names."""
        return {
            "answer": delimiters.tag("answer", task.answer.text),
            "accepted": self._listed(self.accepted),
            "unexamined": self._listed(self.unexamined),
            "undecided": self._listed(self.open),
            "rejected": self._listed(self.beaten),
            "structured": is_structured(task),
        }

    def winner(self, comparison: Comparison, index: int) -> Pick | None:
        """Return the best grounded claim that survived, attacks claim ``index`` and could replace it."""
        attackers = {attacker for attacker, target in self._graph.attacks if target == index}
        groundings = {
            Pick(*holder): self.positions[attacker].grounding
            for attacker in attackers & (self.accepted | self.unexamined)
            for holder in self.positions[attacker].holders
        }
        view = comparison.views[0][self.positions[index].holders[0][1]]
        fitting = (pick for pick in variants(comparison, view) if pick in groundings)
        return max(fitting, key=lambda pick: groundings[pick], default=None)

    def _listed(self, claims: frozenset[int]) -> str:
        return "\n".join(listed(self.positions[claim], claim + 1) for claim in sorted(claims))


def listed(position: Position, number: int) -> str:
    """Return a claim as prompts of a debate show it: its number, and how well the evidence supports it."""
    grounding = f"{position.grounding:.2f}" if position.scored else "unknown"
    return delimiters.inline("claim", position.text, n=number, grounding=grounding)

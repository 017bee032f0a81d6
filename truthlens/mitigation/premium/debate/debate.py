"""Run a debate about the claims of all answers: models attack each other's, what survives is the answer.

An argument counts by its evidence. A quote that is not in the evidence strikes the argument out, and the
objection that does so stays in the graph. Which text is delivered, and whether it is better, is decided by
the caller. Source: white paper 3.3.2, 5.5.2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from truthlens.core.records.calls import CallFailure, ModelRequest, Role
from truthlens.mitigation.interfaces import Attempt, CandidateFate, Task, Tools
from truthlens.mitigation.premium.consensus.comparison import SUPPORTED, Comparison
from truthlens.mitigation.premium.debate.argumentation import ArgumentGraph, defeated, grounded_extension
from truthlens.mitigation.premium.debate.parsing import Attack, AttackKind, Defence, attacks, defences
from truthlens.mitigation.premium.debate.quotes import FoundQuote, QuotableEvidence, normalised
from truthlens.mitigation.premium.debate.result import Closing, close
from truthlens.mitigation.premium.debate.setup import Opening, opening
from truthlens.mitigation.questions import Opinion, prompted, said
from truthlens.prompts import delimiters

GARBAGE = "debate-garbage"
UNEXAMINED = "claims-unexamined"

_MOST_SAID = 40  # of the arguments so far that critics are shown, the last ones
_NO_SUCH_EVIDENCE = "the quote does not stand in the evidence"
_NO_EVIDENCE = "no quote was given"
_NOT_SUPPORTED = "the quote does not support the claim"
_SUPPORT_UNKNOWN = "whether the quote supports the claim could not be told"
_WELL_GROUNDED = "the claim is grounded and nothing was quoted against it"
# Whatever is asked after one of these fails alike.
_FINAL = frozenset({CallFailure.BUDGET, CallFailure.DEADLINE})


@dataclass(frozen=True, slots=True)
class Debated:
    """The result of a debate.

    ``rounds`` are those that were held. ``attempts`` lists the turns and the text that failed or could not be
    used. ``failure`` is set where budget or time ended the debate.
    """

    closing: Closing
    graph: ArgumentGraph
    rounds: int
    attempts: tuple[Attempt, ...]
    failure: CallFailure | None
    notes: tuple[str, ...]


async def debate(task: Task, tools: Tools, comparison: Comparison) -> Debated:
    """Return what remains of the answers after the rounds of the plan, three at most.

    The arguments are the claims of all voices. In a round every model, that of the first answer too,
    criticises what still stands and is not its own alone, all at once; then each attack is answered by a
    model that holds the claim. A round without a new attack is the last. Then the answer is made from the
    grounded extension (``result``).

    Args:
        task: the answer to be corrected.
        tools: at most six calls per model, two a round, and one of the judge are made.
        comparison: of the first answer with at least one other.
    """
    evidence = await asyncio.to_thread(QuotableEvidence, task.exchange.passages)
    talk = _Talk(task, tools, comparison, evidence)
    for _ in range(task.plan.premium.debate_rounds):
        if not await talk.round() or talk.failure is not None:
            break
    closing = await close(
        task, tools, comparison, talk.start, talk.graph, examined=talk.examined, asking=talk.failure is None
    )
    failure = talk.failure or (closing.failure if closing.failure in _FINAL else None)
    notes = (*talk.notes, *([UNEXAMINED] if closing.unexamined else []))
    return Debated(closing, talk.graph, talk.rounds, (*talk.attempts, *closing.attempts), failure, notes)


@dataclass(frozen=True, slots=True)
class _Said:
    """An argument that stands until it is answered: its voice, claim and number, and how prompts show it."""

    author: str
    claim: int
    number: int
    line: str


@dataclass(slots=True)
class _Talk:
    """The graph so far and what was said. In prompts and turns an argument's number is its index plus one.

    ``examined`` are the claims about which at least one critic answered.
    """

    task: Task
    tools: Tools
    comparison: Comparison
    evidence: QuotableEvidence
    start: Opening = field(init=False)
    graph: ArgumentGraph = field(init=False)
    minutes: list[_Said] = field(init=False, default_factory=list)
    heard: set[tuple[int, AttackKind, str]] = field(init=False, default_factory=set)
    examined: set[int] = field(init=False, default_factory=set)
    attempts: list[Attempt] = field(init=False, default_factory=list)
    notes: list[str] = field(init=False, default_factory=list)
    failure: CallFailure | None = field(init=False, default=None)
    rounds: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.start = opening(self.comparison)
        self.graph = self.start.graph

    async def round(self) -> bool:
        """Run one round of attacks and defences; return whether a new attack was made."""
        beaten = defeated(self.graph, grounded_extension(self.graph))
        standing = [claim for claim in range(len(self.start.positions)) if claim not in beaten]
        if not standing:
            return False
        self.rounds += 1
        fresh = [
            (critic, attack) for critic, turn in await self._criticise(standing) for attack in self._new(turn)
        ]
        before = len(self.minutes)
        for critic, attack in fresh:
            await self._attack(critic, attack)
        raised = self.minutes[before:]
        if raised and self.failure is None:
            await self._defend(raised)
        return bool(fresh)

    async def _criticise(self, standing: Sequence[int]) -> list[tuple[str, list[Attack]]]:
        """Return the turns of all critics that could be read, each with its critic."""
        lists = {
            critic: [claim for claim in standing if self._holders(claim) != {critic}]
            for critic in dict.fromkeys(voice.model for voice in self.comparison.voices)
        }
        # Much evidence takes long to choose from: that must not hold up the other exchanges.
        asked = {
            critic: await asyncio.to_thread(self._question, critic, claims)
            for critic, claims in lists.items()
            if claims
        }
        async with asyncio.TaskGroup() as group:
            tasks = {critic: group.create_task(self._said(each)) for critic, each in asked.items()}
        turns: list[tuple[str, list[Attack]]] = []
        for critic, opinion in ((critic, each.result()) for critic, each in tasks.items()):
            if opinion.text is None:
                continue
            turn = attacks(opinion.text, claims=[claim + 1 for claim in lists[critic]])
            if turn is None:
                self._garbage(critic, Role.CRITIC)
            else:
                self.examined.update(lists[critic])
                turns.append((critic, turn))
        return turns

    def _question(self, critic: str, claims: Sequence[int]) -> ModelRequest:
        about = [each.line for each in self.minutes if each.claim in claims]
        return prompted(
            self.task,
            "critique",
            model=critic,
            role=Role.CRITIC,
            own=critic == self.task.model,
            values={"claims": self._listed(claims), "said": "\n".join(about[-_MOST_SAID:])},
        )

    def _holders(self, claim: int) -> set[str]:
        """Return the models that make a claim."""
        return {self.comparison.voices[voice].model for voice, _ in self.start.positions[claim].holders}

    async def _attack(self, critic: str, attack: Attack) -> None:
        """Put an attack into the graph; one without the evidence that it needs is struck out there."""
        claim = attack.claim - 1
        shown = " ".join(part for part in (attack.argument, attack.quote and f"“{attack.quote}”") if part)
        index = self._say(shown, against=claim)
        if attack.quote:
            objection = "" if await self._find(attack.quote) else _NO_SUCH_EVIDENCE
        elif attack.kind is AttackKind.CONTRADICTED:
            objection = _NO_EVIDENCE
        else:
            objection = _WELL_GROUNDED if self.start.positions[claim].is_grounded else ""
        if objection:
            self._say(objection, against=index)
            return
        line = delimiters.inline("attack", shown, n=index + 1, claim=attack.claim, kind=attack.kind.value)
        self.minutes.append(_Said(critic, claim, index + 1, line))

    async def _defend(self, raised: Sequence[_Said]) -> None:
        """Have models that hold what was attacked answer the standing attacks, all at once."""
        of: dict[str, list[_Said]] = {}
        for each in raised:
            of.setdefault(self._defender(each), []).append(each)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._defence(model, about)) for model, about in of.items()]
        for turn, about in zip((each.result() for each in tasks), of.values(), strict=True):
            await self._answered(turn, about)

    def _defender(self, attack: _Said) -> str:
        """Return the first model that holds the claim and did not attack it."""
        models = [
            self.comparison.voices[voice].model for voice, _ in self.start.positions[attack.claim].holders
        ]
        return next(model for model in models if model != attack.author)

    async def _defence(self, model: str, raised: Sequence[_Said]) -> Opinion:
        asked = await asyncio.to_thread(
            prompted,
            self.task,
            "defend",
            model=model,
            role=Role.PROPOSER,
            own=model == self.task.model,
            values={
                "claims": self._listed(sorted({each.claim for each in raised})),
                "attacks": "\n".join(each.line for each in raised),
            },
        )
        return await self._said(asked)

    async def _answered(self, opinion: Opinion, raised: Sequence[_Said]) -> None:
        """Put a turn of defences into the graph."""
        if opinion.text is None:
            return
        about = {each.number: each.claim for each in raised}
        turn = defences(opinion.text, attacks=about)
        if turn is None:
            self._garbage(opinion.model, Role.PROPOSER)
            return
        for defence in turn:
            if not defence.concede:
                await self._answer(opinion.model, defence, about)

    async def _answer(self, model: str, defence: Defence, about: Mapping[int, int]) -> None:
        """Put a defence into the graph; one that its quote does not bear out is struck out there."""
        claim = about[defence.attack]
        index = self._say(defence.quote, against=defence.attack - 1)
        found = await self._find(defence.quote)
        if found is None:
            self._say(_NO_SUCH_EVIDENCE if defence.quote else _NO_EVIDENCE, against=index)
        elif objection := await self._unsupported(found, claim):
            self._say(objection, against=index)
        else:
            line = delimiters.inline("defence", defence.quote, attack=defence.attack, claim=claim + 1)
            self.minutes.append(_Said(model, claim, index + 1, line))

    async def _unsupported(self, found: FoundQuote, claim: int) -> str:
        """Return the objection to a true quote that does not prove the claim, or ``""``.

        Otherwise any quote would defend any claim.
        """
        position = self.start.positions[claim]
        if position.is_grounded:
            return ""
        (support,) = await self.tools.compare.support([position.text], found.text)
        if support is None:
            return _SUPPORT_UNKNOWN
        return "" if support >= SUPPORTED else _NOT_SUPPORTED

    async def _said(self, asked: ModelRequest) -> Opinion:
        opinion = await said(self.tools.ask, asked, time_s=self.tools.deadline.remaining_s)
        self.attempts += opinion.attempts(asked.role)
        if opinion.failure in _FINAL:
            self.failure = opinion.failure
        return opinion

    async def _find(self, quote: str) -> FoundQuote | None:
        # Evidence may be long: the search must not hold up the other exchanges.
        return await asyncio.to_thread(self.evidence.find, quote) if quote else None

    def _new(self, turn: Iterable[Attack]) -> list[Attack]:
        """Return the attacks that were not made before.

        The same claim may be attacked again by another kind or quote.
        """
        fresh = []
        for attack in turn:
            key = (attack.claim, attack.kind, normalised(attack.quote))
            if key not in self.heard:
                self.heard.add(key)
                fresh.append(attack)
        return fresh

    def _say(self, argument: str, *, against: int) -> int:
        self.graph = self.graph.said(argument, against=against)
        return len(self.graph.arguments) - 1

    def _garbage(self, model: str, role: Role) -> None:
        self.attempts.append(Attempt(model, role, CandidateFate.REJECTED, reason=GARBAGE))
        if GARBAGE not in self.notes:
            self.notes.append(GARBAGE)

    def _listed(self, claims: Sequence[int]) -> str:
        return "\n".join(
            delimiters.inline("claim", self.start.positions[claim].text, n=claim + 1) for claim in claims
        )

"""Arguments, their attacks, and which of them survive (Dung's abstract argumentation).

A graph is only what was said and what it was said against. It does not read texts, call models or decide what
is an argument: the debate does that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ArgumentKind(StrEnum):
    """The purpose of an argument: assert, attack an assertion, answer an attack, or strike a false quote."""

    CLAIM = "claim"
    ATTACK = "attack"
    DEFENCE = "defence"
    OBJECTION = "objection"


@dataclass(frozen=True, slots=True)
class Argument:
    """One thing said in a debate.

    ``author`` is the model that said it, ``text`` its wording. ``claim`` is the index, in the graph, of the
    claim that it is about; a claim's own is ``None``.
    """

    author: str
    kind: ArgumentKind
    text: str
    claim: int | None = None


@dataclass(frozen=True, slots=True)
class ArgumentGraph:
    """An argumentation framework AF = (A, →): arguments by index, and who attacks whom as (attacker, target).

    Raises:
        ValueError: an attack names an argument that is not there.

    Source: white paper, definition 7; Dung, "On the acceptability of arguments", Artificial Intelligence 77
    (1995).
    """

    arguments: tuple[Argument, ...] = ()
    attacks: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        known = range(len(self.arguments))
        if stray := [pair for pair in self.attacks if pair[0] not in known or pair[1] not in known]:
            raise ValueError(f"an attack is a pair of 0..{len(self.arguments) - 1}, not {min(stray)}")

    def said(self, argument: Argument, *, against: Iterable[int] = ()) -> ArgumentGraph:
        """Return this graph with one more argument, which takes the next index and attacks ``against``."""
        new = len(self.arguments)
        return ArgumentGraph(
            (*self.arguments, argument), self.attacks | {(new, target) for target in against}
        )

    def attacked(self, pairs: Iterable[tuple[int, int]]) -> ArgumentGraph:
        """Return this graph with more attacks."""
        return ArgumentGraph(self.arguments, self.attacks | frozenset(pairs))

    def of_kind(self, kind: ArgumentKind) -> list[int]:
        """Return the indices of the arguments of one kind, ascending."""
        return [index for index, argument in enumerate(self.arguments) if argument.kind is kind]


def grounded_extension(graph: ArgumentGraph) -> frozenset[int]:
    """Return the indices of the grounded extension: the arguments that every sceptic must accept.

    It is the least fixed point of the characteristic function, which accepts an argument when each of its
    attackers is attacked by an accepted one. Arguments that only attack each other in circles, and what hangs
    on them, stay out. Linear in arguments and attacks.

    Source: white paper, definition 8; Dung (1995), definitions 16 and 20.
    """
    targets: list[list[int]] = [[] for _ in graph.arguments]
    standing = [0] * len(graph.arguments)  # attackers that are not yet defeated
    for attacker, target in graph.attacks:
        targets[attacker].append(target)
        standing[target] += 1
    accepted: set[int] = set()
    beaten: set[int] = set()
    ready = [index for index, attackers in enumerate(standing) if attackers == 0]
    while ready:
        winner = ready.pop()
        accepted.add(winner)
        for loser in targets[winner]:
            if loser in beaten:
                continue
            beaten.add(loser)
            for freed in targets[loser]:
                standing[freed] -= 1
                if standing[freed] == 0 and freed not in beaten:
                    ready.append(freed)
    return frozenset(accepted)


def defeated(graph: ArgumentGraph, accepted: frozenset[int]) -> frozenset[int]:
    """Return the indices of arguments that one of ``accepted`` attacks.

    Arguments in neither set are undecided.
    """
    return frozenset(target for attacker, target in graph.attacks if attacker in accepted)

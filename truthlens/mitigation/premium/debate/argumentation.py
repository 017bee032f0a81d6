"""Arguments, their attacks, and which of them survive (Dung's abstract argumentation).

A graph is only what was said and what it was said against. It does not read texts, call models or decide what
is an argument: the debate does that.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArgumentGraph:
    """An argumentation framework AF = (A, →): what was said, by index, and attacks as (attacker, target).

    Raises:
        ValueError: an attack names an argument that is not there.

    Source: white paper, definition 7; Dung, "On the acceptability of arguments", Artificial Intelligence 77
    (1995).
    """

    arguments: tuple[str, ...]
    attacks: frozenset[tuple[int, int]]

    def __post_init__(self) -> None:
        known = range(len(self.arguments))
        if stray := [pair for pair in self.attacks if pair[0] not in known or pair[1] not in known]:
            raise ValueError(f"an attack is a pair of 0..{len(self.arguments) - 1}, not {min(stray)}")

    def said(self, argument: str, *, against: int) -> ArgumentGraph:
        """Return this graph with one more argument, which takes the next index and attacks ``against``."""
        return ArgumentGraph((*self.arguments, argument), self.attacks | {(len(self.arguments), against)})


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

"""Conditions joined by AND, OR and NOT, in three-valued logic: true, false, or not known yet (``None``).

The same evaluation serves a whole exchange, a request of which only the headers have come, and the
question whether a decision can ever be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

Truth = bool | None


class ConditionType(StrEnum):
    """What a condition looks at."""

    DOMAIN = "domain"
    KEYWORD = "keyword"
    HEADER = "header"
    MODEL = "model"
    LANGUAGE = "language"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Atom:
    """One condition: a signal by type and name."""

    type: ConditionType
    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """True where ``rule`` is false."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class All:
    """True where each of ``rules`` is true."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """True where at least one of ``rules`` is true."""

    rules: tuple[Rule, ...]


Rule = Atom | Not | All | Any


def evaluate(rule: Rule, truth: Callable[[Atom], Truth]) -> Truth:
    """The value of ``rule`` where ``truth`` gives the value of each condition.

    The result is ``None`` only where both outcomes remain possible by Kleene's logic.
    """
    match rule:
        case Atom():
            return truth(rule)
        case Not(inner):
            value = evaluate(inner, truth)
            return None if value is None else not value
        case All(rules):
            return _first(rules, truth, decisive=False)
        case Any(rules):
            return _first(rules, truth, decisive=True)


def _first(rules: tuple[Rule, ...], truth: Callable[[Atom], Truth], *, decisive: bool) -> Truth:
    unknown = False
    for rule in rules:
        value = evaluate(rule, truth)
        if value is decisive:
            return decisive
        unknown = unknown or value is None
    return None if unknown else not decisive


def atoms(rule: Rule) -> tuple[Atom, ...]:
    """The conditions of ``rule``, each once, in order."""
    match rule:
        case Atom():
            return (rule,)
        case Not(inner):
            return atoms(inner)
        case All(rules) | Any(rules):
            return tuple(dict.fromkeys(atom for inner in rules for atom in atoms(inner)))


def can_match(rule: Rule, *, unless: Sequence[Rule] = (), max_steps: int = 20_000) -> bool:
    """Whether some values of the conditions make ``rule`` true and each of ``unless`` false.

    Conditions count as independent of each other. After ``max_steps`` trials the answer is ``True``:
    a decision is called unreachable only where that is proven.
    """
    goal = All((rule, *(Not(other) for other in unless)))
    unassigned = atoms(goal)
    values: dict[Atom, bool] = {}
    steps = 0

    def search(index: int) -> bool:
        nonlocal steps
        steps += 1
        value = evaluate(goal, values.get)
        if value is not None:
            return value
        if steps > max_steps:
            return True
        atom = unassigned[index]
        for choice in (True, False):
            values[atom] = choice
            if search(index + 1):
                return True
        del values[atom]
        return False

    return search(0)

"""Conditions joined by AND, OR and NOT, in three-valued logic: true, false, or not known yet (``None``).

The same evaluation serves a whole exchange, a request of which only the headers have come, and the
question whether a decision can ever be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """Return the value of ``rule``, where ``truth`` gives the value of each condition.

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
    """Return the conditions of ``rule``, each once, in order."""
    match rule:
        case Atom():
            return (rule,)
        case Not(inner):
            return atoms(inner)
        case All(rules) | Any(rules):
            return tuple(dict.fromkeys(atom for inner in rules for atom in atoms(inner)))


@dataclass(slots=True)
class Effort:
    """What a search may still cost, in conditions looked at; shared by the searches of one file."""

    left: int = 20_000


@dataclass(slots=True)
class _Choice:
    """A condition that was given a value in a search, and what is known should that value fail."""

    atom: Atom
    part: int
    flipped: bool = False
    blamed: frozenset[Atom] = frozenset()


def can_match(rule: Rule, *, unless: Sequence[Rule] = (), effort: Effort | None = None) -> bool:
    """Return whether some values of the conditions make ``rule`` true and each of ``unless`` false.

    Conditions count as independent of each other. Once ``effort`` is used up the answer is ``True``: a
    decision is called unreachable only where that is proven.
    """
    return witness(rule, unless=unless, effort=effort) is not None


def witness(
    rule: Rule, *, unless: Sequence[Rule] = (), effort: Effort | None = None
) -> Mapping[Atom, bool] | None:
    """Return values that make ``rule`` true and each of ``unless`` false, or ``None`` if there are none.

    Conditions that are not in the result may have any value. Once ``effort`` is used up the result is as far
    as the search has come, and proves nothing.
    """
    effort = effort or Effort()
    # One part after the other; what a part fails on is undone down to the last choice that it depends on.
    parts = ((rule, atoms(rule), True), *((other, atoms(other), False) for other in unless))
    values: dict[Atom, bool] = {}
    choices: list[_Choice] = []
    place = 0
    while place < len(parts) and effort.left > 0:
        part, own, goal = parts[place]
        effort.left -= len(own)
        value = evaluate(part, values.get)
        if value is goal:
            place += 1
        elif value is None:
            atom = next(atom for atom in own if atom not in values)
            values[atom] = goal
            choices.append(_Choice(atom, place))
        else:
            choice = _undo(choices, values, frozenset(own))
            if choice is None:
                return None
            place = choice.part
    return values


def _undo(choices: list[_Choice], values: dict[Atom, bool], blamed: frozenset[Atom]) -> _Choice | None:
    """Flip the last choice to blame, or blame those before it; return ``None`` if none is left."""
    while choices:
        choice = choices.pop()
        if choice.atom in blamed:
            blamed = blamed | choice.blamed
            if not choice.flipped:
                values[choice.atom] = not values[choice.atom]
                flipped = _Choice(choice.atom, choice.part, flipped=True, blamed=blamed - {choice.atom})
                choices.append(flipped)
                return flipped
            blamed -= {choice.atom}
        del values[choice.atom]
    return None

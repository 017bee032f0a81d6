"""Find decisions that can never be reached, and decisions that a client could exploit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from truthlens.core.records.plan import Plan
from truthlens.policy.policy import Decision
from truthlens.policy.signals.conditions import Signals
from truthlens.policy.signals.rules import (
    Atom,
    Effort,
    Rule,
    atoms,
    can_match,
    evaluate,
    witness,
)
from truthlens.policy.strictness import weaknesses
from truthlens.yamlfile.diagnostics import KeyPath, Report

# Conditions that are looked at for one file, some seconds of work; after that no more decisions are called
# unreachable.
_EFFORT = 1_000_000
_TRUST = (
    "list it under trusted_headers if a router before TruthLens sets or removes it, or take it from the route"
)


@dataclass(frozen=True, slots=True)
class PlacedDecision:
    """A decision and its place in the file."""

    decision: Decision
    path: KeyPath


def lint(placed: Sequence[PlacedDecision], default: Plan, signals: Signals, report: Report) -> None:
    """Report unreachable decisions as errors, and decisions that a client can choose as warnings.

    ``placed`` come in the order in which they are tried.
    """
    _check_scopes(
        [(default, ("hallucination",)), *((item.decision.plan, item.path) for item in placed)],
        signals,
        report,
    )
    above = _Above()
    for item in placed:
        _check_reachable(item, above, report)
        above.add(item)
    if not report.errors:
        # In a file with mistakes, a plan may be weak only because part of it was left out.
        for item in placed:
            _check_choosable(item, default, signals, report)


def _check_scopes(plans: Iterable[tuple[Plan, KeyPath]], signals: Signals, report: Report) -> None:
    """Report detectors that take an exchange's scope from headers which a client could send, each header once."""
    reported: set[tuple[str, str]] = set()
    for plan, path in plans:
        for spec in plan.detectors:
            wanted: frozenset[str] = getattr(spec.options, "scope_headers", frozenset())
            for header in sorted(wanted - signals.trusted_headers):
                if (spec.name, header) not in reported:
                    report.error(
                        path,
                        f"the detector {spec.name!r} takes its scope from the header {header!r}, which a client could send",
                        _TRUST,
                    )
                reported.add((spec.name, header))


def warn_of_filters(filters: Mapping[str, str], path: KeyPath, signals: Signals, report: Report) -> None:
    """Warn of fields of a source's filter whose value no exchange can have: it is never searched then.

    It is no mistake in a file for ``truthlens ask``, where ``--scope`` says the value.
    """
    for field, name in filters.items():
        # Both are read in lower case.
        if not signals.may_be_in_scope(name.lower()):
            bare = name.lower().removeprefix("x-")
            report.warn(
                (*path, field),
                f"no request has a value {name!r}: it is neither among trusted_headers nor truthlens-scope-* "
                "of the route's metadata, so the gateway never searches this source (no-scope)",
                f"write {bare!r}" if signals.may_be_in_scope(bare) else _TRUST,
            )


class _Above:
    """The decisions that are tried before one, by their conditions.

    Nearly every decision is reachable, and where the ones above it do not exclude it by shared conditions,
    only those are looked at.
    """

    def __init__(self) -> None:
        self._items: list[PlacedDecision] = []
        self._by_atom: dict[Atom, list[int]] = {}
        # Those that match a request in which no condition holds.
        self._idle: list[int] = []
        self._effort = Effort(_EFFORT)

    def add(self, item: PlacedDecision) -> None:
        """Count ``item`` among the decisions above those that follow."""
        place = len(self._items)
        self._items.append(item)
        for atom in atoms(item.decision.rule):
            self._by_atom.setdefault(atom, []).append(place)
        if evaluate(item.decision.rule, lambda _: False):
            self._idle.append(place)

    def leave_room_for(self, rule: Rule) -> bool:
        """Return whether some request matches ``rule`` and none of them.

        True if that is too expensive to find out.
        """
        for others in ((), self._near(atoms(rule))):
            found = witness(rule, unless=self._rules(others), effort=self._effort)
            if found is None:
                return False
            if self._are_idle(found):
                return True
        return can_match(rule, unless=self._rules(range(len(self._items))), effort=self._effort)

    def _are_idle(self, values: Mapping[Atom, bool]) -> bool:
        """Return whether none of them matches if exactly the conditions with these values hold."""
        near = self._rules(self._near([atom for atom, value in values.items() if value]))
        return not any(evaluate(rule, lambda atom: values.get(atom, False)) for rule in near)

    def that_takes_all_of(self, rule: Rule) -> PlacedDecision | None:
        """Return the first that matches everything that ``rule`` matches."""
        for place in self._near(atoms(rule)):
            if not can_match(rule, unless=[self._items[place].decision.rule], effort=self._effort):
                return self._items[place]
        return None

    def _near(self, some: Sequence[Atom]) -> list[int]:
        """Return those that share a condition with ``some``, or match where no condition holds; in order."""
        return sorted({*self._idle, *(place for atom in some for place in self._by_atom.get(atom, ()))})

    def _rules(self, places: Iterable[int]) -> list[Rule]:
        return [self._items[place].decision.rule for place in places]


def _check_reachable(item: PlacedDecision, above: _Above, report: Report) -> None:
    rule, name = item.decision.rule, item.decision.plan.decision
    path = (*item.path, "rules")
    if not can_match(rule):
        message = f"the rules of {name!r} contradict themselves and never match"
        report.error(path, message, "fix the rules, or remove the decision")
        return
    if above.leave_room_for(rule):
        return
    shadow = above.that_takes_all_of(rule)
    if shadow is not None:
        plan, line = shadow.decision.plan, report.line(shadow.path)
        message = (
            f"{name!r} is never reached: {plan.decision!r} (line {line}, priority {shadow.decision.priority}) "
            "takes everything that it matches"
        )
        report.error(path, message, "raise its priority, narrow the other's rules, or remove one of the two")
    else:
        message = f"{name!r} is never reached: the decisions before it take everything that it matches"
        report.error(path, message, "raise its priority, narrow their rules, or remove it")


def _check_choosable(item: PlacedDecision, default: Plan, signals: Signals, report: Report) -> None:
    decision, path = item.decision, (*item.path, "rules")
    weaker = weaknesses(decision.plan, than=default)
    if not weaker:
        return
    name, found = decision.plan.decision, atoms(decision.rule)
    how = f"{name!r} is weaker than the default ({', '.join(weaker)})"
    if any(signals.client_can_meet(atom) for atom in found):
        if decision.client_may_choose:
            report.warn(
                path,
                f"{how} and a client can choose it by what it sends (client_may_choose)",
                "remove client_may_choose where clients are not trusted",
            )
        else:
            report.warn(
                path,
                f"{how}; what a client sends (text, untrusted headers, the model's name) does not choose it, only the "
                "route's metadata and trusted headers do",
                "give it the default's values there, list the header under trusted_headers, or write client_may_choose: true to "
                "allow it",
            )

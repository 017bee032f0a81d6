"""What decisions mean together: which can never be reached, and which a client could bend to its use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.core.plan import Plan
from truthlens.policy.diagnostics import KeyPath, Report
from truthlens.policy.plan import Decision
from truthlens.policy.rules import ConditionType, atoms, can_match
from truthlens.policy.signals import Signals
from truthlens.policy.strength import weaknesses


@dataclass(frozen=True, slots=True)
class PlacedDecision:
    """A decision and where it stands in the file."""

    decision: Decision
    path: KeyPath


def lint(placed: Sequence[PlacedDecision], default: Plan, signals: Signals, report: Report) -> None:
    """Report unreachable decisions as errors, and decisions that a client can choose as warnings.

    ``placed`` come in the order in which they are tried.
    """
    for index, item in enumerate(placed):
        _check_reachable(item, placed[:index], report)
    if not report.errors:
        # In a file with mistakes, a plan may be weak only because part of it was left out.
        for item in placed:
            _check_choosable(item, default, signals, report)


def _check_reachable(item: PlacedDecision, above: Sequence[PlacedDecision], report: Report) -> None:
    rule, name = item.decision.rule, item.decision.plan.decision
    path = (*item.path, "rules")
    if not can_match(rule):
        message = f"the rules of {name!r} contradict themselves and never match"
        report.error(path, message, "mend the rules, or remove the decision")
        return
    shadow = next((other for other in above if not can_match(rule, unless=[other.decision.rule])), None)
    if shadow is not None:
        plan, line = shadow.decision.plan, report.line(shadow.path)
        message = (
            f"{name!r} is never reached: {plan.decision!r} (line {line}, priority {shadow.decision.priority}) "
            "takes everything that it matches"
        )
        report.error(path, message, "raise its priority, narrow the other's rules, or remove one of the two")
    elif not can_match(rule, unless=[other.decision.rule for other in above]):
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
                f"{how}; what a client sends (text, untrusted headers) does not choose it, only the route's "
                "metadata, trusted headers or the model do",
                "list the header under trusted_headers, or write client_may_choose: true to allow it",
            )
    if any(atom.type is ConditionType.MODEL for atom in found):
        message = f"{how} and a client that names a model of its rules gets it"
        report.warn(
            path, message, "leave it if every client may; else use route metadata or a trusted header"
        )

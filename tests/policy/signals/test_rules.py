from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truthlens.core.records.plan import Plan
from truthlens.policy.lint import PlacedDecision, lint
from truthlens.policy.policy import Decision
from truthlens.policy.signals.conditions import Signals
from truthlens.policy.signals.rules import (
    All,
    Any,
    Atom,
    ConditionType,
    Effort,
    Not,
    Rule,
    Truth,
    atoms,
    can_match,
    evaluate,
)
from truthlens.yamlfile.diagnostics import Report

ATOMS = [Atom(ConditionType.DOMAIN, name) for name in "abcd"]
A, B, C, D = ATOMS
rules = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, min_size=1, max_size=3).map(lambda rules: All(tuple(rules)))
        | st.lists(inner, min_size=1, max_size=3).map(lambda rules: Any(tuple(rules)))
    ),
    max_leaves=8,
)
values = st.fixed_dictionaries({atom: st.sampled_from([True, False, None]) for atom in ATOMS})


def completions(partial: dict[Atom, Truth]) -> list[dict[Atom, bool]]:
    choices = [[value] if value is not None else [True, False] for value in partial.values()]
    return [dict(zip(partial, chosen, strict=True)) for chosen in product(*choices)]


@pytest.mark.parametrize(
    ("rule", "known", "expected"),
    [
        (All((A, B)), {A: False, B: None}, False),
        (All((A, B)), {A: True, B: None}, None),
        (Any((A, B)), {A: None, B: True}, True),
        (Any((A, B)), {A: None, B: False}, None),
        (Not(A), {A: None}, None),
        (Not(Any((A, B))), {A: False, B: False}, True),
    ],
)
def test_three_values(rule: Rule, known: dict[Atom, Truth], expected: Truth) -> None:
    """A value is unknown only while the conditions that are known leave both outcomes open."""
    assert evaluate(rule, known.get) is expected


@settings(deadline=None)
@given(rules, values)
def test_certain_values_hold(rule: Rule, partial: dict[Atom, Truth]) -> None:
    """What is certain with some conditions unknown stays so whatever they turn out to be."""
    value = evaluate(rule, partial.get)
    outcomes = {evaluate(rule, complete.get) for complete in completions(partial)}
    assert None not in outcomes
    if value is not None:
        assert outcomes == {value}


@settings(deadline=None)
@given(rules, st.lists(rules, max_size=2))
def test_can_match_is_exact(rule: Rule, others: list[Rule]) -> None:
    """A rule can match just where some row of the truth table makes it true and the others false."""
    table = completions(dict.fromkeys(ATOMS))
    expected = any(
        evaluate(rule, row.get) and not any(evaluate(other, row.get) for other in others) for row in table
    )
    assert can_match(rule, unless=others) is expected


@settings(deadline=None)
@given(st.lists(rules, min_size=1, max_size=5))
def test_unreachable_decisions_are_found_exactly(made: list[Rule]) -> None:
    """A decision is called unreachable just where no row of the truth table gets to it."""
    decisions = [
        PlacedDecision(Decision(Plan(f"d{place}"), 0, rule), ("decisions", place))
        for place, rule in enumerate(made)
    ]
    report = Report("p.yaml", {})
    lint(decisions, Plan("default"), Signals(), report)
    table = completions(dict.fromkeys(ATOMS))
    reached = {
        next((place for place, rule in enumerate(made) if evaluate(rule, row.get)), None) for row in table
    }
    unreachable = {f"decisions[{place}].rules" for place in range(len(made)) if place not in reached}
    assert {error.key for error in report.errors} == unreachable


def test_many_decisions_need_little_effort() -> None:
    """What is looked at for a thousand decisions that share a condition is far from the bound of one search each."""
    share = [All((A, Atom(ConditionType.KEYWORD, f"k{number}"))) for number in range(1000)]
    effort = Effort(20_000)
    assert can_match(All((A, B)), unless=share, effort=effort)
    assert effort.left > 10_000


def test_can_match_gives_up_as_reachable() -> None:
    """A search that would take too long counts as reachable."""
    many = tuple(
        Any((Atom(ConditionType.MODEL, f"m{i}"), Atom(ConditionType.MODEL, f"n{i}"))) for i in range(30)
    )
    hidden = All((*many, A, Not(A)))
    assert can_match(hidden, effort=Effort(50)) is True


def test_atoms_come_once_in_order() -> None:
    """The conditions of a rule are listed once each, in the order of the rule."""
    assert atoms(All((B, Not(A), Any((B, C))))) == (B, A, C)

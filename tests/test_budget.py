"""The tree stays within ``budget.toml``, which only shrinks."""

from __future__ import annotations

import ast

import pytest

from bench.house import budget, complexity, measured, written


def test_the_tree_is_within_its_budget() -> None:
    """No package, folder or count has grown beyond what the file allows; a new package or folder needs its own line."""
    allowed, found = budget(), measured()
    beyond = [
        f"{table}.{name}: {value} > {allowed.get(table, {}).get(name, 0)}"
        for table, figures in found.items()
        for name, value in figures.items()
        if value > allowed.get(table, {}).get(name, 0)
    ]
    assert not beyond, (
        "take away as much as you add, or raise the bound in budget.toml and say why: " + "; ".join(beyond)
    )


def test_the_file_is_as_it_would_be_written() -> None:
    """Bounds are edited as figures; their order and names are the tool's."""
    allowed = budget()
    assert allowed.keys() == measured().keys()
    assert all(isinstance(value, int) for table in allowed.values() for value in table.values())
    assert written(allowed).count("[") == 3


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(): pass", 1),
        ("def f(a, b):\n if a and b: pass", 3),
        ("def f(a):\n return [x for x in a if x]", 2),
    ],
)
def test_complexity_counts_branches(code: str, expected: int) -> None:
    """Branches, boolean operators and loops of comprehensions."""
    assert complexity(ast.parse(code).body[0]) == expected

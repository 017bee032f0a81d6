"""Measure the tree: ``python -m bench.house`` prints what ``budget.toml`` bounds, ``--write`` lowers the bounds to it.

The bounds only shrink: a figure above its bound fails ``tests/test_budget.py``; to raise one, edit the file by hand and say why.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUDGET = ROOT / "budget.toml"
COMPLEXITY, COLUMNS, MODULES = 15, 110, 12

_BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.comprehension,
    ast.match_case,
)


def measured(root: Path = ROOT) -> dict[str, dict[str, int]]:
    """Return lines a package, and how often each other bound is passed."""
    lines: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    classes: dict[str, set[Path]] = {}
    functions = columns = modules = 0
    for path in sorted((root / "truthlens").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        inner = path.relative_to(root / "truthlens").parts
        lines[inner[0].removesuffix(".py")] += text.count("\n")
        modules += 1
        if path.name != "__init__.py":
            folders[str(path.parent.relative_to(root))] += 1
        if "_pb" in inner:
            continue
        columns += sum(len(line) > COLUMNS for line in text.splitlines())
        tree = ast.parse(text)
        functions += sum(complexity(each) > COMPLEXITY for each in _functions(tree))
        for each in ast.walk(tree):
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                classes.setdefault(each.name, set()).add(path)
    return {
        "lines": {**dict(sorted(lines.items())), "all": sum(lines.values())},
        "modules": {
            "all": modules,
            **{name: count for name, count in sorted(folders.items()) if count > MODULES},
        },
        "passed": {
            "complex_functions": functions,
            "long_lines": columns,
            "shared_class_names": sum(len(places) > 1 for places in classes.values()),
        },
    }


def complexity(function: ast.AST) -> int:
    """Return the branches of a function and 1: McCabe's number with each ``and``/``or`` and each loop of a comprehension."""
    found = 1
    for each in ast.walk(function):
        if isinstance(each, ast.BoolOp):
            found += len(each.values) - 1
        elif isinstance(each, _BRANCHES):
            found += 1
    return found


def _functions(tree: ast.AST) -> Iterator[ast.AST]:
    return (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def budget(path: Path = BUDGET) -> dict[str, dict[str, int]]:
    """Return the bounds."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def bounds(figures: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Return bounds just above ``figures``: lines rounded up to hundreds, long lines to tens, so that a mended line breaks none."""
    step = {"lines": 100, "long_lines": 10}
    return {
        table: {
            name: -(-value // step.get(table, step.get(name, 1))) * step.get(table, step.get(name, 1))
            for name, value in entries.items()
        }
        for table, entries in figures.items()
    }


def written(figures: dict[str, dict[str, int]]) -> str:
    """Return the file of bounds."""
    head = (
        "# What the tree may be at most; the figures should only shrink (`python -m bench.house --write`); who raises one says why in\n"
        f"# the commit. A house that doubles in a day is lived in by nobody. Complex: above {COMPLEXITY}; long: above {COLUMNS} columns; a folder above {MODULES} modules is listed.\n"
    )
    tables = (
        f"\n[{name}]\n" + "".join(f'"{key}" = {value}\n' for key, value in table.items())
        for name, table in figures.items()
    )
    return head + "".join(tables)


if __name__ == "__main__":
    found = written(bounds(measured()) if "--write" in sys.argv else measured())
    print(found)
    if "--write" in sys.argv:
        BUDGET.write_text(found, encoding="utf-8")

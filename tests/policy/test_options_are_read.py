"""Every key of the policy, every option of a detector and every field of a plan has a reader."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pydantic

import truthlens
from truthlens.core.records.plan import Plan
from truthlens.core.registry import detector_types
from truthlens.policy.schema import PolicyFile

ROOT = Path(truthlens.__file__).parent
# What only copies a key from one record into the next does not read it.
COPIERS = ("policy/schema", "policy/plans", "policy/compile.py")


@cache
def loads(*, copiers: bool) -> frozenset[str]:
    """The names of all attributes that are read somewhere in the package."""
    found = set()
    for file in ROOT.rglob("*.py"):
        place = file.relative_to(ROOT).as_posix()
        if not copiers and place.startswith(COPIERS):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
    return frozenset(found)


def parts(hint: Any) -> Iterator[Any]:
    """The classes that a type hint is made of."""
    yield hint
    for inner in get_args(hint):
        yield from parts(inner)


def keys(model: type[Any], seen: set[type[Any]]) -> Iterator[tuple[type[Any], str]]:
    """The fields of a model or record and of those below it, each once."""
    if model in seen:
        return
    seen.add(model)
    is_model = issubclass(model, pydantic.BaseModel)
    names = list(model.model_fields) if is_model else [field.name for field in fields(model)]
    hints = get_type_hints(model, include_extras=True)
    for name in names:
        yield model, name
        for part in parts(hints[name]):
            if isinstance(part, type) and (is_dataclass(part) or issubclass(part, pydantic.BaseModel)):
                yield from keys(part, seen)


SCHEMA = [(f"{model.__name__}.{name}", name) for model, name in keys(PolicyFile, set())]
OPTIONS = [
    (f"{kind.name}: {model.__name__}.{name}", name)
    for kind in detector_types().values()
    for model, name in keys(kind.options, set())
]
FIELDS = [(f"{model.__name__}.{name}", name) for model, name in keys(Plan, set())]


def test_all_are_read() -> None:
    """An option that nothing reads promises what does not happen: remove it, or make it do what it says."""
    unread = {key for key, name in (*OPTIONS, *FIELDS) if name not in loads(copiers=False)}
    # Keys of the policy are read where plans are made: what these hold for the stages is among ``FIELDS``.
    unread |= {key for key, name in SCHEMA if name not in loads(copiers=True)}
    assert unread == set()


def test_the_walk_sees_all_of_them() -> None:
    """Keys at every depth, of sections in lists and in unions as well."""
    found = {key for key, _ in [*SCHEMA, *OPTIONS, *FIELDS]}
    assert {
        "StandardSettings.self_check",
        "PriceSection.input",
        "CostThreshold.prior",
        "ReviewRule.sample",
        "Plan.require_disclaimer",
        "PremiumSettings.debate_rounds",
        "numbers: Options.currency_tolerance",
    } <= found

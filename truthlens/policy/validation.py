"""Validate YAML data into the typed file, and report every mistake of shape in the operator's words.

What is wrong is left out and the rest is validated again, so that one run of the checker finds the
mistakes of shape and those of meaning; a file with any error is never used.
"""

from __future__ import annotations

import copy
import difflib
import re
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from truthlens.policy.schema import PolicyFile
from truthlens.yamlfile.diagnostics import KeyPath
from truthlens.yamlfile.source import Document, kind_of

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "finite_number": "a finite number",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "too_short": "at least {min_length} entry",
    "too_long": "at most {max_length} entries",
    "string_too_short": "text that is not empty",
    "enum": "one of {expected}",
    "literal_error": "one of {expected}",
}
# What a later version took away, and what to write in its place.
_REMOVED = {
    "system_instruction_share": "remove it; `system: auto | marked | never` says which system messages may be evidence",
}
_PATTERN_WORDS = {
    "roles": "a message role of letters, digits, '_', '.', '-' and spaces, at most 64 characters",
    "marks": "the name of a tag or a label, without <, > and colon, at most 64 characters",
    "name": "a name of letters, digits, '_', '.' and '-' (it becomes a header value), at most 64 characters",
    "base_url": "an http:// or https:// URL",
    "api_key_env": "the name of an environment variable",
}


@dataclass(frozen=True, slots=True)
class Shaped:
    """The typed file. ``damaged`` are the top-level sections that something was left out of.

    ``indexes`` has, for each of ``file.decisions``, its index in the YAML list.
    """

    file: PolicyFile
    indexes: tuple[int, ...]
    damaged: frozenset[str]


def shape(document: Document) -> Shaped:
    """Return the typed file of ``document.data``; mistakes of shape go to ``document.report``."""
    draft = _Draft(copy.deepcopy(document.data or {}))
    reported = False
    while True:
        try:
            file = PolicyFile.model_validate(draft.data)
        except pydantic.ValidationError as error:
            problems = [(_path(problem, draft.data), problem) for problem in error.errors()]
            # Later rounds only see what the removals of the first one brought about.
            if not reported:
                for path, problem in problems:
                    _report(document, path, problem)
                reported = True
            draft.leave_out([path for path, _ in problems])
        else:
            return Shaped(file, tuple(draft.indexes), frozenset(draft.damaged))


def suggest(wrong: str, known: Iterable[str], *, otherwise: str) -> str:
    """Return a remedy: the known name that ``wrong`` resembles, else ``otherwise``."""
    names = {name.lower(): name for name in sorted(known)}
    wrong = wrong.lower()
    near = [name for name in names if wrong in name.split("_")] or difflib.get_close_matches(
        wrong, names, n=1
    )
    return f"did you mean '{names[near[0]]}'?" if near else otherwise


class _Draft:
    """The data, and what is taken out of them until the rest is of the right shape."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        decisions = data.get("decisions")
        self.indexes = list(range(len(decisions))) if isinstance(decisions, list) else []
        self.damaged: set[str] = set()

    def leave_out(self, paths: Iterable[KeyPath]) -> None:
        """Remove the deepest mapping key on each path, or the whole decision where it is a list item."""
        dropped: set[int] = set()
        for path in paths:
            self.damaged.add(str(path[0]))
            if len(path) == 1 and path[0] not in PolicyFile.model_fields:
                self.damaged.update(PolicyFile.model_fields)
            holder, key = self._deepest_key(path)
            if holder is self.data and key == "decisions" and len(path) > 1 and isinstance(path[1], int):
                dropped.add(path[1])
            else:
                holder.pop(key, None)
        for index in sorted(dropped, reverse=True):
            del self.data["decisions"][index]
            del self.indexes[index]

    def _deepest_key(self, path: KeyPath) -> tuple[dict[str, Any], str]:
        holder, key = self.data, str(path[0])
        value: Any = self.data
        for part in path:
            if isinstance(value, dict) and isinstance(part, str) and part in value:
                holder, key = value, part
            elif not (isinstance(value, list) and isinstance(part, int) and part < len(value)):
                break
            value = value[part]
        return holder, key


def _path(problem: ErrorDetails, data: object) -> KeyPath:
    """Return the place of ``problem``, without the parts that name a union's member and no key."""
    path: list[str | int] = []
    for part in problem["loc"]:
        in_list = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if in_list or (isinstance(data, dict) and part in data):
            data = data[part]  # type: ignore[index]  # one of the two kinds above
            path.append(part)
    return (*path, problem["loc"][-1]) if problem["type"] == "missing" else tuple(path)


def _report(document: Document, path: KeyPath, problem: ErrorDetails) -> None:
    kind, value = problem["type"], problem["input"]
    key = str(next((part for part in reversed(path) if isinstance(part, str)), path[-1]))
    if kind == "extra_forbidden":
        known = _known_keys(problem["loc"][:-1])
        remedy = suggest(key, known, otherwise=f"remove it; known here: {', '.join(sorted(known))}")
        document.report.error(
            path, "this key is gone" if key in _REMOVED else "unknown key", _REMOVED.get(key, remedy)
        )
    elif kind == "missing" and isinstance(path[-1], int):
        document.report.error(path[:-1], "the list is too short", f"write at least {path[-1] + 1} entries")
    elif kind == "missing":
        document.report.error(path, "the key is missing", f"write '{key}:' here")
    else:
        expected = _expected(kind, key, problem.get("ctx") or {})
        # Someone may have pasted the key itself; it must not reach a terminal or a log.
        found = "this text" if key == "api_key_env" and isinstance(value, str) else kind_of(value)
        message, remedy = f"{found} cannot stand here", f"write {expected}"
        if kind in ("enum", "literal_error") and isinstance(value, str):
            remedy = suggest(value, re.findall(r"'([^']+)'", expected), otherwise=remedy)
        document.report.error(path, message, remedy)


def _expected(kind: str, key: str, context: dict[str, Any]) -> str:
    if key == "threshold" and kind in ("less_than_equal", "greater_than_equal", "float_type"):
        return "a number from 0 to 1, {cost_ratio, prior}, or {max_miss_rate, calibration}"
    if kind == "string_pattern_mismatch":
        return _PATTERN_WORDS.get(key, "the name of an HTTP header")
    template = _EXPECTED.get(kind, "another value (" + kind.replace("_", " ") + ")")
    return template.format(**context)


def _known_keys(loc: tuple[int | str, ...]) -> set[str]:
    """Return the keys that may occur in the section at ``loc``."""
    models: set[type[pydantic.BaseModel]] = {PolicyFile}
    for part in loc:
        tagged = {model for model in models if model.__name__ == part}
        if tagged:
            models = tagged
        elif isinstance(part, str):
            models = {
                found
                for model in models
                for name, field in model.model_fields.items()
                if part in (name, field.alias)
                for found in _models_in(field.annotation)
            }
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


def _models_in(annotation: object) -> set[type[pydantic.BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return {annotation}
    return {model for part in typing.get_args(annotation) for model in _models_in(part)}

"""YAML text to plain data in which every key still knows its line.

Only the YAML itself is judged here (syntax, doubled keys, keys that are not text); what the keys mean is
for ``schema``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from truthlens.policy.diagnostics import KeyPath, Report

MAX_DEPTH = 64
MAX_NODES = 100_000
_COLLECTION_TAGS = frozenset(("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"))


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a YAML file; ``report`` has the line of every key and the mistakes found so far."""

    data: dict[str, Any] | None
    report: Report


def read_document(text: str, *, file: str) -> Document:
    """The data of ``text``; ``data`` is ``None`` where it is no YAML mapping, and the report says why."""
    lines: dict[KeyPath, int] = {}
    report = Report(file, lines)
    try:
        data = _read(text, lines, report)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        lines[()] = mark.line + 1 if mark else 1
        problem = error.problem or error.context or "syntax error"
        report.error((), f"not valid YAML: {problem}", "mend the syntax (indent with spaces, quote text)")
        return Document(None, report)
    except yaml.reader.ReaderError as error:
        lines[()] = text.count("\n", 0, error.position) + 1
        remedy = "remove that character, or write it as an escape in double quotes"
        report.error((), f"not valid YAML: character U+{int(error.character):04X} is not allowed", remedy)
        return Document(None, report)
    except (RecursionError, _TooBigError):
        limits = f"more than {MAX_DEPTH} levels or {MAX_NODES} values"
        report.error((), f"the file has {limits}", "write it flatter; do not nest aliases in aliases")
        return Document(None, report)
    if data is None:
        report.error((), "the file is empty", "write at least 'hallucination: {enabled: true}'")
    elif not isinstance(data, dict):
        report.error(
            (), f"expected a mapping at the top, found {kind_of(data)}", "start with 'hallucination:'"
        )
    else:
        return Document(data, report)
    return Document(None, report)


def _read(text: str, lines: dict[KeyPath, int], report: Report) -> Any:
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        return None if node is None else _Walk(loader, lines, report).value(node, ())
    finally:
        loader.dispose()


def kind_of(value: object) -> str:
    """What ``value`` is, in the words of someone who writes YAML, with the value where that helps."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"{str(value).lower()} (YAML reads yes, no, on and off so: put quotes around text)"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {value[:40]!r}"
        case dict():
            return "a mapping"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return f"a {type(value).__name__} (put quotes around text)"


class _TooBigError(Exception):
    """The document is deeper or larger than any real policy."""


class _Walk:
    """Builds the data from the nodes, noting the line of every path."""

    def __init__(self, loader: yaml.SafeLoader, lines: dict[KeyPath, int], report: Report) -> None:
        self._loader = loader
        self._lines = lines
        self._report = report
        self._nodes = 0

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self._nodes += 1
        if len(path) > MAX_DEPTH or self._nodes > MAX_NODES:
            raise _TooBigError
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTION_TAGS:
            raise yaml.MarkedYAMLError(
                problem=f"the tag {node.tag} is not allowed", problem_mark=node.start_mark
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            return self._loader.construct_object(node)
        except ValueError as error:  # 2024-13-45 looks like a date to YAML
            problem = "a value looks like a date or number but is none (put quotes around text)"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        self._refuse_doubled_keys(node, path)
        self._loader.flatten_mapping(node)
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node)
            if not isinstance(key, str):
                self._lines[(*path, str(key))] = key_node.start_mark.line + 1
                self._report.error(
                    (*path, str(key)), f"a key must be text, found {kind_of(key)}", "put quotes around it"
                )
                continue
            self._lines[(*path, key)] = key_node.start_mark.line + 1
            data[key] = self.value(value_node, (*path, key))
        return data

    def _refuse_doubled_keys(self, node: yaml.MappingNode, path: KeyPath) -> None:
        first: dict[str, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                continue
            line = key_node.start_mark.line + 1
            if key_node.value in first:
                key_path = (*path, key_node.value)
                self._lines[key_path] = line
                message = f"the key is written twice (first on line {first[key_node.value]})"
                self._report.error(key_path, message, "keep one of the two")
            first.setdefault(key_node.value, line)

"""Parse YAML text into plain data in which every key still knows its line.

Only the YAML itself is checked here (syntax, doubled keys, keys that are not text); what the keys mean is
for ``schema``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from truthlens.yamlfile.diagnostics import KeyPath, Report

MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_BYTES = 1 << 20
"""Reading YAML takes a second or so per MiB; the longest real policies, and every Kubernetes ConfigMap, are smaller."""

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_COLLECTION_TAGS = frozenset((_TAG + "map", _TAG + "seq"))
# What a policy can use; a timestamp is read so that the message about it can say what it is.
_SCALAR_TAGS = frozenset(_TAG + name for name in ("str", "bool", "int", "float", "null", "timestamp"))
_LARGEST_INT = 1 << 63
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a YAML file; ``report`` has the line of every key and the mistakes found so far."""

    data: dict[str, Any] | None
    report: Report


def read_document(text: str, *, file: str) -> Document:
    """Return the data of ``text``; if it is no YAML mapping, ``data`` is ``None`` and the report says why."""
    lines: dict[KeyPath, int] = {}
    report = Report(file, lines)
    if len(text) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES >> 20} MiB"
        report.error((), message, "shorten it; comments count as well")
        return Document(None, report)
    try:
        data = _read(text, lines, report)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        lines[()] = mark.line + 1 if mark else 1
        problem = error.problem or error.context or "syntax error"
        report.error((), f"not valid YAML: {problem}", "fix the syntax (indent with spaces, quote text)")
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
    loader = _Loader(text)
    try:
        node = loader.single_node()
        return None if node is None else _Walk(loader, lines, report).value(node, ())
    finally:
        loader.dispose()


def kind_of(value: object) -> str:
    """Return what ``value`` is, in the words of someone who writes YAML, with the value where that helps."""
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


class _Loader(yaml.SafeLoader):
    """The YAML reader, with bounds that hold while it reads and not only when it has read all."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._composed = 0

    def single_node(self) -> yaml.Node | None:
        """Return the node of the only document.

        Raises:
            yaml.YAMLError: it is none.
        """
        try:
            node: yaml.Node | None = self.get_single_node()
        except (ValueError, OverflowError) as error:
            # "\\UFFFFFFFF": the reader makes a character of whatever number an escape names.
            problem = "an escape names no character"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.get_mark()) from error
        return node

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node as ``SafeLoader`` does, within bounds."""
        self._composed += 1
        if self._depth > MAX_DEPTH or self._composed > MAX_NODES:
            raise _TooBigError
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _Walk:
    """Builds the data from the nodes, noting the line of every path."""

    def __init__(self, loader: _Loader, lines: dict[KeyPath, int], report: Report) -> None:
        self._loader = loader
        self._lines = lines
        self._report = report
        self._nodes = 0

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self._count(len(path))
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTION_TAGS:
            raise _marked(node, f"the tag {node.tag} is not allowed")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _count(self, depth: int) -> None:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise _TooBigError

    def _scalar(self, node: yaml.Node) -> Any:
        if node.tag not in _SCALAR_TAGS:
            raise _marked(node, f"the tag {node.tag} is not allowed")
        if node.tag == _TAG + "str":
            if _SURROGATE.search(node.value):
                raise _marked(node, "an escape names half of a character (write the whole one)")
            return node.value
        if not self._looks_like_its_tag(node):
            raise _marked(node, f"the value is no {node.tag.removeprefix(_TAG)}, as its tag says")
        try:
            value = self._loader.construct_object(node)
        except (ValueError, OverflowError) as error:  # 2024-13-45 looks like a date to YAML
            problem = "a value looks like a date or number but is none (put quotes around text)"
            raise _marked(node, problem) from error
        if isinstance(value, int) and abs(value) >= _LARGEST_INT:
            raise _marked(node, "a number has more digits than any setting takes")
        return value

    def _looks_like_its_tag(self, node: yaml.Node) -> bool:
        """Return whether ``node`` looks like its tag.

        YAML's own constructors fail on ``!!int ''`` and the like.
        """
        found = self._loader.resolve(yaml.ScalarNode, node.value, (True, False))  # type: ignore[no-untyped-call]
        return found == node.tag or (node.tag == _TAG + "float" and found == _TAG + "int")

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        self._refuse_doubled_keys(node, path)
        data: dict[str, Any] = {}
        for key_node, value_node in self._entries(node, len(path)):
            if not isinstance(key_node, yaml.ScalarNode):
                self._lines[(*path, "?")] = key_node.start_mark.line + 1
                self._report.error((*path, "?"), "a key must be text, found a list or mapping", "write text")
                continue
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

    def _entries(self, node: yaml.MappingNode, depth: int) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """Return the keys and values of a mapping: those that it merges (``<<``) first, each once."""
        merged: dict[object, tuple[yaml.Node, yaml.Node]] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                self._merge(value_node, depth + 1, merged)
        own = [entry for entry in node.value if entry[0].tag != _MERGE]
        for key_node, _ in own:
            merged.pop(_key(key_node), None)
        yield from merged.values()
        yield from own

    def _merge(self, node: yaml.Node, depth: int, merged: dict[object, tuple[yaml.Node, yaml.Node]]) -> None:
        """Add the entries of ``node`` to ``merged``; what is there already wins."""
        self._count(depth)
        if isinstance(node, yaml.MappingNode):
            for entry in self._entries(node, depth):
                self._count(depth)
                merged.setdefault(_key(entry[0]), entry)
        elif isinstance(node, yaml.SequenceNode) and all(isinstance(n, yaml.MappingNode) for n in node.value):
            for item in node.value:
                self._merge(item, depth + 1, merged)
        else:
            raise _marked(node, "expected a mapping or list of mappings for merging")

    def _refuse_doubled_keys(self, node: yaml.MappingNode, path: KeyPath) -> None:
        first: dict[str, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == _MERGE:
                continue
            line = key_node.start_mark.line + 1
            if key_node.value in first:
                key_path = (*path, key_node.value)
                self._lines[key_path] = line
                message = f"the key is written twice (first on line {first[key_node.value]})"
                self._report.error(key_path, message, "keep one of the two")
            first.setdefault(key_node.value, line)


def _key(node: yaml.Node) -> object:
    """Return what makes two keys equal.

    Writing out a key that is a collection could take for ever (aliases in aliases).
    """
    return (node.tag, node.value) if isinstance(node, yaml.ScalarNode) else id(node)


def _marked(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)

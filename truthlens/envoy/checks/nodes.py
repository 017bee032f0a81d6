"""Values of an Envoy configuration as protobuf's JSON writes them, each with its place in the file.

What the values are for is not known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from truthlens.yamlfile.diagnostics import KeyPath, Report

_T = TypeVar("_T")

_DURATION = re.compile(r"\d+(\.\d{1,9})?s")
# Envoy drops what carries this tag; here such a key is one that nobody asks for.
_IGNORED = re.compile(r"^(\s*(?:- )?)!ignore ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Setting(Generic[_T]):
    """A value and its place; ``written`` is false if the key is left out and Envoy's default applies."""

    value: _T
    path: KeyPath
    written: bool


def as_yaml(text: str) -> str:
    """Return ``text`` as YAML that PyYAML reads too, with the same lines."""
    if "\t" in text:
        try:
            json.loads(text)
        except ValueError:
            return text
        # In JSON a tab stands only between values.
        return text.replace("\t", " ")
    return _IGNORED.sub(r"\1", text)


@dataclass(frozen=True, slots=True)
class ConfigNode:
    """A value of the file, ``None`` where there is none, and its place."""

    value: Any
    path: KeyPath

    def __getitem__(self, name: str) -> ConfigNode:
        """Return the value under a key, which Envoy accepts in snake_case and in lowerCamelCase."""
        if isinstance(self.value, dict):
            head, *rest = name.split("_")
            for key in (name, head + "".join(part.capitalize() for part in rest)):
                if key in self.value:
                    return ConfigNode(self.value[key], (*self.path, key))
        return ConfigNode(None, (*self.path, name))

    def under(self, *names: str) -> ConfigNode:
        """Return the value under one key after the other."""
        node = self
        for name in names:
            node = node[name]
        return node

    def each(self) -> Iterator[ConfigNode]:
        """Yield the items of a list; nothing if there is no list."""
        if isinstance(self.value, list):
            for index, item in enumerate(self.value):
                yield ConfigNode(item, (*self.path, index))

    @property
    def text(self) -> str:
        """The value, or nothing where it is no text."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def type(self) -> str:
        """The full name of the message that is here as an ``Any``."""
        return self["@type"].text.rpartition("/")[2]

    @property
    def written(self) -> bool:
        """Whether the key is in the file."""
        return self.value is not None


def seconds(report: Report, node: ConfigNode, default: float) -> Setting[float]:
    """Return the duration at ``node``, in protobuf's JSON form: decimal seconds with an ``s``."""
    if node.written and not _DURATION.fullmatch(node.text):
        found = str(node.value)[:40]
        report.error(node.path, f"{found!r} is no duration that Envoy reads", "write seconds, such as 2.5s")
        return Setting(default, node.path, written=False)
    return Setting(float(node.text[:-1]) if node.written else default, node.path, node.written)


def enum(node: ConfigNode, names: tuple[str, ...]) -> Setting[str]:
    """Return the name at ``node``, given as a name or a number; ``names`` starts with that of 0."""
    value = node.value if node.written else 0
    name = names[value] if isinstance(value, int) and 0 <= value < len(names) else str(value)[:40]
    return Setting(name, node.path, node.written)


def flag(node: ConfigNode) -> Setting[bool]:
    """Return the switch at ``node``; off if it is left out."""
    return Setting(node.value is True, node.path, node.written)

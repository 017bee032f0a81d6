"""Reads the prompts that the modes write, as a model that minds their tags would.

Text inside a tag comes back as it was before it was escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from truthlens.prompts.delimiters import unmarked

_TAG = re.compile(r"<(?P<end>/?)truthlens:(?P<name>[a-z_-]+)(?P<attributes>(?:\s+[a-z_-]+=\"[^\"]*\")*)\s*>")
_ATTRIBUTE = re.compile(r"([a-z_-]+)=\"([^\"]*)\"")


@dataclass(frozen=True, slots=True)
class Element:
    """One tagged part: plain ``text``, and ``marks`` (start, end) in it of the elements directly inside."""

    name: str
    attributes: Mapping[str, str]
    text: str
    marks: tuple[tuple[int, int, str], ...] = ()


def prompt_of(body: Mapping[str, object]) -> str:
    """Return the last message of a chat request."""
    messages = body["messages"]
    assert isinstance(messages, list)
    return str(messages[-1]["content"])


def elements(prompt: str) -> list[Element]:
    """Return all tagged parts, in the order in which they end.

    Raises:
        ValueError: the tags do not nest.
    """
    found: list[Element] = []
    # Per open tag: name, attributes, text so far, marks so far.
    stack: list[tuple[str, dict[str, str], list[str], list[tuple[int, int, str]]]] = []
    at = 0
    for match in _TAG.finditer(prompt):
        if stack:
            stack[-1][2].append(unmarked(prompt[at : match.start()]))
        at = match.end()
        if not match["end"]:
            stack.append((match["name"], dict(_ATTRIBUTE.findall(match["attributes"])), [], []))
            continue
        if not stack or stack[-1][0] != match["name"]:
            raise ValueError("the tags of a prompt do not nest")
        name, attributes, parts, marks = stack.pop()
        text = "".join(parts)
        if text.startswith("\n") and text.endswith("\n") and len(text) > 1:
            # Tags on lines of their own: the line breaks are theirs.
            text = text[1:-1]
            marks = [(start - 1, end - 1, inner) for start, end, inner in marks]
        found.append(Element(name, attributes, text, tuple(marks)))
        if stack:
            outer = stack[-1]
            start = sum(map(len, outer[2]))
            outer[2].append(text)
            outer[3].append((start, start + len(text), name))
    if stack:
        raise ValueError("a tag of a prompt is never closed")
    return found


def named(prompt: str, name: str) -> list[Element]:
    """Return the tagged parts called ``name``."""
    return [element for element in elements(prompt) if element.name == name]

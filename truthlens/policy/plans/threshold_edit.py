"""Sets one decision's threshold, or another key, in the text of a policy, leaving every other character as it is.

Works on the places that the YAML reader gives for each node. What an edit comes to is read back and compared
with what it should be; where the two differ (a shared anchor, an unusual layout) nothing is changed and the
error says which line to write by hand.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

import yaml

from truthlens.core.errors import PolicyError
from truthlens.policy.policy import DEFAULT_DECISION
from truthlens.yamlfile.source import read_document

Value = float | str | dict[str, Any]
_KIND = "hallucination"


class EditError(PolicyError):
    """The key cannot be set without touching something else.

    The message has the line to write by hand.
    """


def with_key(text: str, value: Value, *, decision: str, file: str, key: str = "threshold") -> str:
    """Return ``text`` with ``key`` of ``decision`` set to ``value``.

    A key that is there is replaced; otherwise it is added, with the plugin around it where that is
    missing.

    Args:
        text: a policy, without mistakes.
        value: a number, a text, or the mapping of another kind of threshold.
        decision: name of a decision, or ``default`` for the plan of ``hallucination``.
        file: name of the policy, for messages.
        key: of a decision's configuration.

    Raises:
        EditError: there is no such decision, or it cannot be edited without changing more than the key.
    """
    before = read_document(text, file=file).data
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if before is None or not isinstance(root, yaml.MappingNode):
        raise EditError(f"{file}: expected a mapping at the top; fix the file (`truthlens check {file}`)")
    expected = copy.deepcopy(before)
    path, missing = _place(expected, decision, file, key)
    _holder(expected, path)[missing[0]] = _wrapped(missing, value)
    changed = _edit(text, root, path, missing, value)
    if changed is None or read_document(changed, file=file).data != expected:
        where = DEFAULT_DECISION if decision == DEFAULT_DECISION else f"the decision {decision!r}"
        raise EditError(
            f"{file}: the {key} of {where} cannot be set without touching what stands around it (a comment inside"
            f" it, or a part that is shared by an anchor); write by hand: {key}: {_flow(value)}"
        )
    return changed


def _place(data: dict[str, Any], decision: str, file: str, key: str) -> tuple[list[str | int], list[str]]:
    """Return the path of the nearest existing mapping, and the keys below it that must be created."""
    if decision == DEFAULT_DECISION:
        return ([_KIND], [key]) if _KIND in data else ([], [_KIND, key])
    decisions = data.get("decisions") or []
    index = next((i for i, entry in enumerate(decisions) if entry.get("name") == decision), None)
    if index is None:
        names = ", ".join([*(str(entry.get("name")) for entry in decisions), DEFAULT_DECISION])
        raise EditError(f"{file}: there is no decision {decision!r}; known: {names}")
    place: list[str | int] = ["decisions", index]
    plugins = decisions[index].get("plugins")
    if plugins is None:
        return place, ["plugins", key]
    number = next((i for i, plugin in enumerate(plugins) if plugin.get("type") == _KIND), None)
    if number is None:
        return [*place, "plugins"], [key]
    place += ["plugins", number]
    if plugins[number].get("configuration") is None:
        return place, ["configuration", key]
    return [*place, "configuration"], [key]


def _wrapped(missing: Sequence[str], value: Any) -> Any:
    """Return what must be written for ``missing[0]`` so that the key gets to its place."""
    match missing:
        case ["plugins", key]:
            return [{"type": _KIND, "configuration": {key: value}}]
        case [_, key]:
            return {key: value}
        case _:
            return value


def _holder(data: dict[str, Any], path: Sequence[str | int]) -> dict[str, Any]:
    """Return the mapping at ``path``; an unused empty one if something else is there."""
    held: Any = data
    for part in path:
        held = held[part]
    return held if isinstance(held, dict) else {}


def _flow(value: Any) -> str:
    """Return ``value`` as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


def _edit(
    text: str, root: yaml.MappingNode, path: Sequence[str | int], missing: Sequence[str], value: Value
) -> str | None:
    node: yaml.Node = root
    for part in path:
        if isinstance(part, int) and isinstance(node, yaml.SequenceNode):
            node = node.value[part]
        elif isinstance(node, yaml.MappingNode) and (found := _entry(node, str(part))):
            node = found[1]
        else:
            return None
    if not isinstance(node, yaml.MappingNode):
        return None
    entry = _entry(node, missing[0])
    if entry is not None:
        return _replace(text, *entry, _flow(_wrapped(missing, value)))
    return _add(text, node, f"{missing[0]}: {_flow(_wrapped(missing, value))}")


def _entry(node: yaml.MappingNode, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((k, v) for k, v in node.value if isinstance(k, yaml.ScalarNode) and k.value == key), None)


def _replace(text: str, key: yaml.Node, value: yaml.Node, written: str) -> str | None:
    start, end = key.end_mark.index, _end(value)
    between = re.compile(r"\s*:[ \t]*").match(text, start)
    # An alias ends where its anchor stands; a comment inside would be lost.
    if between is None or end < between.end() or re.search(r"(^|\s)#", text[between.end() : end]):
        return None
    head = text[: between.end()]
    if value.start_mark.index != between.end():  # the value began on a line of its own
        head = head.rstrip() + " "
    return f"{head}{written}{text[end:]}"


def _add(text: str, node: yaml.MappingNode, line: str) -> str | None:
    """Insert ``line`` as another key of the mapping, after its last entry on one line or before the first."""
    if node.flow_style:
        if not node.value:
            start = text.find("{", node.start_mark.index)
            return f"{text[: start + 1]}{line}{text[start + 1 :]}"
        end = _end(node.value[-1][1])
        return f"{text[:end]}, {line}{text[end:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = " " * node.value[0][0].start_mark.column
    for key, value in reversed(node.value):
        end = _end(value)
        if value.start_mark.line == key.start_mark.line == value.end_mark.line and end > key.end_mark.index:
            stop = re.compile(r"[^\r\n]*").match(text, end)
            assert stop is not None  # an empty match at least
            return f"{text[: stop.end()]}{newline}{indent}{line}{text[stop.end() :]}"
    first = node.value[0][0].start_mark.index
    return f"{text[:first]}{line}{newline}{indent}{text[first:]}"


def _end(node: yaml.Node) -> int:
    """Return where ``node`` ends; the parser ends a block at the beginning of what follows it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)

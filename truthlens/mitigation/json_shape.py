"""Check whether a program that reads one JSON text can read another: containers, keys and kinds of values.

Values themselves are not compared. The work is in proportion to the texts, and what is nested deeper than 40
levels is not compared.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

_MOST_DEPTH = 40


@dataclass(slots=True)
class Shape:
    """What is at one place of a JSON text, or in all items of a list.

    ``kinds`` are those of plain values. ``objects`` has the shapes of the members by the keys of the object,
    ``items`` that of the items of lists, ``None`` where there was no list.
    """

    kinds: set[str] = field(default_factory=set)
    objects: dict[frozenset[str], dict[str, Shape]] = field(default_factory=dict)
    items: Shape | None = None

    @property
    def is_plain(self) -> bool:
        """Whether neither an object nor a list was seen here."""
        return not self.objects and self.items is None

    def add(self, value: object, depth: int = 0) -> None:
        """See one more value at this place."""
        if depth > _MOST_DEPTH:
            self.kinds.add("null")  # which everything fits
        elif isinstance(value, dict):
            members = self.objects.setdefault(frozenset(value), {})
            for key, member in value.items():
                members.setdefault(key, Shape()).add(member, depth + 1)
        elif isinstance(value, list):
            self.items = self.items or Shape()
            for item in value:
                self.items.add(item, depth + 1)
        else:
            self.kinds.add(_kind(value))

    def admits(self, value: object) -> bool:
        """Return whether ``value`` is like what was seen here.

        An object has the keys of one that was seen, and its values are of the kinds that those had. A list
        may get shorter, and its items are like those that were seen. Null fits everywhere, and everything
        fits where null was: what is not known may become null, and what was not known may become known.
        """
        if value is None or "null" in self.kinds:
            return True
        if isinstance(value, dict):
            members = self.objects.get(frozenset(value))
            return members is not None and all(members[key].admits(value[key]) for key in value)
        if isinstance(value, list):
            items = self.items
            if items is None:
                return False
            return (items.is_plain and not items.kinds) or all(items.admits(item) for item in value)
        return _kind(value) in self.kinds


def shape_of(value: object) -> Shape:
    """Return the shape of one value of a JSON text."""
    shape = Shape()
    shape.add(value)
    return shape


def parsed(text: str) -> object:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is no JSON, or nested too deeply to be read.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "string"

"""Make texts of users and models harmless in a terminal."""

from __future__ import annotations

from datetime import UTC, datetime

# They join letters and emoji, and move nothing.
_JOINERS = "\u200c\u200d"


def harmless(text: str) -> str:
    """Return ``text`` on one line: control characters, escape sequences and marks that turn the direction of text become visible codes."""
    return "".join(each if each.isprintable() or each in _JOINERS else _code(each) for each in text)


def harmless_lines(text: str, *, indent: str = "    | ") -> str:
    """Return ``text`` with its lines, each after ``indent``, so that none can pass for one of this program's."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(indent + harmless(line.replace("\t", "    ")) for line in lines)


def moment(at: float | None) -> str:
    """Return seconds since 1970 as a UTC time to the second, ``-`` for none."""
    return "-" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _code(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()

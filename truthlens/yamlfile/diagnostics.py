"""Collect what is wrong with a policy file: one record per mistake, with file, line, key and remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from truthlens.core.errors import PolicyError
from truthlens.core.net import without_credentials

KeyPath = tuple[str | int, ...]

_LONGEST_KEY = 80


class Severity(StrEnum):
    """Whether a policy with this diagnostic is refused (``error``) or used all the same (``warning``)."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong with a policy file.

    ``line`` counts from 1. ``key`` is the place in the file, such as
    ``decisions[0].plugins[0].configuration.threshold``.
    """

    severity: Severity
    file: str
    line: int
    key: str
    message: str
    remedy: str

    def render(self) -> str:
        """Return ``FILE:LINE: key: what is wrong; remedy``, with ``warning:`` before the key of a warning."""
        mark = "warning: " if self.severity is Severity.WARNING else ""
        text = f"{self.file}:{self.line}: {mark}{self.key}: {self.message}; {self.remedy}"
        return printable(without_credentials(text))


class InvalidPolicyError(PolicyError):
    """A policy file that cannot be used; ``diagnostics`` are all its mistakes, one a line in the message."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(diagnostic.render() for diagnostic in self.diagnostics))


@dataclass(slots=True)
class Report:
    """Collects diagnostics of one file and knows the line of each key."""

    file: str
    lines: Mapping[KeyPath, int]
    found: list[Diagnostic] = field(default_factory=list)

    def error(self, path: KeyPath, message: str, remedy: str) -> None:
        """Record a mistake that makes the file unusable."""
        self.add(Severity.ERROR, path, message, remedy)

    def warn(self, path: KeyPath, message: str, remedy: str) -> None:
        """Record something that the operator should know, though the file is used."""
        self.add(Severity.WARNING, path, message, remedy)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The mistakes, in the order of the file."""
        return self._sorted(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings, in the order of the file."""
        return self._sorted(Severity.WARNING)

    def line(self, path: KeyPath) -> int:
        """Return the line of ``path``, or of its nearest ancestor in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def add(self, severity: Severity, path: KeyPath, message: str, remedy: str) -> None:
        """Take note of what is wrong at ``path``, and of what mends it."""
        self.found.append(
            Diagnostic(severity, self.file, self.line(path), render_path(path), message, remedy)
        )

    def _sorted(self, severity: Severity) -> tuple[Diagnostic, ...]:
        return tuple(sorted((d for d in self.found if d.severity is severity), key=lambda d: d.line))


def printable(text: str) -> str:
    """Return ``text`` on one line for any terminal, log and encoding: other characters are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def render_path(path: KeyPath) -> str:
    """Return ``("decisions", 0, "name")`` as ``decisions[0].name``; the empty path as ``(file)``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if len(part) <= _LONGEST_KEY else f"{part[:_LONGEST_KEY]}…"
            text += f".{shown}" if text else shown
    return text or "(file)"

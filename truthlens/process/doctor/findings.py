"""What was found out about a set-up: one record a check, with what is wrong, why, and the change to make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from truthlens.core.net import without_credentials
from truthlens.yamlfile.diagnostics import Diagnostic, Severity, printable

_HIDDEN = "***"
# Shorter ones stand in too much that is no secret.
_SHORTEST_SECRET = 4
_INDEX = re.compile(r"\[\d+\]")


class CheckLevel(StrEnum):
    """How a check ended; ``unknown``: it could not look."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one check ended.

    ``id`` is stable and starts with the group. ``what`` names the thing and how it was found, ``why`` what
    follows from it, ``change`` the remedy; the last two are empty where nothing is wrong.
    """

    id: str
    severity: CheckLevel
    what: str
    why: str = ""
    change: str = ""

    @property
    def group(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]

    def as_json(self) -> dict[str, str]:
        """Return the members of the JSON output."""
        return {"id": self.id, "group": self.group, **asdict(self), "severity": self.severity.value}


def ok(check: str, what: str) -> CheckResult:
    """Return that nothing is wrong."""
    return CheckResult(check, CheckLevel.OK, what)


def warning(check: str, what: str, why: str, change: str) -> CheckResult:
    """Return what an operator should know, with which answers are checked all the same."""
    return CheckResult(check, CheckLevel.WARNING, what, why, change)


def error(check: str, what: str, why: str, change: str) -> CheckResult:
    """Return what is broken."""
    return CheckResult(check, CheckLevel.ERROR, what, why, change)


def unknown(check: str, what: str, why: str, change: str) -> CheckResult:
    """Return that a check could not look."""
    return CheckResult(check, CheckLevel.UNKNOWN, what, why, change)


def of_diagnostics(group: str, found: Iterable[Diagnostic], *, lines: bool = True) -> list[CheckResult]:
    """Return findings that say the same; the last key of each place ends the id.

    Args:
        group: starts their ids.
        found: what ``check`` would print.
        lines: whether the lines of places mean anything.
    """
    return [_of_diagnostic(group, each, lines=lines) for each in found]


def _of_diagnostic(group: str, found: Diagnostic, *, lines: bool) -> CheckResult:
    name = _INDEX.sub("", found.key).rpartition(".")[2].strip("()") or "file"
    place = f"{found.file}:{found.line}" if lines else found.file
    level = CheckLevel.ERROR if found.severity is Severity.ERROR else CheckLevel.WARNING
    return CheckResult(f"{group}.{name}", level, f"{place}: {found.key}", found.message, found.remedy)


def without_secrets(found: Iterable[CheckResult], secrets: Iterable[str]) -> list[CheckResult]:
    """Return the findings without ``secrets``, and without characters that steer a terminal."""
    hidden = sorted({each for each in secrets if len(each) >= _SHORTEST_SECRET}, key=len, reverse=True)

    def shown(text: str) -> str:
        for secret in hidden:
            text = text.replace(secret, _HIDDEN)
        return printable(without_credentials(text))

    return [
        replace(each, what=shown(each.what), why=shown(each.why), change=shown(each.change)) for each in found
    ]


def exit_status(found: Sequence[CheckResult], *, strict: bool = False) -> int:
    """Return 1 where something is wrong (``strict``: warnings too), else 2 where it could not look, else 0."""
    levels = {each.severity for each in found}
    if CheckLevel.ERROR in levels or (strict and CheckLevel.WARNING in levels):
        return 1
    return 2 if CheckLevel.UNKNOWN in levels else 0

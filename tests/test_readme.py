"""The README's tables against the code."""

from __future__ import annotations

import re
from pathlib import Path

from typer.main import get_command

from truthlens.cli import command_line
from truthlens.core.records.enums import Reason
from truthlens.delivery import HEADER_NAMES

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_every_response_header_is_in_the_table() -> None:
    """In the order in which the code names them is not asked; each once is."""
    listed = re.findall(r"^\| `(X-TruthLens-[A-Za-z-]+)` \|", README, re.MULTILINE)
    assert sorted(name.lower() for name in listed) == sorted(HEADER_NAMES)


def test_every_reason_is_in_the_table() -> None:
    """A client's author must find each value."""
    row = next(line for line in README.splitlines() if line.startswith("| `X-TruthLens-Reason`"))
    assert set(re.findall(r"`([a-z-]+)`", row.split("|")[2])) == {reason.value for reason in Reason}


def test_every_command_is_in_the_table() -> None:
    """And no other."""
    commands = set(get_command(command_line()).commands)  # type: ignore[attr-defined]
    listed = set(re.findall(r"^\| `truthlens ([a-z-]+)", README, re.MULTILINE))
    assert listed == commands

"""Tables in Markdown, for reports, cards and benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NO_VALUE = "–"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = False) -> str:
    """Return a table; with ``right`` all columns but the first are set to the right."""
    lines = [head, ["---", *(["---:" if right else "---"] * (len(head) - 1))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Return ``text`` as it may stand in a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def number(value: float | None, *, digits: int = 3) -> str:
    """Return a figure, or a dash for none."""
    return NO_VALUE if value is None else f"{value:.{digits}f}"


def share(value: float | None) -> str:
    """Return a share in percent, or a dash for none."""
    return NO_VALUE if value is None else f"{value:.1%}"

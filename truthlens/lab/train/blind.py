"""Take the evidence away from labelled answers: what a model ranks without it, no model needs to read for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from truthlens.core.errors import ModelError
from truthlens.lab.data.dataset import Example

Blind = Literal["", "answer", "query"]
"""What a blind model sees: the answer, or the answer and the query; ``""`` for a model that sees everything."""


def blinded(rows: Sequence[Example], blind: Blind) -> list[Example]:
    """Return ``rows`` without their evidence, and without their query too where only the answer is to be seen."""
    if not blind:
        return list(rows)
    return [replace(row, context=(), query=row.query if blind == "query" else "") for row in rows]


def check_sight(trained: str, wanted: str, path: Path) -> None:
    """Refuse to go on from the checkpoint at ``path`` where its training saw something else than is wanted.

    Raises:
        ModelError: it did.
    """
    if trained != wanted:
        seen, asked = (f"--blind {each}" if each else "no --blind" for each in (trained, wanted))
        raise ModelError(
            f"{path} is of a training with {seen}, and this one has {asked}; give another --run, or start over"
            " with --fresh"
        )

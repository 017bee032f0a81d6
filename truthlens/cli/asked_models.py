"""The models that commands ask for detectors that need any, and what asking them came to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import typer

from truthlens.core.records.calls import ModelSpec
from truthlens.core.records.plan import Plan
from truthlens.llm.offline import OfflineModels


def models_of(
    plan: Plan,
    models: Mapping[str, ModelSpec] | None,
    *,
    upstream: str | None,
    replies: Path | None,
    recorded: bool,
) -> OfflineModels | None:
    """Return what asks the ``models`` of a plan; ``None`` where none of its detectors asks any.

    Raises:
        RecordingError: the file of replies cannot be used.
    """
    if recorded and replies is None:
        raise typer.BadParameter("--recorded needs --replies FILE")
    if not plan.asking:
        return None
    return OfflineModels(
        models or {}, environ=os.environ, upstream=upstream, replies=replies, network=not recorded
    )


def calls_line(summary: Mapping[str, object]) -> str:
    """Return one line on the calls that were made."""
    cost = summary["cost_usd_per_1000_answers"]
    money = "models without a price" if cost is None else f"{cost} USD for 1,000 answers"
    return (
        f"models: {summary['calls']} calls ({summary['calls_per_1000_answers']} for 1,000 answers; recorded replies count),"
        f" {summary['prompt_tokens']} + {summary['completion_tokens']} tokens, {money}"
    )

"""From a mode's name to the mode, and whether there is anything for it to do.

Not here: what a mode does, and where its tools come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.core.records.enums import Mode
from truthlens.core.records.mitigation_result import Correction
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.mitigation.interfaces import Task, Tools
from truthlens.mitigation.premium.panel import premium
from truthlens.mitigation.questions import Opinion
from truthlens.mitigation.standard.loop import standard


def needs_correction(verdict: Verdict, mode: Mode, plan: Plan) -> bool:
    """Return whether a mode has work: the answer was scored, and is flagged or others were asked anyway."""
    if verdict.score is None or mode is Mode.LIGHTWEIGHT:
        return False
    return verdict.flagged or (mode is Mode.PREMIUM and plan.asks_first)


async def correct(task: Task, tools: Tools, *, mode: Mode, opinions: Sequence[Opinion]) -> Correction:
    """Return the best answer that ``mode`` finds, never one that scores worse than the first.

    Raises:
        ValueError: ``mode`` does not work on answers.
    """
    match mode:
        case Mode.STANDARD:
            return await standard(task, tools)
        case Mode.PREMIUM:
            return await premium(task, tools, opinions)
    raise ValueError(f"mode {mode} does not work on answers")

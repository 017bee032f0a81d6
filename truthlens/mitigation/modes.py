"""Resolve a mode's name to the mode: which one runs for an answer, and whether one runs at all.

Not here: what a mode does, and where its tools come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.core.mitigation_result import Mended
from truthlens.core.plan import Plan
from truthlens.core.records import Mode, Verdict
from truthlens.mitigation.interfaces import Task, Tools
from truthlens.mitigation.premium.opinions import Opinion
from truthlens.mitigation.premium.panel import premium
from truthlens.mitigation.standard.loop import standard

_CALLING = frozenset({Mode.STANDARD, Mode.PREMIUM, Mode.AUTO})


def calls_models(plan: Plan) -> bool:
    """Return whether ``plan`` may ask a model, so that the request must be kept and more time requested."""
    return plan.enabled and plan.mode in _CALLING


def asks_first(plan: Plan) -> bool:
    """Return whether other models are asked during detection, before the verdict is known."""
    premium = plan.premium
    return plan.mode is Mode.PREMIUM and premium.side_by_side and bool(premium.verification_models)


def mode_to_run(plan: Plan) -> Mode:
    """Return the mode that runs the plan; the bandit resolves ``auto`` beforehand.

    Premium without a second model is the standard loop, and says so.
    """
    if plan.mode is Mode.PREMIUM and not plan.premium.verification_models:
        return Mode.STANDARD
    return plan.mode if plan.mode in _CALLING else Mode.LIGHTWEIGHT


def needs_mending(verdict: Verdict, mode: Mode, plan: Plan) -> bool:
    """Return whether a mode has work: the answer was scored, and is flagged or others were asked anyway."""
    if verdict.score is None or mode is Mode.LIGHTWEIGHT:
        return False
    return verdict.flagged or (mode is Mode.PREMIUM and asks_first(plan))


async def mend(task: Task, tools: Tools, *, mode: Mode, opinions: Sequence[Opinion]) -> Mended:
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

"""From a mode's name to the mode: which one runs for an answer, and whether one runs at all.

Not here: what a mode does, and where its tools come from.
"""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.core.enums import Mode
from truthlens.core.mitigation_result import Mended
from truthlens.core.plan import Plan
from truthlens.core.verdict import Verdict
from truthlens.mitigation.interfaces import Task, Tools
from truthlens.mitigation.premium.opinions import Opinion
from truthlens.mitigation.premium.panel import premium
from truthlens.mitigation.standard.loop import standard

_CALLING = frozenset({Mode.STANDARD, Mode.PREMIUM, Mode.AUTO})


def calls_models(plan: Plan) -> bool:
    """Whether anything under ``plan`` may ask a model, so that the request has to be kept and more time asked for."""
    return plan.enabled and plan.mode in _CALLING


def asks_first(plan: Plan) -> bool:
    """Whether other models are asked side by side with detection, before it is known whether the answer is flagged."""
    premium = plan.premium
    return plan.mode is Mode.PREMIUM and premium.side_by_side and bool(premium.verification_models)


def mode_to_run(plan: Plan) -> Mode:
    """The mode that carries the plan out; ``auto`` is resolved by the bandit before.

    Premium without a second model is the standard loop, and says so.
    """
    if plan.mode is Mode.PREMIUM and not plan.premium.verification_models:
        return Mode.STANDARD
    return plan.mode if plan.mode in _CALLING else Mode.LIGHTWEIGHT


def needs_mending(verdict: Verdict, mode: Mode, plan: Plan) -> bool:
    """Whether a mode has anything to do for an answer: it was scored, and it is flagged or others were asked anyway."""
    if verdict.score is None or mode is Mode.LIGHTWEIGHT:
        return False
    return verdict.flagged or (mode is Mode.PREMIUM and asks_first(plan))


async def mend(task: Task, tools: Tools, *, mode: Mode, opinions: Sequence[Opinion]) -> Mended:
    """The best answer that ``mode`` finds, never one that scores worse than the first.

    Raises:
        ValueError: ``mode`` does not work on answers.
    """
    match mode:
        case Mode.STANDARD:
            return await standard(task, tools)
        case Mode.PREMIUM:
            return await premium(task, tools, opinions)
    raise ValueError(f"mode {mode} does not work on answers")

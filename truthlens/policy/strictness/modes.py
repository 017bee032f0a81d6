"""What a plan does about flagged answers, as ranks that can be compared."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import Plan

_MODES = (Mode.LIGHTWEIGHT, Mode.STANDARD, Mode.PREMIUM, Mode.AGENTIC)
_WARNS_ONLY, _CORRECTS, _ASKS_OTHERS, _SEARCHES = range(len(_MODES))
CORRECTING: AbstractSet[int] = frozenset({_CORRECTS, _ASKS_OTHERS})
"""The ranks of modes that refine answers by models."""
CALLING: AbstractSet[int] = CORRECTING | {_SEARCHES}
"""The ranks of modes that call models at all."""
SEARCHING: AbstractSet[int] = frozenset({_SEARCHES})
"""The rank of agentic."""
REFINING: AbstractSet[int] = frozenset({_CORRECTS})
"""The rank of standard, which premium without another model is as well."""
ASKING_OTHERS: AbstractSet[int] = frozenset({_ASKS_OTHERS})
"""The rank of premium."""


def rank(plan: Plan) -> float:
    """Return how much is done under a plan's mode; ``auto`` does what its weakest mode does, but not only that."""
    able = ranks(plan)
    return min(able) + (0.5 if len(able) > 1 else 0.0)


def ranks(plan: Plan) -> frozenset[int]:
    """Return the ranks of the modes that may run; ``auto`` chooses premium only where there are other models."""
    if plan.mode is not Mode.AUTO:
        return frozenset({_MODES.index(plan.mode_to_run)})
    modes = (mode for mode in plan.auto.modes if mode is not Mode.PREMIUM or plan.premium.verification_models)
    return frozenset(_MODES.index(mode) for mode in modes if mode in _MODES) or frozenset({_WARNS_ONLY})


def are_compared(plan: Plan, than: Plan, of: AbstractSet[int]) -> bool:
    """Return whether settings of the modes with the ranks ``of`` count: ``than`` surely runs one, and ``plan`` may.

    Where both choose among modes, what they may run counts.
    """
    if rank(plan) == rank(than):
        return bool(ranks(than) & of)
    return ranks(than) <= of and bool(ranks(plan) & of)


def mode_weaknesses(plan: Plan, *, than: Plan) -> list[str]:
    """Return whether less is done about flagged answers, in words."""
    if rank(plan) < rank(than):
        return [f"mode {_mode(plan)} instead of {_mode(than)}"]
    if rank(plan) == rank(than) and not ranks(plan) >= ranks(than):
        return [f"auto.modes {_listed(plan)} instead of {_listed(than)}"]
    return []


def _mode(plan: Plan) -> str:
    return "premium without other models" if plan.premium_alone else plan.mode.value


def _listed(plan: Plan) -> str:
    return ", ".join(_MODES[each] for each in sorted(ranks(plan)))

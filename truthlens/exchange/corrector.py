"""Correct what is unsupported in the answers of one exchange, as far as its plan says so.

What a plan's mode does is the mode runner's: a process whose plans only detect never has one. The order of
the stages, and what becomes of the result, is the pipeline's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from truthlens.api.reasoning import reasoning_to_score
from truthlens.core.records.mitigation_result import Assessment
from truthlens.exchange.assessor import Assessor, Case

if TYPE_CHECKING:
    from truthlens.exchange.mode_runner import ModeRunner

REQUEST_NOT_KEPT = "request-not-kept"


class Corrector:
    """Gives the verdicts on the answers that are delivered.

    Args:
        assessor: gives those on the answers as they came.
        modes: gives what runs the modes of plans that correct answers; asked for such plans alone.
    """

    def __init__(self, assessor: Assessor, modes: Callable[[], ModeRunner]) -> None:
        self._assessor, self._modes = assessor, modes

    async def assess(self, case: Case) -> Assessment:
        """Return the verdicts on the answers, corrected as the plan says, within the case's deadline."""
        asked = reasoning_to_score(case.plan, case.answers)
        if not asked:
            return await self._assess(case)
        async with asyncio.TaskGroup() as group:
            assessing = group.create_task(self._assess(case))
            thinking = group.create_task(self._assessor.detect(case, list(asked.values())))
        found = dict(zip(asked, thinking.result(), strict=True))
        reasoning = tuple(found.get(place) for place in range(len(case.answers)))
        return replace(assessing.result(), reasoning=reasoning)

    async def _assess(self, case: Case) -> Assessment:
        plan = case.plan
        if not plan.calls_models:
            case, verdicts = await self._assessor.first(case)
            return Assessment(verdicts, verdicts, exchange=case.exchange)
        caller = self._assessor.caller(case)
        if plan.corrects and (case.request_body is not None or not plan.keeps_request):
            return await self._modes().assess(case, caller)
        case, first = await self._assessor.first(case)
        verdicts = await self._assessor.asked(case, first, caller)
        lost = plan.corrects and any(verdict.flagged for verdict in verdicts)
        notes = (REQUEST_NOT_KEPT,) if lost else ()
        return Assessment(verdicts, verdicts, calls=caller.calls, notes=notes, exchange=case.exchange)

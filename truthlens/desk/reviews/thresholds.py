"""The page ``/reviews/thresholds``: what reviewers' verdicts propose, and what it would change on the last week's answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from truthlens.core.records.plan import Plan
from truthlens.desk.pages import Pages
from truthlens.desk.proposal import (
    Effect,
    Goal,
    Proposal,
    ThresholdTarget,
    TooFewError,
    effect,
    propose,
)
from truthlens.policy import PolicyHolder
from truthlens.review.records import EntrySummary, Filters, Order, QueueUnavailableError, ReviewError
from truthlens.review.store.queue import SETTLED, ReviewQueue

WEEK_S = 7 * 86_400.0
MOST_ENTRIES = 5_000
"""Entries that a decision's proposal is computed from, the newest; a second of work at most."""
_RESAMPLES = 100
GOALS = {
    Goal.F1: ("most F1 of flags", None, "--best-f1"),
    Goal.MISS_RATE: ("at most this share of the hallucinations passes", 0.1, "--max-miss-rate"),
    Goal.FALSE_ALARMS: ("at most this share of the correct answers is flagged", 0.1, "--max-false-alarms"),
    Goal.COST: ("least cost, where a miss costs so many false alarms", 5.0, "--cost-ratio"),
}
"""What a goal means, the number that is offered for it, and its option of ``truthlens calibrate``."""


@dataclass(frozen=True, slots=True)
class ShownProposal:
    """A decision, and what is proposed for it, or why nothing is."""

    plan: Plan
    found: Proposal | None = None
    week: Effect | None = None
    problem: str = ""


class ThresholdsPage:
    """``GET /reviews/thresholds``; ``queue`` is ``None`` where the queue is switched off."""

    def __init__(
        self,
        pages: Pages,
        policy: PolicyHolder,
        queue: ReviewQueue | None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pages, self._policy, self._queue, self._clock = pages, policy, queue, clock

    async def page(self, request: Request) -> Response:
        """Return the page for the goal that the query names."""
        problem, target, status = "", ThresholdTarget(), 200
        try:
            target = _target(request.query_params.get("goal"), request.query_params.get("value"))
        except ReviewError as error:
            problem, status = str(error), 422
        shown: list[ShownProposal] = []
        if self._queue is None:
            problem = "The review queue is switched off (--review-database none)."
        elif not problem:
            policy = self._policy.current
            try:
                shown = [
                    await run_in_threadpool(self._proposed, self._queue, plan, target)
                    for plan in (*policy.plans, policy.default)
                    if plan.enabled
                ]
            except QueueUnavailableError as error:
                problem, status = f"The queue cannot be read at present: {error}", 503
        return self._pages.page(
            request,
            "review_thresholds.html.j2",
            status=status,
            problem=problem,
            shown=shown,
            target=target,
            goals=GOALS,
        )

    def _proposed(self, queue: ReviewQueue, plan: Plan, target: ThresholdTarget) -> ShownProposal:
        settled = Filters(decision=plan.decision, statuses=SETTLED)
        try:
            found = propose(_newest(queue, settled), target, rate=plan.expected_rate, resamples=_RESAMPLES)
        except TooFewError as error:
            return ShownProposal(plan, problem=str(error))
        week = Filters(decision=plan.decision, since=self._clock() - WEEK_S)
        return ShownProposal(plan, found, effect(_newest(queue, week), found.even.value))


def _newest(queue: ReviewQueue, filters: Filters) -> list[EntrySummary]:
    return list(islice(queue.summaries(filters, order=Order.NEWEST), MOST_ENTRIES))


def _target(goal: str | None, value: str | None) -> ThresholdTarget:
    """Return what the query asks for.

    Raises:
        ReviewError: there is no such goal, or its number is none that it takes.
    """
    try:
        chosen = Goal(goal or Goal.F1)
    except ValueError:
        raise ReviewError(f"there is no such goal; known: {', '.join(Goal)}") from None
    offered = GOALS[chosen][1]
    if offered is None:
        return ThresholdTarget()
    try:
        return ThresholdTarget(chosen, float(value) if value else offered)
    except ValueError:
        raise ReviewError("the number of the goal cannot be read") from None

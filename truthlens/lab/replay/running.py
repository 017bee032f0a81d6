"""Replay captured exchanges through the parts of a process, as they are composed to serve.

Time is not replayed: no deadline passes, nothing is refused for being late, and no cache answers. So the same capture and
policy give the same result on any machine of one kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from truthlens.core.cache_settings import CacheSettings
from truthlens.core.records.enums import Reason
from truthlens.core.records.exchange import Exchange, RequestHead
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.review_settings import ReviewSettings
from truthlens.exchange.ticket import Ticket
from truthlens.lab.replay.comparing import Replayed
from truthlens.lab.replay.kept import Library, Playing, ReplayBandit, ReplayClient, ReplayRetriever, playing
from truthlens.lab.replay.passing import passed
from truthlens.lab.replay.reading import KeptExchange
from truthlens.pipeline import Pipeline
from truthlens.policy import Policy
from truthlens.process.capture.capture import TellingConcluder
from truthlens.process.capture.cleaning import Cleaner
from truthlens.process.capture.lines import outcome_content
from truthlens.process.composition import Seams, composed
from truthlens.process.settings import Settings
from truthlens.review.entry.explanations import explained_outcome
from truthlens.telemetry.metrics import Metrics

_LONG_S = 86_400.0

Show = Callable[[Outcome, Exchange | None], Any]


class ReplayPipeline(Pipeline):
    """The pipeline of a replay: its plans have no deadlines, and what becomes of an exchange is noted on its ``Playing``."""

    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self._concluder = TellingConcluder(self._concluder, _note)
        self._timeless: dict[str, Plan] = {}

    def admit(self, head: RequestHead) -> Ticket:
        """As ``Pipeline.admit``."""
        return self._without_deadlines(super().admit(head))

    async def open(self, ticket: Ticket, body: bytes) -> Ticket:
        """As ``Pipeline.open``; the plan is chosen as it is, for a deadline can make one the weaker one."""
        return self._without_deadlines(await super().open(ticket, body))

    def _without_deadlines(self, ticket: Ticket) -> Ticket:
        plan = self._timeless.get(ticket.plan.decision)
        if plan is None:
            plan = self._timeless[ticket.plan.decision] = timeless(ticket.plan)
        return replace(ticket, plan=plan)


def _note(_ticket: Ticket, outcome: Outcome, exchange: Exchange | None) -> None:
    play = playing.get()
    play.outcome, play.exchange = outcome, exchange


async def replayed(
    exchanges: Sequence[KeptExchange],
    settings: Settings,
    *,
    threshold: float | None = None,
    live: bool = False,
    show: Show | None = None,
    progress: Callable[[], None] = lambda: None,
) -> tuple[list[Replayed], Policy]:
    """Return what the policy of ``settings`` makes of captured exchanges, in their order, and that policy.

    Args:
        exchanges: of a capture.
        settings: whose policy is tried; ``workers`` exchanges are replayed at a time.
        threshold: in the place of those of all its decisions.
        live: ask models and sources whose replies were not kept.
        show: makes what a page shows of an exchange that has changed.
        progress: called after each exchange.

    Raises:
        PolicyError: the policy cannot be used, or needs a model that cannot be used here.
    """
    seams = Seams(
        pipeline=ReplayPipeline,
        client=partial(ReplayClient, live=live),
        retriever=partial(ReplayRetriever, live=live),
        bandit=ReplayBandit,
        draw=lambda: playing.get().draw(),
        policy=partial(_tried, threshold=threshold),
    )
    built = await composed(settings, Metrics(), seams)
    library, turn = Library(exchanges), asyncio.Semaphore(settings.workers)

    async def one(kept: KeptExchange) -> Replayed:
        async with turn:
            row = await _replayed(built.pipeline, Playing(kept, library), show)
            progress()
            return row

    try:
        async with asyncio.TaskGroup() as tasks:
            rows = [tasks.create_task(one(kept)) for kept in exchanges]
        return [row.result() for row in rows], built.holder.current
    finally:
        await built.aclose()


async def _replayed(pipeline: Pipeline, play: Playing, show: Show | None) -> Replayed:
    playing.set(play)
    kept = play.kept
    request = kept.request.head, kept.request.body.encode("utf-8", "surrogatepass")
    back = kept.response
    response = None if back is None else (back.head, back.body.encode("utf-8", "surrogatepass"))
    reason = kept.outcome.get("reason")
    why_not = await passed(
        pipeline, request, response, reason=Reason(reason) if reason in set(Reason) else None
    )
    if play.outcome is None:
        return Replayed(kept, None, why_not or "not-concluded")
    now = outcome_content(play.outcome, Cleaner(ReviewSettings(), ()))
    row = Replayed(kept, now, "", tuple(play.would_ask), tuple(play.would_search))
    if show is not None and (row.changed or row.is_open):
        outcome, exchange = play.outcome, play.exchange
        if exchange is not None:
            outcome = await asyncio.to_thread(explained_outcome, outcome, exchange)
        row = replace(row, shown=show(outcome, exchange))
    return row


def _tried(policy: Policy, *, threshold: float | None) -> Policy:
    """Return the policy without a cache, a queue for reviews and texts in the log."""

    def own(plan: Plan) -> Plan:
        if threshold is None:
            return plan
        return replace(
            plan, threshold=threshold, intended=None if plan.intended is None else own(plan.intended)
        )

    return replace(
        policy,
        default=own(policy.default),
        decisions=tuple(replace(each, plan=own(each.plan)) for each in policy.decisions),
        cache=CacheSettings(enabled=False),
        review=ReviewSettings(enabled=False),
        telemetry=policy.telemetry.model_copy(update={"log_text": False}),
    )


def timeless(plan: Plan) -> Plan:
    """Return the plan without deadlines."""
    return replace(
        plan,
        timeout_s=_LONG_S,
        cascade=plan.cascade.model_copy(update={"timeout_s": _LONG_S}),
        mitigation=plan.mitigation.model_copy(update={"deadline_s": _LONG_S}),
        retrieval=plan.retrieval.model_copy(update={"timeout_s": _LONG_S}),
        stream=plan.stream.model_copy(update={"max_hold_s": _LONG_S}),
        agentic=plan.agentic.model_copy(update={"max_duration_s": _LONG_S}),
        intended=None if plan.intended is None else timeless(plan.intended),
    )

"""Teach mode auto by reviews: the reward of a settled answer, counted once among all processes.

That it was counted stands in the entry's audit trail. It is written before the reward is learned: where a process dies between the two,
one reward is missing, and none counts twice. An entry that is settled again is not rewarded again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import AutoSettings
from truthlens.mitigation.auto.bandit import Bandit
from truthlens.mitigation.auto.reward import review_reward
from truthlens.policy import Policy
from truthlens.review.records import EntrySummary, Event, ReviewStatus
from truthlens.review.store.changes import add_event
from truthlens.review.store.queue import ReviewQueue
from truthlens.review.store.rows import summary_of
from truthlens.review.store.tables import entries, events

REWARDED = "rewarded"
"""The action of the audit trail that says so."""
ACTOR = "truthlens"
WINDOW_S = 7 * 86_400.0
"""Entries settled longer ago are not looked at any more."""
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Learned:
    """A reward (0..1) that is to be learned for a mode of a plan."""

    plan: Plan
    mode: Mode
    reward: float


async def feed(
    queue: ReviewQueue, bandit: Bandit, policy: Policy, *, clock: Callable[[], float] = time.time
) -> int:
    """Learn from the entries that were settled since the last time; return how many rewards were learned.

    Any number of processes may call it, at any time.

    Args:
        queue: whose entries.
        bandit: what learns.
        policy: the one in force; entries of decisions and modes that it does not have are passed over.
        clock: seconds since 1970, UTC, as the queue's.

    Raises:
        QueueUnavailableError: the database does not answer, is read-only or full; nothing of that batch is learned.
    """
    learned = 0
    while claimed := await asyncio.to_thread(_claim, queue, policy, clock()):
        for each in claimed:
            await bandit.learn(each.plan, each.mode, each.reward)
        learned += len(claimed)
    return learned


def reward_of(entry: EntrySummary, settings: AutoSettings) -> float | None:
    """Return the reward, 0..1, of a settled entry at the prices of ``settings``; ``None`` where there is nothing to learn.

    That is so where no mode was chosen for it: another plan than auto, or an answer that was not flagged to begin with.
    """
    if not entry.auto or entry.status.label is None:
        return None
    if entry.mode == Mode.LIGHTWEIGHT and not entry.flagged:
        return None
    return review_reward(
        flagged=entry.flagged,
        upheld=entry.flagged == (entry.status is ReviewStatus.REJECTED),
        latency_s=entry.latency_s,
        tokens=entry.tokens,
        settings=settings,
    )


def _claim(queue: ReviewQueue, policy: Policy, now: float) -> list[Learned]:
    """Note that the next entries are rewarded, and return their rewards."""
    plans = {
        name: plan
        for name in policy.decision_names
        if (plan := policy.plan_named(name)) is not None and plan.mode is Mode.AUTO
    }
    if not plans:
        return []
    c = entries.c
    rewarded = sa.select(events.c.number).where(events.c.action == REWARDED)
    modes = [
        sa.and_(c.decision == name, c.mode.in_([mode.value for mode in plan.auto.modes]))
        for name, plan in plans.items()
    ]
    wanted = (
        sa.select(entries)
        .where(
            c.auto,
            c.settled >= now - WINDOW_S,
            sa.or_(c.mode != Mode.LIGHTWEIGHT.value, c.flagged),
            sa.or_(*modes),
            ~sa.exists().where(events.c.number == c.number, events.c.action == REWARDED),
        )
        .order_by(c.number)
        .limit(_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    found: list[Learned] = []
    with queue.database.writing() as connection:
        rows = connection.execute(wanted).all()
        # Once more, under the locks: PostgreSQL may have chosen before another process, which held them, had committed.
        done = set(connection.scalars(rewarded.where(events.c.number.in_([row.number for row in rows]))))
        for row in rows:
            if row.number in done:
                continue
            plan, mode = plans[row.decision], Mode(row.mode)
            worth = reward_of(summary_of(row), plan.auto)
            if worth is None:  # the conditions above have chosen otherwise; for the type's sake
                continue
            told = f"{mode.value} {worth:.2f}"
            event = Event(now, ACTOR, REWARDED, ReviewStatus(row.status), row.version, told)
            add_event(connection, row.number, event)
            found.append(Learned(plan, mode, worth))
    return found

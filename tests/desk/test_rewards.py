"""Rewards of reviews for mode auto."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.review_entries import change, new_entry, summary
from truthlens.core.records.enums import Mode
from truthlens.core.records.settings import AutoSettings
from truthlens.mitigation.auto.bandit import Bandit
from truthlens.policy import Policy, compile_policy
from truthlens.review.records import QueueUnavailableError, ReviewStatus
from truthlens.review.rewards import REWARDED, WINDOW_S, feed, reward_of
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue
from truthlens.store.arm_store import MemoryArms

APPROVED, REJECTED, PENDING = ReviewStatus.APPROVED, ReviewStatus.REJECTED, ReviewStatus.PENDING


def policy(mode: Mode = Mode.AUTO) -> Policy:
    found = compile_policy("hallucination: {}\n", file="p.yaml")
    return replace(found, default=replace(found.default, mode=mode))


def auto(entry_id: str, **values: Any) -> Any:
    return new_entry(entry_id, **{"auto": True, "mode": "standard", **values})


class Listening(MemoryArms):
    """Remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, Mode, float]] = []

    async def add(self, decision: str, mode: Mode, reward: float, **rest: Any) -> None:
        self.told.append((decision, mode, reward))
        await super().add(decision, mode, reward, **rest)


@pytest.mark.parametrize(
    ("values", "status", "wanted"),
    [
        ({}, REJECTED, 0.2),
        ({}, APPROVED, 1.0),
        ({"score": 0.1}, REJECTED, 0.0),
        ({"score": 0.1}, APPROVED, 1.0),
        ({"latency_s": 10.0, "tokens": 10_000}, APPROVED, 0.6),
        ({"mode": "lightweight"}, REJECTED, 0.2),
        ({"mode": "lightweight", "score": 0.1}, APPROVED, None),
        ({"auto": False}, APPROVED, None),
        ({}, PENDING, None),
    ],
)
def test_the_verdict_makes_the_reward(
    values: dict[str, Any], status: ReviewStatus, wanted: float | None
) -> None:
    """A hallucination with a warning is worth the warning; where no mode was chosen, there is nothing to learn."""
    settings = AutoSettings(latency_weight=0.2, token_weight=0.2)
    found = reward_of(summary(1, **{"auto": True, "mode": "standard", "status": status, **values}), settings)
    assert found == (None if wanted is None else pytest.approx(wanted))


async def test_a_settled_entry_is_learned_once(queue: ReviewQueue) -> None:
    """Also after an undo and another verdict; the trail says when."""
    queue.add([auto("a"), auto("b", mode="premium"), auto("c"), auto("unflagged", mode="lightweight", score=0.1),
               new_entry("other"), auto("elsewhere", decision="gone"), auto("agentic", mode="agentic")])  # fmt: skip
    for each in ("a", "b", "unflagged", "other", "elsewhere", "agentic"):
        queue.change(change(each, APPROVED), actor="ann")
    arms = Listening()
    bandit = Bandit(arms)
    assert await feed(queue, bandit, policy()) == 2
    assert arms.told == [("default", Mode.STANDARD, 1.0), ("default", Mode.PREMIUM, 1.0)]
    assert await feed(queue, bandit, policy()) == 0
    queue.change(change("a", PENDING, 2), actor="ann")
    assert await feed(queue, bandit, policy()) == 0
    queue.change(change("a", REJECTED, 3), actor="ann")
    assert await feed(queue, bandit, policy()) == 0
    assert len(arms.told) == 2
    trail = queue.get("a").events
    assert [each.action for each in trail] == ["approved", REWARDED, "put back", "rejected"]
    assert (trail[1].status, trail[1].version, trail[1].note) == (APPROVED, 2, "standard 1.00")
    assert queue.get("b").summary.version == 2


async def test_reviews_move_the_arm(queue: ReviewQueue) -> None:
    """What was learned is what a mode's own result would teach."""
    queue.add([auto(f"e{n}") for n in range(30)])
    queue.change_many([change(f"e{n}", REJECTED) for n in range(30)], actor="ann")
    plan = policy().default
    bandit = Bandit(MemoryArms())
    await bandit.choose(plan)
    before = bandit.snapshot()[plan.decision][Mode.STANDARD].mean
    assert await feed(queue, bandit, policy()) == 30
    assert bandit.snapshot()[plan.decision][Mode.STANDARD].mean < before - 0.1


async def test_plans_without_auto_learn_nothing(queue: ReviewQueue) -> None:
    """Their entries wait: the policy may be changed back."""
    queue.add([auto("a")])
    queue.change(change("a", APPROVED), actor="ann")
    arms = Listening()
    assert await feed(queue, Bandit(arms), policy(Mode.STANDARD)) == 0
    assert await feed(queue, Bandit(arms), policy()) == 1


async def test_old_reviews_are_passed_over(database: ReviewDatabase) -> None:
    """Those that were settled before the window."""
    now = 1_800_000_000.0
    queue = ReviewQueue(database, clock=lambda: now - WINDOW_S - 1.0)
    queue.add([auto("old"), auto("new")])
    queue.change(change("old", APPROVED), actor="ann")
    ReviewQueue(database, clock=lambda: now - WINDOW_S + 1.0).change(change("new", APPROVED), actor="ann")
    assert await feed(queue, Bandit(Listening()), policy(), clock=lambda: now) == 1
    assert queue.get("old").events[-1].action == "approved"


def test_several_feeders_count_each_review_once(url: str, queue: ReviewQueue) -> None:
    """As several processes of a fleet have them, with connections of their own."""
    names = [f"e{n}" for n in range(450)]
    queue.add([auto(each) for each in names])
    queue.change_many([change(each, APPROVED) for each in names], actor="ann")

    def run(_: int) -> int:
        database = ReviewDatabase(checked_url(url))
        arms = Listening()
        learned = 0
        for _ in range(4):
            learned += asyncio.run(feed(ReviewQueue(database), Bandit(arms), policy()))
        database.dispose()
        assert learned == len(arms.told)
        return learned

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(run, range(4))) == len(names)
    for each in names[::50]:
        assert [event.action for event in queue.get(each).events] == ["approved", REWARDED]


async def test_nothing_is_learned_without_the_database() -> None:
    """The error is the caller's to report."""
    database = ReviewDatabase(checked_url("sqlite:////nowhere/none.db"))
    arms = Listening()
    with pytest.raises(QueueUnavailableError):
        await feed(ReviewQueue(database), Bandit(arms), policy())
    assert arms.told == []

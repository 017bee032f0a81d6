"""What mode auto has learned, in memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Mode
from truthlens.store.arm_store import MOST_REWARDS, Counts, MemoryArms

HOUR = 3600.0


def test_counts_halve_every_half_life_and_never_grow() -> None:
    counts = Counts(8.0, 4.0, at=100.0)
    assert counts.decayed(100.0 + 2 * HOUR, HOUR) == Counts(2.0, 1.0, at=100.0 + 2 * HOUR)
    assert counts.decayed(50.0, HOUR) == counts


def test_counts_that_nobody_added_to_for_very_long_fade_to_nothing() -> None:
    assert Counts(8.0, 4.0, at=0.0).decayed(1e12, HOUR) == Counts(0.0, 0.0, at=1e12)


def test_a_late_reward_weighs_what_it_would_weigh_by_now() -> None:
    counts = Counts(1.0, 1.0, at=2 * HOUR).plus(1.0, at=HOUR, half_life_s=HOUR)
    assert counts == Counts(1.5, 1.0, at=2 * HOUR)


@given(
    rewards=st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1e5)), min_size=1, max_size=20),
    order=st.randoms(use_true_random=False),
)
def test_the_order_in_which_a_few_rewards_are_added_does_not_matter(
    rewards: list[tuple[float, float]], order: object
) -> None:
    found = []
    for _ in range(2):
        counts = Counts()
        for reward, at in rewards:
            counts = counts.plus(reward, at=at, half_life_s=HOUR)
        found.append((counts.successes, counts.failures, counts.at))
        order.shuffle(rewards)  # type: ignore[attr-defined]
    assert found[0] == pytest.approx(found[1])


def test_counts_add_up_to_no_more_than_their_bound_and_keep_their_proportion() -> None:
    counts = Counts()
    for _ in range(500):
        counts = counts.plus(0.75, at=1.0, half_life_s=HOUR)
    assert (counts.successes, counts.failures) == pytest.approx((0.75 * MOST_REWARDS, 0.25 * MOST_REWARDS))
    after = counts.plus(0.0, at=1.0, half_life_s=HOUR)
    assert after.failures > counts.failures
    assert after.successes < counts.successes


async def test_memory_keeps_decisions_and_modes_apart() -> None:
    store = MemoryArms()
    await store.add("a", Mode.STANDARD, 1.0, at=1.0, half_life_s=HOUR)
    await store.add("a", Mode.PREMIUM, 0.25, at=1.0, half_life_s=HOUR)
    await store.add("b", Mode.STANDARD, 0.0, at=1.0, half_life_s=HOUR)
    assert await store.counts("a") == {
        Mode.STANDARD: Counts(1.0, 0.0, 1.0),
        Mode.PREMIUM: Counts(0.25, 0.75, 1.0),
    }
    assert await store.counts("b") == {Mode.STANDARD: Counts(0.0, 1.0, 1.0)}
    assert await store.counts("c") == {}


async def test_memory_forgets_the_decision_that_was_unused_for_longest() -> None:
    store = MemoryArms(most_decisions=2)
    for decision in ("a", "b", "a", "c"):
        await store.add(decision, Mode.STANDARD, 1.0, at=1.0, half_life_s=HOUR)
    assert [bool(store.known(decision)) for decision in ("a", "b", "c")] == [True, False, True]


async def test_what_was_handed_out_does_not_change_with_later_rewards() -> None:
    store = MemoryArms()
    await store.add("a", Mode.STANDARD, 1.0, at=1.0, half_life_s=HOUR)
    before = store.known("a")
    await store.add("a", Mode.STANDARD, 1.0, at=1.0, half_life_s=HOUR)
    assert before[Mode.STANDARD].successes == 1.0

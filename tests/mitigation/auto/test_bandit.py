"""Thompson sampling over the modes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Mode
from truthlens.core.records.plan import Plan
from truthlens.core.records.settings import AutoSettings, PremiumSettings
from truthlens.mitigation.auto.bandit import (
    PRIOR_STRENGTH,
    Arm,
    Bandit,
    choose,
    feasible_modes,
    posterior,
    prior,
)
from truthlens.store.arm_store import Counts, MemoryArms

DAY = 86400.0
PANEL = PremiumSettings(verification_models=("second",))
PLAN = Plan(decision="medical", mode=Mode.AUTO, premium=PANEL)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def play(
    bandit: Bandit, clock: Clock, worth: Mapping[Mode, float], *, rounds: int, apart_s: float, seed: int = 5
) -> list[Mode]:
    """The modes chosen over some exchanges, each mode's rewards being 1 with its probability and else 0.1."""
    dice = random.Random(seed)
    chosen = []
    for _ in range(rounds):
        clock.now += apart_s
        mode = await bandit.choose(PLAN)
        await bandit.learn(PLAN, mode, 1.0 if dice.random() < worth[mode] else 0.1)
        chosen.append(mode)
    return chosen


@pytest.mark.parametrize("best", AutoSettings().modes)
async def test_the_best_mode_is_found_whatever_the_priors_say(best: Mode) -> None:
    clock = Clock()
    bandit = Bandit(MemoryArms(), clock=clock, rng=random.Random(11))
    worth = {mode: 0.8 if mode is best else 0.4 for mode in AutoSettings().modes}
    chosen = await play(bandit, clock, worth, rounds=1500, apart_s=60.0)
    assert Counter(chosen[-300:])[best] > 0.9 * 300


async def test_when_the_best_mode_changes_the_bandit_follows() -> None:
    clock = Clock()
    bandit = Bandit(MemoryArms(), clock=clock, rng=random.Random(12))
    before = {Mode.LIGHTWEIGHT: 0.1, Mode.STANDARD: 0.9, Mode.PREMIUM: 0.4}
    after = {Mode.LIGHTWEIGHT: 0.1, Mode.STANDARD: 0.2, Mode.PREMIUM: 0.8}
    await play(bandit, clock, before, rounds=1500, apart_s=600.0)
    chosen = await play(bandit, clock, after, rounds=1500, apart_s=600.0, seed=6)
    assert Counter(chosen[-300:])[Mode.PREMIUM] > 0.8 * 300


async def test_when_the_best_mode_breaks_under_heavy_traffic_it_is_left_within_some_hundred_answers() -> None:
    clock = Clock()
    bandit = Bandit(MemoryArms(), clock=clock, rng=random.Random(13))
    before = {Mode.LIGHTWEIGHT: 0.1, Mode.STANDARD: 0.5, Mode.PREMIUM: 0.9}
    await play(bandit, clock, before, rounds=5000, apart_s=0.1)
    chosen = await play(bandit, clock, before | {Mode.PREMIUM: 0.0}, rounds=600, apart_s=0.1, seed=6)
    assert Counter(chosen[-200:])[Mode.STANDARD] > 0.8 * 200


async def test_an_arm_drifts_back_to_its_prior_by_half_every_half_life() -> None:
    clock = Clock()
    plan = Plan(decision="medical", auto=AutoSettings(half_life_s=DAY), premium=PANEL)
    bandit = Bandit(MemoryArms(), clock=clock)
    for _ in range(40):
        await bandit.learn(plan, Mode.STANDARD, 0.75)
    before = prior(Mode.STANDARD, plan.auto)
    for halvings in range(4):
        arm = bandit.snapshot()["medical"][Mode.STANDARD]
        assert arm.alpha == pytest.approx(before.alpha + 30.0 / 2**halvings)
        assert arm.beta == pytest.approx(before.beta + 10.0 / 2**halvings)
        clock.now += DAY


async def test_decisions_learn_apart_from_each_other() -> None:
    bandit = Bandit(MemoryArms(), clock=Clock())
    other = Plan(decision="legal", mode=Mode.AUTO, premium=PANEL)
    await bandit.choose(other)
    await bandit.learn(PLAN, Mode.STANDARD, 1.0)
    arms = bandit.snapshot()
    assert arms["legal"][Mode.STANDARD].mean == prior(Mode.STANDARD, other.auto).mean
    assert arms["medical"][Mode.STANDARD].mean > arms["legal"][Mode.STANDARD].mean


async def test_a_reward_counts_as_parts_of_a_success_and_of_a_failure() -> None:
    bandit = Bandit(MemoryArms(), clock=Clock())
    await bandit.learn(PLAN, Mode.PREMIUM, 0.3)
    before, arm = prior(Mode.PREMIUM, PLAN.auto), bandit.snapshot()["medical"][Mode.PREMIUM]
    assert (arm.alpha, arm.beta) == pytest.approx((before.alpha + 0.3, before.beta + 0.7))


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
async def test_a_reward_outside_its_range_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="expected 0 to 1"):
        await Bandit(MemoryArms()).learn(PLAN, Mode.STANDARD, wrong)


async def test_premium_is_never_chosen_without_a_verification_model() -> None:
    plan = Plan(decision="medical", mode=Mode.AUTO)
    assert feasible_modes(plan) == (Mode.LIGHTWEIGHT, Mode.STANDARD)
    assert feasible_modes(PLAN) == AutoSettings().modes
    bandit = Bandit(MemoryArms(), rng=random.Random(3))
    assert {await bandit.choose(plan) for _ in range(300)} == {Mode.LIGHTWEIGHT, Mode.STANDARD}


async def test_only_modes_that_are_both_in_the_plan_and_feasible_are_chosen() -> None:
    plan = Plan(decision="medical", auto=AutoSettings(modes=(Mode.STANDARD, Mode.PREMIUM)))
    bandit = Bandit(MemoryArms(), rng=random.Random(3))
    assert {await bandit.choose(plan) for _ in range(50)} == {Mode.STANDARD}
    with pytest.raises(ValueError, match="no feasible mode"):
        await bandit.choose(Plan(decision="medical", auto=AutoSettings(modes=(Mode.PREMIUM,))))


async def test_the_snapshot_has_the_arms_of_the_plan_for_the_decisions_of_the_policy() -> None:
    bandit = Bandit(MemoryArms())
    assert bandit.snapshot() == {}
    for name in ("medical", "legal"):
        await bandit.choose(Plan(decision=name, premium=PANEL))
    assert {name: tuple(arms) for name, arms in bandit.snapshot().items()} == {
        "medical": AutoSettings().modes,
        "legal": AutoSettings().modes,
    }
    bandit.keep(["legal"])
    assert tuple(bandit.snapshot()) == ("legal",)


def test_the_priors_follow_the_mode_table_with_the_weight_of_ten_rewards() -> None:
    priors = [prior(mode, AutoSettings()) for mode in (Mode.LIGHTWEIGHT, Mode.STANDARD, Mode.PREMIUM)]
    assert [arm.alpha + arm.beta for arm in priors] == pytest.approx([PRIOR_STRENGTH] * 3)
    means = [arm.mean for arm in priors]
    assert means == sorted(means)
    assert means[1] < means[2] - 0.05


def test_a_mode_outside_the_table_starts_uniform() -> None:
    assert prior(Mode.AGENTIC, AutoSettings()) == Arm(1.0, 1.0)


@given(
    latency=st.floats(0.0, 10.0),
    tokens=st.floats(0.0, 10.0),
    successes=st.floats(0.0, 1e9),
    failures=st.floats(0.0, 1e9),
    age=st.floats(-1e6, 1e12),
)
def test_at_any_price_and_after_anything_learned_an_arm_can_be_drawn_from(
    latency: float, tokens: float, successes: float, failures: float, age: float
) -> None:
    settings = AutoSettings(latency_weight=latency, token_weight=tokens)
    learned = Counts(successes, failures, 1e6)
    arms = {mode: posterior(mode, settings, learned, now=1e6 + age) for mode in Mode}
    assert all(arm.alpha > 0.0 and arm.beta > 0.0 and 0.0 < arm.mean < 1.0 for arm in arms.values())
    assert choose(arms, random.Random(0)) in arms


def test_arms_are_drawn_in_proportion_to_the_chance_that_they_are_best() -> None:
    dice = random.Random(8)
    even = Counter(choose({Mode.STANDARD: Arm(3, 3), Mode.PREMIUM: Arm(3, 3)}, dice) for _ in range(2000))
    assert abs(even[Mode.STANDARD] - 1000) < 100
    sure = Counter(choose({Mode.STANDARD: Arm(90, 10), Mode.PREMIUM: Arm(50, 50)}, dice) for _ in range(500))
    assert sure[Mode.STANDARD] == 500

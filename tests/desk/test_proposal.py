"""The proposed threshold, on synthetic entries with a known truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.review_entries import summary
from truthlens.core.thresholds import at_rate
from truthlens.desk.proposal import (
    LEAST_EACH,
    Goal,
    Proposal,
    ThresholdTarget,
    TooFewError,
    effect,
    least_settled,
    propose,
)
from truthlens.lab.calibrate.conformal import control_miss_rate, least_cost
from truthlens.review.records import EntrySummary, ReviewError, ReviewStatus

APPROVED, REJECTED = ReviewStatus.APPROVED, ReviewStatus.REJECTED
SHARE = 0.3
PROTOTYPE = summary(1)
TARGETS = {
    "f1": ThresholdTarget(),
    "cost": ThresholdTarget(Goal.COST, 2.0),
    "missed": ThresholdTarget(Goal.MISS_RATE, 0.1),
    "alarms": ThresholdTarget(Goal.FALSE_ALARMS, 0.1),
}


def entry(number: int, score: float, *, wrong: bool | None, sample: float = 1.0, flagged: bool | None = None) -> EntrySummary:  # fmt: skip
    status = ReviewStatus.PENDING if wrong is None else REJECTED if wrong else APPROVED
    return replace(
        PROTOTYPE,
        number=number,
        id=f"e{number}",
        score=score,
        even_score=score,
        flagged=score >= 0.6 if flagged is None else flagged,
        status=status,
        sample=sample,
    )


def drawn(seed: int, count: int, *, sample: float = 1.0) -> list[EntrySummary]:
    """So many reviewed answers, of which those below 0.6 were queued with probability ``sample``."""
    dice = np.random.default_rng(seed)
    found: list[EntrySummary] = []
    while len(found) < count:
        wrong = bool(dice.random() < SHARE)
        score = float(dice.beta(4, 2) if wrong else dice.beta(2, 4))
        chance = 1.0 if score >= 0.6 else sample
        if dice.random() < chance:
            found.append(entry(len(found), score, wrong=wrong, sample=chance))
    return found


@cache
def population() -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng(99)
    return np.sort(dice.beta(4, 2, 400_000)), np.sort(dice.beta(2, 4, 400_000))


@cache
def truth() -> dict[str, float]:
    """The best thresholds where all answers are known."""
    wrong, right = population()
    grid = np.linspace(0.0, 1.0, 2_001)
    missed = np.searchsorted(wrong, grid) / len(wrong)
    alarms = 1.0 - np.searchsorted(right, grid) / len(right)
    caught = SHARE * (1.0 - missed)
    return {
        "f1": grid[np.argmax(2 * caught / (SHARE + caught + (1 - SHARE) * alarms))],
        "cost": grid[np.argmin(2.0 * SHARE * missed + (1 - SHARE) * alarms)],
        "missed": float(np.quantile(wrong, 0.1)),
        "alarms": float(np.quantile(right, 0.9)),
    }


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("sample", [1.0, 0.3])
def test_the_interval_covers_the_truth(name: str, sample: float) -> None:
    """In about 95 of 100 repetitions; of 60, at least 51."""
    covered = 0
    for seed in range(60):
        even = propose(drawn(seed, 600, sample=sample), TARGETS[name], resamples=200).even
        assert even.low <= even.high
        covered += even.low <= truth()[name] <= even.high
    assert covered >= 51


@pytest.mark.parametrize("sample", [1.0, 0.2])
@pytest.mark.parametrize("name", ["missed", "alarms"])
def test_a_bounded_share_is_bounded_on_average(name: str, sample: float) -> None:
    """Over many repetitions, of answers that were not reviewed."""
    wrong, right = population()
    shares = []
    for seed in range(150):
        found = propose(drawn(1_000 + seed, 250, sample=sample), TARGETS[name], resamples=1)
        below = np.searchsorted(wrong if name == "missed" else right, found.even.value)
        shares.append(below / len(wrong) if name == "missed" else 1.0 - below / len(right))
        assert found.bound is not None
        assert found.bound <= 0.1 + 1e-9
    # What chance adds to the mean of so many.
    assert np.mean(shares) <= 0.1 + 2.0 * np.std(shares) / np.sqrt(len(shares))


rows = st.lists(
    st.tuples(st.floats(0.0, 1.0).map(lambda score: round(score, 2)), st.booleans()), max_size=60
).map(lambda found: found + [(0.5, False)] * 20 + [(0.7, True)] * 20)


@given(rows)
def test_equal_weights_give_what_calibrate_gives(found: list[tuple[float, bool]]) -> None:
    """The same rule for a miss rate, and a threshold of the same cost."""
    entries = [entry(n, score, wrong=wrong, flagged=score >= 0.45) for n, (score, wrong) in enumerate(found)]
    entries.append(entry(10_000, 0.0, wrong=False))
    scores = [score for score, wrong in found if wrong]
    ours = propose(entries, ThresholdTarget(Goal.MISS_RATE, 0.2), resamples=1)
    theirs = control_miss_rate(scores, [str(n) for n in range(len(scores))], max_miss_rate=0.2)
    assert (ours.even.value <= theirs.threshold, ours.bound) == (True, pytest.approx(theirs.bound))
    assert not any(ours.even.value <= score < theirs.threshold for score in scores)
    labels = [each.status is REJECTED for each in entries]
    share = sum(labels) / len(labels)
    least = least_cost(labels, [each.score for each in entries], cost_ratio=3.0, prior=share)
    cost = propose(entries, ThresholdTarget(Goal.COST, 3.0), resamples=1)
    ours_cost = 3.0 * share * cost.miss_rate.value + (1 - share) * cost.false_alarms.value
    assert ours_cost == pytest.approx(least.cost)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.02])
@given(found=rows)
def test_the_threshold_at_another_rate_flags_the_same(rate: float, found: list[tuple[float, bool]]) -> None:
    """Scores are shifted, and so is it; it has few digits where that is enough."""
    entries = [
        replace(entry(n, score, wrong=wrong), even_score=score, score=at_rate(score, rate), threshold=0.3,
                flagged=at_rate(score, rate) >= 0.3)
        for n, (score, wrong) in enumerate([*found, (0.0, False)])
    ]  # fmt: skip
    result = propose(entries, ThresholdTarget(), rate=rate, resamples=1)
    for each in entries:
        assert (each.even_score >= result.even.value) == (each.score >= result.threshold.value)
    assert result.before == (0.3,)


def test_of_flagged_answers_alone_nothing_is_known_below() -> None:
    """The threshold can only rise, and the proposal says so; an unflagged one with a finding is no sample."""
    entries = [each for each in drawn(3, 2_000) if each.flagged]
    entries.append(replace(entry(9_999, 0.2, wrong=True), detectors={"numbers": 0.9}))
    for target in TARGETS.values():
        found = propose(entries, target)
        assert (found.only_flagged, found.floor) == (True, 0.6)
        assert min(found.threshold.low, found.threshold.value, found.even.low) >= 0.6
        assert "only raise" in found.warnings[0]
    everything = propose(entries, ThresholdTarget(Goal.COST, 1_000.0))
    assert (everything.miss_rate.value, everything.threshold.value < 0.61) == (0.0, True)
    assert not propose(drawn(3, 500), ThresholdTarget()).only_flagged


def test_too_few_are_refused_and_the_message_says_how_many() -> None:
    """Of either verdict; a small share needs more."""
    few = [entry(n, n / 40, wrong=n < 19) for n in range(40)]
    with pytest.raises(TooFewError, match=f"19 rejected and 21 approved.*at least {LEAST_EACH} and"):
        propose(few, ThresholdTarget())
    with pytest.raises(TooFewError, match="0 rejected and 0 approved"):
        propose([], ThresholdTarget())
    enough = drawn(1, 300)
    with pytest.raises(TooFewError, match="at least 999 and 20"):
        propose(enough, ThresholdTarget(Goal.MISS_RATE, 0.001))
    assert least_settled(ThresholdTarget(Goal.FALSE_ALARMS, 0.01)) == (LEAST_EACH, 99)
    assert least_settled(ThresholdTarget(Goal.MISS_RATE, 0.5)) == (LEAST_EACH, LEAST_EACH)
    # Weights make few entries fewer: the numbers suffice, their weights do not.
    heavy = [replace(each, sample=0.001) if n == 0 else each for n, each in enumerate(enough)]
    with pytest.raises(TooFewError, match="larger share"):
        propose(heavy, ThresholdTarget(Goal.MISS_RATE, 0.1))


def test_entries_that_are_not_settled_do_not_count() -> None:
    """They change nothing."""
    entries = drawn(4, 200)
    waiting = [entry(1_000 + n, 0.99, wrong=None) for n in range(200)]
    assert propose([*entries, *waiting], ThresholdTarget()) == propose(entries, ThresholdTarget())


def test_mixtures_are_warned_of() -> None:
    """Versions of the policy, models, thresholds, and weights that decide all."""

    def warned(changed: Sequence[EntrySummary]) -> str:
        return "\n".join(propose(changed, ThresholdTarget(), resamples=1).warnings)

    entries = drawn(5, 600)
    assert warned(entries) == ""
    first, rest = entries[0], entries[1:]
    assert "2 versions of the policy" in warned([replace(first, policy_version="other"), *rest])
    assert "2 models" in warned([replace(first, model="other"), *rest])
    assert "2 thresholds" in warned([replace(first, threshold=0.7), *rest])
    assert "more than a tenth" in warned([replace(first, sample=0.001), *rest])
    assert "too narrow" in warned(drawn(5, 80))


def test_the_same_entries_give_the_same_proposal() -> None:
    """In any order, for nothing is left to chance but by a seed."""
    entries = drawn(6, 300, sample=0.3)
    one, two = propose(entries, ThresholdTarget()), propose(entries, ThresholdTarget())
    assert one == two
    other = propose(list(reversed(entries)), ThresholdTarget())
    assert isinstance(other, Proposal)
    assert (other.even.value, other.precision.value) == pytest.approx((one.even.value, one.precision.value))


@pytest.mark.parametrize(
    ("goal", "value"),
    [(Goal.F1, 0.5), (Goal.MISS_RATE, None), (Goal.MISS_RATE, 0.0), (Goal.FALSE_ALARMS, 1.0), (Goal.COST, 0.0),
     (Goal.COST, float("inf")), (Goal.COST, float("nan"))],
)  # fmt: skip
def test_a_target_out_of_range_is_refused(goal: Goal, value: float | None) -> None:
    with pytest.raises(ReviewError):
        ThresholdTarget(goal, value)


def test_what_a_threshold_changes_is_counted_and_estimated() -> None:
    """Sampled entries stand for several answers."""
    entries = [
        entry(1, 0.9, wrong=True),
        entry(2, 0.65, wrong=True),
        entry(3, 0.62, wrong=None),
        entry(4, 0.55, wrong=None, sample=0.1),
    ]
    up, down = effect(entries, 0.7), effect(entries, 0.5)
    assert (up.entries, up.flagged, up.gone, up.gone_rejected, up.new) == (4, 3, 2, 1, 0)
    assert (down.gone, down.new, down.new_weight) == (0, 1, pytest.approx(10.0))


def test_scores_that_are_all_alike_give_a_threshold() -> None:
    """All flagged or none."""
    entries = [entry(n, 1.0, wrong=n % 2 == 0) for n in range(100)] + [entry(200, 0.0, wrong=False)]
    assert propose(entries, ThresholdTarget()).even.value == 1.0
    with pytest.raises(TooFewError):
        propose(entries, ThresholdTarget(Goal.FALSE_ALARMS, 0.1))

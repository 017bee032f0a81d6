"""Propose a threshold from settled entries: their scores and verdicts alone, no texts. Pure numerics.

All is computed on scores at even odds, which do not depend on a policy's ``expected_rate``, and the result is given at that rate. An entry
weighs 1 / ``sample``, for one that was queued with probability 0.05 stands for twenty answers.

Where no unflagged answers were sampled, nothing is known of answers below the threshold: a proposal can then only raise it, and its shares
are of the answers that are flagged now.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from truthlens.core.thresholds import EVEN_ODDS, at_rate
from truthlens.review.records import EntrySummary, ReviewError, ReviewStatus

LEAST_EACH = 20
"""Settled entries of either verdict below which nothing is proposed."""
_FEW = 100  # effective entries of a verdict; with fewer, simulated intervals covered the truth in less than 90 of 100 cases
_RESAMPLES = 500
_AT_ONCE = 2_000_000  # numbers in memory while resampling
_LOW, _HIGH = 2.5, 97.5
_DIGITS = 4

Floats = NDArray[np.float64]


class Goal(StrEnum):
    """What a threshold is to be good at."""

    F1 = "f1"  # most F1 of flags
    MISS_RATE = "max_miss_rate"  # a bounded share of the hallucinations passes
    FALSE_ALARMS = "max_false_alarms"  # a bounded share of the correct answers is flagged
    COST = "cost_ratio"  # least cost


@dataclass(frozen=True, slots=True)
class ThresholdTarget:
    """A goal with its number: the largest share (0..1, both excluded), or the cost of a miss over that of a false alarm (above 0).

    Raises:
        ReviewError: the number is missing or out of range.
    """

    goal: Goal = Goal.F1
    value: float | None = None

    def __post_init__(self) -> None:
        if self.goal is Goal.F1:
            fits = self.value is None
        else:
            most = math.inf if self.goal is Goal.COST else 1.0
            fits = self.value is not None and 0.0 < self.value < most
        if not fits:
            expected = {Goal.F1: "none", Goal.COST: "a number above 0"}.get(
                self.goal, "a share between 0 and 1"
            )
            raise ReviewError(f"the number of {self.goal} is {self.value}; expected {expected}")


class TooFewError(ReviewError):
    """Too few entries are settled; the message says how many are needed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure, and where 95 of 100 repetitions of the same reviewing would put it (bootstrap percentiles)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed threshold, and what it does to the settled entries.

    ``threshold`` is at ``rate``, the plan's expected rate; ``even`` the same at even odds. ``miss_rate`` is the share of hallucinations
    below it, ``false_alarms`` the share of correct answers at or above it, ``precision`` the share of flagged answers that are
    hallucinations. ``bound`` is what is promised of a bounded share, ``None`` for other goals. ``before`` are the thresholds, at
    ``rate``, that the entries were decided with, lowest first. ``only_flagged``: nothing is known below ``floor``, the highest of them.
    """

    target: ThresholdTarget
    threshold: Interval
    even: Interval
    rate: float
    miss_rate: Interval
    false_alarms: Interval
    precision: Interval
    bound: float | None
    rejected: int
    approved: int
    before: tuple[float, ...]
    only_flagged: bool
    floor: float | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a threshold would change on entries: how many would be flagged that are not, and the other way round.

    Numbers in all traffic are estimated by weights: ``new_weight``, ``gone_weight``. ``gone_rejected`` are rejected entries that would
    not be flagged any more.
    """

    entries: int
    flagged: int
    new: int
    new_weight: float
    gone: int
    gone_weight: float
    gone_rejected: int


def propose(
    entries: Iterable[EntrySummary],
    target: ThresholdTarget,
    *,
    rate: float = EVEN_ODDS,
    resamples: int = _RESAMPLES,
    seed: int = 1,
) -> Proposal:
    """Return the threshold that fits ``target`` on the settled ones of ``entries``.

    A bounded share is bounded by conformal risk control (Angelopoulos et al. 2022, arXiv:2208.02814) with weights as in Tibshirani et
    al. 2019 (arXiv:1904.06019): (weight of the mistakes + w) / (weight of all + w), where w is the largest weight of an entry, is at most the
    share. With equal weights that is ``calibrate``'s rule. The other goals are fitted, and promise nothing.

    Args:
        entries: of one decision; others than settled ones are passed over.
        target: what the threshold is for.
        rate: the plan's expected rate, 0..1.
        resamples: for the intervals, at least 1.
        seed: of the resamples, so that the same entries give the same intervals.

    Raises:
        TooFewError: too few of either verdict are settled, or too few for so small a share.
    """
    settled = [each for each in entries if each.status.label is not None]
    known = [(each.even_score, 1.0 / each.sample, each.status is ReviewStatus.REJECTED) for each in settled]
    even, weight, rejected = np.array(known, dtype=np.float64).reshape(-1, 3).T
    wrong = rejected > 0
    _demand(int(wrong.sum()), int((~wrong).sum()), target)
    thresholds = _even_thresholds(settled, rate)
    # An unflagged entry in which a detector found a fact wrong is queued as a flagged one is: it samples nothing.
    only_flagged = not any(not each.flagged and not each.detectors for each in settled)
    floor = thresholds[-1] if only_flagged else None
    candidates = np.append(np.unique(even[even < 1.0]), 1.0)
    if floor is not None:
        above = even >= floor
        candidates = np.unique(np.append(candidates[candidates >= floor], floor))
        even, wrong, weight = even[above], wrong[above], weight[above]
        _demand(int(wrong.sum()), int((~wrong).sum()), target, above=at_rate(floor, rate))
    sums = _Sums(even, wrong, weight, candidates)
    mistakes = sums.mistakes(np.ones((1, len(even))))
    place, bound = _best(mistakes, target, largest=float(weight.max()))
    if place[0] < 0:
        raise TooFewError(
            f"no threshold keeps {target.goal} at {target.value:g} on these entries; settle more, or ask for a larger share"
        )
    spread = _spread(sums, target, int(place[0]), resamples, seed)
    chosen = float(candidates[place[0]])
    below = float(candidates[place[0] - 1]) if place[0] else 0.0
    value = _short(at_rate(below, rate), at_rate(chosen, rate)) if chosen != floor else at_rate(chosen, rate)
    low, high = _percentiles(candidates[spread.places])
    missed, alarms, precision = (
        Interval(float(own[0]), *_percentiles(others))
        for own, others in zip(mistakes.figures(place), spread.figures, strict=True)
    )
    return Proposal(
        target=target,
        threshold=Interval(value, min(value, at_rate(low, rate)), max(value, at_rate(high, rate))),
        even=Interval(chosen, low, high),
        rate=rate,
        miss_rate=missed,
        false_alarms=alarms,
        precision=precision,
        bound=None if bound is None else float(bound[0]),
        rejected=int(wrong.sum()),
        approved=int((~wrong).sum()),
        before=tuple(round(at_rate(each, rate), _DIGITS) for each in thresholds),
        only_flagged=only_flagged,
        floor=None if floor is None else at_rate(floor, rate),
        warnings=tuple(_warnings(settled, only_flagged, thresholds)),
    )


def effect(entries: Iterable[EntrySummary], even: float) -> Effect:
    """Return what the threshold ``even`` (at even odds) would change on ``entries``, whether they are settled or not."""
    count = flagged = new = gone = rejected = 0
    new_weight = gone_weight = 0.0
    for each in entries:
        count += 1
        flagged += each.flagged
        after = each.even_score >= even
        if after and not each.flagged:
            new += 1
            new_weight += 1.0 / each.sample
        elif each.flagged and not after:
            gone += 1
            gone_weight += 1.0 / each.sample
            rejected += each.status is ReviewStatus.REJECTED
    return Effect(count, flagged, new, new_weight, gone, gone_weight, rejected)


def least_settled(target: ThresholdTarget) -> tuple[int, int]:
    """Return how many rejected and how many approved entries are needed, where all weigh the same."""
    least = [LEAST_EACH, LEAST_EACH]
    if target.goal in (Goal.MISS_RATE, Goal.FALSE_ALARMS) and target.value is not None:
        side = 0 if target.goal is Goal.MISS_RATE else 1
        least[side] = max(LEAST_EACH, math.ceil(1.0 / target.value - 1e-9) - 1)
    return least[0], least[1]


def _demand(rejected: int, approved: int, target: ThresholdTarget, *, above: float | None = None) -> None:
    needed = least_settled(target)
    if rejected >= needed[0] and approved >= needed[1]:
        return
    where = "" if above is None else f" at or above the present threshold, {above:.4g},"
    raise TooFewError(
        f"{rejected} rejected and {approved} approved entries{where} are settled; at least {needed[0]} and {needed[1]} are needed"
    )


@dataclass(frozen=True, slots=True)
class _Mistakes:
    """Weights of mistakes by resample and candidate threshold, shape (resamples, candidates); of all, shape (resamples, 1)."""

    missed: Floats
    alarms: Floats
    wrong: Floats
    right: Floats

    def figures(self, places: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        """Return miss rate, false alarm rate and precision at one place of each resample."""
        rows = np.arange(len(places))
        missed, alarms = self.missed[rows, places], self.alarms[rows, places]
        wrong, right = self.wrong[:, 0], self.right[:, 0]
        caught = wrong - missed
        with np.errstate(invalid="ignore", divide="ignore"):
            return (
                np.nan_to_num(missed / wrong),
                np.nan_to_num(alarms / right),
                np.nan_to_num(caught / (caught + alarms)),
            )


class _Sums:
    """Adds up mistakes at every candidate threshold, for any multiplicities of the entries."""

    def __init__(self, even: Floats, wrong: NDArray[np.bool_], weight: Floats, candidates: Floats) -> None:
        order = np.argsort(even, kind="stable")
        self._weight, self._wrong = weight[order], wrong[order]
        self._order = order
        self.size = len(even)
        self.candidates = candidates
        # How many entries, in order, are below each candidate.
        self._below = np.searchsorted(even[order], candidates, side="left")

    def mistakes(self, times: Floats) -> _Mistakes:
        """Return the mistakes where entry i counts ``times[:, i]`` times."""
        mass = times[:, self._order] * self._weight
        wrong, right = (
            np.concatenate([np.zeros((len(mass), 1)), np.cumsum(np.where(chosen, mass, 0.0), axis=1)], axis=1)
            for chosen in (self._wrong, ~self._wrong)
        )
        all_right = right[:, -1:]
        return _Mistakes(wrong[:, self._below], all_right - right[:, self._below], wrong[:, -1:], all_right)


def _best(
    found: _Mistakes, target: ThresholdTarget, *, largest: float
) -> tuple[NDArray[np.intp], Floats | None]:
    """Return the place of the best candidate of each resample, −1 where there is none, and the bound that holds there."""
    count = found.missed.shape[1]
    value = target.value or 0.0
    match target.goal:
        case Goal.MISS_RATE:
            bound = (found.missed + largest) / (found.wrong + largest)
            places = (bound <= value + 1e-12).sum(axis=1) - 1  # it grows with the threshold
        case Goal.FALSE_ALARMS:
            bound = (found.alarms + largest) / (found.right + largest)
            places = count - (bound <= value + 1e-12).sum(axis=1)  # it falls with the threshold
            places = np.where(places == count, -1, places)
        case Goal.F1:
            caught = found.wrong - found.missed
            return _last_best(2.0 * caught / (found.wrong + caught + found.alarms)), None
        case Goal.COST:
            return _last_best(-(value * found.missed + found.alarms)), None
    return places, bound[np.arange(len(places)), places]


def _last_best(worth: Floats) -> NDArray[np.intp]:
    """Return the last place of the highest value of each row: of equal thresholds the highest."""
    best = np.nan_to_num(worth, nan=-1.0)
    # Sums in another order differ in their last digits.
    equal = best >= best.max(axis=1, keepdims=True) - 1e-9 * np.abs(best).max()
    places: NDArray[np.intp] = worth.shape[1] - 1 - np.argmax(equal[:, ::-1], axis=1)
    return places


@dataclass(frozen=True, slots=True)
class _Spread:
    places: NDArray[np.intp]
    figures: tuple[Floats, Floats, Floats]


def _spread(sums: _Sums, target: ThresholdTarget, place: int, resamples: int, seed: int) -> _Spread:
    """Return what resamples of the entries choose, and the figures that the threshold at ``place`` has on them."""
    dice = np.random.default_rng(seed)
    at_once = max(1, _AT_ONCE // (sums.size + len(sums.candidates)))
    places: list[NDArray[np.intp]] = []
    figures: list[tuple[Floats, Floats, Floats]] = []
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        times = dice.multinomial(sums.size, np.full(sums.size, 1.0 / sums.size), size=rows)
        found = sums.mistakes(times.astype(np.float64))
        # Of a bounded share without the correction for few entries: it is the estimate that varies.
        chosen, _ = _best(found, target, largest=0.0)
        places.append(np.where(chosen < 0, len(sums.candidates) - 1, chosen))
        figures.append(found.figures(np.full(rows, place)))
    one, two, three = (np.concatenate(each) for each in zip(*figures, strict=True))
    return _Spread(np.concatenate(places), (one, two, three))


def _percentiles(values: Floats) -> tuple[float, float]:
    low, high = np.percentile(values, [_LOW, _HIGH], method="closest_observation")
    return float(low), float(high)


def _short(below: float, chosen: float) -> float:
    """Return a threshold of few digits that flags what ``chosen`` flags, and not what has the score ``below``."""
    for digits in range(_DIGITS, 17):
        short = float(math.floor(chosen * 10**digits) / 10**digits)
        if below < short:
            return short
    return chosen


def _even_thresholds(settled: Sequence[EntrySummary], rate: float) -> list[float]:
    """Return the thresholds that entries were decided with, at even odds, lowest first.

    An entry's expected rate shows in its two scores, unless they are 0 or 1; where all are, it is taken to be ``rate``.
    """
    found = set()
    for each in settled:
        pair = (each.score, each.even_score)
        if all(0.0 < score < 1.0 for score in pair):
            odds, even = (score / (1.0 - score) for score in pair)
            found.add((each.threshold, 0.5 if odds == even else odds / (odds + even)))
    found = found or {(each.threshold, rate) for each in settled}
    shifted = (at_rate(threshold, EVEN_ODDS, given=given) for threshold, given in found)
    return sorted({round(threshold, _DIGITS + 2) for threshold in shifted})


def _warnings(
    settled: Sequence[EntrySummary], only_flagged: bool, thresholds: Sequence[float]
) -> Iterable[str]:
    if only_flagged:
        yield (
            "only flagged answers were reviewed, so nothing is known below the threshold: this can only raise it, and its shares are of the "
            "answers that are flagged now; a rule of `review` with `flagged: false` and a `sample` gives honest ones"
        )
    policies = {each.policy_version for each in settled}
    if len(policies) > 1:
        yield (
            f"{len(policies)} versions of the policy made these scores; where models or detectors differ between them, leave the older ones out"
        )
    models = {each.model for each in settled}
    if len(models) > 1:
        yield f"{len(models)} models wrote these answers; the threshold is for their mix"
    if len(thresholds) > 1:
        yield f"{len(thresholds)} thresholds were in force when these answers were given"
    weights = [1.0 / each.sample for each in settled]
    for status in (ReviewStatus.REJECTED, ReviewStatus.APPROVED):
        own = [1.0 / each.sample for each in settled if each.status is status]
        number = sum(own) ** 2 / sum(weight * weight for weight in own)
        if number < _FEW:
            yield f"{status} entries are worth {number:.0f} equal ones; below {_FEW} the intervals are likely to be too narrow"
    if max(weights) > 0.1 * sum(weights):
        yield "a single entry stands for more than a tenth of the answers; settle more of the sampled ones"

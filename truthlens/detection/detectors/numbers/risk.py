"""Turn what stands around a value that the evidence does not give into a probability that it is wrong, and that into a score. Pure.

The weights were fitted on 369 hand-written passages with true and false answers (docs/detectors.md gives the figures).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Signs:
    """What speaks for and against an error; shares are 0..1, the rest counts and flags (0 or 1).

    Attributes:
        aligned: share of the claim's words that stand with another value of the same sort.
        aligned_nearest: the same, where that value is in the place of the evidence nearest to the claim, with all its words.
        nearest: share of the claim's words in that nearest place.
        margin: how much better aligned that value is than the next one.
        missing: other values of the sentence that the evidence lacks, up to 3: a sentence that reckons has several.
        values: values of the sentence, up to 5.
        others_there: share of the sentence's other values that stand with that value.
        total, compares, supposes: the sentence sums up, compares, or supposes something.
        sums: the value is a sum or difference of others, though the sentence does not say so.
        small_count, small_span, month_or_day: it is a count or a time span of up to twelve, or a month or a weekday alone.
        percent, date, time, count, share: its kind.
        taken: the answer states that other value as well.
        unknown_words: share of the claim's words that the evidence does not have.
        unsure: it may be no value at all.
        record: the other value stands in a table or a record.
    """

    aligned: float = 0.0
    aligned_nearest: float = 0.0
    nearest: float = 0.0
    margin: float = 0.0
    missing: float = 0.0
    values: float = 0.0
    others_there: float = 0.0
    total: float = 0.0
    compares: float = 0.0
    supposes: float = 0.0
    sums: float = 0.0
    small_count: float = 0.0
    small_span: float = 0.0
    month_or_day: float = 0.0
    percent: float = 0.0
    date: float = 0.0
    time: float = 0.0
    count: float = 0.0
    taken: float = 0.0
    unknown_words: float = 0.0
    unsure: float = 0.0
    share: float = 0.0
    record: float = 0.0


_INTERCEPT = -1.63
_WEIGHTS: Mapping[str, float] = {
    "aligned": 2.27, "aligned_nearest": 1.2, "nearest": -0.37, "margin": 0.47, "missing": -1.01, "values": 0.25,
    "others_there": 0.71, "total": -0.99, "compares": -0.11, "supposes": -0.51, "sums": -0.81, "small_count": -1.03,
    "small_span": -1.11, "month_or_day": -1.09, "percent": 1.07, "date": 1.09, "time": 0.85, "count": -0.62, "taken": -0.95,
    "unknown_words": 0.47, "unsure": -0.18, "share": -0.58, "record": 0.45,
}  # fmt: skip
NAMES = tuple(each.name for each in fields(Signs))

REPORTED = 0.5
"""Probability from which a value is reported as wrong; below it nothing can be told."""
_POINTS = ((0.0, 0.0), (REPORTED, 0.3), (0.72, 0.6), (0.92, 0.9), (1.0, 0.99))
MISPLACED_SCORE, SWAPPED_SCORE = 0.75, 0.9
CITED_SCORE = 0.75
"""Score of the year of a work that the answer cites and no evidence has."""
BARE_SCORE = 0.75
"""Score of a date that is the whole answer, where the evidence has others of its sort and not this one."""
STRICT_SCORE = 0.7
"""Score of every value that stands nowhere, where the policy is strict."""


def probability(signs: Signs) -> float:
    """Return how probable it is that the value is wrong, 0..1."""
    total = _INTERCEPT + sum(weight * float(getattr(signs, name)) for name, weight in _WEIGHTS.items())
    return 1.0 / (1.0 + math.exp(-total))


def score_of(chance: float) -> float:
    """Return the score of a probability: 0.6 where one true answer in two hundred is flagged on the training twins."""
    at = min(bisect_right(_POINTS, (chance, 2.0)), len(_POINTS) - 1)
    (low, first), (high, last) = _POINTS[at - 1], _POINTS[at]
    return round(first + (last - first) * (chance - low) / (high - low), 4)

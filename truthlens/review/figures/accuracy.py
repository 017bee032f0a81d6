"""Compute from settled entries how often the detectors are right; pure functions, no I/O.

Shares of all answers are estimated (``estimates``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from truthlens.review.figures.estimates import Estimate, WeightedShare
from truthlens.review.records import EntrySummary

DAY_S = 86_400


class Group(StrEnum):
    """By what settled entries are told apart."""

    ALL = "all"
    DECISION = "decision"
    DETECTOR = "detector"
    KIND = "kind"


@dataclass(frozen=True, slots=True)
class Tally:
    """How many settled entries are alike.

    ``day`` is when their answers were given, days since 1970, UTC. ``value`` is what they share of a group, ``""`` for all of them.
    ``wrong`` is what the reviewers found: the answer is a hallucination. ``sample`` is the probability, 0..1, of being queued.
    """

    day: int
    value: str
    flagged: bool
    wrong: bool
    sample: float
    count: int


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How right the detectors were.

    ``settled`` entries, of which ``flagged`` were flagged. ``precision``: the share of flagged answers that are wrong. ``accuracy``: the share
    of all answers about which flag and reviewer agree. ``wrong``: the share of answers that are wrong. ``None`` where there are no entries for it.
    """

    settled: int
    flagged: int
    precision: Estimate | None
    accuracy: Estimate | None
    wrong: Estimate | None


def tallies_of(entries: Iterable[EntrySummary], group: Group = Group.ALL) -> list[Tally]:
    """Return the tallies of the settled ones of ``entries``; one that has several values of a group counts for each."""
    found: Counter[tuple[int, str, bool, bool, float]] = Counter()
    for each in entries:
        if each.status.label is None:
            continue
        for value in _values(each, group):
            found[int(each.created // DAY_S), value, each.flagged, each.status.label == 1, each.sample] += 1
    return [Tally(*key, count) for key, count in found.items()]


def accuracy_of(tallies: Iterable[Tally]) -> Accuracy:
    """Return how right the detectors were on all of ``tallies``."""
    kept = list(tallies)
    flagged = [each for each in kept if each.flagged]
    return Accuracy(
        settled=sum(each.count for each in kept),
        flagged=sum(each.count for each in flagged),
        precision=_estimate(flagged, lambda each: each.wrong),
        accuracy=_estimate(kept, lambda each: each.wrong == each.flagged),
        wrong=_estimate(kept, lambda each: each.wrong),
    )


def by_value(tallies: Iterable[Tally]) -> Mapping[str, Accuracy]:
    """Return the figures of each value of a group, those with the most entries first."""
    parts: dict[str, list[Tally]] = {}
    for each in tallies:
        parts.setdefault(each.value, []).append(each)
    figures = {value: accuracy_of(part) for value, part in parts.items()}
    return dict(sorted(figures.items(), key=lambda item: (-item[1].settled, item[0])))


def by_period(tallies: Iterable[Tally], *, days: int, most: int) -> Sequence[tuple[int, Accuracy]]:
    """Return the figures of the last ``most`` periods of ``days`` days that have any, oldest first.

    A period is named by its first day, in days since 1970; weeks begin on Mondays.
    """
    parts: dict[int, list[Tally]] = {}
    for each in tallies:
        # Day 0 was a Thursday.
        start = each.day - (each.day + 3) % 7 if days == 7 else each.day - each.day % days
        parts.setdefault(start, []).append(each)
    return [(start, accuracy_of(parts[start])) for start in sorted(parts)[-most:]]


def _estimate(tallies: Iterable[Tally], hit: Callable[[Tally], bool]) -> Estimate | None:
    share = WeightedShare()
    for each in tallies:
        share.add(hit=hit(each), sample=each.sample, count=each.count)
    return share.estimate()


def _values(entry: EntrySummary, group: Group) -> Iterable[str]:
    match group:
        case Group.ALL:
            return ("",)
        case Group.DECISION:
            return (entry.decision,)
        case Group.DETECTOR:
            return dict.fromkeys(entry.detectors)
        case Group.KIND:
            return dict.fromkeys(entry.kinds)

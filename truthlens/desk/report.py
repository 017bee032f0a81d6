"""Say what the reviews tell of the verdicts: how right flags are, what passes unflagged, and how the work goes.

Pure: of summaries alone.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from truthlens.desk.accuracy import Estimate, Grouping, WeightedShare, values_of
from truthlens.review.records import EntrySummary, ReviewStatus

UNFINISHED = (ReviewStatus.PENDING, ReviewStatus.REVIEWED)
_OUTCOMES = {(True, True): "tp", (True, False): "fp", (False, True): "fn", (False, False): "tn"}
_CLAIMS = ("total_claims", "verified_claims", "unverified_claims")


@dataclass(slots=True)
class Day:
    """One UTC day: answers settled on it, and the claims of the answers that were given on it."""

    approved: int = 0
    rejected: int = 0
    total_claims: int = 0
    unverified_claims: int = 0

    @property
    def unverified_rate(self) -> float | None:
        """Unverified over all claims, 0..1; ``None`` where there are none."""
        return self.unverified_claims / self.total_claims if self.total_claims else None


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """What the entries tell.

    ``precision`` is of flagged answers, the share that reviewers rejected; ``precision_by`` the same by ``decision``, ``detector``
    (that found something) and ``kind``, by name. ``unflagged`` is the share of the settled unflagged answers that are
    hallucinations. ``counts`` are ``tp``, ``fp``, ``fn``, ``tn`` of the settled entries, unweighted, with the sums of their claims;
    ``recall`` is the weighted share of hallucinations that were flagged, ``None`` where no unflagged answer was settled.
    ``days`` are by ISO date, only those on which there was something.
    """

    statuses: Mapping[ReviewStatus, int]
    oldest_pending: float | None
    precision: Estimate | None
    precision_by: Mapping[str, Mapping[str, Estimate]]
    unflagged: Estimate | None
    recall: Estimate | None
    counts: Counter[str]
    days: Mapping[str, Day] = field(default_factory=dict)

    @property
    def backlog(self) -> int:
        """Entries that are not settled."""
        return sum(self.statuses[status] for status in UNFINISHED)


def report(entries: Iterable[EntrySummary]) -> ReviewReport:
    """Return what ``entries`` tell; they are read once."""
    statuses: Counter[ReviewStatus] = Counter()
    counts: Counter[str] = Counter()
    days: defaultdict[str, Day] = defaultdict(Day)
    recall = WeightedShare()
    # Of wrong answers, by whether they were flagged.
    shares: defaultdict[tuple[bool, Grouping], defaultdict[str, WeightedShare]] = defaultdict(
        lambda: defaultdict(WeightedShare)
    )
    oldest = math.inf
    for each in entries:
        statuses[each.status] += 1
        if each.status is ReviewStatus.PENDING:
            oldest = min(oldest, each.created)
        if each.total_claims:
            day = days[_day(each.created)]
            day.total_claims += each.total_claims
            day.unverified_claims += each.unverified_claims
        if each.status.label is None or each.settled is None:
            continue
        wrong = each.status is ReviewStatus.REJECTED
        settled = days[_day(each.settled)]
        settled.rejected += wrong
        settled.approved += not wrong
        counts[_OUTCOMES[each.flagged, wrong]] += 1
        counts.update({name: getattr(each, name) for name in _CLAIMS})
        if wrong:
            recall.add(hit=each.flagged, sample=each.sample)
        for group in Grouping:
            for value in values_of(each, group):
                shares[each.flagged, group][value].add(hit=wrong, sample=each.sample)
    precision, unflagged = (shares[flagged, Grouping.ALL][""] for flagged in (True, False))
    return ReviewReport(
        {status: statuses[status] for status in ReviewStatus},
        None if oldest == math.inf else oldest,
        precision.estimate(),
        {group.value: _estimates(shares[True, group]) for group in Grouping if group is not Grouping.ALL},
        unflagged.estimate(),
        recall.estimate() if unflagged.count else None,
        counts,
        dict(sorted(days.items())),
    )


def _estimates(shares: Mapping[str, WeightedShare]) -> dict[str, Estimate]:
    found = {value: shares[value].estimate() for value in sorted(shares)}
    return {value: share for value, share in found.items() if share is not None}


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()

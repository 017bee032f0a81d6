"""Say what the reviews tell of the verdicts: how right flags are, what passes unflagged, and how the work goes.

Pure: of summaries alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from truthlens.review.figures.estimates import Estimate, WeightedShare
from truthlens.review.records import EntrySummary, ReviewStatus

UNFINISHED = (ReviewStatus.PENDING, ReviewStatus.REVIEWED)


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
class Report:
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


def report(entries: Iterable[EntrySummary]) -> Report:
    """Return what ``entries`` tell; they are read once."""
    statuses: Counter[ReviewStatus] = Counter()
    counts: Counter[str] = Counter()
    days: defaultdict[str, Day] = defaultdict(Day)
    precision, unflagged, recall = WeightedShare(), WeightedShare(), WeightedShare()
    by: dict[str, defaultdict[str, WeightedShare]] = {
        name: defaultdict(WeightedShare) for name in ("decision", "detector", "kind")
    }
    oldest: float | None = None
    for each in entries:
        statuses[each.status] += 1
        if each.status is ReviewStatus.PENDING:
            oldest = each.created if oldest is None else min(oldest, each.created)
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
        counts[("tp" if wrong else "fp") if each.flagged else ("fn" if wrong else "tn")] += 1
        for name in ("total_claims", "verified_claims", "unverified_claims"):
            counts[name] += getattr(each, name)
        if wrong:
            recall.add(hit=each.flagged, sample=each.sample)
        if not each.flagged:
            unflagged.add(hit=wrong, sample=each.sample)
            continue
        precision.add(hit=wrong, sample=each.sample)
        for name, values in (
            ("decision", (each.decision,)),
            ("detector", each.detectors),
            ("kind", each.kinds),
        ):
            for value in values:
                by[name][value].add(hit=wrong, sample=each.sample)
    return Report(
        {status: statuses[status] for status in ReviewStatus},
        oldest,
        precision.estimate(),
        {
            name: {value: rate for value in sorted(found) if (rate := found[value].estimate()) is not None}
            for name, found in by.items()
        },
        unflagged.estimate(),
        recall.estimate() if unflagged.count else None,
        counts,
        dict(sorted(days.items())),
    )


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()

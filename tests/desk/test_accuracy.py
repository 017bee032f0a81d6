"""How right the detectors were: the arithmetic, and that the database counts what it counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.review_console import START, entry
from truthlens.desk.accuracy import (
    DAY_S,
    Grouping,
    SettledTally,
    accuracy_of,
    backlog,
    by_period,
    by_value,
    tallies,
    values_of,
)
from truthlens.review.records import Change, Filters, Order, ReviewStatus
from truthlens.review.store.queue import ReviewQueue

TALLY = st.builds(
    SettledTally,
    day=st.integers(0, 40_000),
    value=st.sampled_from(["a", "b"]),
    flagged=st.booleans(),
    wrong=st.booleans(),
    sample=st.sampled_from([1.0, 0.5, 0.01]),
    count=st.integers(1, 1_000),
)


@given(st.lists(TALLY, max_size=30))
def test_every_share_lies_in_its_interval(kept: list[SettledTally]) -> None:
    """0 ≤ low ≤ share ≤ high ≤ 1; parts add up to the whole."""
    whole = accuracy_of(kept)
    for found in (whole.precision, whole.accuracy, whole.wrong):
        assert found is None or 0 <= found.low <= found.share + 1e-9 <= found.high + 2e-9 <= 1 + 3e-9
    assert (whole.precision is None) == (whole.flagged == 0)
    assert (whole.accuracy is None) == (not kept)
    assert sum(each.settled for each in by_value(kept).values()) == whole.settled
    for days in (1, 7):
        assert sum(each.settled for _, each in by_period(kept, days=days, most=10**6)) == whole.settled


def test_a_sampled_entry_stands_for_those_that_were_not_queued() -> None:
    """One in ten of the answers that were not flagged is queued: each counts ten times, and the interval is wider for it."""
    flagged = SettledTally(1, "", flagged=True, wrong=True, sample=1.0, count=30)
    missed = SettledTally(1, "", flagged=False, wrong=True, sample=0.1, count=1)
    right = SettledTally(1, "", flagged=False, wrong=False, sample=0.1, count=6)
    found = accuracy_of([flagged, missed, right])
    assert found.precision is not None
    assert found.accuracy is not None
    assert found.wrong is not None
    assert found.precision.share == 1.0
    assert found.accuracy.share == pytest.approx((30 + 60) / (30 + 70))
    assert found.wrong.share == pytest.approx((30 + 10) / 100)
    plain = accuracy_of(
        [flagged, replace(missed, sample=1.0, count=10), replace(right, sample=1.0, count=60)]
    )
    assert plain.accuracy is not None
    assert plain.accuracy.share == found.accuracy.share
    assert plain.accuracy.high - plain.accuracy.low < found.accuracy.high - found.accuracy.low


def test_weeks_begin_on_mondays() -> None:
    """2026-01-02 is a Friday; its week began on 2025-12-29, day 20451."""
    friday = int(START // 86_400)
    days = [
        replace(SettledTally(friday, "", flagged=True, wrong=True, sample=1.0, count=1), day=friday + more)
        for more in range(-4, 4)
    ]
    assert [(start, each.settled) for start, each in by_period(days, days=7, most=9)] == [
        (20451, 7),
        (20458, 1),
    ]
    assert [start for start, _ in by_period(days, days=1, most=2)] == [friday + 2, friday + 3]


def fill(queue: ReviewQueue) -> None:
    # Early and late in a day, where rounding would move it to the next one.
    queue.add([replace(entry(number), created=START + number * 7_919) for number in range(60)])
    for number in range(0, 60, 2):
        status = ReviewStatus(["approved", "rejected", "reviewed"][number % 3])
        queue.change(Change(entry(number).id, 1, status), actor="ann")


@pytest.mark.parametrize("group", list(Grouping))
def test_the_database_counts_what_the_entries_say(queue: ReviewQueue, group: Grouping) -> None:
    """Tallies by SQL are those of reading every entry, on both databases."""
    fill(queue)
    read = Counter(
        (int(each.created // DAY_S), value, each.flagged, each.status.label == 1, each.sample)
        for each in queue.settled()
        for value in values_of(each, group)
    )
    wanted = [SettledTally(*key, count) for key, count in read.items()]
    assert sorted(tallies(queue.database, group), key=repr) == sorted(wanted, key=repr)
    assert read.total() > 0


def test_backlog_and_median_are_those_of_the_entries(queue: ReviewQueue) -> None:
    """Of an even and an odd number of settled entries, and of none."""
    assert (backlog(queue.database).waiting, backlog(queue.database).median_s) == (0, None)
    queue.add([entry(number) for number in range(5)])
    times = iter([START + 10_000, START + 20_000, START + 40_000])
    own = ReviewQueue(queue.database, clock=lambda: next(times))
    for number, median in ((0, 10_000), (1, (10_000 + 19_400) / 2), (2, 19_400)):
        own.change(Change(entry(number).id, 1, ReviewStatus.APPROVED), actor="ann")
        assert backlog(queue.database).median_s == pytest.approx(median)
    found = backlog(queue.database)
    assert (found.waiting, found.oldest) == (2, entry(3).created)


@pytest.mark.parametrize("order", list(Order))
def test_neighbours_are_those_of_the_list(queue: ReviewQueue, order: Order) -> None:
    """In every order, with equal scores, of a filter, and from an entry that does not fit it."""
    fill(queue)
    wanted = Filters(decision="support")
    listed = queue.listed(wanted, order=order, limit=200).entries
    numbers = [each.number for each in listed]
    later = [queue.neighbour(number, wanted, later=True, order=order) for number in numbers]
    earlier = [queue.neighbour(number, wanted, later=False, order=order) for number in numbers]
    assert later == [each.id for each in listed[1:]] + [None]
    assert earlier == [None] + [each.id for each in listed[:-1]]
    everything = queue.listed(order=order, limit=200).entries
    place = next(at for at, each in enumerate(everything) if each.decision != "support")
    following = next((each.id for each in everything[place:] if each.decision == "support"), None)
    assert queue.neighbour(everything[place].number, wanted, later=True, order=order) == following

"""Steps of reviewers and their undoing, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import pytest

from tests.fakes.review_entries import change, new_entry
from truthlens.review.records import Correction, ReviewError, ReviewStatus
from truthlens.review.store.database import ReviewDatabase
from truthlens.review.store.queue import ReviewQueue

APPROVED, REJECTED, PENDING = ReviewStatus.APPROVED, ReviewStatus.REJECTED, ReviewStatus.PENDING


@pytest.fixture
def timed(database: ReviewDatabase) -> ReviewQueue:
    """A queue of six entries whose clock goes on by ten seconds a call."""
    times = iter(range(10, 10_000, 10))
    made = ReviewQueue(database, clock=lambda: float(next(times)))
    made.add([new_entry(f"e{number}") for number in range(6)])
    return made


def test_the_last_step_is_found_until_it_is_undone(timed: ReviewQueue) -> None:
    """Of that person alone, after the given time; what became pending again is no step that stands."""
    timed.change(change("e0", APPROVED), actor="ann")
    timed.change_many([change("e1", REJECTED), change("e2", REJECTED)], actor="ann")
    timed.change(change("e3", REJECTED), actor="bob")
    timed.change(change("e4", PENDING, note="only a note"), actor="ann")
    last = timed.last_step("ann", since=0.0)
    assert last is not None
    assert (last.count, last.first.id, last.status) == (2, "e1", REJECTED)
    assert [each.entry is not None for each in timed.undo(last.id, actor="ann")] == [True, True]
    before = timed.last_step("ann", since=0.0)
    assert before is not None
    assert (before.count, before.first.id, before.status) == (1, "e0", APPROVED)
    assert timed.last_step("ann", since=10.5) is None
    assert timed.last_step("nobody", since=0.0) is None


def test_a_step_with_several_verdicts_is_one(timed: ReviewQueue) -> None:
    """As the API may send them; those that failed are no part of it."""
    timed.change_many(
        [change("e0", APPROVED), change("e1", REJECTED), change("e2", REJECTED, version=7)], actor="ann"
    )
    last = timed.last_step("ann", since=0.0)
    assert last is not None
    assert (last.count, last.status) == (2, None)
    timed.undo(last.id, actor="ann")
    assert timed.counts()[PENDING] == 6


def test_an_undone_entry_is_as_it_was(timed: ReviewQueue) -> None:
    """Status, who settled it and when, and the marks that were taken away; its version goes on."""
    timed.change(change("e0", REJECTED, spans=[Correction(1, 3)], note="first"), actor="ann")
    old = timed.get("e0")
    timed.change(change("e0", APPROVED, version=2, clear_spans=True, note="second"), actor="bob")
    last = timed.last_step("bob", since=0.0)
    assert last is not None
    (done,) = timed.undo(last.id, actor="bob")
    new = timed.get("e0")
    assert new.summary == done.entry
    assert (new.summary.status, new.summary.reviewer, new.summary.settled) == (
        REJECTED,
        "ann",
        old.summary.settled,
    )
    assert (new.spans, new.summary.note, new.summary.version) == (old.spans, "second", 4)
    assert [(each.actor, each.action) for each in new.events] == [
        ("ann", "rejected"),
        ("bob", "approved"),
        ("bob", "undid"),
    ]


def test_a_step_is_undone_once_and_by_whoever_did_it(timed: ReviewQueue) -> None:
    """And entries that somebody has changed again stay, each saying so."""
    timed.change_many([change("e0", APPROVED), change("e1", APPROVED)], actor="ann")
    last = timed.last_step("ann", since=0.0)
    assert last is not None
    with pytest.raises(ReviewError, match="nothing of it to undo"):
        timed.undo(last.id, actor="bob")
    timed.change(change("e0", REJECTED, version=2), actor="bob")
    refused, done = timed.undo(last.id, actor="ann")
    assert (refused.id, refused.entry, done.id) == ("e0", None, "e1")
    assert "changed it again" in refused.problem
    for step in (last.id, ""):
        with pytest.raises(ReviewError):
            timed.undo(step, actor="ann")

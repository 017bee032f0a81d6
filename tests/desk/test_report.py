"""What the reviews tell of the verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fakes.review_entries import CREATED, change, new_entry, summary
from truthlens.core.intervals import wilson
from truthlens.desk.report import report
from truthlens.review.records import ReviewStatus
from truthlens.review.store.queue import ReviewQueue

APPROVED, REJECTED = ReviewStatus.APPROVED, ReviewStatus.REJECTED
DAY = 86_400.0


def test_nothing_is_known_of_no_entries() -> None:
    """Shares of nothing are none."""
    found = report([])
    assert (found.precision, found.unflagged, found.recall, found.backlog) == (None, None, None, 0)
    assert found.days == {}


def test_flags_are_right_where_reviewers_reject() -> None:
    """By decision, detector and kind as well; the interval is Wilson's."""
    rows = [summary(n, status=REJECTED, detectors={"numbers": 0.9}, kinds=("value",)) for n in range(6)]
    rows += [summary(n, status=APPROVED, decision="other", detectors={"encoder": 0.9}) for n in range(4)]
    found = report(rows)
    assert found.precision is not None
    assert (found.precision.share, found.precision.count) == (0.6, 10)
    assert (found.precision.low, found.precision.high) == pytest.approx(wilson(0.6, 10))
    shares = {
        name: {value: rate.share for value, rate in by.items()} for name, by in found.precision_by.items()
    }
    assert shares == {
        "decision": {"default": 1.0, "other": 0.0},
        "detector": {"numbers": 1.0, "encoder": 0.0},
        "kind": {"value": 1.0},
    }
    assert (found.counts["tp"], found.counts["fp"]) == (6, 4)
    assert found.recall is None


def test_the_four_counts_and_the_claims_are_of_settled_entries() -> None:
    """Pending ones are backlog, and their claims count for their day."""
    claims = {"total_claims": 4, "verified_claims": 3, "unverified_claims": 1}
    rows = [
        summary(1, status=REJECTED, **claims),
        summary(2, status=APPROVED, **claims),
        summary(3, status=REJECTED, score=0.1, **claims),
        summary(4, status=APPROVED, score=0.1),
        summary(5, created=CREATED - DAY, total_claims=2, unverified_claims=2),
        summary(6, status=ReviewStatus.REVIEWED, created=CREATED - 2 * DAY),
    ]
    found = report(rows)
    assert {name: found.counts[name] for name in ("tp", "fp", "fn", "tn", "total_claims", "unverified_claims")} == {
        "tp": 1, "fp": 1, "fn": 1, "tn": 1, "total_claims": 12, "unverified_claims": 3,
    }  # fmt: skip
    assert (found.backlog, found.oldest_pending) == (2, CREATED - DAY)
    first, second = found.days.values()
    assert (first.unverified_rate, second.unverified_rate) == (1.0, 0.25)
    assert (second.approved, second.rejected) == (2, 2)


def test_sampled_answers_stand_for_those_that_were_not() -> None:
    """Estimates of a traffic of which flagged answers are all reviewed, and one in ten of the others."""
    dice = np.random.default_rng(5)
    covered = {"unflagged": 0, "recall": 0}
    for _ in range(60):
        rows, missed, caught, unflagged = [], 0, 0, 0
        for number in range(4_000):
            flagged = dice.random() < 0.2
            wrong = dice.random() < (0.7 if flagged else 0.1)
            missed, caught = missed + (wrong and not flagged), caught + (wrong and flagged)
            unflagged += not flagged
            sample = 1.0 if flagged else 0.1
            if dice.random() < sample:
                status = REJECTED if wrong else APPROVED
                rows.append(summary(number, score=0.9 if flagged else 0.1, status=status, sample=sample))
        found = report(rows)
        assert found.unflagged is not None
        assert found.recall is not None
        assert found.unflagged.share == pytest.approx(missed / unflagged, abs=0.07)
        covered["unflagged"] += found.unflagged.low <= 0.1 <= found.unflagged.high
        truth = 0.2 * 0.7 / (0.2 * 0.7 + 0.8 * 0.1)
        covered["recall"] += found.recall.low <= truth <= found.recall.high
    assert min(covered.values()) >= 52


def test_all_entries_of_a_queue_are_read(queue: ReviewQueue) -> None:
    """However many pages they are."""
    queue.add([new_entry(f"e{n}") for n in range(450)])
    queue.change(change("e7", APPROVED), actor="ann")
    assert [each.id for each in queue.summaries()] == [f"e{n}" for n in range(450)]
    assert report(queue.summaries()).statuses[ReviewStatus.PENDING] == 449

"""The ``truthlens_review*`` metrics: entries by status, what waits, what was lost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from truthlens.review.records import ReviewStatus
from truthlens.review.writer import LOSSES, ReviewWriter
from truthlens.telemetry.buckets import LATENCY_BUCKETS


class ReviewMetrics:
    """The metrics of the review queue, in ``registry``; ``collect`` brings them up to date."""

    def __init__(self, registry: CollectorRegistry, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.entries = Gauge(
            "truthlens_reviews",
            "Entries of the review queue: status is pending, reviewed (somebody is at it), approved (the answer is right) or"
            " rejected (it is not). All processes on one database give the same figures.",
            ("status",),
            registry=registry,
        )
        self.oldest = Gauge(
            "truthlens_reviews_oldest_pending_seconds",
            "Age of the oldest entry that awaits review; 0 where none does.",
            registry=registry,
        )
        self.written = Counter(
            "truthlens_reviews_written", "Entries that this process has written.", registry=registry
        )
        self.lost = Counter(
            "truthlens_reviews_lost",
            "Answers that were to be queued and are not: cause is full (too many wait), database (it refused the entry), content (it"
            " could not be made) or stopped (the process ended first).",
            ("cause",),
            registry=registry,
        )
        self.waiting = Gauge(
            "truthlens_reviews_waiting",
            "Entries that wait in memory; lost if the process is killed now.",
            registry=registry,
        )
        self.write_seconds = Histogram(
            "truthlens_review_write_seconds",
            "Time from the end of an exchange until its entry is in the database, of the first of each batch.",
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.up = Gauge(
            "truthlens_reviews_database_up",
            "1 where the database takes entries, 0 where they wait in memory.",
            registry=registry,
        )
        for cause in LOSSES:
            self.lost.labels(cause)
        self._told_written, self._told_lost = 0, dict.fromkeys(LOSSES, 0)

    def collect(self, writer: ReviewWriter) -> None:
        """Take the writer's figures over."""
        figures = writer.figures()
        for status in ReviewStatus:
            self.entries.labels(status.value).set(figures.statuses.get(status, math.nan))
        oldest = figures.oldest_pending
        self.oldest.set(0.0 if oldest is None else max(0.0, self._clock() - oldest))
        self.written.inc(figures.written - self._told_written)
        self._told_written = figures.written
        for cause, count in figures.lost.items():
            self.lost.labels(cause).inc(count - self._told_lost[cause])
            self._told_lost[cause] = count
        self.waiting.set(figures.waiting)
        self.up.set(0.0 if figures.failing else 1.0)

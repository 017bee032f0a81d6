"""Define the ``truthlens_review*`` metrics; ``review.service`` keeps them up to date."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from truthlens.telemetry.buckets import LATENCY_BUCKETS

LOSSES = ("full", "database", "content", "stopped")
"""Why an entry can be lost."""


class ReviewMetrics:
    """The metrics of the review queue, in ``registry``."""

    def __init__(self, registry: CollectorRegistry) -> None:
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

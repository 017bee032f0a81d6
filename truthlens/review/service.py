"""Run the review queue of a serving process: its database, and what writes to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from truthlens.core.review_settings import ReviewSettings
from truthlens.review.database import ReviewDatabase, checked_url
from truthlens.review.intake import ReviewIntake
from truthlens.review.metrics import ReviewMetrics
from truthlens.review.queue import ReviewQueue
from truthlens.review.records import ReviewStatus
from truthlens.review.writer import ReviewWriter
from truthlens.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class ReviewService:
    """The review queue of one process."""

    queue: ReviewQueue
    writer: ReviewWriter
    intake: ReviewIntake

    @classmethod
    def opened(
        cls, url: str | None, settings: Callable[[], ReviewSettings], signals: Metrics
    ) -> ReviewService | None:
        """Open the queue, ``None`` where there is none; its database need not answer yet.

        Args:
            url: of the database, ``None`` for no queue.
            settings: gives the settings in force.
            signals: takes the metrics.

        Raises:
            StartError: the URL is none of a database that can be used.
        """
        if url is None:
            return None
        queue = ReviewQueue(ReviewDatabase(checked_url(url)))
        metrics = ReviewMetrics(signals.registry)
        writer = ReviewWriter(queue, settings, observe_delay=metrics.write_seconds.observe)
        signals.on_scrape(lambda: metrics.collect(writer))
        writer.start()
        return cls(queue, writer, ReviewIntake(writer))

    def pending(self) -> int | None:
        """Return how many entries await review, a few seconds ago; ``None`` where that is not known."""
        return self.writer.figures().statuses.get(ReviewStatus.PENDING)

    def close(self) -> None:
        """Write what waits, and close the database; blocks for some seconds at most."""
        self.writer.stop()
        self.queue.database.dispose()

"""Run the review queue of a serving process: its database, and what writes to it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from truthlens.core.review_settings import ReviewSettings
from truthlens.policy import Policy
from truthlens.review.intake.intake import ReviewIntake
from truthlens.review.intake.writer import ReviewWriter
from truthlens.review.records import ReviewStatus
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue
from truthlens.telemetry.metrics import LOSSES, Metrics, ReviewMetrics

if TYPE_CHECKING:
    from truthlens.mitigation.auto.bandit import Bandit

log = structlog.get_logger("truthlens.review")

_TEACH_S = 60.0


@dataclass(frozen=True, slots=True)
class ReviewService:
    """The review queue of one process."""

    queue: ReviewQueue
    writer: ReviewWriter
    intake: ReviewIntake

    @classmethod
    def opened(cls, url: str, settings: Callable[[], ReviewSettings], signals: Metrics) -> ReviewService:
        """Open the queue; its database need not answer yet.

        Args:
            url: of the database.
            settings: gives the settings in force.
            signals: takes the metrics.

        Raises:
            StartError: the URL is none of a database that can be used.
        """
        queue = ReviewQueue(ReviewDatabase(checked_url(url)))
        writer = ReviewWriter(queue, settings, observe_delay=signals.reviews.write_seconds.observe)
        signals.on_scrape(_collecting(writer, signals.reviews))
        writer.start()
        return cls(queue, writer, ReviewIntake(writer))

    def pending(self) -> int | None:
        """Return how many entries await review, a few seconds ago; ``None`` where that is not known."""
        return self.writer.figures().statuses.get(ReviewStatus.PENDING)

    async def teach(self, bandit: Callable[[], Bandit | None], policy: Callable[[], Policy]) -> None:
        """Let mode auto, where there is one, learn from what is settled, every minute until cancelled."""
        while True:
            await asyncio.sleep(_TEACH_S)
            learner = bandit()
            if learner is None:
                continue
            from truthlens.review.rewards import feed

            try:
                learned = await feed(self.queue, learner, policy())
            except Exception as error:  # noqa: BLE001 - what is learned from reviews is worth no exchange
                log.warning("mode auto does not learn from reviews at present", error=type(error).__name__)
            else:
                if learned:
                    log.info("mode auto has learned from reviews", entries=learned)

    def close(self) -> None:
        """Write what waits, and close the database; blocks for some seconds at most."""
        self.writer.stop()
        self.queue.database.dispose()


def _collecting(
    writer: ReviewWriter, metrics: ReviewMetrics, *, clock: Callable[[], float] = time.time
) -> Callable[[], None]:
    """Return what brings the metrics up to date whenever somebody reads them."""
    told_written, told_lost = 0, dict.fromkeys(LOSSES, 0)

    def collect() -> None:
        nonlocal told_written
        figures = writer.figures()
        for status in ReviewStatus:
            metrics.entries.labels(status.value).set(figures.statuses.get(status, math.nan))
        oldest = figures.oldest_pending
        metrics.oldest.set(0.0 if oldest is None else max(0.0, clock() - oldest))
        metrics.written.inc(figures.written - told_written)
        told_written = figures.written
        for cause, count in figures.lost.items():
            metrics.lost.labels(cause).inc(count - told_lost[cause])
            told_lost[cause] = count
        metrics.waiting.set(figures.waiting)
        metrics.up.set(0.0 if figures.failing else 1.0)

    return collect

"""The routes of the review queue."""

from __future__ import annotations

from starlette.routing import Route

from truthlens.console.pages import Pages
from truthlens.console.reviews.api import api_routes
from truthlens.console.reviews.desk import Desk
from truthlens.console.reviews.pages import ReviewPages
from truthlens.review.store.queue import ReviewQueue
from truthlens.telemetry.recent_exchanges import Recent


def review_routes(queue: ReviewQueue | None, pages: Pages, recent: Recent) -> list[Route]:
    """Return the routes of pages and API.

    Args:
        queue: the answers that await review; ``None`` where the queue is switched off.
        pages: renders the console's pages.
        recent: the last exchanges, to which entries link.
    """
    desk = None if queue is None else Desk(queue)
    return [*ReviewPages(pages, desk, recent).routes, *api_routes(desk)]

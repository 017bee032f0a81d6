"""The review queue in the console: pages for people (``pages``) and JSON for programs (``api``)."""

from __future__ import annotations

from starlette.routing import Route

from truthlens.desk.pages import Pages
from truthlens.desk.reviews.api import Answering, review_api
from truthlens.desk.reviews.desk import Desk
from truthlens.desk.reviews.pages import ReviewPages
from truthlens.review.store.queue import ReviewQueue
from truthlens.telemetry.recent_exchanges import Recent


def review_routes(
    queue: ReviewQueue | None, pages: Pages, recent: Recent, *, detect: Answering, ask: Answering
) -> list[Route]:
    """Return the routes of pages and API.

    Args:
        queue: the answers that await review; ``None`` where the queue is switched off.
        pages: renders the console's pages.
        recent: the last exchanges, to which entries link.
        detect: answers ``/v1/detect``, which the API describes.
        ask: answers ``/v1/ask``, likewise.
    """
    desk = None if queue is None else Desk(queue)
    # No mount: the API's description has whole paths.
    return [
        *ReviewPages(pages, desk, recent).routes,
        Route("/api/{path:path}", review_api(desk, detect, ask)),
    ]

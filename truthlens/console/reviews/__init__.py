"""The review queue in the console: pages for people (``pages``) and JSON for programs (``api``)."""

from truthlens.console.reviews.routes import review_routes

__all__ = ["review_routes"]

"""Databases of the review queue."""

from tests.fakes.review_databases import database, postgres, queue, url

__all__ = ["database", "postgres", "queue", "url"]

"""Databases of the review queue: SQLite, and a real PostgreSQL where there is one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.postgres_server import PostgresServer
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'reviews.db'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    import psycopg

    name = f"reviews_{next(_numbers)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.url(database=name)


@pytest.fixture
def database(url: str) -> Iterator[ReviewDatabase]:
    found = ReviewDatabase(checked_url(url))
    found.upgrade()
    yield found
    found.dispose()


@pytest.fixture
def queue(database: ReviewDatabase) -> ReviewQueue:
    return ReviewQueue(database)

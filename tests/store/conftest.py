"""A Redis for the tests of the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.auto_redis_server import RedisServer


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A running Redis of the test's own."""
    server = RedisServer()
    try:
        server.start()
        yield server
    finally:
        server.kill()

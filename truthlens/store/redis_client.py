"""Connect to the Redis of a process."""

from __future__ import annotations

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from truthlens.core.errors import StartError

_CONNECTIONS = 8


def connect(url: str, patience_s: float, *, text: bool) -> Redis:
    """Return a client of the Redis at ``url``; nothing is sent yet.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``; it may contain user and password.
        patience_s: the longest that connecting, sending and reading may take, each.
        text: whether replies are text, with what is no UTF-8 replaced, or bytes.

    Raises:
        StartError: the URL cannot be used.
    """
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=patience_s,
            socket_timeout=patience_s,
            socket_connect_timeout=patience_s,
            # A connection of the pool that died with the last Redis is found out by the first command on it.
            retry=Retry(NoBackoff(), 1),
            decode_responses=text,
            encoding_errors="replace",
        )
    except ValueError:
        # The library's message may quote the URL, and a password with it.
        raise StartError(
            "the Redis URL (--redis) cannot be used: expected redis://, rediss:// or unix://"
        ) from None
    return Redis.from_pool(pool)

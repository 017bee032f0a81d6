"""Open the database of passages, guarded (``store.postgresql``), and let a search in it be given up.

No message shows the URL, which may hold a password.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.interfaces import SourceError
from truthlens.store import postgresql

# An index finds the nearest of all rows, and a filter then takes most of them away; iterative scans go on
# until enough are left. Versions of the extension before 0.8 ignore the settings.
_ITERATIVE = {"hnsw.iterative_scan": "strict_order", "ivfflat.iterative_scan": "relaxed_order"}


def database_url(variable: str, environ: Mapping[str, str]) -> URL:
    """Return the URL that an environment variable holds, checked.

    Raises:
        ValueError: it holds none, or one of another database or with parameters that may not be used.
    """
    where = f"the environment variable {variable}"
    try:
        url = make_url(environ.get(variable, "").strip())
    except (ArgumentError, ValueError):
        raise ValueError(
            f"{where} holds no URL of a database; expected postgresql://user:password@host/database"
        ) from None
    if url.drivername not in postgresql.DRIVERS or not url.database:
        raise ValueError(f"{where} names no PostgreSQL database; expected postgresql://user@host/database")
    if unknown := postgresql.unknown_parameters(url):
        raise ValueError(f"{where}: the URL has parameters that may not stand there: {unknown}")
    return postgresql.with_driver(url)


def open_engine(url: URL, *, connections: int, timeout_ms: int) -> sa.Engine:
    """Return an engine whose connections are guarded; nothing is connected yet.

    Args:
        url: as ``database_url`` returns it.
        connections: at most so many.
        timeout_ms: of a statement.
    """
    return postgresql.open_engine(
        url,
        connections=connections,
        timeout_ms=timeout_ms,
        refused=partial(SourceError, SearchResult.REFUSED),
        settings=_ITERATIVE,
    )


class Statements:
    """The statements of one search; whoever waits for it can give it up from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Any = None
        self.given_up = False

    @contextlib.contextmanager
    def on(self, connection: sa.Connection) -> Iterator[None]:
        """Run on a connection what stands inside, and close it.

        Raises:
            SourceError: the search was given up.
        """
        with self._lock:
            self._connection = connection.connection.dbapi_connection
        try:
            if self.given_up:
                raise SourceError(SearchResult.UNAVAILABLE, "the search was given up")
            yield
        finally:
            # Closing speaks to the server as well, and may have to be given up.
            try:
                connection.close()
            finally:
                with self._lock:
                    self._connection = None

    def give_up(self) -> None:
        """End what runs, whatever it waits for: its statement fails, and its connection is given back."""
        with self._lock:
            self.given_up = True
            if self._connection is not None:
                postgresql.hang_up(self._connection)

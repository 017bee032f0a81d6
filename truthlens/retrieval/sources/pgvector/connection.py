"""Open a PostgreSQL so that nothing can be written to it and no statement runs for long.

Every session has ``default_transaction_read_only`` and a ``statement_timeout``, and every transaction begins
as ``READ ONLY``, so that a pooler in between changes nothing. No message shows the URL, which may hold a
password.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from truthlens.core.records.retrieval import SearchResult
from truthlens.retrieval.interfaces import SourceError

_CONNECT_S = 2
_RECYCLE_S = 600
_DRIVERS = frozenset(("postgresql", "postgres", "postgresql+psycopg"))
# What a URL may say of a connection; left out is what could undo the guards (options) or read other files.
_PARAMETERS = frozenset((
    "host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode",
    "target_session_attrs",
))  # fmt: skip
_ARGUMENTS = {
    "connect_timeout": _CONNECT_S,
    "application_name": "truthlens",
    "prepare_threshold": None,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
}


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
    if url.drivername not in _DRIVERS or not url.database:
        raise ValueError(f"{where} names no PostgreSQL database; expected postgresql://user@host/database")
    if unknown := sorted(set(url.query) - _PARAMETERS):
        names = ", ".join(name[:40] for name in unknown[:5])
        raise ValueError(f"{where}: the URL has parameters that may not stand there: {names}")
    return url.set(drivername="postgresql+psycopg")


def open_engine(url: URL, *, connections: int, timeout_ms: int) -> sa.Engine:
    """Return an engine whose connections are guarded; nothing is connected yet.

    Args:
        url: as ``database_url`` returns it.
        connections: at most so many.
        timeout_ms: of a statement.
    """
    engine = sa.create_engine(
        url,
        connect_args=_ARGUMENTS,
        use_native_hstore=False,
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=timeout_ms / 1000,
        pool_recycle=_RECYCLE_S,
    )
    event.listen(engine, "connect", lambda connection, _: _guard(connection, timeout_ms), insert=True)
    return engine


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
                _hang_up(self._connection)


def _hang_up(connection: Any) -> None:
    # The driver waits without end; the socket's end wakes it. Closed in between: nothing is left to do.
    with contextlib.suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _guard(connection: Any, timeout_ms: int) -> None:
    watchdog = threading.Timer(_CONNECT_S, _hang_up, (connection,))
    watchdog.daemon = True
    watchdog.start()
    try:
        _make_read_only(connection, timeout_ms)
    except BaseException:
        connection.close()  # nobody else does
        raise
    finally:
        watchdog.cancel()


def _make_read_only(connection: Any, timeout_ms: int) -> None:
    connection.autocommit = True
    with connection.cursor() as cursor:
        # An index finds the nearest of all rows, and a filter then takes most of them away; iterative scans go
        # on until enough are left. Versions of the extension before 0.8 ignore the settings.
        cursor.execute(
            "SELECT set_config('default_transaction_read_only', 'on', false),"
            " set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),"
            " set_config('idle_in_transaction_session_timeout', '5000', false),"
            " set_config('hnsw.iterative_scan', 'strict_order', false),"
            " set_config('ivfflat.iterative_scan', 'relaxed_order', false)",
            (str(timeout_ms), str(timeout_ms)),
        )
        cursor.execute("SELECT current_setting('transaction_read_only')")
        row = cursor.fetchone()
    if row is None or row[0] != "on":
        raise SourceError(SearchResult.REFUSED, "the server does not make transactions read-only")
    connection.autocommit = False
    connection.read_only = True

"""Open a PostgreSQL so that nothing can be written to it and no statement runs for long.

Every session has ``default_transaction_read_only`` and a ``statement_timeout``, and every transaction begins
as ``READ ONLY``, so that a pooler in between changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.pool import QueuePool

DRIVERS = frozenset(("postgresql", "postgres", "postgresql+psycopg"))
"""How a URL may name it; ``with_driver`` makes one of them."""

PARAMETERS = frozenset((
    "host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode",
    "target_session_attrs",
))  # fmt: skip
"""What a URL may say of a connection; not what undoes the guards (options) or reads other files (service)."""

_CONNECT_S = 2
_RECYCLE_S = 600
_ARGUMENTS = {
    "connect_timeout": _CONNECT_S,
    "application_name": "truthlens",
    "prepare_threshold": None,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
}
_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


def unknown_parameters(url: URL) -> str:
    """Return the URL's parameters that may not stand there, five at most, cut short; ``""`` where all may."""
    return ", ".join(name[:40] for name in sorted(set(url.query) - PARAMETERS)[:5])


def with_driver(url: URL) -> URL:
    """Return the URL with the name of the driver that is used."""
    return url.set(drivername="postgresql+psycopg")


def pool_options(connections: int, timeout_ms: int) -> dict[str, Any]:
    """Return arguments of ``create_engine``: at most so many connections, for which nobody waits longer."""
    return {
        "poolclass": QueuePool,
        "pool_size": connections,
        "max_overflow": 0,
        "pool_timeout": timeout_ms / 1000,
        "pool_recycle": _RECYCLE_S,
    }


def open_engine(
    url: URL,
    *,
    connections: int,
    timeout_ms: int,
    refused: Callable[[str], Exception],
    settings: Mapping[str, str] = _NO_SETTINGS,
) -> sa.Engine:
    """Return an engine whose connections are guarded; nothing is connected yet.

    Args:
        url: as ``with_driver`` returns it.
        connections: at most so many.
        timeout_ms: of a statement.
        refused: makes what connecting raises where the server does not keep to the guards, from a message.
        settings: further ones of each session, by name.
    """
    engine = sa.create_engine(
        url, connect_args=_ARGUMENTS, use_native_hstore=False, **pool_options(connections, timeout_ms)
    )
    guarded = {
        "default_transaction_read_only": "on",
        "statement_timeout": str(timeout_ms),
        "lock_timeout": str(timeout_ms),
        "idle_in_transaction_session_timeout": "5000",
        **settings,
    }
    event.listen(engine, "connect", lambda connection, _: _guard(connection, guarded, refused), insert=True)
    return engine


def hang_up(connection: Any) -> None:
    """End whatever a driver's connection waits for, from another thread: its statement fails."""
    # The driver waits for the server without end; the socket's end wakes it. Closed in between: all is done.
    with contextlib.suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _guard(connection: Any, settings: Mapping[str, str], refused: Callable[[str], Exception]) -> None:
    watchdog = threading.Timer(_CONNECT_S, hang_up, (connection,))
    watchdog.daemon = True
    watchdog.start()
    try:
        _make_read_only(connection, settings, refused)
    except BaseException:
        connection.close()  # nobody else does
        raise
    finally:
        watchdog.cancel()


def _make_read_only(
    connection: Any, settings: Mapping[str, str], refused: Callable[[str], Exception]
) -> None:
    connection.autocommit = True
    with connection.cursor() as cursor:
        wanted = ", ".join(["set_config(%s, %s, false)"] * len(settings))
        cursor.execute(f"SELECT {wanted}", [part for pair in settings.items() for part in pair])
        cursor.execute("SELECT current_setting('transaction_read_only')")
        row = cursor.fetchone()
    if row is None or row[0] != "on":
        raise refused("the server does not make transactions read-only")
    connection.autocommit = False
    connection.read_only = True

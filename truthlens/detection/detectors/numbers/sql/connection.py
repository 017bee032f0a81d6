"""Open a database so that nothing can be written to it and no query runs for long; PostgreSQL and SQLite.

PostgreSQL is guarded by ``store.postgresql``. SQLite: the file is opened with ``mode=ro`` and ``query_only``,
and a query is interrupted at its deadline. Errors name the database and never show its URL, which may contain a
password.
"""

from __future__ import annotations

import sqlite3
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from truthlens.core.errors import DetectorError
from truthlens.detection.detectors.numbers.sql.options import Database
from truthlens.store import postgresql

FOLDER_VARIABLE = "TRUTHLENS_SQL_FOLDER"
"""The environment variable that names the folder in which SQLite files and files with URLs have to lie; unset: anywhere."""

_LONGEST_URL = 4096
_STEPS_BETWEEN_CHECKS = 1000
_LONGEST_CELL = 1_000_000
_SQLITE_HEADER = b"SQLite format 3\0"
_SQLITE = frozenset(("sqlite", "sqlite+pysqlite"))


def database_url(database: Database, environ: Mapping[str, str]) -> URL:
    """Return the URL of a database, checked.

    Raises:
        DetectorError: It is not there, is no URL, or is one of a driver, a file or with parameters that cannot be used.
    """
    folder = environ.get(FOLDER_VARIABLE, "").strip()
    if database.url_env is not None:
        where = f"the environment variable {database.url_env!r}"
        written = environ.get(database.url_env, "").strip()
        if not written:
            raise _refused(
                database, f"{where} is not set; set it where the server runs to the database's URL"
            )
    else:
        where = f"the file {database.url_file!r}"
        written = _url_in_file(database, Path(database.url_file or ""), folder)
    try:
        url = make_url(written)
    except (ArgumentError, ValueError):
        raise _refused(database, f"{where} holds no database URL; {_expected()}") from None
    if url.drivername in _SQLITE:
        return _sqlite_url(database, url, where, folder)
    if url.drivername in postgresql.DRIVERS:
        return _postgresql_url(database, url, where)
    # The name of a driver, where the text is a URL at all; a key or a password has no "://".
    raise _refused(database, f"{where} names the driver {url.drivername[:40]!r}; {_expected()}")


def open_engine(database: Database, url: URL, *, timeout_ms: int | None = None) -> sa.Engine:
    """Return an engine whose connections are guarded; nothing is connected yet.

    Args:
        database: its options.
        url: as ``database_url`` returns it.
        timeout_ms: of a statement; the database's own by default.
    """
    most_ms = timeout_ms or database.timeout_ms
    if url.drivername == "sqlite":
        path, timeout_s = url.database or "", most_ms / 1000
        return sa.create_engine(
            "sqlite://",
            creator=lambda: _sqlite(path, timeout_s),
            **postgresql.pool_options(database.pool_size, most_ms),
        )
    return postgresql.open_engine(
        url, connections=database.pool_size, timeout_ms=most_ms, refused=DetectorError
    )


def limit_time(connection: Any, until: float) -> None:
    """Let the queries of a driver's connection end at a moment (``time.monotonic``); PostgreSQL limits them itself."""
    if isinstance(connection, sqlite3.Connection):
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_CHECKS)


def hang_up(connection: Any) -> None:
    """End whatever a driver's connection waits for, from another thread: its query fails."""
    if isinstance(connection, sqlite3.Connection):
        connection.interrupt()
    else:
        postgresql.hang_up(connection)


def _sqlite(path: str, timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode=ro", uri=True, timeout=timeout_s, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA query_only = ON")
        # Views and triggers of the file may call no function that has effects.
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_CELL)
    except BaseException:
        connection.close()
        raise
    return connection


def _url_in_file(database: Database, path: Path, folder: str) -> str:
    real = _file(database, path, folder, f"the file {str(path)!r} (url_file)")
    try:
        with real.open("rb") as file:
            raw = file.read(_LONGEST_URL + 1)
        text = raw.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(
            database, f"the file {str(path)!r} cannot be read as text ({type(error).__name__})"
        ) from None
    if not text or len(raw) > _LONGEST_URL or len(text.splitlines()) > 1:
        raise _refused(
            database,
            f"the file {str(path)!r} must hold one line, the database's URL, of at most {_LONGEST_URL} bytes",
        )
    return text


def _sqlite_url(database: Database, url: URL, where: str, folder: str) -> URL:
    if url.query or url.host or url.username:
        raise _refused(
            database, f"{where}: a URL of SQLite has a path alone; write sqlite:////folder/file.db"
        )
    if not url.database or url.database.startswith((":", "file:")):
        raise _refused(database, f"{where} names no file; write sqlite:////folder/file.db")
    real = _file(database, Path(url.database), folder, f"the SQLite file that {where} names")
    try:
        with real.open("rb") as file:
            header = file.read(len(_SQLITE_HEADER))
    except OSError as error:
        raise _refused(
            database, f"the SQLite file that {where} names cannot be read ({error.strerror})"
        ) from None
    if header != _SQLITE_HEADER:
        raise _refused(database, f"the file that {where} names is no SQLite database")
    return URL.create("sqlite", database=str(real))


def _postgresql_url(database: Database, url: URL, where: str) -> URL:
    if unknown := postgresql.unknown_parameters(url):
        raise _refused(
            database,
            f"{where}: the URL has parameters that may not stand there: {unknown}; "
            f"known: {', '.join(sorted(postgresql.PARAMETERS))}",
        )
    if not url.database:
        raise _refused(database, f"{where} names no database; write postgresql://user@host/database")
    return postgresql.with_driver(url)


def _file(database: Database, path: Path, folder: str, what: str) -> Path:
    """Return a regular file by its real path, which lies in the folder, if one is set."""
    if not path.is_absolute():
        raise _refused(database, f"{what} needs an absolute path")
    try:
        real = path.resolve(strict=True)
        regular = stat.S_ISREG(real.stat().st_mode)
    except (OSError, ValueError, RuntimeError):
        raise _refused(database, f"{what} is not there or may not be read") from None
    if not regular:
        raise _refused(database, f"{what} is no regular file")
    if folder and not real.is_relative_to(Path(folder).resolve()):
        raise _refused(database, f"{what} lies outside of the folder that {FOLDER_VARIABLE} names")
    return real


def _refused(database: Database, why: str) -> DetectorError:
    return DetectorError(f"the database {database.name!r} cannot be used: {why}")


def _expected() -> str:
    return "expected postgresql://user:password@host/database or sqlite:////folder/file.db"

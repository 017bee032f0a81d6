"""Open the database of the review queue, SQLite or PostgreSQL, and bring its tables to this version's.

SQLite: write-ahead log, so that readers and one writer do not wait for each other; a file of this user alone. Errors never show
a URL, which may contain a password.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DataError, IntegrityError, SQLAlchemyError

from truthlens.core.errors import StartError
from truthlens.review.records import QueueUnavailableError

REVISIONS = ("0001", "0002", "0003")
"""The versions of the tables, oldest first; ``migrations`` has a step for each."""
VERSION_TABLE = "review_schema"
_BUSY_S = 5
_CONNECT_S = 5
_STATEMENT_S = 10
_SQLITE = frozenset(("sqlite", "sqlite+pysqlite"))
_POSTGRESQL = frozenset(("postgresql", "postgres", "postgresql+psycopg"))
# Any number, the same for all processes: who holds it migrates.
_MIGRATION_LOCK = 7_446_238_201


def default_url() -> str:
    """Return the URL of the SQLite file that is used by default: ``reviews.db`` in the state folder."""
    from truthlens.store.state_folder import state_folder  # not where a database is named

    return f"sqlite:///{state_folder() / 'reviews.db'}"


def checked_url(text: str) -> URL:
    """Return ``text`` as the URL of a database that can be used.

    Raises:
        StartError: it is none, or its driver is not installed.
    """
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StartError(
            "the review database is no URL; expected sqlite:////PATH/FILE.db or postgresql://USER@HOST/NAME"
        ) from None
    if url.drivername in _SQLITE:
        if not url.database or url.database == ":memory:":
            raise StartError("the review database needs a file: sqlite:////PATH/FILE.db")
        return url.set(drivername="sqlite+pysqlite")
    if url.drivername in _POSTGRESQL:
        if find_spec("psycopg") is None:
            raise StartError(
                "the review database is PostgreSQL, and its driver is missing: pip install 'truthlens[sql]'"
            )
        return url.set(drivername="postgresql+psycopg")
    raise StartError(f"the review database is of the kind {url.drivername!r}; expected sqlite or postgresql")


def shown_url(url: URL) -> str:
    """Return the file of a database, or the host and name of one, without what may be secret."""
    name = url.database or ""
    return name if url.drivername.startswith("sqlite") else f"{url.host or 'localhost'}/{name}"


class ReviewDatabase:
    """One database with the tables of the review queue. Safe for many threads and processes.

    Args:
        url: of the database (``checked_url``).
    """

    def __init__(self, url: URL) -> None:
        self.is_sqlite = url.drivername.startswith("sqlite")
        self.shown = shown_url(url)
        self._path = Path(url.database or "") if self.is_sqlite else None
        self._inode: int | None = None
        self.engine = sa.create_engine(
            _readable(url, self._path),
            pool_pre_ping=not self.is_sqlite,
            pool_timeout=_CONNECT_S,
            connect_args={"timeout": _BUSY_S} if self.is_sqlite else _postgresql_arguments(),
        )
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that reads.

        Raises:
            QueueUnavailableError: the database does not answer.
        """
        with self._open() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction that writes; on SQLite it waits for other writers first.

        Raises:
            QueueUnavailableError: the database does not answer, is read-only or full.
        """
        with self._open() as connection, connection.execution_options(immediate=True).begin():
            yield connection

    @contextmanager
    def _open(self) -> Iterator[Connection]:
        try:
            with self.engine.connect() as connection:
                yield connection
        except (DataError, IntegrityError):
            raise  # something about what is written, not about the database
        except SQLAlchemyError as error:
            raise QueueUnavailableError(f"the review database {self.shown}: {_cause(error)}") from error

    def upgrade(self, revision: str = "head") -> None:
        """Bring the tables up to ``revision``; other processes that do the same wait.

        Raises:
            QueueUnavailableError: the database does not answer, or cannot be written to.
            StartError: a newer version of TruthLens made the tables.
        """
        self._make_file()
        if revision == "head":
            current = self.revision()
            if current == REVISIONS[-1]:
                return
            if current is not None and current not in REVISIONS:
                raise StartError(
                    f"the review database {self.shown} has tables of a newer version ({current}); use that version, or another database"
                )
        self._migrate("upgrade", revision)

    def downgrade(self, revision: str) -> None:
        """Take the tables down to ``revision``; ``base`` drops them.

        Raises:
            QueueUnavailableError: the database does not answer, or cannot be written to.
        """
        self._migrate("downgrade", revision)

    def revision(self) -> str | None:
        """Return the version of the tables, ``None`` where there are none."""
        with self.reading() as connection:
            if not sa.inspect(connection).has_table(VERSION_TABLE):
                return None
            found = connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608 - our own name
            return None if found is None else str(found)

    def is_gone(self) -> bool:
        """Return whether the file that is open is not the one of that name any more: what is written to it is lost.

        Somebody has removed or replaced it. Then connections are closed, and ``upgrade`` makes or takes the one that is there.
        """
        if self._path is None or self._inode is None:
            return False
        try:
            inode: int | None = self._path.stat().st_ino
        except OSError:
            inode = None
        if inode == self._inode:
            return False
        self.dispose()
        return True

    def dispose(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def _migrate(self, way: str, revision: str) -> None:
        # Alembic takes 10 MB, for which a process whose tables are of its version has no use.
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        with self.writing() as connection:
            if not self.is_sqlite:
                # A step over a large table, or another process that migrates, may take long.
                connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
                connection.execute(sa.text("SET LOCAL lock_timeout = 0"))
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            config.attributes["connection"] = connection
            getattr(command, way)(config, revision)

    def _make_file(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # It may hold texts of users: nobody else may read it.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            self._inode = self._path.stat().st_ino
        except OSError as error:
            raise QueueUnavailableError(f"the review database {self.shown}: {error.strerror}") from error


def _readable(url: URL, path: Path | None) -> URL:
    """Return the URL by which a database that this process cannot write to is read.

    In write-ahead mode even readers make files beside it, unless it is said that it does not change: so it is where no process has it
    open, for then there is no log beside it.
    """
    if path is None or not path.exists() or Path(f"{path}-wal").exists():
        return url
    effective = os.access in os.supports_effective_ids
    if all(os.access(each, os.W_OK, effective_ids=effective) for each in (path, path.parent)):
        return url
    return url.set(database=path.absolute().as_uri(), query={"uri": "true", "mode": "ro", "immutable": "1"})


def _postgresql_arguments() -> dict[str, Any]:
    return {
        "connect_timeout": _CONNECT_S,
        # A host that is gone without a word is noticed within half a minute.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        "options": f"-c statement_timeout={_STATEMENT_S * 1000} -c lock_timeout={_BUSY_S * 1000}",
        "application_name": "truthlens",
    }


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # SQLAlchemy begins transactions by the event below, not the driver by guesses.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        # A read-only file keeps the mode that it has, and can be read in it.
        with contextlib.suppress(sqlite3.OperationalError):
            cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _cause(error: SQLAlchemyError) -> str:
    """Return what the driver says, without statement, parameters or URL."""
    original = getattr(error, "orig", None)
    text = str(original) if original is not None else type(error).__name__
    return text.splitlines()[0][:200] if text else type(error).__name__

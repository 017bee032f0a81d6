"""Which URLs are used, and that no message shows one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError

from tests.detection.detectors.numbers.sql.conftest import example, parsed
from truthlens.core.errors import DetectorError
from truthlens.detection.detectors.numbers.sql.connection import FOLDER_VARIABLE, database_url, open_engine

SECRET = "hunter2-is-secret"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database of SQLite."""
    path = tmp_path / "a # b.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a INTEGER)")
    connection.close()
    return path


def url_of(written: str | None, **environ: str) -> URL:
    (database,) = parsed(example())
    given = environ if written is None else {"FINANCE_DATABASE_URL": written, **environ}
    return database_url(database, given)


@pytest.mark.parametrize("driver", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_spelling_of_postgresql_is_psycopg(driver: str) -> None:
    """Providers write the name in several ways."""
    url = url_of(f" {driver}://me:{SECRET}@db:5433/finance?sslmode=verify-full\n")
    assert str(url) == "postgresql+psycopg://me:***@db:5433/finance?sslmode=verify-full"


def test_a_url_may_stand_in_a_file(tmp_path: Path, file: Path) -> None:
    """As secrets are mounted."""
    (tmp_path / "url").write_text(f"sqlite:///{file}\n")
    (database,) = parsed(example(url_env=None, url_file=str(tmp_path / "url")))
    assert database_url(database, {}).database == str(file)


WRONG = [
    (None, "is not set"),
    ("  ", "is not set"),
    (SECRET, "holds no database URL"),
    (f"mysql://root:{SECRET}@db/x", "names the driver 'mysql'"),
    (f"sqlite+aiosqlite:///{SECRET}", "names the driver 'sqlite\\+aiosqlite'"),
    (f"postgresql+psycopg2://me:{SECRET}@db/x", "names the driver 'postgresql\\+psycopg2'"),
    (f"postgresql://me:{SECRET}@db/x?options=-c%20default_transaction_read_only%3Doff", "parameters that may not stand there: options"),
    (f"postgresql://me:{SECRET}@db/x?service={SECRET}", "may not stand there: service"),
    (f"postgresql://me:{SECRET}@db", "names no database"),
    (f"postgresql://me:{SECRET}@db:port/x", "holds no database URL"),
    ("sqlite://", "names no file"),
    ("sqlite:///:memory:", "names no file"),
    ("sqlite:///file:/etc/passwd?mode=rwc", "a path alone"),
    ("sqlite:////srv/x.db?mode=rwc", "a path alone"),
    ("sqlite:///relative.db", "needs an absolute path"),
    ("sqlite:////nowhere/at/all.db", "is not there"),
    ("sqlite:////etc/passwd", "is no SQLite database"),
    ("sqlite:////dev/zero", "is no regular file"),
    ("sqlite:////tmp", "is no regular file"),
    ("sqlite:////a\x00b", "is not there"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "message"), WRONG, ids=range(len(WRONG)))
def test_a_url_that_cannot_be_used_is_refused(written: str | None, message: str) -> None:
    """The message names the database and what is wrong, and shows no secret."""
    with pytest.raises(DetectorError, match=f"'finance' cannot be used: .*{message}") as caught:
        url_of(written)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_files_lie_in_the_folder_that_the_server_names(tmp_path: Path, file: Path) -> None:
    """Links are resolved; without the variable any folder will do."""
    outside = tmp_path / "outside"
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.db").symlink_to(file)
    assert url_of(f"sqlite:///{inside}/link.db") is not None
    for written in (f"sqlite:///{inside}/link.db", f"sqlite:///{inside}/../{file.name}"):
        with pytest.raises(DetectorError, match="lies outside of the folder"):
            url_of(written, **{FOLDER_VARIABLE: str(inside)})
    assert url_of(f"sqlite:///{file}", **{FOLDER_VARIABLE: str(tmp_path)}) is not None
    (database,) = parsed(example(url_env=None, url_file=str(outside)))
    outside.write_text(f"sqlite:///{file}")
    with pytest.raises(DetectorError, match="lies outside of the folder"):
        database_url(database, {FOLDER_VARIABLE: str(inside)})


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a\nb", b"x" * 5000], ids=range(4))
def test_a_file_without_a_url_is_refused(tmp_path: Path, content: bytes) -> None:
    """One line of text is expected."""
    path = tmp_path / "url"
    path.write_bytes(content)
    (database,) = parsed(example(url_env=None, url_file=str(path)))
    with pytest.raises(DetectorError, match=r"cannot be read as text|must hold one line"):
        database_url(database, {})


def test_a_file_is_opened_under_its_very_name(tmp_path: Path, file: Path) -> None:
    """What would be a parameter in a URI is a part of the name, and can make the file no more writable."""
    odd = file.rename(tmp_path / "x.db?mode=rwc&a=%41#.db")
    (tmp_path / "link.db").symlink_to(odd)
    (database,) = parsed(example())
    url = url_of(f"sqlite:///{tmp_path}/link.db")
    engine = open_engine(database, url)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar() == 0
        with pytest.raises(OperationalError, match="readonly"):
            connection.exec_driver_sql("INSERT INTO t VALUES (1)")
    engine.dispose()

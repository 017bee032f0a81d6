"""Redis, the review database and databases of figures: looked at, and left as they are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.http_sources import silent, source_server
from tests.fakes.ports import free_port
from tests.fakes.setups import setup_of, wrong
from truthlens.policy import load_policy
from truthlens.process.doctor.findings import CheckLevel, CheckResult
from truthlens.process.doctor.setup import Setup
from truthlens.process.doctor.stores import look_at_stores, of_redis, of_sqlite
from truthlens.review.store.database import REVISIONS, ReviewDatabase, checked_url


async def found(setup: Setup) -> dict[str, CheckResult]:
    """What is wrong with the stores."""
    return wrong(await look_at_stores(setup, load_policy(setup.settings.config)))


def reviews(folder: Path, revision: str = "head") -> Path:
    """A database of the review queue, its tables of a revision."""
    database = ReviewDatabase(checked_url(f"sqlite:///{folder / 'reviews.db'}"))
    database.upgrade(revision)
    database.dispose()
    return folder / "reviews.db"


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"redis_version": "7.0", "maxmemory": 0, "maxmemory_policy": "noeviction"}, None),
        ({"maxmemory": 1 << 30, "maxmemory_policy": "volatile-lru"}, None),
        ({"maxmemory": 1 << 30, "maxmemory_policy": "noeviction"}, "refuses to write"),
        ({"maxmemory": 1 << 30, "maxmemory_policy": "allkeys-lru"}, "drops what mode auto learned"),
        ({}, None),
    ],
)
def test_a_redis_that_will_be_full_is_a_warning(told: dict[str, Any], rule: str | None) -> None:
    """By its policy, where it has a limit at all."""
    bad = wrong(of_redis(told))
    assert (rule in bad["stores.redis-memory"].why) if rule else bad == {}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://ann:secret-pw@127.0.0.1:{free}/0", "connection refused"),
        ("redis://ann:secret-pw@127.0.0.1:{silent}/0", "no answer within"),
        ("http://ann:secret-pw@127.0.0.1/0", "cannot be used"),
    ],
)
async def test_a_redis_that_cannot_be_used_is_an_error(tmp_path: Path, url: str, said: str) -> None:
    """With what is wrong about it, and without its password."""
    async with source_server(silent) as server:
        named = url.format(free=free_port(), silent=server.url.rpartition(":")[2])
        told = await found(setup_of(tmp_path, redis=named, timeout_s=0.5))
    assert told["stores.redis"].severity is CheckLevel.ERROR
    assert said in told["stores.redis"].what
    assert "secret-pw" not in str(told)


async def test_a_review_database_is_read_and_never_made(tmp_path: Path) -> None:
    """One that is to be made is right, and so is one of this version; both stay as they are."""
    file = tmp_path / "state" / "reviews.db"
    assert await found(setup_of(tmp_path, review_database=f"sqlite:///{file}")) == {}
    assert not file.parent.exists()
    reviews(file.parent)
    before = file.read_bytes()
    assert await found(setup_of(tmp_path, review_database=f"sqlite:///{file}")) == {}
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_tables_of_another_version_are_told(tmp_path: Path) -> None:
    """An earlier one is brought up at the start; a newer one cannot be used."""
    file = reviews(tmp_path, REVISIONS[0])
    earlier = wrong(of_sqlite(file))["stores.reviews-version"]
    assert (earlier.severity, "migrate" in earlier.change) == (CheckLevel.WARNING, True)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE review_schema SET version_num = '9999'")
    newer = wrong(of_sqlite(file))["stores.reviews-version"]
    assert (newer.severity, "9999" in newer.what) == (CheckLevel.ERROR, True)


def test_what_is_no_database_is_an_error(tmp_path: Path) -> None:
    """A text, and a folder."""
    text = tmp_path / "text.db"
    text.write_text("nothing of SQLite in here, " * 100)
    assert "cannot be read as SQLite" in wrong(of_sqlite(text))["stores.reviews"].what
    assert "is no file" in wrong(of_sqlite(tmp_path))["stores.reviews"].what


@pytest.mark.parametrize("exists", [True, False])
def test_what_cannot_be_written_is_named(tmp_path: Path, exists: bool) -> None:
    """The file or, where it is yet to be made, the folder that it would be in."""
    file = reviews(tmp_path) if exists else tmp_path / "deeper" / "reviews.db"
    told = wrong(of_sqlite(file, lambda *_, **__: False))["stores.reviews"]
    assert str(file if exists else tmp_path) in told.change


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://ann:secret-pw@127.0.0.1:{port}/reviews", "connection refused"),
        ("mysql://ann:secret-pw@127.0.0.1/reviews", "expected sqlite or postgresql"),
        ("nothing", "is no URL"),
    ],
)
async def test_a_database_of_a_server_that_cannot_be_used_is_an_error(
    tmp_path: Path, url: str, said: str
) -> None:
    """Its password stays untold."""
    told = await found(setup_of(tmp_path, review_database=url.format(port=free_port())))
    assert said in told["stores.reviews"].what
    assert "secret-pw" not in str(told)


NUMBERS = """\
hallucination:
  detectors:
  - encoder
  - name: numbers
    databases:
    - name: rents
      url_env: RENTS_URL
      scope: {property_id: {route: truthlens-scope-property}}
      tables: [{table: rents, scope: {property_id: property_id}, columns: [{column: rent, type: currency}]}]
"""


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (None, "'RENTS_URL' is not set"),
        ("sqlite:////no/such/file.db", "is not there"),
        ("postgresql://ann:secret-pw@127.0.0.1:{port}/rents", "connection refused"),
    ],
)
async def test_figures_that_cannot_be_compared_are_an_error(
    tmp_path: Path, url: str | None, said: str
) -> None:
    """The database and what is wrong about it are named, its URL is not."""
    environ = {} if url is None else {"RENTS_URL": url.format(port=free_port())}
    told = (await found(setup_of(tmp_path, NUMBERS, environ=environ)))["stores.values"]
    assert said in told.what
    assert "'rents'" in told.what
    assert "secret-pw" not in str(told)


async def test_a_database_of_figures_that_can_be_read_is_right(tmp_path: Path) -> None:
    """Whatever is in it: its mapping is compared when the policy is loaded."""
    with closing(sqlite3.connect(tmp_path / "rents.db")) as connection, connection:
        connection.execute("CREATE TABLE rents (property_id TEXT, rent REAL)")
    setup = setup_of(tmp_path, NUMBERS, environ={"RENTS_URL": f"sqlite:///{tmp_path / 'rents.db'}"})
    assert await found(setup) == {}

"""Look at Redis, the database of reviews and the databases of figures, all of which are only read."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from truthlens.core.errors import DetectorError, StartError
from truthlens.policy import Policy
from truthlens.process.doctor.findings import CheckResult, error, ok, warning
from truthlens.process.doctor.look import LookError, in_thread, reason
from truthlens.process.doctor.setup import Setup

if TYPE_CHECKING:
    from truthlens.detection.detectors.numbers.sql.options import Database

_LEAST_DISK_BYTES = 200 << 20
_MIB = 1 << 20


async def look_at_stores(setup: Setup, policy: Policy | None) -> list[CheckResult]:
    """Return what is wrong with the stores of a set-up."""
    looks = [_redis(setup), _reviews(setup)]
    looks += [_values(setup, database) for database in _databases(policy)]
    return [each for group in await asyncio.gather(*looks) for each in group]


async def _redis(setup: Setup) -> list[CheckResult]:
    if setup.settings.redis is None:
        return []
    from redis.exceptions import AuthenticationError, RedisError

    from truthlens.store.redis_client import connect

    try:
        client = connect(setup.settings.redis, setup.timeout_s, text=True)
    except StartError as unfit:
        return [error("stores.redis", str(unfit), "the process does not start", "fix --redis")]
    try:
        async with asyncio.timeout(setup.timeout_s):
            await client.ping()
            told = await client.info()
    except AuthenticationError:
        return [
            error(
                "stores.redis",
                "Redis refuses user or password",
                "every process keeps for itself what it learns and what models answered",
                "fix them in the URL of --redis",
            )
        ]
    except (RedisError, OSError, TimeoutError) as failed:
        how = (
            f"gives no answer within {setup.timeout_s:g} s"
            if "imeout" in type(failed).__name__
            else reason(failed, 0)
        )
        return [
            error(
                "stores.redis",
                f"Redis {how}",
                "what mode auto learns and what models answered is not shared; each process is left "
                "with what it remembers",
                "start it, or fix the URL of --redis",
            )
        ]
    finally:
        with contextlib.suppress(RedisError, OSError):
            await client.aclose()
    return list(of_redis(told))


def of_redis(told: dict[str, Any]) -> Iterator[CheckResult]:
    """Yield how a Redis that answers is set up; ``told`` is its INFO."""
    rule = str(told.get("maxmemory_policy", "unknown"))
    yield ok(
        "stores.redis",
        f"Redis {told.get('redis_version', 'of unknown version')} answers, maxmemory-policy {rule}",
    )
    if not int(told.get("maxmemory") or 0):
        return
    if rule == "noeviction":
        yield warning(
            "stores.redis-memory",
            "Redis has maxmemory with maxmemory-policy noeviction",
            "once it is full it refuses to write: results of models are not kept, and mode auto does "
            "not learn",
            "set maxmemory-policy volatile-lru: all that TruthLens keeps there expires by itself",
        )
    elif rule.startswith("allkeys"):
        yield warning(
            "stores.redis-memory",
            f"Redis has maxmemory-policy {rule}",
            "under pressure it drops what mode auto learned as it drops results of models",
            "set maxmemory-policy volatile-ttl, or give mode auto a Redis of its own",
        )


async def _reviews(setup: Setup) -> list[CheckResult]:
    if setup.settings.review_database is None:
        return []
    from truthlens.review.store.database import ReviewDatabase, checked_url

    try:
        url = checked_url(setup.settings.review_database)
    except StartError as unfit:
        return [error("stores.reviews", str(unfit), "the process does not start", "fix --review-database")]
    if url.drivername.startswith("sqlite"):
        file = Path(url.database or "")
        try:
            return await in_thread(lambda: list(of_sqlite(file)), setup.timeout_s)
        except LookError as slow:
            return [_unreachable(f"the review database {file} {slow}")]
    database = ReviewDatabase(url)
    try:
        revision = await in_thread(database.revision, setup.timeout_s)
    except LookError as slow:
        return [_unreachable(f"the review database {database.shown} {slow}")]
    except Exception as failed:  # noqa: BLE001 - the border of the drivers, whose own words may quote the URL
        return [_unreachable(f"the review database {database.shown} cannot be read ({_kind(failed)})")]
    finally:
        # A connection that hangs is closed with the process.
        database.engine.dispose(close=False)
    return [_revision(database.shown, revision)]


def _kind(failed: Exception) -> str:
    """Return what a driver's error is about, without its words."""
    cause = failed.__cause__ if failed.__cause__ is not None else failed
    original = getattr(cause, "orig", None) or cause
    state = getattr(original, "sqlstate", None)
    text = str(original).lower()
    known = {
        "connection refused": "connection refused",
        "password authentication failed": "user or password refused",
        "does not exist": "there is no such database or user",
        "resolve host": "its name does not resolve",
    }
    named = next((said for sign, said in known.items() if sign in text), None)
    return named or (f"SQLSTATE {state}" if state else type(original).__name__)


def of_sqlite(file: Path, access: Callable[..., bool] = os.access) -> Iterator[CheckResult]:
    """Yield what is wrong with the SQLite file of the review queue; it is opened to be read, and not made."""
    place = next(each for each in (file, *file.absolute().parents) if each.exists())
    effective = os.access in os.supports_effective_ids
    folder = place if place.is_dir() else place.parent
    closed = [
        each for each in dict.fromkeys((place, folder)) if not access(each, os.W_OK, effective_ids=effective)
    ]
    if closed:
        yield error(
            "stores.reviews",
            f"the review database {file} cannot be written: {closed[0]} is read-only for this user",
            "no answer is queued for review, and a process that has to make its tables does not start "
            "its queue",
            f"give this user the right to write to {closed[0]}, or name another file with --review-database",
        )
    free = shutil.disk_usage(folder).free
    if free < _LEAST_DISK_BYTES:
        yield warning(
            "stores.reviews-disk",
            f"{free // _MIB} MiB are free on the disk of {file}",
            "a queue that cannot grow refuses entries",
            "make room, or name a file on another disk with --review-database",
        )
    if not file.exists():
        if not closed:
            yield ok("stores.reviews", f"{file} is made at the start")
        return
    if not file.is_file():
        yield error("stores.reviews", f"{file} is no file", "the queue cannot be opened", "name a file")
        return
    try:
        revision = _sqlite_revision(file)
    except sqlite3.Error as failed:
        yield error(
            "stores.reviews",
            f"{file} cannot be read as SQLite ({getattr(failed, 'sqlite_errorname', type(failed).__name__)})",
            "the queue cannot be opened",
            "restore it from a backup, or name another file with --review-database",
        )
        return
    if not closed:
        yield _revision(str(file), revision)


def _sqlite_revision(file: Path) -> str | None:
    from truthlens.review.store.database import VERSION_TABLE

    # In write-ahead mode readers, too, make files beside it; without a log no process has it open.
    mode = "mode=ro" if Path(f"{file}-wal").exists() else "mode=ro&immutable=1"
    name = quote(os.fsencode(file.absolute()))
    with closing(sqlite3.connect(f"file:{name}?{mode}", uri=True)) as connection:
        wanted = "SELECT 1 FROM sqlite_schema WHERE name = ?"
        if connection.execute(wanted, (VERSION_TABLE,)).fetchone() is None:
            return None
        query = f"SELECT version_num FROM {VERSION_TABLE}"  # noqa: S608 - our own name
        row = connection.execute(query).fetchone()
    return None if row is None else str(row[0])


def _revision(shown: str, revision: str | None) -> CheckResult:
    from truthlens.review.store.database import REVISIONS

    if revision is None:
        return ok("stores.reviews", f"{shown} answers; its tables are made at the start")
    if revision == REVISIONS[-1]:
        return ok("stores.reviews", f"{shown} answers, its tables are of version {revision}")
    if revision in REVISIONS:
        return warning(
            "stores.reviews-version",
            f"the tables in {shown} are of version {revision}, this TruthLens has {REVISIONS[-1]}",
            "the next start changes them, which locks them for a while; earlier versions cannot use "
            "them then",
            "back the database up first (truthlens review migrate)",
        )
    return error(
        "stores.reviews-version",
        f"the tables in {shown} are of version {revision}, which this TruthLens ({REVISIONS[-1]}) does "
        "not know",
        "a newer version made them, and this one does not start its queue",
        "run that version, or name another database with --review-database",
    )


def _unreachable(what: str) -> CheckResult:
    return error(
        "stores.reviews",
        what,
        "no answer is queued for review, and reviewers see nothing",
        "start the database, or fix --review-database",
    )


def _databases(policy: Policy | None) -> list[Database]:
    plans = () if policy is None else policy.all_plans
    found = (
        each
        for plan in plans
        if plan.enabled
        for spec in plan.detectors
        for each in getattr(spec.options, "databases", ())
    )
    return list(dict.fromkeys(found))


async def _values(setup: Setup, database: Database) -> list[CheckResult]:
    check, name = "stores.values", f"the database {database.name!r} of the detector numbers"
    why = "figures are not compared with it, and what it could prove is not proven"
    from truthlens.detection.detectors.numbers.sql.connection import database_url, open_engine

    try:
        url = database_url(database, setup.environ)
        engine = open_engine(database, url, timeout_ms=int(setup.timeout_s * 1000))
    except DetectorError as unfit:
        return [error(check, str(unfit), why, "fix what the message names, where the server runs")]
    except ImportError as missing:
        what = f"{name} needs the library {missing.name!r}, which is not installed"
        return [error(check, what, why, "pip install 'truthlens[sql]'")]
    try:
        await in_thread(lambda: engine.connect().close(), setup.timeout_s)
    except LookError as slow:
        return [error(check, f"{name} {slow}", why, "start it, or fix its URL")]
    except Exception as failed:  # noqa: BLE001 - the border of the drivers, whose own words may quote the URL
        return [error(check, f"{name} cannot be read ({_kind(failed)})", why, "start it, or fix its URL")]
    finally:
        engine.dispose(close=False)
    return [ok(check, f"{name} can be read, and only read")]

"""Entries are written in the background; whatever the database does, what is lost is counted and nothing waits for it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.postgres_server import PostgresServer
from tests.fakes.reviewed import EXCHANGE, outcome, queued
from truthlens.core.review_settings import ReviewSettings
from truthlens.review.entry.content import entry_of
from truthlens.review.intake import writer as writer_module
from truthlens.review.intake.intake import ReviewIntake
from truthlens.review.intake.writer import ReviewWriter
from truthlens.review.records import Filters, NewEntry, QueueUnavailableError, ReviewStatus
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue

SETTINGS = ReviewSettings(keep_text=True)


def new(review_id: str, created: float | None = None) -> NewEntry:
    return entry_of(queued(review_id=review_id), EXCHANGE, SETTINGS, created=created or time.time())


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it never came to hold")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[ReviewDatabase]:
    """A file that does not exist yet."""
    made = ReviewDatabase(checked_url(f"sqlite:///{tmp_path}/folder/reviews.db"))
    yield made
    made.dispose()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries again at once."""
    monkeypatch.setattr(writer_module, "_RETRY_S", (0.02,))
    monkeypatch.setattr(writer_module, "_COUNT_S", 0.05)


class Failing(ReviewQueue):
    """A queue whose database is out of order while ``broken``, and refuses entries whose id is in ``refused``."""

    def __init__(self, database: ReviewDatabase) -> None:
        super().__init__(database)
        self.broken = False
        self.refused: set[str] = set()

    def add(self, new: Any) -> None:
        if self.broken:
            raise QueueUnavailableError("the review database: no room")
        if any(each.id in self.refused for each in new):
            raise ValueError("no such value")
        super().add(new)


def test_entries_arrive_and_are_counted(database: ReviewDatabase) -> None:
    """Chosen outcomes, through the intake, with the figures of the whole queue."""
    queue, delays = ReviewQueue(database), list[float]()
    writer = ReviewWriter(queue, lambda: SETTINGS, observe_delay=delays.append)
    intake = ReviewIntake(writer)
    writer.start()
    chosen = [intake.chosen(outcome(0.9), SETTINGS) for _ in range(150)]
    for each in chosen:
        intake.queue(each, EXCHANGE, SETTINGS, query_id="q", headers={})
    wait_for(lambda: writer.figures().statuses.get(ReviewStatus.PENDING) == 150)
    figures = writer.figures()
    assert (figures.written, figures.waiting, figures.lost, figures.failing) == (150, 0, {}, False)
    assert figures.oldest_pending is not None
    assert delays
    assert {each.summary.id for each in queue.all()} == {each.review_id for each in chosen}
    writer.stop()


def test_an_outcome_that_is_not_for_review_has_no_id(database: ReviewDatabase) -> None:
    """And takes no room."""
    intake = ReviewIntake(ReviewWriter(ReviewQueue(database), lambda: SETTINGS))
    assert intake.chosen(outcome(0.1), SETTINGS).review_id is None


def test_no_id_is_promised_without_room(database: ReviewDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that never answers costs entries, counted, and memory within the bound."""
    monkeypatch.setattr(writer_module, "MOST_WAITING", 3)
    writer = ReviewWriter(ReviewQueue(database), lambda: SETTINGS)
    intake = ReviewIntake(writer)
    for _ in range(5):
        chosen = intake.chosen(outcome(0.9), SETTINGS)
        if chosen.review_id:
            intake.queue(chosen, EXCHANGE, SETTINGS, query_id="", headers={})
    assert writer.figures().waiting == 3
    assert writer.figures().lost == {"full": 2}


def test_ten_thousand_flagged_answers_at_once_are_written_or_counted(database: ReviewDatabase) -> None:
    """A storm of them costs entries, each counted; what waits stays within its bound, and every promised id is kept."""
    queue = ReviewQueue(database)
    writer = ReviewWriter(queue, lambda: SETTINGS)
    intake = ReviewIntake(writer)
    writer.start()
    promised = 0
    for _ in range(10_000):
        chosen = intake.chosen(outcome(0.9), SETTINGS)
        if chosen.review_id:
            promised += 1
            intake.queue(chosen, EXCHANGE, SETTINGS, query_id="", headers={})
        assert writer.figures().waiting <= writer_module.MOST_WAITING + writer_module.BATCH
    wait_for(lambda: writer.figures().written == promised)
    assert writer.figures().lost.get("full", 0) == 10_000 - promised
    writer.stop()


def test_memory_is_bounded_by_size_too(database: ReviewDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few long answers fill it like many short ones."""
    monkeypatch.setattr(writer_module, "MOST_WAITING_CHARS", 10)
    writer = ReviewWriter(ReviewQueue(database), lambda: SETTINGS)
    writer.submit(lambda: new("rv_1"), chars=11)
    assert not writer.room()


def test_a_database_that_comes_back_gets_what_waited(database: ReviewDatabase) -> None:
    """In order, none twice."""
    queue = Failing(database)
    queue.broken = True
    writer = ReviewWriter(queue, lambda: SETTINGS)
    writer.start()
    for number in range(5):
        writer.submit(partial(new, f"rv_{number}"), chars=1)
    wait_for(lambda: writer.figures().failing)
    assert writer.figures().waiting == 5
    queue.broken = False
    wait_for(lambda: writer.figures().written == 5)
    assert [each.summary.id for each in queue.all()] == [f"rv_{number}" for number in range(5)]
    wait_for(lambda: not writer.figures().failing)
    writer.stop()


def test_one_bad_entry_does_not_hold_up_the_others(database: ReviewDatabase) -> None:
    """Neither one that cannot be made nor one that the database refuses."""
    queue = Failing(database)
    queue.refused = {"rv_refused"}
    writer = ReviewWriter(queue, lambda: SETTINGS)

    def unmade() -> NewEntry:
        raise KeyError("of a kind that nobody thought of")

    writer.submit(lambda: new("rv_1"), chars=1)
    writer.submit(unmade, chars=1)
    writer.submit(lambda: new("rv_refused"), chars=1)
    writer.submit(lambda: new("rv_2"), chars=1)
    writer.start()
    wait_for(lambda: writer.figures().waiting == 0 and writer.figures().written == 2)
    assert [each.summary.id for each in queue.all()] == ["rv_1", "rv_2"]
    assert writer.figures().lost == {"content": 1, "database": 1}
    writer.stop()


def test_a_stop_writes_what_waits(database: ReviewDatabase) -> None:
    """Nothing is lost of a process that ends as it should."""
    queue = ReviewQueue(database)
    writer = ReviewWriter(queue, lambda: SETTINGS)
    writer.start()
    for number in range(300):
        writer.submit(partial(new, f"rv_{number}"), chars=1)
    writer.stop(time_s=60)
    assert sum(queue.counts().values()) == 300
    assert writer.figures().lost.get("stopped", 0) == 0


def test_a_stop_without_a_database_counts_what_is_lost(database: ReviewDatabase) -> None:
    """And does not wait for it."""
    queue = Failing(database)
    queue.broken = True
    writer = ReviewWriter(queue, lambda: SETTINGS)
    writer.start()
    writer.submit(lambda: new("rv_1"), chars=1)
    wait_for(lambda: writer.figures().failing)
    writer.stop(time_s=60)
    assert writer.figures().lost == {"stopped": 1}


def test_a_file_that_was_removed_is_made_again(database: ReviewDatabase, tmp_path: Path) -> None:
    """Entries would go into a file that nobody finds any more."""
    queue = ReviewQueue(database)
    writer = ReviewWriter(queue, lambda: SETTINGS)
    writer.start()
    writer.submit(lambda: new("rv_1"), chars=1)
    wait_for(lambda: writer.figures().written == 1)
    for file in (tmp_path / "folder").iterdir():
        file.unlink()
    wait_for((tmp_path / "folder" / "reviews.db").exists)
    writer.submit(lambda: new("rv_2"), chars=1)
    wait_for(lambda: writer.figures().written == 2)
    writer.stop()
    with sqlite3.connect(tmp_path / "folder" / "reviews.db") as found:
        assert found.execute("SELECT id FROM review_entries").fetchall() == [("rv_2",)]


def test_old_texts_and_entries_go(database: ReviewDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the retention of the policy in force, and the number of entries by its bound."""
    monkeypatch.setattr(writer_module, "_CLEAN_S", 0.05)
    now, day = time.time(), 86_400.0
    queue = ReviewQueue(database)
    database.upgrade()
    queue.add([new("rv_gone", now - 100 * day), new("rv_old", now - 40 * day), new("rv_new", now)])
    settings = [SETTINGS]
    writer = ReviewWriter(queue, lambda: settings[0])
    writer.start()
    wait_for(lambda: [each.summary.id for each in queue.all()] == ["rv_old", "rv_new"])
    wait_for(lambda: not queue.get("rv_old").summary.has_text)
    assert "texts" not in queue.get("rv_old").content
    assert queue.get("rv_old").summary.excerpt == ""
    assert "texts" in queue.get("rv_new").content
    settings[0] = ReviewSettings(keep_text=True, max_entries=1)
    wait_for(lambda: [each.summary.id for each in queue.all(Filters())] == ["rv_new"])
    writer.stop()


def test_a_submit_never_waits(database: ReviewDatabase) -> None:
    """Not even for a database that holds its lock for ever."""
    entered, release = threading.Event(), threading.Event()

    class Hanging(ReviewQueue):
        def add(self, new: Any) -> None:
            entered.set()
            release.wait(60)
            super().add(new)

    writer = ReviewWriter(Hanging(database), lambda: SETTINGS)
    writer.start()
    writer.submit(lambda: new("rv_1"), chars=1)
    assert entered.wait(60)
    for number in range(2, 52):  # the thread hangs; these return all the same
        writer.submit(partial(new, f"rv_{number}"), chars=1)
    assert writer.figures().waiting == 51
    release.set()
    writer.stop(time_s=60)
    assert writer.figures().written == 51


def test_a_frozen_postgresql_is_told_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts connections and says nothing; entries wait, and arrive when it goes on."""
    monkeypatch.setattr(writer_module, "_LONG_S", 0.2)
    server = PostgresServer()
    try:
        server.start()
        database = ReviewDatabase(checked_url(server.url()))
        writer = ReviewWriter(ReviewQueue(database), lambda: SETTINGS)
        writer.start()
        writer.submit(lambda: new("rv_1"), chars=1)
        wait_for(lambda: writer.figures().written == 1)
        server.freeze()
        writer.submit(lambda: new("rv_2"), chars=1)
        wait_for(lambda: writer.figures().failing)
        assert writer.figures().waiting == 1
        server.thaw()
        wait_for(lambda: writer.figures().written == 2 and not writer.figures().failing)
        writer.stop()
        database.dispose()
    finally:
        server.thaw()
        server.remove()


def test_what_is_lost_or_written_is_counted_once(database: ReviewDatabase) -> None:
    """However often the database fails meanwhile: a bad entry is not made again with each attempt, nor refused again."""
    queue = Failing(database)
    queue.broken, queue.refused = True, {"rv_refused"}
    made: list[str] = []

    def make(review_id: str) -> NewEntry:
        made.append(review_id)
        if review_id == "rv_bad":
            raise KeyError(review_id)
        return new(review_id)

    writer = ReviewWriter(queue, lambda: SETTINGS)
    ids = ["rv_1", "rv_bad", "rv_refused", "rv_2"]
    for each in ids:
        writer.submit(partial(make, each), chars=1)
    writer.start()
    wait_for(lambda: writer.figures().failing and writer.figures().waiting == 3)
    time.sleep(0.2)  # some attempts more
    queue.broken = False
    wait_for(lambda: writer.figures().waiting == 0 and not writer.figures().failing)
    assert made == ids
    assert (writer.figures().written, writer.figures().lost) == (2, {"content": 1, "database": 1})
    writer.stop()


def test_a_newer_database_is_named_in_the_log(
    database: ReviewDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    """Entries wait, and the log says why."""
    database.upgrade()
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE review_schema SET version_num = '9999'")
    writer = ReviewWriter(ReviewQueue(database), lambda: SETTINGS)
    writer.start()
    wait_for(lambda: writer.figures().failing)
    writer.stop()
    assert "newer version (9999)" in capsys.readouterr().out

"""The database of the review queue: migrations with data, and databases that are full, read-only, newer or not there."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.fakes.other_users import another_user, let_in
from tests.fakes.postgres_server import PASSWORD
from tests.fakes.review_entries import change, content, new_entry
from truthlens.core.errors import StartError
from truthlens.review.records import Filters, QueueUnavailableError, ReviewStatus
from truthlens.review.store import database as database_module
from truthlens.review.store.database import REVISIONS, ReviewDatabase, checked_url, default_url
from truthlens.review.store.queue import ReviewQueue
from truthlens.review.store.tables import metadata
from truthlens.store.state_folder import state_folder


def test_migrations_go_down_and_up_with_data(database: ReviewDatabase) -> None:
    """Entries stay, and what an older version does not have is made again of them."""
    queue = ReviewQueue(database)
    queue.add(
        [
            new_entry("a", kinds=("value", "value"), detectors={"encoder": 0.9}),
            new_entry("b", kinds=("x" * 80,)),
        ]
    )
    queue.change(change("a", ReviewStatus.REJECTED), actor="ann")
    before = (queue.get("a"), queue.get("b"), queue.choices())
    assert database.revision() == "0003"
    database.downgrade("0001")
    assert database.revision() == "0001"
    database.upgrade()
    assert (queue.get("a"), queue.get("b"), queue.choices()) == before
    assert [each.id for each in queue.listed(Filters(kind="value")).entries] == ["a"]
    database.downgrade("base")
    assert database.revision() is None
    database.upgrade()
    assert queue.counts()[ReviewStatus.PENDING] == 0


def test_migrations_make_the_tables_that_the_code_names(database: ReviewDatabase) -> None:
    """Columns, their types' lengths, and indexes."""
    found = sa.inspect(database.engine)
    for table in metadata.sorted_tables:
        columns = {each["name"]: each for each in found.get_columns(table.name)}
        assert set(columns) == {each.name for each in table.columns}
        for each in table.columns:
            assert bool(columns[each.name]["nullable"]) == bool(each.nullable), each
        assert {each["name"] for each in found.get_indexes(table.name) if "unique" in each and not each["unique"]} == {
            index.name for index in table.indexes
        }  # fmt: skip


def test_several_processes_migrate_at_the_same_time(url: str) -> None:
    """One does, the others wait and find it done."""
    databases = [ReviewDatabase(checked_url(url)) for _ in range(4)]
    failed: list[Exception] = []

    def upgrade(database: ReviewDatabase) -> None:
        try:
            database.upgrade()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=upgrade, args=(each,)) for each in databases]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert failed == []
    assert {each.revision() for each in databases} == {"0003"}
    for each in databases:
        each.dispose()


def test_tables_of_a_newer_version_are_left_alone(database: ReviewDatabase) -> None:
    """The message names the version."""
    with database.writing() as connection:
        connection.execute(sa.text("UPDATE review_schema SET version_num = '9999'"))
    with pytest.raises(StartError, match="9999"):
        database.upgrade()
    assert database.revision() == "9999"


def test_a_server_that_is_not_there_is_said_without_the_password() -> None:
    """The URL is a secret."""
    database = ReviewDatabase(checked_url(f"postgresql://owner:{PASSWORD}@127.0.0.1:9/none"))
    with pytest.raises(QueueUnavailableError) as error:
        ReviewQueue(database).counts()
    assert PASSWORD not in str(error.value)
    assert "127.0.0.1/none" in str(error.value)
    database.dispose()


@pytest.mark.parametrize(
    "text", ["", "reviews.db", "sqlite://", "sqlite:///:memory:", "mysql://u@h/d", "postgresql+asyncpg://h/d"]
)
def test_what_is_no_database_is_refused(text: str) -> None:
    with pytest.raises(StartError):
        checked_url(text)


def test_each_checkout_has_a_queue_of_its_own() -> None:
    """In a folder that git ignores."""
    checkout = Path(__file__).parents[3]
    assert default_url() == f"sqlite:///{checkout}/.truthlens/reviews.db"
    assert ".truthlens/" in (checkout / ".gitignore").read_text().splitlines()


def test_an_installed_one_is_in_the_users_state_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is made with it, for this user alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    database = ReviewDatabase(checked_url(f"sqlite:///{state_folder(tmp_path) / 'reviews.db'}"))
    database.upgrade()
    database.dispose()
    file = tmp_path / "state" / "truthlens" / "reviews.db"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with an entry that anybody may read, in a folder that nobody may write to."""
    folder = tmp_path / "kept"
    database = ReviewDatabase(checked_url(f"sqlite:///{folder / 'reviews.db'}"))
    database.upgrade()
    ReviewQueue(database).add([new_entry("one")])
    database.dispose()
    path = folder / "reviews.db"
    let_in(tmp_path)
    path.chmod(0o444)
    folder.chmod(0o555)
    return path


def test_a_read_only_file_can_be_read_and_refuses_changes(file: Path) -> None:
    """By a plain error, and the entry is as it was."""
    with another_user():
        database = ReviewDatabase(checked_url(f"sqlite:///{file}"))
        queue = ReviewQueue(database)
        assert queue.get("one").summary.status is ReviewStatus.PENDING
        with pytest.raises(QueueUnavailableError, match=r"read.?only|unable to open"):
            queue.change(change("one", ReviewStatus.APPROVED), actor="ann")
        with pytest.raises(QueueUnavailableError):
            database.upgrade()
        assert queue.get("one").summary.status is ReviewStatus.PENDING
        database.dispose()
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_full_disk_refuses_entries_and_loses_none(tmp_path: Path) -> None:
    """The batch that does not fit is not there, those before it are; with room again, entries are taken."""
    database = ReviewDatabase(checked_url(f"sqlite:///{tmp_path / 'reviews.db'}"))
    database.upgrade()
    queue = ReviewQueue(database)
    limit = {"pages": 0}

    @sa.event.listens_for(database.engine, "begin")
    def bound(connection: sa.Connection) -> None:
        pages = limit["pages"] or connection.exec_driver_sql("PRAGMA page_count").scalar() + 20
        limit["pages"] = pages
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    large = content(["x" * 20_000])
    added: list[str] = []

    def fill() -> None:
        for number in range(100):
            queue.add([new_entry(f"e{number}-{part}", content=large) for part in range(2)])
            added.extend(f"e{number}-{part}" for part in range(2))

    with pytest.raises(QueueUnavailableError, match="full"):
        fill()
    assert added
    assert [each.summary.id for each in queue.all()] == added
    limit["pages"] = 10_000
    queue.add([new_entry("later", content=large)])
    assert queue.get("later").content["texts"] == large["texts"]
    database.dispose()


def test_the_migrations_make_the_tables_that_the_code_uses(tmp_path: Path) -> None:
    """Column by column, index by index."""
    database = ReviewDatabase(checked_url(f"sqlite:///{tmp_path / 'reviews.db'}"))
    database.upgrade()
    with database.reading() as connection:
        options = {"version_table": "review_schema", "compare_type": True}
        found = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    database.dispose()
    assert found == []


def test_the_listed_versions_are_those_of_the_steps() -> None:
    """A process whose tables are of the newest one does not look at the steps at all."""
    config = Config()
    config.set_main_option("script_location", str(Path(database_module.__file__).parent / "migrations"))
    steps = [each.revision for each in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(steps)) == REVISIONS

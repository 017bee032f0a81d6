"""Real databases with the example's figures: a file of SQLite and a server of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import pytest
import sqlalchemy as sa
import yaml

from tests.fakes.finance_database import fill
from tests.fakes.postgres_server import PostgresServer
from truthlens.core.records.queries import QueryRecord
from truthlens.detection.detectors.numbers.sql.options import Database, Databases
from truthlens.detection.detectors.numbers.sql.source import SqlSource

EXAMPLE = Path(__file__).parents[5] / "config" / "examples" / "numbers-sql.yaml"
SCOPE = {"x-property-id": "1", "truthlens-scope-period-id": "1"}


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running PostgreSQL; a test that stops it starts it again."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@dataclass(frozen=True)
class Finance:
    """A database with the figures of the example, writable for the test."""

    kind: str
    url: str
    admin: sa.Engine

    def run(self, *statements: str) -> None:
        with self.admin.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)


@pytest.fixture(params=["sqlite", "postgresql"])
def finance(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Finance]:
    """The example's database, of each kind."""
    kind = request.param
    url = f"sqlite:///{tmp_path}/finance.db"
    if kind == "postgresql":
        url = request.getfixturevalue("postgres").url()
    admin = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1))
    if kind == "postgresql":
        with admin.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
    fill(admin)
    yield Finance(kind, url, admin)
    admin.dispose()


def example(**changes: Any) -> dict[str, Any]:
    """Return the example's database as it is written in YAML, with changes."""
    detectors = yaml.safe_load(EXAMPLE.read_text("utf-8"))["hallucination"]["detectors"]
    return {**detectors[1]["databases"][0], **changes}


def one_table(table: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the example's database with one table, whose scope is the property unless it says another."""
    return example(tables=[{"scope": {"property_id": "property_id"}, **table}], **changes)


def parsed(*databases: dict[str, Any]) -> tuple[Database, ...]:
    return pydantic.TypeAdapter(Databases).validate_python(list(databases))


class Sources:
    """Opens sources, notes what they tell, and closes them."""

    def __init__(self) -> None:
        self.records: list[QueryRecord] = []
        self.opened: list[SqlSource] = []

    def __call__(self, url: str, *databases: dict[str, Any], **settings: Any) -> SqlSource:
        environ = {"FINANCE_DATABASE_URL": url}
        # Patient, so that a busy machine fails no test that is about something else.
        chosen = databases or (example(timeout_ms=1000),)
        source = SqlSource(parsed(*chosen), environ=environ, observe=self.records.append, **settings)
        self.opened.append(source)
        return source

    def outcomes(self) -> list[str]:
        return [record.outcome.value for record in self.records]


@pytest.fixture
def sources() -> Iterator[Sources]:
    """What opens sources for the test."""
    made = Sources()
    yield made
    for source in made.opened:
        source.close()


Open = Callable[..., SqlSource]

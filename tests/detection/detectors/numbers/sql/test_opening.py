"""Opening says what is missing, before anything is served."""

from __future__ import annotations

import sys

import pytest

from tests.detection.detectors.numbers.sql.conftest import SCOPE, Finance, example, parsed
from truthlens.core.errors import DetectorError
from truthlens.core.records.queries import QueryRecord
from truthlens.detection.detectors.numbers.sql.opening import open_databases


def test_a_database_is_opened_and_checked(finance: Finance, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its URL comes from the process's environment, and its queries are told."""
    monkeypatch.setenv("FINANCE_DATABASE_URL", finance.url)
    told: list[QueryRecord] = []
    source = open_databases(parsed(example(timeout_ms=1000)), observe=told.append)
    assert len(source.known(SCOPE)) == 15
    assert [record.outcome for record in told] == ["ok"] * 3
    source.close()
    finance.run('DROP TABLE "FinancialPeriod"')
    with pytest.raises(DetectorError, match="there is no table 'FinancialPeriod'"):
        open_databases(parsed(example()))


@pytest.mark.parametrize("library", ["psycopg", "sqlalchemy"])
def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """With the command that installs it."""
    monkeypatch.setenv("FINANCE_DATABASE_URL", "postgresql://a@127.0.0.1:9/x")
    monkeypatch.setitem(sys.modules, library, None)
    if library == "sqlalchemy":
        monkeypatch.delitem(sys.modules, "truthlens.detection.detectors.numbers.sql.source", raising=False)
        monkeypatch.delitem(sys.modules, "truthlens.detection.detectors.numbers.sql.lane", raising=False)
    with pytest.raises(DetectorError, match=f"needs the library '{library}.*truthlens\\[sql\\]"):
        open_databases(parsed(example()))

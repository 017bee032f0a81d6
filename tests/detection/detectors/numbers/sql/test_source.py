"""Values of a record, from real databases of both kinds."""

from __future__ import annotations

import gc
import threading
import time
from decimal import Decimal

import pytest

from tests.detection.detectors.numbers.sql.conftest import SCOPE, Finance, Sources, example, one_table
from tests.fakes.postgres_server import PASSWORD, PostgresServer
from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange
from truthlens.detection.detectors.numbers.sources import KnownValue, ValueKind
from truthlens.detection.detectors.numbers.sql.lane import Lane
from truthlens.detection.detectors.numbers.sql.source import Known

METRIC = {"table": "FinancialMetrics", "columns": [{"column": "net_operating_income", "type": "currency"}]}
TEXT_SCOPE = {"property_id": {"header": "x-property-id", "type": "text"}}


def values_of(known: Known) -> dict[str, object]:
    return {
        value.source.partition(".")[2]: value.amounts[0] if value.amounts else dict(value.parts)
        for value in known
    }


def test_the_examples_mapping_gives_the_records_of_the_scope(finance: Finance, sources: Sources) -> None:
    """Every row is a record of typed values with unit, label, place and full confidence; shares are percentages."""
    source = sources(finance.url)
    source.check()
    known = source.known(SCOPE)
    assert known.problems == ()
    metrics, *income, period = known.records
    assert metrics[0] == KnownValue(
        ValueKind.CURRENCY,
        (Decimal(1200000),),
        "dollar",
        "net operating income; NOI",
        "sql:finance.FinancialMetrics.net_operating_income",
        1.0,
    )
    found = {value.source.rpartition(".")[2]: (value.kind, value.amounts[0]) for value in metrics}
    assert found["occupancy_rate"] == ("percentage", Decimal(85))
    assert found["cap_rate"] == ("percentage", Decimal("6.25"))
    assert found["debt_to_equity_ratio"] == ("percentage", Decimal(140))
    assert found["dscr"] == ("ratio", Decimal("1.25"))
    assert len(found) == 12
    assert [(value.label, value.amounts[0]) for record in income for value in record] == [
        ("Rental income: amount", Decimal("2150000.50")),
        ("Parking: amount", Decimal("249999.50")),
    ]
    assert [(value.parts, value.source) for value in period] == [
        ({"year": 2024, "quarter": 3}, "sql:finance.FinancialPeriod.quarter")
    ]
    assert known.details == {"sql_values": 15.0}
    assert sources.outcomes() == ["ok", "ok", "ok"]


def test_another_scope_is_another_record(finance: Finance, sources: Sources) -> None:
    """What is known is of the scope's property and period alone."""
    source = sources(finance.url)
    other = values_of(source.known({**SCOPE, "x-property-id": "2"}))
    assert other["FinancialMetrics.net_operating_income"] == Decimal(640000)
    assert values_of(source.known({**SCOPE, "x-property-id": "77"})).keys() == {"FinancialPeriod.quarter"}
    assert sources.outcomes().count("empty") == 2


def test_tables_whose_scope_is_known_are_asked_alone(finance: Finance, sources: Sources) -> None:
    """Without a property the period is known; without any key nothing is asked."""
    source = sources(finance.url)
    assert {value.kind for value in source.known({"truthlens-scope-period-id": "1"})} == {"date"}
    nothing = source.known({"x-other": "1"})
    assert nothing.details == {"sql_values": 0.0, "sql_finance": "no-scope"}
    assert sources.outcomes() == ["ok", "no-scope"]


HOSTILE = [
    "1; DROP TABLE \"FinancialMetrics\"",
    "1 OR 1=1",
    "1' OR '1'='1",
    "1\x00",
    "\x00",
    "１",
    "१",
    "1" * 1_000_000,
    "9" * 19,
    "1e0",
    "0x1",
    "1_000",
    "NaN",
    "1, 2",
    "",
    "\ud800",
    "-",
    "%s",
    ":scope_0",
]  # fmt: skip


def test_a_hostile_number_reaches_no_database(finance: Finance, sources: Sources) -> None:
    """What is no whole number is refused before a query."""
    source = sources(finance.url)
    for value in HOSTILE:
        known = source.known({**SCOPE, "x-property-id": value})
        assert known.details == {"sql_values": 0.0, "sql_finance": "bad-scope"}, ascii(value)[:40]
    assert set(sources.outcomes()) == {"bad-scope"}


def test_a_hostile_text_finds_nothing_and_harms_nothing(finance: Finance, sources: Sources) -> None:
    """A text is bound: whatever it says, it is compared, and no more."""
    finance.run(
        'CREATE TABLE "houses" ("name" VARCHAR(300), "noi" NUMERIC(18,2))',
        "INSERT INTO houses VALUES ('a house', 5)",
    )
    table = {
        "table": "houses",
        "scope": {"property_id": "name"},
        "columns": [{"column": "noi", "type": "currency"}],
    }
    source = sources(finance.url, one_table(table, scope=TEXT_SCOPE, timeout_ms=1000))
    for value in [*HOSTILE, "a", "'", '"', "\\", "$1", "é" * 200, "🏠", "name", "%", "_ _____"]:
        assert not source.known({"x-property-id": value}), ascii(value)[:40]
    assert set(sources.outcomes()) == {"bad-scope", "empty"}
    assert len(source.known({"x-property-id": "a house"})) == 1


def test_names_of_tables_and_columns_are_quoted(finance: Finance, sources: Sources) -> None:
    """A hostile name in the configuration is the name of a table, and nothing else."""
    table, column, key = 'a"b; DROP TABLE x--', "net%(x)s :y ?", "select"
    mark = "%%" if finance.kind == "postgresql" else "%"
    statement = 'CREATE TABLE "a""b; DROP TABLE x--" ("net%(x)s :y ?" NUMERIC(9,2), "select" INTEGER)'
    finance.run(statement.replace("%", mark), 'INSERT INTO "a""b; DROP TABLE x--" VALUES (7, 1)')
    mapping = {
        "table": table,
        "scope": {"property_id": key},
        "columns": [{"column": column, "type": "count"}],
    }
    source = sources(finance.url, one_table(mapping, timeout_ms=1000))
    source.check()
    assert [value.amounts[0] for value in source.known(SCOPE)] == [Decimal(7)]


def test_nothing_can_be_written(finance: Finance, sources: Sources) -> None:
    """The connections of a source refuse every change, even one that is asked for by hand."""
    source = sources(finance.url)
    (lane,) = source._lanes
    statements = [
        'DELETE FROM "FinancialMetrics"',
        "CREATE TABLE x (y INTEGER)",
        'UPDATE "FinancialMetrics" SET dscr = 9',
        'DROP TABLE "FinancialMetrics"',
    ]
    if finance.kind == "postgresql":
        statements.append('SET TRANSACTION READ WRITE; DELETE FROM "FinancialMetrics"')
    for statement in statements:
        with lane.engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            with pytest.raises(Exception, match=r"read-only|readonly|READ WRITE|read-write"):
                connection.exec_driver_sql(statement)
    assert len(source.known(SCOPE)) == 15


def test_two_rows_for_one_scope_count_for_nothing(finance: Finance, sources: Sources) -> None:
    """Where one row is expected and two are there, nobody knows which is right; other tables still count."""
    finance.run(
        'INSERT INTO "FinancialMetrics" (id, property_id, period_id, net_operating_income) VALUES (99, 1, 1, 5)'
    )
    known = sources(finance.url).known(SCOPE)
    assert known.problems == (("finance", "ambiguous"),)
    assert len(known.records) == 3


def test_more_rows_than_allowed_count_for_nothing(finance: Finance, sources: Sources) -> None:
    """A part of the rows would make the others look absent."""
    known = sources(finance.url, example(max_rows=1, timeout_ms=1000)).known(SCOPE)
    assert known.problems == (("finance", "too-many-rows"),)


def test_cells_without_a_value_are_skipped_and_counted(finance: Finance, sources: Sources) -> None:
    """NULL is no value; NaN, and text among numbers, are counted; the other cells of the row hold."""
    if finance.kind == "postgresql":
        finance.run("UPDATE \"FinancialMetrics\" SET dscr = 'NaN', cap_rate = NULL WHERE property_id = 1")
    else:
        finance.run("UPDATE \"FinancialMetrics\" SET dscr = 'a lot', cap_rate = NULL WHERE property_id = 1")
    known = sources(finance.url).known(SCOPE)
    found = values_of(known)
    assert known.problems == (("finance", "unreadable"),)
    assert "FinancialMetrics.dscr" not in found
    assert "FinancialMetrics.cap_rate" not in found
    assert found["FinancialMetrics.net_income"] == Decimal(950000)


def test_a_view_is_read_like_a_table(finance: Finance, sources: Sources) -> None:
    """Views can be mapped, and one whose table is gone costs its own values only."""
    finance.run(
        'CREATE VIEW figures AS SELECT property_id, net_income + 0 AS net FROM "FinancialMetrics" WHERE period_id = 1'
    )
    mapping = {"table": "figures", "columns": [{"column": "net", "type": "currency"}]}
    source = sources(finance.url, one_table(mapping, timeout_ms=1000, cache_ttl_s=0))
    source.check()
    assert [value.amounts[0] for value in source.known(SCOPE)] == [Decimal(950000)]
    finance.run("DROP VIEW figures")
    assert source.known(SCOPE).problems == (("finance", "mapping"),)
    assert sources.records[-1].error in ("UndefinedTable", "OperationalError")


def test_a_view_that_writes_is_refused(postgres: PostgresServer, sources: Sources, tmp_path: object) -> None:
    """A function behind a view may not change anything: the transaction is read-only."""
    import psycopg

    with psycopg.connect(postgres.url(), autocommit=True) as admin:
        for statement in (
            "DROP TABLE IF EXISTS touched CASCADE",
            "CREATE TABLE touched (n integer)",
            "CREATE OR REPLACE FUNCTION touch() RETURNS integer LANGUAGE sql AS 'INSERT INTO touched VALUES (1) RETURNING 1'",
            "CREATE VIEW touching AS SELECT touch() AS property_id, 5 AS n",
        ):
            admin.execute(statement)
        mapping = {"table": "touching", "columns": [{"column": "n", "type": "count"}]}
        source = sources(postgres.url(), one_table(mapping, timeout_ms=1000))
        assert source.known(SCOPE).problems == (("finance", "mapping"),)
        assert admin.execute("SELECT count(*) FROM touched").fetchone() == (0,)
        with pytest.raises(DetectorError, match="refuses to read 'touching'"):
            source.check()


def test_values_are_kept_for_a_while(finance: Finance, sources: Sources) -> None:
    """A second exchange of the scope asks nothing; after the time the database is asked again."""
    now = [100.0]
    source = sources(
        finance.url, example(timeout_ms=1000, cache_ttl_s=60, cache_entries=1), clock=lambda: now[0]
    )
    first = source.known(SCOPE)
    finance.run('UPDATE "FinancialMetrics" SET net_income = 1')
    assert source.known(SCOPE) == first
    assert sources.outcomes() == ["ok", "ok", "ok", "cached"]
    now[0] += 61
    assert values_of(source.known(SCOPE))["FinancialMetrics.net_income"] == Decimal(1)


def test_one_scope_at_the_same_time_is_asked_once(finance: Finance, sources: Sources) -> None:
    """Exchanges that come together share their queries."""
    source = sources(
        finance.url,
        one_table(
            METRIC | {"scope": {"property_id": "property_id", "period_id": "period_id"}}, timeout_ms=1000
        ),
    )
    source.known({**SCOPE, "x-property-id": "2"})  # connected
    (lane,) = source._lanes
    collectors = [lane.begin(SCOPE) for _ in range(8)]
    found = [collect().records for collect in collectors]
    assert found == [found[0]] * 8
    assert found[0]
    assert len([record for record in sources.records if record.seconds is not None]) <= 3


def test_a_slow_query_costs_its_values_and_not_the_time(finance: Finance, sources: Sources) -> None:
    """A query ends at the deadline, on the server too, and the tables that answered count."""
    slow = {
        "postgresql": "CREATE VIEW slow AS SELECT 1 AS property_id, 5 AS n FROM (SELECT pg_sleep(20)) AS s",
        "sqlite": "CREATE VIEW slow AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1000000000)"
        " SELECT 1 AS property_id, count(*) AS n FROM c",
    }
    finance.run(slow[finance.kind])
    tables = [
        {
            "table": "slow",
            "scope": {"property_id": "property_id"},
            "columns": [{"column": "n", "type": "count"}],
        }
    ]
    source = sources(finance.url, example(tables=[*tables, *example()["tables"]], timeout_ms=400))
    known = source.known(SCOPE)
    assert ("finance", "timeout") in known.problems
    assert len(known.records) == 4
    (lane,) = source._lanes
    give_up = time.monotonic() + 15
    while lane._pending:
        assert time.monotonic() < give_up, "the query goes on"
        time.sleep(0.02)
    assert sources.outcomes().count("timeout") == 1


def test_a_database_that_is_gone_is_left_alone_and_tried_again(
    postgres: PostgresServer, sources: Sources
) -> None:
    """Three failures open the circuit; then nothing is sent until the probe, which closes it again."""
    import sqlalchemy as sa

    from tests.fakes.finance_database import fill

    admin = sa.create_engine(postgres.url().replace("postgresql:", "postgresql+psycopg:"))
    fill(admin)
    admin.dispose()
    now = [0.0]
    source = sources(
        postgres.url(),
        example(timeout_ms=1000, cache_ttl_s=0),
        clock=lambda: now[0] + time.monotonic() * 1e-3,
    )
    assert len(source.known(SCOPE)) == 15
    postgres.stop()
    try:
        for _ in range(3):
            assert source.known(SCOPE).problems == (("finance", "unavailable"),)
        assert source.known(SCOPE).details == {"sql_values": 0.0, "sql_finance": "circuit-open"}
    finally:
        postgres.start()
    now[0] += 6
    assert len(source.known(SCOPE)) == 15
    assert source.known(SCOPE).problems == ()


def test_a_restarted_server_costs_nothing(postgres: PostgresServer, sources: Sources) -> None:
    """Connections that broke while they were idle are replaced within the same look-up."""
    import sqlalchemy as sa

    from tests.fakes.finance_database import fill

    admin = sa.create_engine(postgres.url().replace("postgresql:", "postgresql+psycopg:"))
    fill(admin)
    admin.dispose()
    source = sources(postgres.url(), example(timeout_ms=1000, cache_ttl_s=0))
    assert source.known(SCOPE).problems == ()
    postgres.stop()
    postgres.start()
    assert source.known(SCOPE).problems == ()


def test_a_frozen_server_blocks_neither_answers_nor_threads(
    postgres: PostgresServer, sources: Sources
) -> None:
    """A server that holds its connections and says nothing: the deadline holds, and the connections are cut later."""
    import sqlalchemy as sa

    from tests.fakes.finance_database import fill

    admin = sa.create_engine(postgres.url().replace("postgresql:", "postgresql+psycopg:"))
    fill(admin)
    admin.dispose()
    shift = [0.0]
    source = sources(
        postgres.url(), example(timeout_ms=200, cache_ttl_s=0), clock=lambda: time.monotonic() + shift[0]
    )
    source.known(SCOPE)
    (lane,) = source._lanes
    postgres.freeze()
    try:
        assert source.known(SCOPE).problems == (("finance", "timeout"),)
        assert lane._running
        shift[0] += 10
        source.known({**SCOPE, "x-property-id": "2"})
        give_up = time.monotonic() + 20
        while lane._pending and time.monotonic() < give_up:
            source.known({})
            time.sleep(0.05)
            shift[0] += 1
        assert not lane._pending
    finally:
        postgres.thaw()
    shift[0] += 60
    give_up = time.monotonic() + 20
    while source.known(SCOPE).problems and time.monotonic() < give_up:
        time.sleep(0.1)
        shift[0] += 60
    assert len(source.known(SCOPE)) == 15


def test_work_that_waits_is_bounded(finance: Finance, sources: Sources) -> None:
    """More look-ups than the threads can take are refused at once."""
    source = sources(finance.url, example(pool_size=1, timeout_ms=1000, cache_ttl_s=0))
    (lane,) = source._lanes
    release = threading.Event()
    lane._pool.submit(release.wait)
    try:
        begun = [lane.begin({**SCOPE, "x-property-id": str(number)}) for number in range(20)]
    finally:
        release.set()
    assert sources.outcomes().count("overloaded") >= 10
    assert begun[-1]().problems == ("overloaded",)
    assert begun[0]().problems == ()


def test_a_database_that_is_down_at_the_start_is_reported_and_not_checked(sources: Sources) -> None:
    """The policy loads; the look-ups fail until the database comes."""
    url = f"postgresql://a:{PASSWORD}@127.0.0.1:9/finance"
    source = sources(url)
    source.check()
    assert sources.outcomes() == ["unavailable"]
    assert not source.known(SCOPE)


def test_a_mapping_that_does_not_fit_is_refused_at_the_start(finance: Finance, sources: Sources) -> None:
    """All mistakes are named: a missing table, missing columns, columns of a wrong type."""
    finance.run("CREATE TABLE notes (property_id INTEGER, body TEXT, noted DATE)")
    tables = [
        {"table": "financialmetrics", "scope": {"property_id": "property_id"}, "columns": [{"column": "x", "type": "count"}]},
        {"table": "notes", "scope": {"property_id": "propertyId"}, "columns": [{"column": "sum", "type": "currency"}]},
        {"table": "notes", "scope": {"property_id": "property_id"}, "label_column": "body", "columns": [
            {"column": "body", "type": "currency"}, {"column": "noted", "type": "date"}]},
    ]  # fmt: skip
    with pytest.raises(DetectorError) as caught:
        sources(finance.url, example(tables=tables)).check()
    message = str(caught.value)
    if finance.kind == "postgresql":
        assert "there is no table 'financialmetrics'" in message
    assert "no column 'propertyId'" in message
    assert "no column 'sum'" in message
    assert "'body' of 'notes' is of type TEXT, which cannot be a currency" in message
    assert "noted" not in message.replace("has: body, noted", "")
    assert PASSWORD not in message


def test_a_scope_key_of_another_type_is_refused_at_the_start(
    postgres: PostgresServer, sources: Sources
) -> None:
    """A text is never compared with a column of numbers."""
    import sqlalchemy as sa

    from tests.fakes.finance_database import fill

    admin = sa.create_engine(postgres.url().replace("postgresql:", "postgresql+psycopg:"))
    fill(admin)
    admin.dispose()
    source = sources(postgres.url(), one_table(METRIC, scope=TEXT_SCOPE, timeout_ms=1000))
    with pytest.raises(
        DetectorError,
        match="'property_id' of 'FinancialMetrics' is of type INTEGER, which cannot be a text scope key",
    ):
        source.check()
    assert source.known(SCOPE).problems == (("finance", "mapping"),)


def test_uuids_are_compared_as_such(finance: Finance, sources: Sources) -> None:
    """Whatever way a UUID is written, it finds its row."""
    kind = "UUID" if finance.kind == "postgresql" else "TEXT"
    finance.run(
        f"CREATE TABLE houses (house {kind}, n INTEGER)",
        "INSERT INTO houses VALUES ('0f8fad5b-d9cb-469f-a165-70867728950e', 5)",
    )
    table = {
        "table": "houses",
        "scope": {"property_id": "house"},
        "columns": [{"column": "n", "type": "count"}],
    }
    scope = {"property_id": {"header": "x-property-id", "type": "uuid"}}
    source = sources(finance.url, one_table(table, scope=scope, timeout_ms=1000))
    source.check()
    assert len(source.known({"x-property-id": "0F8FAD5BD9CB469FA16570867728950E"})) == 1


def test_a_source_that_is_dropped_lets_go_of_its_connections(finance: Finance, sources: Sources) -> None:
    """A reloaded policy builds new sources; the old ones leave no thread and no connection."""
    source = sources(finance.url)
    source.known(SCOPE)
    lane: Lane = source._lanes[0]
    sources.opened.clear()
    del source
    gc.collect()
    assert lane._closed
    assert lane._connections.checkedin() == 0  # type: ignore[attr-defined]
    assert lane.begin(SCOPE)().problems in ((), ("overloaded",))


def test_a_detector_gets_the_kinds_that_it_verifies(finance: Finance, sources: Sources) -> None:
    """Values of other kinds are left out, and nobody is asked for an answer that nobody waits for."""
    source = sources(finance.url)
    exchange = Exchange(Endpoint.CHAT, "m", "", (), scope=SCOPE)
    kinds = frozenset({ValueKind.RATIO, ValueKind.DATE})
    known = source.values(exchange, kinds, stop=lambda: False)
    assert [value.kind for value in known] == [ValueKind.RATIO, ValueKind.DATE]
    assert known.details == {"sql_values": 2.0}
    assert not source.values(exchange, kinds, stop=lambda: True)
    assert not source.values(Exchange(Endpoint.CHAT, "m", "property 1", ()), kinds, stop=lambda: False)

"""Passages in a real PostgreSQL with pgvector: nearness, the filter, mappings that do not fit, and a server that fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.fakes.ports import free_port
from tests.fakes.postgres_server import PASSWORD, PostgresServer
from tests.retrieval.vectors.conftest import VECTORS, build
from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.retrieval.interfaces import SourceError

TABLE: dict[str, object] = {
    "url_env": "URL",
    "table": 'Pass"ages',
    "columns": {"title": "ti%tle", "parent_id": "doc"},
}
NAME = '"Pass""ages"'
HOSTILE = "o'Brien\"); DROP TABLE x; -- %s :a"

KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'truthlens'"

Run = Callable[..., None]
Sources = Callable[..., Any]


@pytest.fixture
def run(postgres: PostgresServer) -> Iterator[Run]:
    """Statements of an administrator, on a table of five passages."""
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(KILL)  # what was given up goes on there until its statement_timeout
        connection.execute(f"DROP TABLE IF EXISTS {NAME} CASCADE")
        connection.execute(
            f'CREATE TABLE {NAME} (id int PRIMARY KEY, text text, "ti%tle" text, doc uuid, tenant text,'
            " number bigint, embedding vector(3))"
        )
        for place, (word, vector) in enumerate(VECTORS.items()):
            connection.execute(
                f"INSERT INTO {NAME} VALUES (%s, %s, 'T', '00000000-0000-0000-0000-00000000000A', %s, %s, %s::vector)",
                (place, f"the {word}", (HOSTILE, "b")[place % 2], place % 2, str(list(vector))),
            )
        connection.execute(
            f"INSERT INTO {NAME} VALUES (8, NULL, NULL, NULL, NULL, 0, '[1,0,0]'), (9, 'a', NULL, NULL, NULL, 0, NULL)"
        )
        yield connection.execute  # type: ignore[misc]


@pytest.fixture
async def sources(postgres: PostgresServer, run: Run) -> AsyncIterator[Sources]:
    opened: list[Any] = []

    def open_one(url: str | None = None, **options: object) -> Any:
        opened.append(build("pgvector", TABLE | options, Path(), URL=url or postgres.url()))
        return opened[-1]

    yield open_one
    for source in opened:
        await source.aclose()


def find(source: Any, *, k: int = 10, seconds: float = 30.0, **filter_: str) -> Awaitable[list[FoundPassage]]:
    return source.search(Search("rent", filter_), k=k, deadline=Deadline.after(seconds))  # type: ignore[no-any-return]


async def failure(source: Any, *, seconds: float = 30.0, **filter_: str) -> SourceError:
    with pytest.raises(SourceError) as raised:
        await find(source, seconds=seconds, **filter_)
    told = f"{raised.value} {raised.value.__cause__}"
    assert not any(secret in told for secret in ("rent", PASSWORD, HOSTILE))
    return raised.value


@pytest.mark.parametrize("type_", ["vector(3)", "halfvec(3)", "vector"])
@pytest.mark.parametrize(
    ("distance", "scores"),
    [
        ("cosine", [1.0, 0.8, 0.0, 0.0]),
        ("inner", [1.0, 0.8, 0.0, 0.0]),
        ("l2", [0.0, -(0.4**0.5), -(2**0.5), -(2**0.5)]),
    ],
)
async def test_the_nearest_come_first_with_the_higher_score(
    run: Run, sources: Sources, distance: str, scores: list[float], type_: str
) -> None:
    run(f"ALTER TABLE {NAME} ALTER embedding TYPE {type_}")
    found = await find(sources(distance=distance, schema="public"))
    assert [each.score for each in found] == pytest.approx(scores, abs=1e-3)
    assert [each.text for each in found[:2]] == ["the rent", "the lease"]
    assert found[0] == FoundPassage(
        "the rent", "0", "T", "00000000-0000-0000-0000-00000000000a", found[0].score
    )
    assert [each.id for each in await find(sources(distance=distance), k=1)] == ["0"]


async def test_what_rows_hold_is_bounded(run: Run, sources: Sources) -> None:
    run(f"UPDATE {NAME} SET text = repeat('ä', 3000000), \"ti%tle\" = repeat('t', 100000) WHERE id = 0")
    run(f"UPDATE {NAME} SET text = '  ' WHERE id = 1")
    run(f"UPDATE {NAME} SET embedding = '[0,0,0]' WHERE id = 2")
    first, last = await find(sources())
    assert (len(first.text), len(first.title), last.id) == (8_000, 500, "3")
    run(f"ALTER TABLE {NAME} ALTER id TYPE text USING repeat(id::text, 501)")
    assert (await failure(sources())).result is SearchResult.BAD_RESPONSE


async def test_the_filter_is_the_databases_and_what_is_not_asked_for_is_refused(
    run: Run, sources: Sources
) -> None:
    tenants = sources(filter={"tenant": "x-tenant"})
    assert [each.id for each in await find(tenants, tenant=HOSTILE)] == ["0", "2"]
    assert [each.id for each in await find(tenants, tenant="b")] == ["1", "3"]
    assert [each.id for each in await find(sources(filter={"number": "x-n"}), number="1")] == ["1", "3"]
    assert list(await find(tenants, tenant="nobody")) == []
    for filter_ in ({}, {"tenant": ""}, {"tenant": "b", "number": "1"}, {"number": "1"}):
        assert (await failure(tenants, **filter_)).result is SearchResult.NO_SCOPE
    for hostile in ("b\0", "\ud800"):
        assert (await failure(tenants, tenant=hostile)).result in (
            SearchResult.REFUSED,
            SearchResult.BAD_RESPONSE,
        )
    # 01 is 1 to the database and not to who asked; a word is no number to it.
    for other in ("01", "one' OR 1=1"):
        assert (
            await failure(sources(filter={"number": "x-n"}), number=other)
        ).result is SearchResult.BAD_RESPONSE
    assert len(await find(sources())) == 4


async def test_an_index_hides_no_passage_of_a_small_tenant(
    postgres: PostgresServer, run: Run, sources: Sources
) -> None:
    run(
        f"INSERT INTO {NAME} SELECT n, 'other', NULL, NULL, 'other', 0, ARRAY[1, n / 1e6, 0]::vector FROM generate_series(100, 2100) n"
    )
    run(f"CREATE INDEX ON {NAME} USING hnsw (embedding vector_cosine_ops)")
    run("CREATE ROLE indexed LOGIN PASSWORD '" + PASSWORD + "'")
    run(f"GRANT SELECT ON {NAME} TO indexed")
    run("ALTER ROLE indexed SET enable_seqscan = off")
    run("ALTER ROLE indexed SET enable_sort = off")
    try:
        source = sources(postgres.url("indexed"), filter={"tenant": "x-tenant"})
        assert [each.id for each in await find(source, tenant="b")] == ["1", "3"]
    finally:
        await source.aclose()
        run(f"REVOKE ALL ON {NAME} FROM indexed")
        run("DROP ROLE indexed")


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ("", {"table": "passages"}, "no table"),
        ("", {"schema": "nowhere"}, "no table"),
        ("", {"columns": {"text": "Text"}}, "no column 'Text'; it has: doc, embedding"),
        ("", {"columns": {"embedding": "text"}}, "type text; expected vector"),
        ("", {"filter": {"x; DROP": "x-t"}}, "no column 'x; DROP'"),
        ("ALTER TABLE {} ALTER embedding TYPE vector(2) USING '[1,2]'", {}, "have 2 dimensions, those of questions 3"),
        ("ALTER TABLE {} ALTER embedding TYPE vector USING '[1,2]'", {}, "have 2 dimensions, those of questions 3"),
    ],
)  # fmt: skip
async def test_a_table_that_does_not_fit_is_said(
    run: Run, sources: Sources, change: str, options: dict[str, Any], message: str
) -> None:
    if change:
        run(change.format(NAME))
    values = dict.fromkeys(options.get("filter", {}), "v")
    error = await failure(sources(**options), **values)
    assert error.result is SearchResult.BAD_RESPONSE
    assert message in str(error)


async def test_a_table_that_changes_is_looked_at_again(run: Run, sources: Sources) -> None:
    source = sources()
    assert len(await find(source)) == 4
    run(f"ALTER TABLE {NAME} RENAME doc TO document")
    assert "cannot run the query (UndefinedColumn)" in str(await failure(source))
    assert "no column 'doc'" in str(await failure(source))
    run(f"ALTER TABLE {NAME} RENAME document TO doc")
    assert len(await find(source)) == 4


async def test_nothing_is_written_and_rights_are_the_databases(
    postgres: PostgresServer, run: Run, sources: Sources
) -> None:
    run(
        f"CREATE OR REPLACE FUNCTION spoil() RETURNS text LANGUAGE sql AS 'DELETE FROM {NAME} RETURNING text'"
    )
    run(f"CREATE VIEW bad AS SELECT id, spoil() AS text, embedding FROM {NAME}")
    error = await failure(sources(table="bad", columns={}))
    run("CREATE ROLE poor LOGIN PASSWORD '" + PASSWORD + "'")
    try:
        assert (await failure(sources(postgres.url("poor")))).result is SearchResult.REFUSED
    finally:
        run("DROP ROLE poor")
    assert error.result is SearchResult.REFUSED
    assert len(await find(sources())) == 4


@pytest.fixture
def slow(run: Run) -> dict[str, object]:
    """A view whose rows take half a minute."""
    run(
        f"CREATE VIEW slow AS SELECT p.* FROM {NAME} p, LATERAL (SELECT pg_sleep(30) WHERE p.id >= 0 OFFSET 0) s"
    )
    return {"table": "slow", "columns": {}, "timeout_s": 60}


async def test_a_search_that_is_given_up_gives_its_connection_back(
    sources: Sources, slow: dict[str, object]
) -> None:
    source = sources(**slow, connections=1)
    assert (await failure(source, seconds=0.3)).result is SearchResult.TIMEOUT
    for _ in range(3):
        task = asyncio.ensure_future(find(source))
        await until(lambda: source._engine.pool.checkedout() == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until(lambda: source._engine.pool.checkedout() == 0)


async def test_a_statement_has_the_sources_time(sources: Sources, slow: dict[str, object]) -> None:
    error = await failure(sources(**slow | {"timeout_s": 0.2}))
    assert (error.result, str(error)) == (SearchResult.TIMEOUT, "QueryCanceled")


async def test_a_connection_that_is_killed_is_opened_anew_once(
    run: Run, sources: Sources, slow: dict[str, object]
) -> None:
    lying = sources()
    assert len(await find(lying)) == 4
    run(KILL)
    assert len(await find(lying)) == 4

    source = sources(**slow)
    task = asyncio.ensure_future(failure(source))
    while not task.done():
        run(KILL + " AND query LIKE '%slow%' AND state = 'active'")
        await asyncio.sleep(0.01)
    assert (await task).result is SearchResult.UNAVAILABLE


async def test_a_server_that_stands_still_or_is_gone_costs_no_thread(
    postgres: PostgresServer, sources: Sources
) -> None:
    source = sources(connections=1)
    assert len(await find(source)) == 4
    postgres.freeze()
    try:
        assert (await failure(source, seconds=0.3)).result is SearchResult.TIMEOUT
        assert (await failure(source, seconds=0.3)).result is SearchResult.TIMEOUT
    finally:
        postgres.thaw()
    assert len(await find(source)) == 4
    postgres.stop()
    try:
        assert (await failure(source)).result is SearchResult.UNAVAILABLE
    finally:
        postgres.start()
    assert len(await find(source)) == 4
    nowhere = sources(f"postgresql://owner:{PASSWORD}@127.0.0.1:{free_port()}/postgres")
    assert (await failure(nowhere)).result is SearchResult.UNAVAILABLE
    wrong = sources(postgres.url().replace(PASSWORD, "another"))
    assert (await failure(wrong)).result is SearchResult.UNAVAILABLE


async def test_many_searches_share_few_connections(run: Run, sources: Sources) -> None:
    source = sources(connections=2, max_concurrency=200)
    found = await asyncio.gather(*(find(source) for _ in range(200)))
    assert {len(each) for each in found} == {4}
    row = run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'truthlens'").fetchone()  # type: ignore[attr-defined]
    assert row == (2,)
    few = sources(connections=1, max_concurrency=8)
    ended = await asyncio.gather(*(find(few) for _ in range(200)), return_exceptions=True)
    refused = [each for each in ended if isinstance(each, SourceError)]
    assert {each.result for each in refused} == {SearchResult.OVERLOADED}
    assert sum(isinstance(each, list) for each in ended) == 200 - len(refused) >= 9


async def test_a_closed_source_searches_no_more(sources: Sources, slow: dict[str, object]) -> None:
    source = sources(**slow, connections=1)
    tasks = [asyncio.ensure_future(failure(source)) for _ in range(3)]  # one runs, two wait
    await until(lambda: source._engine.pool.checkedout() == 1)
    await source.aclose()
    assert {(await task).result for task in tasks} == {SearchResult.UNAVAILABLE}
    assert (await failure(source)).result is SearchResult.UNAVAILABLE


@pytest.mark.parametrize(
    "url",
    ["", "no url s3cret", "mysql://u:s3cret@h/d", "postgresql://u:s3cret@h", "postgresql://u:s3cret@h/d?options=-cx",
     "postgresql+psycopg2://u:s3cret@h/d", "postgresql://u:s3cret@h:port/d"],
)  # fmt: skip
def test_a_url_that_cannot_be_used_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(ValueError, match="environment variable URL") as raised:
        build("pgvector", TABLE, Path(), URL=url)
    assert "s3cret" not in str(raised.value)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ValueError, match=r"'psycopg'; pip install 'truthlens\[sql\]'"):
        build("pgvector", TABLE, Path(), URL="postgresql://h/d")


@pytest.mark.parametrize(
    "options",
    [{"table": ""}, {"table": "a\nb"}, {"table": "ä" * 32}, {"filter": {"a\0": "x"}}, {"url": "postgresql://h/d"},
     {"auth": "passthrough"}, {"columns": {"extra": "x"}}],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        build("pgvector", TABLE | options, Path(), URL="postgresql://h/d")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)

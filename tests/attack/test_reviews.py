"""What a client of the review API may send to the database behind it, SQLite and a real PostgreSQL, and what that may do meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.attack.gateway import attacks
from tests.fakes.postgres_server import PostgresServer
from tests.fakes.review_console import console_of, entry, queue_in
from truthlens.desk.reviews.schemas import ListQuery
from truthlens.review.records import Filters, QueueUnavailableError, ReviewStatus
from truthlens.review.store.queue import MOST_LISTED, ReviewQueue
from truthlens.review.store.tables import metadata

ENTRIES = 60
_NAMES = tuple(ListQuery.model_fields)
_INJECTIONS = (
    "' OR '1'='1", "') OR 1=1 --", "'; DROP TABLE review_entries; --", "1; DELETE FROM review_entries", "\" OR \"\"=\"", "%", "_", "\\", "\\'",
    "' UNION SELECT * FROM review_events --", "$$; DROP TABLE review_events; $$", "admin'/*", "*/ OR 1=1 /*", "0x27", ":id", "%(id)s", "{{7*7}}",
    "pg_sleep(9)", "'||pg_sleep(9)||'", "1e309", "-1", "NaN", "Infinity", "9" * 400, "1_1", "0.5_1' OR 1=1", "nan_1", "inf_1", "-inf_-1", "1_" + "9" * 30,
    "\u0661", "\ud800", "\u0000", "\uffff", "\u202e", "null", "[]", "true", "1.0", "0x10", " 1", "1e3", "pending' --",
)  # fmt: skip
_TEXTS = st.one_of(st.sampled_from(_INJECTIONS), st.text(max_size=60))
_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.floats(), _TEXTS,
        st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**40, -(2**63) - 1]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXTS, inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip
_BODIES = st.fixed_dictionaries(
    {"version": st.one_of(st.just(1), _VALUES), "status": st.one_of(st.just("approved"), _VALUES)},
    optional={
        "note": _VALUES,
        "spans": st.one_of(_VALUES, st.lists(st.dictionaries(st.sampled_from(["start", "end", "choice"]), _VALUES), max_size=3)),
        "clear_spans": _VALUES,
        "id": _VALUES,
    },
)  # fmt: skip


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer | None]:
    if request.param == "sqlite":
        yield None
        return
    made = PostgresServer()
    made.start()
    yield made
    made.remove()


@pytest.fixture(scope="module")
def queue(server: PostgresServer | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewQueue]:
    folder: Path = tmp_path_factory.mktemp("queue")
    made = queue_in(folder, server.url() if server else "")
    made.add([entry(number) for number in range(ENTRIES)])
    yield made
    made.database.dispose()


class Client:
    """Sends to consoles with the queue; a new one now and then, for each lets only so many requests of one user pass."""

    def __init__(self, queue: ReviewQueue) -> None:
        self._queue, self._left = queue, 0

    def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        if not self._left:
            # What a handler does not catch fails the test by itself.
            self._client, self._left = TestClient(console_of(self._queue), base_url="http://localhost"), 40
        self._left -= 1
        return self._client.request(method, path, **more)


@pytest.fixture(scope="module")
def send(queue: ReviewQueue) -> Client:
    return Client(queue)


def is_whole(queue: ReviewQueue) -> bool:
    """Return whether all tables and entries are there."""
    with queue.database.reading() as connection:
        tables = set(sa.inspect(connection).get_table_names())
    return set(metadata.tables) <= tables and sum(queue.counts().values()) == ENTRIES


@attacks(ci=60, nightly=5_000)
@given(query=st.lists(st.tuples(st.sampled_from((*_NAMES, "x")), _TEXTS), max_size=4))
def test_no_query_reaches_the_database_as_more_than_a_value(
    send: Client, queue: ReviewQueue, query: list[tuple[str, str]]
) -> None:
    """Lists, counts, exports and pages: it chooses by what is there, or says what is wrong with it; nothing else happens."""
    pairs = [(name, value.encode("utf-8", "surrogatepass")) for name, value in query]
    for path in ("/api/reviews", "/api/reviews/counts", "/api/reviews/export"):
        reply = send("GET", path, params=pairs)
        assert reply.status_code in (200, 422), (path, query, reply.text)
        if path == "/api/reviews" and reply.status_code == 200:
            known = {entry(number).id for number in range(ENTRIES)}
            assert {each["id"] for each in reply.json()["entries"]} <= known
    assert send("GET", "/reviews", params=pairs).status_code in (200, 422)
    assert is_whole(queue)


@attacks(ci=60, nightly=5_000)
@given(own_id=st.one_of(st.just(entry(3).id), _TEXTS), body=_BODIES)
def test_no_body_changes_more_than_the_entry_that_it_names(
    send: Client, queue: ReviewQueue, own_id: str, body: dict[str, Any]
) -> None:
    """Alone and in bulk, of whatever types; what is refused has changed nothing."""
    others = {each.id: each.version for each in queue.summaries(Filters()) if each.id != entry(3).id}
    text = json.dumps(body)
    path = "/api/reviews/" + "".join(f"%{byte:02X}" for byte in own_id.encode("utf-8", "surrogatepass"))
    headers = {"content-type": "application/json"}
    single = send("PATCH", path, content=text, headers=headers)
    assert single.status_code in (200, 404, 405, 409, 413, 422), single.text
    many = json.dumps({"changes": [{**body, "id": body.get("id", own_id)}]})
    bulk = send("POST", "/api/reviews/bulk", content=many, headers=headers)
    assert bulk.status_code in (200, 422), bulk.text
    assert is_whole(queue)
    assert {
        each.id: each.version for each in queue.summaries(Filters()) if each.id != entry(3).id
    } == others or body.get("id") in others


@pytest.mark.parametrize("limit", ["0", "-1", "201", "10000000", "9" * 30, "1e2", "NaN"])
def test_a_huge_page_is_refused(send: Client, limit: str) -> None:
    """Before the database is asked."""
    assert send("GET", f"/api/reviews?limit={limit}").status_code == 422


@pytest.mark.parametrize("server", ["postgresql"], indirect=True)
def test_connections_that_break_in_the_middle_lose_no_part_of_a_step(
    send: Client, queue: ReviewQueue, server: PostgresServer | None
) -> None:
    """A bulk change is there as a whole or not at all, and what is told to be done is; then it goes on."""
    assert server is not None
    import psycopg

    chosen = [entry(number).id for number in range(10, 25)]
    stop = threading.Event()

    def cut() -> None:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            while not stop.wait(0.1):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'truthlens'"
                )

    thread = threading.Thread(target=cut)
    thread.start()
    seen: list[int] = []
    try:
        for _ in range(1_000):
            if len(seen) == 20:
                break
            status = ("rejected", "pending")[len(seen) % 2]
            try:
                before = {each.id: each for each in queue.listed(limit=MOST_LISTED).entries}
            except QueueUnavailableError:
                continue  # it is broken all the time
            changes = [{"id": each, "version": before[each].version, "status": status} for each in chosen]
            seen.append(send("POST", "/api/reviews/bulk", json={"changes": changes}).status_code)
    finally:
        stop.set()
        thread.join(30)
    assert len(seen) == 20
    assert set(seen) <= {200, 503}
    found = [queue.get(each).summary for each in chosen]
    assert len({(each.status, each.version) for each in found}) == 1
    # Where a connection breaks after the commit and before the reply, nobody knows; what was told to be done is done.
    assert sum(each == 200 for each in seen) <= found[0].version - 1 <= len(seen)
    changes = [{"id": each.id, "version": each.version, "status": "reviewed"} for each in found]
    assert send("POST", "/api/reviews/bulk", json={"changes": changes}).status_code == 200
    assert queue.counts()[ReviewStatus.REVIEWED] == len(chosen)
    assert is_whole(queue)

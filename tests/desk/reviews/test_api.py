"""The review API over HTTP, on a real database."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.fakes.review_console import TOKEN, TOKENS, VIEWER_TOKEN, console_of, content, entry, queue_in
from truthlens.desk.reviews.schemas import ListQuery
from truthlens.review.records import Change, ReviewStatus
from truthlens.review.store.queue import ReviewQueue

FIRST = entry(0).id


@pytest.fixture
def queue(tmp_path: Path) -> ReviewQueue:
    made = queue_in(tmp_path)
    made.add([entry(number) for number in range(30)])
    return made


@pytest.fixture
async def client(queue: ReviewQueue) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(console_of(queue))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as made:
        yield made


def ids(reply: httpx.Response) -> list[str]:
    assert reply.status_code == 200, reply.text
    return [each["id"] for each in reply.json()["entries"]]


async def pages_of(client: httpx.AsyncClient, query: str) -> list[str]:
    found, cursor = [], ""
    while True:
        reply = await client.get(f"/api/reviews?{query}{cursor}")
        found += ids(reply)
        if reply.json()["cursor"] is None:
            return found
        cursor = f"&cursor={reply.json()['cursor']}"


@pytest.mark.parametrize("order", ["newest", "oldest", "score"])
async def test_pages_hold_every_entry_once_while_others_come(
    client: httpx.AsyncClient, queue: ReviewQueue, order: str
) -> None:
    """What comes between two pages moves nothing: each entry that was there is listed once."""
    before = {entry(number).id for number in range(30)}
    found, cursor = [], ""
    for more in range(100, 110):
        reply = await client.get(f"/api/reviews?order={order}&limit=4{cursor}")
        found += ids(reply)
        queue.add([entry(more)])
        if reply.json()["cursor"] is None:
            break
        cursor = f"&cursor={reply.json()['cursor']}"
    assert len(found) == len(set(found))
    assert before <= set(found)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("decision=support", lambda e: e.decision == "support"),
        ("detector=numbers", lambda e: "numbers" in e.detectors),
        ("kind=fabricated", lambda e: "fabricated" in e.kinds),
        ("level=low", lambda e: e.level == "low"),
        ("flagged=false", lambda e: not e.flagged),
        ("rule=control", lambda e: e.rule == "control"),
        ("query_id=req-3", lambda e: e.query_id == "req-3"),
        ("min_score=0.7&max_score=0.8", lambda e: 0.7 <= e.score < 0.8),
        (f"since={entry(5).created}&until={entry(9).created}", lambda e: 5 <= int(e.id[3:], 16) < 9),
        ("status=pending&status=approved", lambda e: True),
        ("status=rejected", lambda e: False),
        ("decision=nope%20%3Cb%3E%27%3B--", lambda e: False),
    ],
)
async def test_filters_choose(client: httpx.AsyncClient, query: str, wanted: Any) -> None:
    """Each filter lists what fits it and nothing else."""
    expected = {each.id for each in map(entry, range(30)) if wanted(each)}
    assert set(await pages_of(client, f"{query}&limit=200")) == expected


async def test_an_entry_comes_with_all_that_is_kept(client: httpx.AsyncClient) -> None:
    """Summary, content, marks, audit trail."""
    shown = (await client.get(f"/api/reviews/{FIRST}")).json()
    assert shown["summary"]["status"] == "pending"
    assert shown["content"] == content()
    assert (shown["spans"], shown["events"]) == (None, [])


async def test_a_change_settles_with_note_marks_and_trail(client: httpx.AsyncClient) -> None:
    """PATCH gives the entry as it is then; the trail tells who did what."""
    body = {"version": 1, "status": "rejected", "note": "a day is wrong", "spans": [{"start": 26, "end": 35}]}
    shown = (await client.patch(f"/api/reviews/{FIRST}", json=body)).json()
    assert (shown["summary"]["status"], shown["summary"]["version"]) == ("rejected", 2)
    assert shown["summary"]["reviewer"] == "local"
    assert shown["spans"] == [{"start": 26, "end": 35, "choice": 0}]
    assert [(e["actor"], e["action"], e["note"]) for e in shown["events"]] == [
        ("local", "rejected", "a day is wrong")
    ]
    back = {"version": 2, "status": "pending", "clear_spans": True}
    shown = (await client.patch(f"/api/reviews/{FIRST}", json=back)).json()
    assert (shown["summary"]["status"], shown["summary"]["settled"], shown["spans"]) == (
        "pending",
        None,
        None,
    )
    assert shown["summary"]["note"] == "a day is wrong"


async def test_the_second_of_two_reviewers_is_told_what_the_first_did(client: httpx.AsyncClient) -> None:
    """409 with the present entry; nothing is overwritten."""
    path = f"/api/reviews/{FIRST}"
    assert (await client.patch(path, json={"version": 1, "status": "approved"})).status_code == 200
    late = await client.patch(path, json={"version": 1, "status": "rejected"})
    assert late.status_code == 409
    assert "somebody else" in late.json()["error"]["message"]
    assert (late.json()["entry"]["status"], late.json()["entry"]["version"]) == ("approved", 2)
    assert (await client.get(path)).json()["summary"]["status"] == "approved"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "JSON"),
        (b"[]", "body"),
        (b'{"version": 1}', "status"),
        (b'{"version": 1, "status": "perhaps"}', "status"),
        (b'{"version": 0, "status": "approved"}', "version"),
        (b'{"version": 99999999999, "status": "approved"}', "version"),
        (b'{"version": 1, "status": "approved", "extra": 1}', "extra"),
        (b'{"version": 1, "status": "approved", "note": "a\\u0000b"}', "note"),
        (b'{"version": 1, "status": "approved", "note": "\\ud800"}', "hex escape"),
        (b'{"version": 1, "status": "approved", "note": "' + b"x" * 4001 + b'"}', "note"),
        (b'{"version": 1, "status": "rejected", "spans": [{"start": 5, "end": 5}]}', "not within"),
        (b'{"version": 1, "status": "rejected", "spans": [{"start": 0, "end": 99999}]}', "not within"),
        (b'{"version": 1, "status": "rejected", "spans": [{"start": 0, "end": 1, "choice": 7}]}', "no choice"),
        (b'{"version": 1, "status": "rejected", "spans": [' + b'{"start": 0, "end": 1},' * 1000 + b'{"start": 0, "end": 1}]}', "spans"),
        (b"[" * 100_000, "recursion"),
    ],
)  # fmt: skip
async def test_a_change_that_cannot_be_says_why(client: httpx.AsyncClient, body: bytes, told: str) -> None:
    """422 naming the place; the entry stays as it was."""
    reply = await client.patch(
        f"/api/reviews/{FIRST}", content=body, headers={"content-type": "application/json"}
    )
    assert reply.status_code == 422, reply.text
    assert told in reply.json()["error"]["message"]
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert (await client.get(f"/api/reviews/{FIRST}")).json()["summary"]["version"] == 1


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=201", "limit=x", "order=worst", "status=perhaps", "min_score=nan", "max_score=inf", "min_score=2", "since=-1",
        "flagged=perhaps", "cursor=x", "cursor=" + "9" * 60, "cursor=-1", "order=score&cursor=1", "order=score&cursor=0.5_" + "9" * 40,
        "decision=%00", "decision=" + "x" * 201, "nope=1", "decision=a&decision=b",
    ],
)  # fmt: skip
async def test_a_list_that_cannot_be_says_why(client: httpx.AsyncClient, query: str) -> None:
    """422, never an error of the server."""
    reply = await client.get(f"/api/reviews?{query}")
    assert reply.status_code == 422, reply.text
    assert reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "own_id", ["rv_nope", "%00", "x" * 500, "%F0%9F%98%80", "'; drop table review_entries; --"]
)
async def test_an_unknown_id_is_404(client: httpx.AsyncClient, own_id: str) -> None:
    """For reading and for changing, whatever it looks like."""
    assert (await client.get(f"/api/reviews/{own_id}")).status_code == 404
    reply = await client.patch(f"/api/reviews/{own_id}", json={"version": 1, "status": "approved"})
    assert (reply.status_code, "no entry" in reply.json()["error"]["message"]) == (404, True)


async def test_a_large_body_is_refused(client: httpx.AsyncClient) -> None:
    """413 before it is read whole."""
    reply = await client.post(
        "/api/reviews/bulk", content=b" " * (1 << 20) + b"  ", headers={"content-type": "application/json"}
    )
    assert reply.status_code == 413


async def test_many_changes_are_each_for_themselves(client: httpx.AsyncClient, queue: ReviewQueue) -> None:
    """One that cannot be says why and holds up none of the others."""
    taken = entry(1).id
    queue.change(Change(taken, 1, ReviewStatus.APPROVED), actor="ann")
    changes = [
        {"id": FIRST, "version": 1, "status": "approved"},
        {"id": taken, "version": 1, "status": "rejected"},
        {"id": "rv_nope", "version": 1, "status": "rejected"},
        {"id": entry(2).id, "version": 1, "status": "rejected", "spans": [{"start": 0, "end": 100_000}]},
        {"id": entry(3).id, "version": 1, "status": "rejected"},
    ]
    results = (await client.post("/api/reviews/bulk", json={"changes": changes})).json()["results"]
    assert [each["status"] for each in results] == [200, 409, 404, 422, 200]
    assert [each["id"] for each in results] == [each["id"] for each in changes]
    assert (results[1]["entry"]["status"], results[1]["entry"]["reviewer"]) == ("approved", "ann")
    assert all(bool(each["problem"]) == (each["status"] != 200) for each in results)
    counts = (await client.get("/api/reviews/counts")).json()
    assert counts == {"pending": 27, "reviewed": 0, "approved": 2, "rejected": 1}
    assert (await client.post("/api/reviews/bulk", json={"changes": []})).status_code == 422


async def test_counts_follow_the_filters(client: httpx.AsyncClient) -> None:
    """By status, of those that fit."""
    assert (await client.get("/api/reviews/counts?decision=support")).json()["pending"] == 10


async def test_stats_tell_precision_and_backlog(client: httpx.AsyncClient, queue: ReviewQueue) -> None:
    """Of flagged answers the share that reviewers call wrong."""
    for number, status in ((0, "rejected"), (1, "rejected"), (2, "approved"), (6, "approved")):
        queue.change(Change(entry(number).id, 1, ReviewStatus(status)), actor="ann")
    shown = (await client.get("/api/reviews/stats")).json()
    assert shown["all"]["precision"]["share"] == pytest.approx(2 / 3)
    assert shown["all"]["precision"]["low"] < 2 / 3 < shown["all"]["precision"]["high"]
    assert shown["backlog"]["waiting"] == 26
    assert shown["decision"]["default"]["settled"] == 2
    assert shown["weekly"][0]["start"] == "2025-12-29"


async def test_settled_entries_are_exported_as_labelled_rows(
    client: httpx.AsyncClient, queue: ReviewQueue
) -> None:
    """One JSON object a line, of settled ones alone; the filters choose."""
    assert (await client.get("/api/reviews/export")).text == ""
    for number, status in ((0, "rejected"), (1, "approved"), (2, "reviewed")):
        queue.change(Change(entry(number).id, 1, ReviewStatus(status)), actor="ann")
    reply = await client.get("/api/reviews/export")
    assert reply.headers["content-type"].startswith("application/jsonl")
    assert [(row["id"], row["label"]) for row in map(json.loads, reply.text.splitlines())] == [
        (FIRST, 1),
        (entry(1).id, 0),
    ]
    only = await client.get("/api/reviews/export?decision=support")
    assert [json.loads(line)["label"] for line in only.text.splitlines()] == [0]
    assert (await client.get("/api/reviews/export?min_score=x")).status_code == 422


async def test_without_a_queue_every_route_says_so(queue: ReviewQueue) -> None:
    """404 with the reason; the description is there nevertheless."""
    transport = httpx.ASGITransport(console_of(None))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for path in ("/api/reviews", "/api/reviews/counts", "/api/reviews/stats", f"/api/reviews/{FIRST}"):
            reply = await client.get(path)
            assert (reply.status_code, "switched off" in reply.json()["error"]["message"]) == (404, True)
        assert (await client.get("/api/openapi.json")).status_code == 200


async def test_a_database_that_is_gone_is_503(
    client: httpx.AsyncClient, queue: ReviewQueue, tmp_path: Path
) -> None:
    """With a sentence and no path, for reading and changing; and it works again afterwards."""
    queue.database.dispose()
    (tmp_path / "reviews.db").rename(tmp_path / "away.db")
    (tmp_path / "reviews.db").mkdir()
    for reply in (
        await client.get("/api/reviews"),
        await client.get("/api/reviews/export"),
        await client.patch(f"/api/reviews/{FIRST}", json={"version": 1, "status": "approved"}),
        await client.post(
            "/api/reviews/bulk", json={"changes": [{"id": FIRST, "version": 1, "status": "approved"}]}
        ),
    ):
        assert reply.status_code == 503
        assert "does not answer" in reply.json()["error"]["message"]
        assert str(tmp_path) not in reply.text
    (tmp_path / "reviews.db").rmdir()
    (tmp_path / "away.db").rename(tmp_path / "reviews.db")
    assert (await client.get("/api/reviews")).status_code == 200


async def test_the_description_is_valid_and_names_every_route(client: httpx.AsyncClient) -> None:
    """OpenAPI 3.1; each call that clients know is in it with its parameters and errors, and nothing else."""
    document = (await client.get("/api/openapi.json")).json()
    OpenAPIV31SpecValidator(document).validate()
    described = {
        f"{method} {path} {operation['operationId']}": (
            "".join(sorted({each["in"][0] for each in operation.get("parameters", ())})),
            "requestBody" in operation,
            {int(status) for status in operation["responses"]},
        )
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    known = {200, 404, 422, 503}
    assert described == {
        "get /api/reviews listReviews": ("q", False, known),
        "get /api/reviews/counts countReviews": ("q", False, known),
        "get /api/reviews/stats reviewStats": ("", False, known),
        "get /api/reviews/export exportReviews": ("q", False, known),
        "post /api/reviews/bulk changeReviews": ("", True, known | {413}),
        "get /api/reviews/{id} getReview": ("p", False, known),
        "patch /api/reviews/{id} changeReview": ("p", True, known | {409, 413}),
        "get /api/openapi.json getOpenapi": ("", False, {200}),
        "post /v1/detect detect": ("", True, {200, 413, 422, 503}),
        "post /v1/ask ask": ("", True, {200, 403, 409, 413, 422, 429, 502, 503, 504}),
    }
    listed = document["paths"]["/api/reviews"]["get"]["parameters"]
    assert {each["name"] for each in listed} == set(ListQuery.model_fields)
    assert all(each["description"] for each in listed)
    problem = {"$ref": "#/components/schemas/Problem"}
    refused = document["paths"]["/api/reviews/{id}"]["patch"]["responses"]["409"]
    assert refused["content"]["application/json"]["schema"] == problem
    assert document["security"] == [{"bearer": []}, {"basic": []}, {}]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/api/reviews", 200),
        ("GET", "/api/nowhere", 404),
        ("DELETE", f"/api/reviews/{FIRST}", 405),
        ("GET", "/api/docs", 404),
    ],
)
async def test_other_calls_are_refused_as_json(
    client: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    """No page of FastAPI's own; HEAD is GET without a body."""
    reply = await client.request(method, path, headers={"content-type": "application/json"})
    assert reply.status_code == status
    if status != 200:
        assert reply.json()["error"]["type"] == "invalid_request_error"


def test_the_sidecar_alone_does_not_load_fastapi() -> None:
    """Only the desk has an API that needs it."""
    code = "import sys, truthlens.cli.serving; sys.exit('fastapi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_what_is_answered_fits_its_description(client: httpx.AsyncClient) -> None:
    """Each reply is valid under the schema that the description gives for it."""
    import jsonschema

    document = (await client.get("/api/openapi.json")).json()
    for path in ("/api/reviews", "/api/reviews/counts", "/api/reviews/stats", "/api/reviews/{id}"):
        reply = (await client.get(path.replace("{id}", FIRST))).json()
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(reply, {**schema, "components": document["components"]})
    refused = (await client.get("/api/reviews/rv_nope")).json()
    schema = document["paths"]["/api/reviews/{id}"]["get"]["responses"]["404"]["content"]["application/json"][
        "schema"
    ]
    jsonschema.validate(refused, {**schema, "components": document["components"]})


async def test_viewers_read_and_reviewers_change_under_their_names(queue: ReviewQueue) -> None:
    """A viewer gets 403 for every change; a reviewer's name is in the trail; a browser without a CSRF token gets 403."""
    app = console_of(queue, access=TOKENS)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        change = {"version": 1, "status": "approved"}
        path = f"/api/reviews/{FIRST}"
        assert (await client.get(path)).status_code == 401
        assert (await client.get(path, auth=("eve", VIEWER_TOKEN))).status_code == 200
        assert (await client.patch(path, json=change, auth=("eve", VIEWER_TOKEN))).status_code == 403
        bulk = {"changes": [{"id": FIRST, **change}]}
        assert (
            await client.post("/api/reviews/bulk", json=bulk, auth=("eve", VIEWER_TOKEN))
        ).status_code == 403
        browser = {"origin": "http://localhost"}
        refused = await client.patch(path, json=change, auth=("ann", TOKEN), headers=browser)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "invalid_csrf")
        done = await client.patch(path, json=change, auth=("ann", TOKEN))
        assert done.json()["events"][0]["actor"] == "ann"


async def test_no_reply_holds_more_than_was_asked_for(client: httpx.AsyncClient) -> None:
    """A list has no texts but excerpts."""
    page = (await client.get("/api/reviews")).text
    assert not re.search(r'"content"|dental surgery', page)

"""The review queue behind a real Envoy: flagged answers get an id and an entry, and nothing that fails costs an answer."""

from __future__ import annotations

import json
import signal
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.support.backend import Raw, Received, completion, json_reply
from tests.integration.support.stack import Stack, wait_for
from truthlens.review.records import Entry, ReviewStatus
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue

pytestmark = pytest.mark.envoy

POLICY = """\
hallucination: {detectors: [encoder, numbers], details: true}
trusted_headers: [x-user]
review:
  keep_text: true
  redact: [email]
  user_header: x-user
  rules:
    - {name: flagged}
    - {name: clean, flagged: false, decisions: [default], sample: 1}
"""
CONTEXT = (
    "<context>\nThe ferry leaves at seven and carries forty cars. Write to ann@example.org.\n</context>\n"
)
REQUEST: dict[str, Any] = {
    "model": "main",
    "messages": [{"role": "user", "content": CONTEXT + "When does it leave?"}],
}
WRONG = "The ferry carries ninety cars and was built by giants."
RIGHT = "The ferry leaves at seven."
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def reply(request: Received) -> Raw:
    if amount := request.headers.get("x-amount"):
        return json_reply(completion(f"The NOI was {amount} for the property."))
    text = RIGHT if request.headers.get("x-right") else WRONG
    return json_reply(completion(text))


def made(folder: Path, policy: str = POLICY, *, database: str | None = None) -> Stack:
    url = database or f"sqlite:///{folder}/reviews.db"
    stack = Stack(folder, policy, arguments=["--review-database", url])
    stack.backend.reply = reply
    return stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment that keeps texts, and clean answers as well."""
    stack = made(tmp_path_factory.mktemp("reviews"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def edit(stack: Stack, policy: str) -> None:
    """Change the policy, and wait until it is in force."""

    def version() -> str:
        return str(httpx.get(f"{stack.console_url}/readyz").json()["policy"]["version"])

    before = version()
    stack.policy.write_text(policy)
    wait_for(lambda: version() != before, "the reload")


def entries(stack: Stack) -> dict[str, Entry]:
    database = ReviewDatabase(checked_url(f"sqlite:///{stack.folder}/reviews.db"))
    try:
        return {each.summary.id: each for each in ReviewQueue(database).all()}
    finally:
        database.dispose()


def arrived(stack: Stack, review_id: str) -> Entry:
    wait_for(lambda: review_id in entries(stack), "the entry")
    return entries(stack)[review_id]


def metric(stack: Stack, name: str) -> float:
    lines = httpx.get(f"{stack.console_url}/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


def test_a_flagged_answer_is_found_by_its_id(stack: Stack) -> None:
    """The header, the object in the body and the entry name the same one, with all that a reviewer needs."""
    headers = {"x-user": "ann", "x-request-id": "r-1", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    response = stack.post(REQUEST, headers=headers)
    review_id = response.headers["x-truthlens-review-id"]
    assert response.json()["truthlens"]["review_id"] == review_id
    entry = arrived(stack, review_id)
    assert entry.summary.status is ReviewStatus.PENDING
    assert (entry.summary.rule, entry.summary.user_id, entry.summary.trace_id) == ("flagged", "ann", TRACE)
    assert entry.summary.query_id
    assert f"{entry.summary.score:.2f}" == response.headers["x-truthlens-score"]
    assert entry.content["texts"]["answers"] == [WRONG]
    assert "ann@" not in json.dumps(entry.content)
    (passage,) = entry.content["texts"]["passages"]
    spans = entry.content["choices"][0]["spans"]
    assert any("ninety" in WRONG[slice(*span["shown"])] for span in spans)
    assert any(
        passage["text"][slice(*span["sentence"])].startswith("The ferry")
        for span in spans
        if "sentence" in span
    )


def test_a_clean_answer_is_queued_as_a_sample(stack: Stack) -> None:
    """For honest rates; it says by which rule, and with which probability."""
    response = stack.post(REQUEST, headers={"x-right": "1"})
    assert response.headers["x-truthlens-detected"] == "false"
    summary = arrived(stack, response.headers["x-truthlens-review-id"]).summary
    assert (summary.rule, summary.sample, summary.flagged) == ("clean", 1.0, False)


@pytest.mark.parametrize(
    ("amount", "unverified", "penalty"), [("$1.2M", 0, 0.0), ("$1.25M", 0, 0.0), ("$1.5M", 1, 0.2)]
)
def test_the_sources_three_examples(stack: Stack, amount: str, unverified: int, penalty: float) -> None:
    """Verified and within tolerance: confidence unchanged. Wrong: queued as flagged, 20 points less."""
    context = "<context>\nThe NOI for the property was $1,200,000 in Q3 2024.\n</context>\nWhat was the NOI?"
    request = {"model": "main", "messages": [{"role": "user", "content": context}]}
    response = stack.post(request, headers={"x-amount": amount})
    summary = arrived(stack, response.headers["x-truthlens-review-id"]).summary
    assert (summary.total_claims, summary.unverified_claims) == (1, unverified)
    assert summary.adjusted_confidence == pytest.approx(max(0.0, summary.original_confidence - penalty))
    if unverified:
        assert summary.rule == "flagged"


@pytest.mark.parametrize("streaming", ["observe", "gate", "buffer"])
def test_a_stream_is_queued_too(stack: Stack, streaming: str) -> None:
    """Its headers have left; the object at its end has the id, and the entry what the client got."""
    before = stack.policy.read_text()
    edit(stack, POLICY.replace("details: true", f"details: true, streaming: {streaming}"))
    try:
        response = stack.post({**REQUEST, "stream": True})
        found = [
            json.loads(line.removeprefix("data: "))["truthlens"]["review_id"]
            for line in response.text.splitlines()
            if '"review_id"' in line
        ]
        assert len(found) == 1
        entry = arrived(stack, found[0])
        assert entry.content["choices"][0]["score"] >= 0.6
        if streaming == "buffer":
            assert response.headers["x-truthlens-review-id"] == found[0]
    finally:
        edit(stack, before)


def test_the_metrics_tell_of_the_queue(stack: Stack) -> None:
    """Entries by status, those that wait, those that were lost."""
    arrived(stack, stack.post(REQUEST).headers["x-truthlens-review-id"])
    count = len(entries(stack))
    wait_for(lambda: metric(stack, 'truthlens_reviews{status="pending"}') >= count, "the count")
    assert metric(stack, 'truthlens_reviews_lost_total{cause="full"}') == 0
    assert metric(stack, "truthlens_reviews_database_up") == 1


def test_the_file_is_for_its_user_alone(stack: Stack) -> None:
    """It holds texts of users."""
    arrived(stack, stack.post(REQUEST).headers["x-truthlens-review-id"])
    assert stat.S_IMODE((stack.folder / "reviews.db").stat().st_mode) == 0o600


def test_texts_are_kept_only_while_the_policy_says_so(stack: Stack) -> None:
    """An edit counts from the next answer on."""
    before = stack.policy.read_text()
    edit(stack, before.replace("keep_text: true", "keep_text: false").replace("  redact: [email]\n", ""))
    try:
        entry = arrived(stack, stack.post(REQUEST).headers["x-truthlens-review-id"])
        assert not entry.summary.has_text
        assert "ferry" not in json.dumps([entry.content, entry.summary.excerpt])
    finally:
        edit(stack, before)


def test_a_dead_database_costs_entries_and_no_answer(tmp_path: Path) -> None:
    """Nobody listens there; the answer comes as ever, with its id, and the metrics say that it waits."""
    stack = made(tmp_path, database="postgresql://nobody@127.0.0.1:1/none")
    try:
        stack.start()
        response = stack.post(REQUEST)
        assert (response.status_code, response.headers["x-truthlens-status"]) == (200, "checked")
        wait_for(lambda: metric(stack, "truthlens_reviews_database_up") == 0, "the metric")
        assert metric(stack, "truthlens_reviews_waiting") == 1
    finally:
        stack.stop()
    assert any("takes no entries" in line.get("event", "") for line in stack.log_lines())


def test_a_kill_loses_no_more_than_what_waits(tmp_path: Path) -> None:
    """Kill -9 in the middle: every entry that the metric counted as written is there afterwards."""
    stack = made(tmp_path)
    try:
        stack.start()
        ids = [stack.post(REQUEST).headers["x-truthlens-review-id"] for _ in range(20)]
        written, waiting = (
            metric(stack, "truthlens_reviews_written_total"),
            metric(stack, "truthlens_reviews_waiting"),
        )
        stack.kill_sidecar()
        found = entries(stack)
        assert len(found) >= written
        assert len(found) >= len(ids) - waiting
        assert set(found) <= set(ids)
        with sqlite3.connect(tmp_path / "reviews.db") as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        # The next process takes the queue over.
        stack.start_sidecar()
        wait_for(lambda: stack.post(REQUEST).headers["x-truthlens-status"] == "checked", "Envoy's notice")
        arrived(stack, stack.post(REQUEST).headers["x-truthlens-review-id"])
    finally:
        stack.stop()


def test_a_stop_writes_everything(tmp_path: Path) -> None:
    """Of a process that ends as it should, no id is without an entry."""
    stack = made(tmp_path)
    try:
        stack.start()
        ids = {stack.post(REQUEST).headers["x-truthlens-review-id"] for _ in range(5)}
        stack.kill_sidecar(signal.SIGTERM)
    finally:
        stack.stop()
    assert ids <= set(entries(stack))


def test_two_processes_share_one_database(tmp_path: Path) -> None:
    """Both write, both count all."""
    (tmp_path / "a").mkdir()
    first, second = made(tmp_path / "a", database=f"sqlite:///{tmp_path}/a/reviews.db"), None
    try:
        (tmp_path / "b").mkdir()
        second = made(tmp_path / "b", database=f"sqlite:///{tmp_path}/a/reviews.db")
        first.start()
        second.start()
        ids = {
            stack.post(REQUEST).headers["x-truthlens-review-id"]
            for _ in range(5)
            for stack in (first, second)
        }
        wait_for(lambda: ids <= set(entries(first)), "all entries")
        for stack in (first, second):
            wait_for(
                lambda stack=stack: metric(stack, 'truthlens_reviews{status="pending"}') == 10, "the count"
            )  # type: ignore[misc]
    finally:
        first.stop()
        if second is not None:
            second.stop()


def test_without_a_queue_there_is_no_id(tmp_path: Path) -> None:
    """--review-database none."""
    stack = made(tmp_path, database="none")
    try:
        stack.start()
        response = stack.post(REQUEST)
        assert response.headers["x-truthlens-detected"] == "true"
        assert "x-truthlens-review-id" not in response.headers
    finally:
        stack.stop()

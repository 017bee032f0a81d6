"""The review queue on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy.exc import IntegrityError

from tests.fakes.review_entries import CREATED, change, content, new_entry, with_texts
from truthlens.review.records import (
    ChangedEntryError,
    Correction,
    Filters,
    Order,
    ReviewError,
    ReviewStatus,
    UnknownEntryError,
)
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue

APPROVED, REJECTED = ReviewStatus.APPROVED, ReviewStatus.REJECTED


def ids(queue: ReviewQueue, **filters: object) -> list[str]:
    return [each.id for each in queue.listed(Filters(**filters), order=Order.OLDEST).entries]  # type: ignore[arg-type]


def test_entries_come_back_as_they_were_added(queue: ReviewQueue) -> None:
    """Every field, content included; a second entry of the same id changes nothing."""
    new = with_texts(
        "one", scope={"x-tenant": "a"}, detectors={"encoder": 0.9, "numbers": 0.7}, kinds=("value",),
        total_claims=3, verified_claims=2, unverified_claims=1, auto=True, latency_s=1.5, tokens=70,
        query_id="q1", trace_id="0" * 32, user_id="ünï", sample=0.25,
    )  # fmt: skip
    queue.add([new])
    queue.add([replace(new, decision="other")])
    entry = queue.get("one")
    for name in new.__dataclass_fields__:
        if name != "content":
            assert getattr(entry.summary, name) == getattr(new, name), name
    assert entry.content == new.content
    assert (entry.spans, entry.events, entry.summary.version, entry.summary.status) == (
        None,
        (),
        1,
        "pending",
    )
    assert queue.counts()[ReviewStatus.PENDING] == 1


def test_all_of_a_batch_or_none_is_added(queue: ReviewQueue) -> None:
    """One that the database refuses takes the others of its batch with it."""
    with pytest.raises(IntegrityError):
        queue.add([new_entry("fine"), new_entry("broken", decision=None)])
    assert ids(queue) == []


def test_filters_choose_entries(queue: ReviewQueue) -> None:
    """Each by itself; times and lowest scores are inclusive, their upper ends are not."""
    queue.add(
        [
            new_entry("a", score=0.9, decision="d1", detectors={"encoder": 0.9}, query_id="q"),
            new_entry("b", score=0.7, created=CREATED + 10, kinds=("value", "negation"), mode="premium"),
            new_entry("c", score=0.2, created=CREATED + 20, level="low", rule="some", sample=0.1),
        ]
    )
    queue.change(change("b", REJECTED), actor="ann")
    chosen = {
        "decision": ("d1", ["a"]),
        "detector": ("encoder", ["a"]),
        "kind": ("negation", ["b"]),
        "level": ("low", ["c"]),
        "mode": ("premium", ["b"]),
        "rule": ("some", ["c"]),
        "reviewer": ("ann", ["b"]),
        "query_id": ("q", ["a"]),
        "flagged": (False, ["c"]),
        "min_score": (0.7, ["a", "b"]),
        "max_score": (0.7, ["c"]),
        "since": (CREATED + 10, ["b", "c"]),
        "until": (CREATED + 10, ["a"]),
        "statuses": ((REJECTED, APPROVED), ["b"]),
    }
    assert {name: ids(queue, **{name: value}) for name, (value, _) in chosen.items()} == {
        name: found for name, (_, found) in chosen.items()
    }
    assert ids(queue, kind="value", reviewer="bob") == []
    assert queue.choices()["decision"] == ["d1", "default"]
    assert queue.choices()["kind"] == ["negation", "value"]


@pytest.mark.parametrize("order", list(Order))
def test_pages_show_every_entry_once(queue: ReviewQueue, order: Order) -> None:
    """Also where many have one score, and entries are added and deleted while somebody pages."""
    queue.add([new_entry(f"e{n}", score=0.5 + 0.1 * (n % 3), created=CREATED + n) for n in range(23)])
    seen: list[str] = []
    cursor = None
    while True:
        page = queue.listed(order=order, cursor=cursor, limit=5)
        seen += [each.id for each in page.entries]
        cursor = page.cursor
        if cursor is None:
            break
        if len(seen) == 10:
            queue.add([new_entry("late", score=0.99, created=0.0)])
    assert len(seen) == len(set(seen))
    assert set(seen) - {"late"} == {f"e{n}" for n in range(23)}
    with pytest.raises(ReviewError):
        queue.listed(order=order, cursor="no; cursor")


def test_a_clock_that_jumps_back_changes_no_order(database: ReviewDatabase) -> None:
    """Entries are in the order in which they came, and the audit trail in the order of what was done."""
    times = iter((500.0, 100.0, 900.0))
    queue = ReviewQueue(database, clock=lambda: next(times))
    queue.add([new_entry("first", created=1_000.0)])
    queue.add([new_entry("second", created=10.0)])
    queue.add([new_entry("third", created=500.0)])
    assert ids(queue) == ["first", "second", "third"]
    assert [each.summary.id for each in queue.all()] == ["first", "second", "third"]
    for version, status in enumerate((ReviewStatus.REVIEWED, APPROVED, ReviewStatus.PENDING), 1):
        queue.change(change("first", status, version), actor="ann")
    events = queue.get("first").events
    assert [each.status.value for each in events] == ["reviewed", "approved", "pending"]
    assert [each.version for each in events] == [2, 3, 4]
    assert [each.at for each in events] == [500.0, 100.0, 900.0]


def test_a_change_is_kept_with_its_trail(queue: ReviewQueue) -> None:
    """Status, reviewer, note and spans; an undo takes the verdict back and leaves the trail."""
    queue.add([with_texts("one")])
    queue.change(change("one", REJECTED, note="no", spans=[Correction(1, 4)]), actor="ann")
    entry = queue.get("one")
    assert (entry.summary.reviewer, entry.summary.note, entry.spans) == ("ann", "no", (Correction(1, 4),))
    assert entry.summary.settled is not None
    back = queue.change(change("one", ReviewStatus.PENDING, 2, clear_spans=True), actor="bob")
    assert (back.reviewer, back.settled, back.note, back.version) == ("", None, "no", 3)
    assert queue.get("one").spans is None
    assert [(each.actor, each.action) for each in queue.get("one").events] == [
        ("ann", "rejected"),
        ("bob", "put back"),
    ]
    with pytest.raises(UnknownEntryError):
        queue.change(change("none", REJECTED), actor="ann")
    with pytest.raises(ChangedEntryError):
        queue.change(change("one", REJECTED, 2), actor="ann")
    with pytest.raises(ReviewError, match="note"):
        queue.change(change("one", REJECTED, 3, note="x" * 5_000), actor="ann")


def test_of_many_changes_those_that_can_be_are_carried_out(queue: ReviewQueue) -> None:
    """The others say why."""
    queue.add([new_entry("a"), new_entry("b")])
    done = queue.change_many(
        [change("a", APPROVED), change("none", APPROVED), change("b", APPROVED, 7)], actor="ann"
    )
    assert [each.entry is not None for each in done] == [True, False, False]
    assert all(each.problem for each in done[1:])
    assert queue.counts()[APPROVED] == 1


def test_of_two_threads_one_changes_an_entry(queue: ReviewQueue) -> None:
    """Both have read version 1; the other one learns that somebody was faster."""
    names = [f"e{n}" for n in range(12)]
    queue.add([new_entry(each) for each in names])
    ready = threading.Barrier(2)

    def settle(actor: str) -> list[bool]:
        ready.wait(30)
        return [
            queue.change_many([change(each, APPROVED)], actor=actor)[0].entry is not None for each in names
        ]

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(settle, ("ann", "bob"))
    assert [a + b for a, b in zip(one, other, strict=True)] == [1] * len(names)
    for each in names:
        entry = queue.get(each)
        assert (entry.summary.version, len(entry.events)) == (2, 1)
        assert entry.summary.reviewer == entry.events[0].actor


def _settle_all(url: str, actor: str, names: list[str], done: multiprocessing.Queue[list[str]]) -> None:
    database = ReviewDatabase(checked_url(url))
    queue = ReviewQueue(database)
    found = queue.change_many([change(each, REJECTED) for each in names], actor=actor)
    database.dispose()
    done.put([each.id for each in found if each.entry is not None])


def test_of_two_processes_one_changes_an_entry(url: str, queue: ReviewQueue) -> None:
    """As with threads."""
    names = [f"e{n}" for n in range(30)]
    queue.add([new_entry(each) for each in names])
    context = multiprocessing.get_context("spawn")
    done: multiprocessing.Queue[list[str]] = context.Queue()
    both = [context.Process(target=_settle_all, args=(url, actor, names, done)) for actor in ("ann", "bob")]
    for each in both:
        each.start()
    found = [*done.get(timeout=120), *done.get(timeout=120)]
    for each in both:
        each.join(60)
    assert sorted(found) == sorted(names)
    assert {len(queue.get(each).events) for each in names} == {1}


def test_old_entries_go_with_all_that_belongs_to_them(queue: ReviewQueue) -> None:
    """Contents, facets and audit trail."""
    queue.add(
        [
            new_entry("old", created=CREATED - 100, kinds=("value",)),
            new_entry("new", detectors={"encoder": 0.9}),
        ]
    )
    queue.change(change("old", APPROVED), actor="ann")
    assert (queue.delete_old(before=CREATED), queue.delete_old(before=CREATED)) == (1, 0)
    assert ids(queue) == ["new"]
    assert queue.choices()["kind"] == []
    with pytest.raises(UnknownEntryError):
        queue.get("old")


def test_too_many_entries_lose_the_settled_ones_first(queue: ReviewQueue) -> None:
    """Then the oldest."""
    queue.add([new_entry(f"e{n}") for n in range(6)])
    queue.change(change("e4", APPROVED), actor="ann")
    assert queue.delete_beyond(4) == 2
    assert ids(queue) == ["e1", "e2", "e3", "e5"]
    assert queue.delete_beyond(4) == 0


def test_texts_go_and_the_entry_stays(queue: ReviewQueue) -> None:
    """Also notes of models and the excerpt; hashes and positions are kept."""
    queue.add([with_texts("old", created=CREATED - 100), with_texts("new")])
    assert (queue.drop_texts(before=CREATED), queue.drop_texts(before=CREATED)) == (1, 0)
    entry = queue.get("old")
    assert (entry.summary.has_text, entry.summary.excerpt) == (False, "")
    assert "texts" not in entry.content
    assert "Tea" not in str(entry.content)
    assert "note" not in entry.content["choices"][0]["spans"][0]
    assert entry.content["choices"][0]["spans"][0]["start"] == 0
    assert queue.get("new").content == content(
        ["Tea is wrong."], passages=["Tea is free."], query="What of tea?"
    )


def test_what_claims_say_goes_with_the_texts(queue: ReviewQueue) -> None:
    """A value of an answer is a part of its text."""
    new = with_texts("one")
    claim = {"claim_type": "count", "outcome": "absent", "verified": False, "start": 0, "end": 3}
    new.content["choices"][0]["claims"] = [{**claim, "value": 90.0, "original_text": "Tea"}]
    queue.add([new])
    queue.drop_texts(before=CREATED + 1)
    assert queue.get("one").content["choices"][0]["claims"] == [claim]


def test_numbers_are_not_given_again(queue: ReviewQueue) -> None:
    """A page of a list goes on by number, also after the newest entry was deleted."""
    queue.add([new_entry("a", created=CREATED - 5)])
    first = queue.get("a").summary.number
    queue.delete_old(before=CREATED)
    queue.add([new_entry("b")])
    assert queue.get("b").summary.number > first


def test_counting_ends_where_it_is_told_to(queue: ReviewQueue) -> None:
    """Each status for itself, with a filter by detector too."""
    queue.add(
        [new_entry(f"e{number}", detectors={"encoder": 0.9} if number % 2 else {}) for number in range(20)]
    )
    for number in range(6):
        queue.change(change(f"e{number}", ReviewStatus.APPROVED), actor="ann")
    exact = queue.counts()
    assert (exact[ReviewStatus.PENDING], exact[ReviewStatus.APPROVED], exact[ReviewStatus.REJECTED]) == (
        14,
        6,
        0,
    )
    assert queue.counts(most=100) == exact
    bounded = queue.counts(most=10)
    assert (bounded[ReviewStatus.PENDING], bounded[ReviewStatus.APPROVED]) == (11, 6)
    filters = Filters(detector="encoder", statuses=(ReviewStatus.APPROVED,))
    assert queue.counts(filters, most=2) == {
        **queue.counts(filters),
        ReviewStatus.PENDING: 3,
        ReviewStatus.APPROVED: 3,
    }

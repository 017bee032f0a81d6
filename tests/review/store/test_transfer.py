"""Entries from one queue to another, and verdicts from lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.review_entries import change, new_entry, with_texts
from truthlens.desk.labelled import labelled_rows
from truthlens.review.records import Correction, Filters, ReviewStatus
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.review.store.queue import ReviewQueue
from truthlens.review.store.transfer import MOST_LINE, entry_lines, import_lines


@pytest.fixture
def other(tmp_path: Path) -> Iterator[ReviewQueue]:
    database = ReviewDatabase(checked_url(f"sqlite:///{tmp_path / 'other.db'}"))
    database.upgrade()
    yield ReviewQueue(database)
    database.dispose()


def lines(queue: ReviewQueue) -> list[str]:
    return [json.dumps(each) for each in entry_lines(queue)]


def line(queue: ReviewQueue, **entry: Any) -> str:
    found = next(iter(entry_lines(queue)))
    found["entry"] |= entry
    return json.dumps(found)


def test_entries_are_the_same_in_another_queue(queue: ReviewQueue, other: ReviewQueue) -> None:
    """Ids, verdicts, marks, audit trail and what they are found by; only their numbers are the other queue's."""
    other.add([new_entry("there", decision="mine")])
    queue.add(
        [with_texts("a", kinds=("value",), detectors={"numbers": 0.9}), new_entry("b"), new_entry("there")]
    )
    queue.change(change("a", ReviewStatus.REJECTED, note="no", spans=[Correction(1, 3)]), actor="ann")
    done = import_lines(other, lines(queue), actor="bob")
    assert (done.added, done.known, done.failed, done.problems) == (2, 1, 0, [])
    for each in ("a", "b"):
        one, two = queue.get(each), other.get(each)
        assert (one.content, one.spans, one.events) == (two.content, two.spans, two.events)
        for name in one.summary.__dataclass_fields__:
            assert name == "number" or getattr(one.summary, name) == getattr(two.summary, name), name
    assert other.get("there").summary.decision == "mine"
    assert [each.id for each in other.listed(Filters(kind="value", detector="numbers")).entries] == ["a"]
    again = import_lines(other, lines(queue), actor="bob")
    assert (again.added, again.known) == (0, 3)
    assert lines(other)[1:] == lines(queue)[:2]


def test_the_way_back_to_the_first_kind_of_database(queue: ReviewQueue, other: ReviewQueue) -> None:
    """From SQLite to whatever the queue is on."""
    other.add([with_texts("a", scope={"x": "ü"}), new_entry("b")])
    other.change(change("a", ReviewStatus.APPROVED), actor="ann")
    assert import_lines(queue, lines(other), actor="bob").added == 2
    assert lines(queue) == lines(other)


def test_verdicts_settle_entries(queue: ReviewQueue) -> None:
    """By label or status, with note and marks; the same verdict again changes nothing, another one is refused."""
    queue.add([with_texts(each) for each in "abcd"])
    queue.change(change("d", ReviewStatus.APPROVED), actor="ann")
    rows: list[dict[str, Any]] = [
        {"id": "a", "label": 1, "note": "no", "spans": [{"start": 0, "end": 3}], "response": "let be"},
        {"id": "b", "label": 0, "spans": []},
        {"id": "c", "status": "rejected"},
        {"id": "d", "label": 1},
        {"id": "none", "label": 1},
    ]
    done = import_lines(queue, [json.dumps(each) for each in rows], actor="bob")
    assert (done.settled, done.unchanged, done.failed) == (3, 0, 2)
    assert [each.split(":")[0] for each in done.problems] == ["line 4", "line 5"]
    found = {each: queue.get(each) for each in "abcd"}
    assert {name: each.summary.status.value for name, each in found.items()} == {
        "a": "rejected",
        "b": "approved",
        "c": "rejected",
        "d": "approved",
    }
    assert (found["a"].spans, found["a"].summary.note) == ((Correction(0, 3),), "no")
    assert (found["b"].spans, found["b"].summary.reviewer) == (None, "bob")
    again = import_lines(queue, [json.dumps(each) for each in rows[:3]], actor="bob")
    assert (again.settled, again.unchanged, again.failed) == (0, 3, 0)
    exported = [json.dumps(each) for each in labelled_rows(queue)]
    assert import_lines(queue, exported, actor="bob").unchanged == 4


def test_an_entry_and_its_verdict_may_be_in_one_file(queue: ReviewQueue, other: ReviewQueue) -> None:
    """In this order."""
    queue.add([new_entry("a")])
    done = import_lines(other, [*lines(queue), '{"id": "a", "label": 1}'], actor="bob")
    assert (done.added, done.settled, done.failed) == (1, 1, 0)


BROKEN: list[dict[str, Any]] = [
    {"id": ""},
    {"id": "x" * 33},
    {"id": "../../etc"},
    {"score": 1.5},
    {"sample": 0.0},
    {"status": "unknown"},
    {"status": "approved"},
    {"policy_version": "x" * 33},
    {"tokens": 2**40},
    {"tokens": -1},
    {"created": float("inf")},
    {"score": float("nan")},
    {"detectors": "encoder"},
    {"decision": None},
]


@pytest.mark.parametrize("values", BROKEN, ids=str)
def test_a_line_that_is_no_entry_hinders_no_other(
    queue: ReviewQueue, other: ReviewQueue, values: dict[str, Any]
) -> None:
    """It is counted with its number and a reason."""
    other.add([with_texts("fine")])
    done = import_lines(queue, [line(other, **values), "", line(other)], actor="bob")
    assert (done.added, done.failed) == (1, 1)
    assert done.problems[0].startswith("line 1: ")


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "1", "null", "{}", '{"id": 1, "label": 1}', '{"id": "a", "label": 2}', '{"id": "a", "status": "pending"}',
     '{"id": "a"}', '{"entry": 1, "format": 1}', '{"entry": {}, "format": 2}', "[" * 100_000, "9" * 10_000, '"' + "x" * MOST_LINE + '"',
     '{"id": "a", "label": 1, "spans": [{"start": "x"}]}'],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_what_is_no_line_is_said(queue: ReviewQueue, text: str) -> None:
    """And never a traceback."""
    queue.add([new_entry("a")])
    done = import_lines(queue, [text], actor="bob")
    assert (done.failed, len(done.problems)) == (1, 1)
    assert queue.get("a").summary.version == 1


def test_characters_that_a_database_refuses_are_replaced(queue: ReviewQueue, other: ReviewQueue) -> None:
    """NUL and halves of surrogate pairs."""
    other.add([with_texts("a")])
    done = import_lines(queue, [line(other, user_id="a\x00b\ud800", excerpt="\x00")], actor="bob")
    assert (done.added, done.problems) == (1, [])
    assert queue.get("a").summary.user_id == "a\ufffdb\ufffd"


@given(st.text(max_size=300) | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("id", "entry", "format", "label", "status", "note", "content", "x")), inner, max_size=5)).map(json.dumps))  # fmt: skip
def test_any_line_is_taken_or_refused(text: str) -> None:
    """Whatever it holds."""
    database = ReviewDatabase(checked_url("sqlite:////nowhere/none.db"))
    done = import_lines(_Nothing(database), [text], actor="bob")
    assert done.added == 0
    assert done.failed + done.unchanged <= 1


class _Nothing(ReviewQueue):
    def get(self, entry_id: str) -> Any:
        from truthlens.review.records import UnknownEntryError

        raise UnknownEntryError("none")

"""Settled entries as labelled rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.fakes.review_entries import change, content, new_entry, with_texts
from truthlens.desk.labelled import NO_TEXTS, labelled_rows
from truthlens.lab.data.dataset import read_examples
from truthlens.review.records import Correction, Filters, ReviewStatus
from truthlens.review.store.queue import ReviewQueue

APPROVED, REJECTED = ReviewStatus.APPROVED, ReviewStatus.REJECTED


def test_a_verdict_is_the_label(queue: ReviewQueue, tmp_path: Path) -> None:
    """As the readers of labelled lines want it; approved answers have no span, rejected ones only what a reviewer marked."""
    queue.add([with_texts(each) for each in ("good", "bad", "marked", "open")])
    queue.change(change("good", APPROVED), actor="ann")
    queue.change(change("bad", REJECTED), actor="ann")
    queue.change(change("marked", REJECTED, spans=[Correction(7, 12)]), actor="ann")
    queue.change(change("open", ReviewStatus.REVIEWED), actor="ann")
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in labelled_rows(queue)))
    found = {each.id: each for each in read_examples(path)}
    assert {name: (each.label, each.spans) for name, each in found.items()} == {
        "good": (0, ()),
        "bad": (1, None),
        "marked": (1, ((7, 12),)),
    }
    one = found["good"]
    assert (one.context, one.query, one.response, one.task) == (
        ("Tea is free.",),
        "What of tea?",
        "Tea is wrong.",
        "default",
    )
    assert one.generator == "m"


def test_entries_without_texts_are_counted(queue: ReviewQueue) -> None:
    """They give no row."""
    queue.add([new_entry("hashes"), with_texts("texts"), with_texts("open")])
    for each in ("hashes", "texts"):
        queue.change(change(each, APPROVED), actor="ann")
    left_out: Counter[str] = Counter()
    assert [row["id"] for row in labelled_rows(queue, left_out=left_out)] == ["texts"]
    assert left_out == {NO_TEXTS: 1}


@pytest.mark.parametrize(
    ("statuses", "wanted"),
    [
        ((), ["a", "b"]),
        ((APPROVED,), ["a"]),
        ((ReviewStatus.PENDING, REJECTED), ["b"]),
        ((ReviewStatus.PENDING,), []),
    ],
)
def test_only_settled_entries_have_labels(
    queue: ReviewQueue, statuses: tuple[ReviewStatus, ...], wanted: list[str]
) -> None:
    """Whatever statuses are asked for."""
    queue.add([with_texts(each) for each in "abc"])
    queue.change(change("a", APPROVED), actor="ann")
    queue.change(change("b", REJECTED), actor="ann")
    assert [row["id"] for row in labelled_rows(queue, Filters(statuses=statuses))] == wanted


@pytest.mark.parametrize(
    ("status", "spans", "wanted"),
    [
        (APPROVED, None, {"e": (0, [])}),
        (REJECTED, None, {"e": (1, None)}),
        (
            REJECTED,
            [Correction(0, 3, choice=0)],
            {"e#0": (1, [{"start": 0, "end": 3}]), "e": (1, None)},
        ),
        (APPROVED, [Correction(0, 3, choice=1)], {"e": (0, None)}),
        (REJECTED, [Correction(0, 99, choice=1)], {"e": (1, None)}),
        (REJECTED, [], {"e": (1, None)}),
    ],
)
def test_of_several_choices_the_worst_has_the_verdict(
    queue: ReviewQueue, status: ReviewStatus, spans: list[Correction] | None, wanted: dict[str, object]
) -> None:
    """Another one has a label where somebody marked something in it."""
    choices = content(["first", "second", "third"], passages=["p"], scores=[0.4, 0.9, 0.5])
    queue.add([new_entry("e", content=choices, has_text=True)])
    queue.change(change("e", status, spans=spans), actor="ann")
    rows = {row["id"]: row for row in labelled_rows(queue)}
    assert {name: (row["label"], row.get("spans")) for name, row in rows.items()} == wanted
    assert rows["e"]["response"] == "second"

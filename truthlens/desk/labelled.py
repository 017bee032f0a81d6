"""Give settled entries as labelled rows, the lines that ``truthlens eval``, ``calibrate`` and ``train`` read.

A verdict of an entry is one on its worst choice, the one that the entry's score comes from: the row is of that choice. Other choices
have a row where a reviewer marked something in them, with label 1, for nobody has said anything of the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from truthlens.review.records import Correction, Entry, Filters
from truthlens.review.store.queue import SETTLED, ReviewQueue

NO_TEXTS = "no texts are kept of it"


def labelled_rows(
    queue: ReviewQueue,
    filters: Filters = Filters(),  # noqa: B008 - it cannot be changed
    *,
    left_out: Counter[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield a labelled row of each settled entry that fits ``filters``, oldest first.

    ``spans`` are there where they are certain: what a reviewer marked, or ``[]`` for an approved answer. Marks of detectors are not
    given as labels, for rows cannot say that they are guesses.

    Args:
        queue: whose entries.
        filters: which of them; its statuses narrow to approved or rejected ones.
        left_out: counts the entries that give no row, by why.
    """
    statuses = tuple(each for each in SETTLED if not filters.statuses or each in filters.statuses)
    if not statuses:
        return
    for entry in queue.all(replace(filters, statuses=statuses)):
        rows = rows_of(entry)
        if not rows and left_out is not None:
            left_out[NO_TEXTS] += 1
        yield from rows


def rows_of(entry: Entry) -> list[dict[str, Any]]:
    """Return the labelled rows of one entry; none where it is not settled or has no texts."""
    summary, texts = entry.summary, entry.content.get("texts")
    label = summary.status.label
    if label is None or not texts:
        return []
    answers: list[str] = texts["answers"]
    marks, worst = entry.spans or (), _worst(entry)
    rows = []
    for place in sorted({worst, *(each.choice for each in marks)} & set(range(len(answers)))):
        answer = answers[place]
        if not answer.strip():
            continue
        spans = _spans(marks, place, len(answer))
        row: dict[str, Any] = {
            "id": summary.id if place == worst else f"{summary.id}#{place}",
            "context": [each["text"] for each in texts["passages"]],
            "query": texts["query"],
            "response": answer,
            "label": label if place == worst else 1,
            "source": "review",
            "task": summary.decision,
            "model": summary.model,
            "decision": summary.decision,
            "policy_version": summary.policy_version,
            "created": datetime.fromtimestamp(summary.created, UTC).isoformat(timespec="seconds"),
            "rule": summary.rule,
            "sample": summary.sample,
            "flagged": summary.flagged,
            "score": summary.score,
            "even_score": summary.even_score,
        }
        if bool(spans) == row["label"]:
            row["spans"] = spans
        rows.append(row)
    return rows


def _worst(entry: Entry) -> int:
    scores = [choice.get("score") for choice in entry.content.get("choices", ())]
    known = [(-score, place) for place, score in enumerate(scores) if score is not None]
    return min(known)[1] if known else 0


def _spans(marks: Iterable[Correction], place: int, length: int) -> list[dict[str, int]]:
    own = (each for each in marks if each.choice == place and 0 <= each.start < each.end <= length)
    return [{"start": each.start, "end": each.end} for each in own]

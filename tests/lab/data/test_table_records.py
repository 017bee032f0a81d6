"""Tests of ``truthlens.lab.data.table_records``."""

from __future__ import annotations

import json

from truthlens.lab.data.table_records import records


def test_two_texts_about_each_record_differ_in_the_marked_part() -> None:
    """The supported text has no mark; of the other only the marked part is new."""
    rows = records(count=200, seed=1)
    assert len(rows) == 200
    for right, wrong in zip(rows[::2], rows[1::2], strict=True):
        assert json.loads(right.context[0])["name"] in right.query
        assert right.context == wrong.context
        assert (right.label, right.spans, wrong.label) == (0, (), 1)
        assert wrong.spans is not None
        ((start, end),) = wrong.spans
        assert right.response.startswith(wrong.response[:start].rstrip())
        assert wrong.response[start:end] not in ("", right.response[start:end])


def test_records_are_repeatable_and_differ() -> None:
    """A seed makes the same rows; most records are different."""
    rows = records(count=60, seed=2)
    assert rows == records(count=60, seed=2)
    assert len({row.context for row in rows}) > 25

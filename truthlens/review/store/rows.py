"""Turn entries into rows of the tables, and rows into entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from truthlens.review.records import Correction, Entry, EntrySummary, Event, ReviewStatus
from truthlens.review.store.tables import contents, entries, events, facets


def rows_of(entry: Entry) -> dict[sa.Table, list[dict[str, Any]]]:
    """Return the rows of an entry that is to be added, by table, without the number that it gets."""
    summary = entry.summary
    names = (name for name in EntrySummary.__dataclass_fields__ if name != "number")
    row = {name: getattr(summary, name) for name in names}
    row |= {
        "status": summary.status.value,
        "scope": dict(summary.scope),
        "detectors": dict(summary.detectors),
        "kinds": list(summary.kinds),
    }
    found = (("detector", summary.detectors), ("kind", summary.kinds))
    return {
        entries: [row],
        contents: [{"content": dict(entry.content), "spans": entry.spans and list(map(asdict, entry.spans))}],
        facets: [
            {"facet": facet, "value": value}
            for facet, values in found
            for value in dict.fromkeys(value[:64] for value in values)
        ],
        events: [asdict(each) | {"status": each.status.value} for each in entry.events],
    }


def summary_of(row: Row[Any]) -> EntrySummary:
    """Return an entry's row as its summary."""
    fields = {name: getattr(row, name) for name in EntrySummary.__dataclass_fields__}
    return EntrySummary(**{**fields, "status": ReviewStatus(row.status), "kinds": tuple(row.kinds)})


def entry_of_row(row: Row[Any], trail: Iterable[Row[Any]]) -> Entry:
    """Return an entry of its row, joined with its content, and the rows of its audit trail."""
    return Entry(
        summary_of(row),
        content=row.content,
        spans=None if row.spans is None else tuple(Correction(**each) for each in row.spans),
        events=tuple(
            Event(each.at, each.actor, each.action, ReviewStatus(each.status), each.version, each.note)
            for each in trail
        ),
    )

"""Turn entries into rows of the tables, and rows into entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy.engine import Row

from truthlens.review.records import Correction, Entry, EntrySummary, Event, NewEntry, ReviewStatus


def row_of(new: NewEntry) -> dict[str, Any]:
    """Return the values of a new entry's row."""
    return {
        "id": new.id,
        "created": new.created,
        "updated": new.created,
        "version": 1,
        "status": ReviewStatus.PENDING.value,
        "decision": new.decision,
        "mode": new.mode,
        "action": new.action,
        "policy_version": new.policy_version,
        "model": new.model,
        "score": new.score,
        "even_score": new.even_score,
        "threshold": new.threshold,
        "flagged": new.flagged,
        "level": new.level,
        "rule": new.rule,
        "sample": new.sample,
        "query_id": new.query_id,
        "trace_id": new.trace_id,
        "user_id": new.user_id[:200],
        "scope": dict(new.scope),
        "original_confidence": new.original_confidence,
        "adjusted_confidence": new.adjusted_confidence,
        "total_claims": new.total_claims,
        "verified_claims": new.verified_claims,
        "unverified_claims": new.unverified_claims,
        "detectors": dict(new.detectors),
        "kinds": list(new.kinds),
        "auto": new.auto,
        "latency_s": new.latency_s,
        "tokens": new.tokens,
        "has_text": new.has_text,
        "excerpt": new.excerpt,
        "reviewer": "",
        "settled": None,
        "note": "",
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

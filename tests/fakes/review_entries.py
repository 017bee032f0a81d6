"""Entries of the review queue, made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from truthlens.review.records import Change, EntrySummary, NewEntry, ReviewStatus

CREATED = 1_760_000_000.0


def content(
    answers: Sequence[str] = (),
    *,
    passages: Sequence[str] = (),
    query: str = "",
    scores: Sequence[float] = (),
) -> dict[str, Any]:
    """The content of an entry, with texts where there are answers."""
    found: dict[str, Any] = {
        "format": 1,
        "query": {"chars": len(query), "sha256": "0" * 64},
        "passages": [],
        "choices": [
            {
                "index": place,
                "chars": 5,
                "status": "checked",
                "score": score,
                "threshold": 0.6,
                "spans": [
                    {"start": 0, "end": 3, "shown": [0, 3], "score": 0.9, "detector": "encoder", "note": "a note of a model", "differences": []}
                ],
                "detectors": [{"name": "encoder", "score": score, "explanation": "why"}],
                "claims": [],
            }
            for place, score in enumerate(scores or (0.9,) * max(1, len(answers)))
        ],
    }  # fmt: skip
    if answers:
        found["texts"] = {
            "query": query,
            "passages": [{"title": "", "text": each} for each in passages],
            "answers": list(answers),
        }
    return found


def new_entry(entry_id: str, **values: Any) -> NewEntry:
    """A flagged entry of the decision ``default`` without texts."""
    score = values.get("score", 0.8)
    kept: dict[str, Any] = {
        "created": CREATED,
        "decision": "default",
        "mode": "lightweight",
        "action": "warn",
        "policy_version": "abc",
        "score": score,
        "even_score": score,
        "threshold": 0.6,
        "flagged": score >= 0.6,
        "level": "high",
        "rule": "flagged",
        "sample": 1.0,
        "content": content(),
        **dict.fromkeys(("model", "query_id", "trace_id", "user_id", "excerpt"), ""),
        **dict.fromkeys(("total_claims", "verified_claims", "unverified_claims", "tokens"), 0),
        "scope": {},
        "original_confidence": 1.0,
        "adjusted_confidence": 1.0,
        "detectors": {},
        "kinds": (),
        "auto": False,
        "latency_s": 0.0,
        "has_text": False,
    }
    return NewEntry(id=entry_id, **{**kept, **values})


def with_texts(entry_id: str, answer: str = "Tea is wrong.", **values: Any) -> NewEntry:
    """The same with texts."""
    text = content([answer], passages=["Tea is free."], query="What of tea?")
    return new_entry(
        entry_id, **{"has_text": True, "excerpt": answer[:20], "content": text, "model": "m", **values}
    )


def change(entry_id: str, status: ReviewStatus, version: int = 1, **values: Any) -> Change:
    return Change(entry_id, version, status, **values)


def summary(number: int, **values: Any) -> EntrySummary:
    """An entry as a list shows it, settled where ``status`` says so."""
    known = NewEntry.__dataclass_fields__
    new = EntrySummary.of(new_entry(f"e{number}", **{k: v for k, v in values.items() if k in known}))
    status = values.get("status", ReviewStatus.PENDING)
    settled = new.created + 60.0 if status.label is not None else None
    return replace(
        new,
        number=number,
        status=status,
        reviewer="ann" if settled else "",
        settled=values.get("settled", settled),
    )

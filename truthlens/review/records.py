"""The frozen records of the review queue. Times are seconds since 1970, UTC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from truthlens.core.errors import TruthLensError


class ReviewStatus(StrEnum):
    """Where an entry stands. ``approved`` and ``rejected`` settle it."""

    PENDING = "pending"  # awaits review
    REVIEWED = "reviewed"  # somebody is at it
    APPROVED = "approved"  # the answer is correct: the flag was a false positive
    REJECTED = "rejected"  # the answer is a hallucination: the flag was a true positive

    @property
    def label(self) -> int | None:
        """Return the label of the answer: 1 for a hallucination, 0 for a correct one, ``None`` where it is not settled."""
        return {ReviewStatus.APPROVED: 0, ReviewStatus.REJECTED: 1}.get(self)


class Order(StrEnum):
    """How a list of entries is sorted."""

    NEWEST = "newest"
    OLDEST = "oldest"
    SCORE = "score"


class ReviewError(TruthLensError):
    """The review queue cannot do what was asked."""


class UnknownEntryError(ReviewError):
    """There is no entry of that id, or none any more."""


class ChangedEntryError(ReviewError):
    """Somebody else has changed the entry since it was read."""


class QueueUnavailableError(ReviewError):
    """The database does not answer, is read-only or full."""


@dataclass(frozen=True, slots=True)
class _EntryFields:
    """What is known of an answer from the moment that it is queued.

    ``rule`` says which rule queued it and ``sample`` with which probability (0..1], so that rates can be weighted.
    ``score`` is at the plan's expected rate; ``even_score`` the same at even odds. Confidences are 1 − score,
    0..1. ``detectors`` names those that found something, with their scores; ``kinds`` what is wrong.
    ``has_text`` says that texts are kept, and ``excerpt`` is the beginning of what is marked, ``""`` without
    them. ``mode`` is the one that ran, with what it cost: ``latency_s`` and ``tokens``.
    """

    id: str
    created: float
    decision: str
    mode: str
    action: str
    policy_version: str
    score: float
    even_score: float
    threshold: float
    flagged: bool
    level: str
    rule: str
    sample: float
    model: str
    query_id: str
    trace_id: str
    user_id: str
    scope: Mapping[str, str]
    original_confidence: float
    adjusted_confidence: float
    total_claims: int
    verified_claims: int
    unverified_claims: int
    detectors: Mapping[str, float]
    kinds: tuple[str, ...]
    auto: bool
    latency_s: float
    tokens: int
    has_text: bool
    excerpt: str


@dataclass(frozen=True, slots=True)
class NewEntry(_EntryFields):
    """What is queued of one answer; ``content`` is JSON (``entry.content`` builds it)."""

    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EntrySummary(_EntryFields):
    """An entry as a list shows it; ``number`` grows with every entry, ``version`` with every change of this one."""

    number: int
    updated: float
    version: int
    status: ReviewStatus
    reviewer: str
    settled: float | None
    note: str

    @classmethod
    def of(cls, new: NewEntry) -> EntrySummary:
        """Return the summary of an entry that nobody has seen yet; the database gives its number."""
        told = {name: getattr(new, name) for name in _EntryFields.__dataclass_fields__}
        return cls(
            **told,
            number=0,
            updated=new.created,
            version=1,
            status=ReviewStatus.PENDING,
            reviewer="",
            settled=None,
            note="",
        )


@dataclass(frozen=True, slots=True)
class Correction:
    """Characters ``start`` to ``end`` of choice ``choice`` that a reviewer marks as unsupported."""

    start: int
    end: int
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """One line of an entry's audit trail: who did what, and the status and version that it led to."""

    at: float
    actor: str
    action: str
    status: ReviewStatus
    version: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry with all that is kept of it. ``spans`` is what a reviewer marked; ``None`` where the detectors' marks stand."""

    summary: EntrySummary
    content: Mapping[str, Any]
    spans: tuple[Correction, ...] | None
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which entries are listed; ``()``, ``""`` and ``None`` mean any. Times and scores: ``since`` and ``min_score`` inclusive."""

    statuses: tuple[ReviewStatus, ...] = ()
    decision: str = ""
    detector: str = ""
    kind: str = ""
    level: str = ""
    mode: str = ""
    rule: str = ""
    reviewer: str = ""
    query_id: str = ""
    flagged: bool | None = None
    min_score: float | None = None
    max_score: float | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Entries in order; ``cursor`` asks for those after them, ``None`` at the end."""

    entries: tuple[EntrySummary, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """What a reviewer decides of an entry that was at ``version`` when it was read.

    ``note`` and ``spans`` that are ``None`` stay as they are; ``clear_spans`` takes a reviewer's marks back.
    """

    id: str
    version: int
    status: ReviewStatus
    note: str | None = None
    spans: Sequence[Correction] | None = None
    clear_spans: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of one change of many: the entry as it is now, and why it was not changed, ``""`` where it was."""

    id: str
    entry: EntrySummary | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LastStep:
    """What a reviewer did last: to ``count`` entries at once, ``first`` of them; ``status`` is what all became, ``None`` where they differ."""

    id: str
    count: int
    first: EntrySummary
    status: ReviewStatus | None

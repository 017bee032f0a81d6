"""What the review API takes and gives: pydantic models of requests, the records of ``truthlens.review`` for replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import pydantic
from pydantic import Field, StringConstraints

from truthlens.desk.accuracy import Accuracy, Backlog
from truthlens.review.records import Change, Correction, EntrySummary, Filters, Order, ReviewStatus
from truthlens.review.store.changes import LONGEST_NOTE, MOST_SPANS
from truthlens.review.store.queue import MOST_CHANGED, MOST_LISTED

_MOST_VERSION = (1 << 31) - 2
_LATEST = 4e11  # the year 14,000 and more: no database has trouble with it
ID_PATTERN = r"[A-Za-z0-9_-]{1,32}"

# PostgreSQL has no NUL in a text.
Name = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
Note = Annotated[str, StringConstraints(max_length=LONGEST_NOTE, pattern=r"^[^\x00]*$")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Time = Annotated[float, Field(ge=0, le=_LATEST, allow_inf_nan=False)]


class FilterQuery(pydantic.BaseModel):
    """Which entries; what is left out means any."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    status: tuple[ReviewStatus, ...] = Field(
        (), description="One or several: `status=pending&status=reviewed`."
    )
    decision: Name = Field("", description="The policy's decision.")
    detector: Name = Field("", description="A detector that found something.")
    kind: Name = Field("", description="A kind of finding.")
    level: Name = Field("", description="The risk level.")
    mode: Name = Field("", description="The mode that ran.")
    rule: Name = Field("", description="The rule that queued it.")
    reviewer: Name = Field("", description="Who changed its status last.")
    query_id: Name = Field("", description="The id of the request.")
    flagged: bool | None = Field(None, description="Whether the answer was flagged.")
    min_score: Share | None = Field(None, description="The lowest score, inclusive.")
    max_score: Share | None = Field(None, description="The highest score, exclusive.")
    since: Time | None = Field(None, description="Answers from then on, seconds since 1970.")
    until: Time | None = Field(None, description="Answers before then, seconds since 1970.")

    @property
    def filtered(self) -> bool:
        """Whether anything but the status narrows the list."""
        return any(
            getattr(self, name) not in ("", None) for name in FilterQuery.model_fields if name != "status"
        )

    @property
    def filters(self) -> Filters:
        """The filters of the queue."""
        named = {name: getattr(self, name) for name in Filters.__dataclass_fields__ if name != "statuses"}
        return Filters(statuses=self.status, **named)


class ListQuery(FilterQuery):
    """Which entries, in which order and how many."""

    order: Order = Field(Order.NEWEST, description="How they are sorted.")
    cursor: Name | None = Field(None, description="From the page before; only with the same order.")
    limit: int = Field(50, ge=1, le=MOST_LISTED, description="Entries of one page.")


class SpanBody(pydantic.BaseModel):
    """Characters `start` to `end` of choice number `choice` (from 0) that are unsupported."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    start: int = Field(ge=0, le=1 << 31)
    end: int = Field(ge=1, le=1 << 31)
    choice: int = Field(0, ge=0, le=1 << 16)


class ChangeBody(pydantic.BaseModel):
    """What becomes of an entry that was read at `version`."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    version: int = Field(
        ge=1, le=_MOST_VERSION, description="As it was read; another one now means a conflict."
    )
    status: ReviewStatus = Field(
        description="`approved`: the answer is right, a false alarm. `rejected`: the answer is wrong, a hallucination. "
        "`reviewed`: somebody is at it. `pending`: put back."
    )
    note: Note | None = Field(None, description="Left out, it stays as it is.")
    spans: tuple[SpanBody, ...] | None = Field(
        None,
        max_length=MOST_SPANS,
        description="What is unsupported, in place of the detectors' marks. Left out, it stays as it is.",
    )
    clear_spans: bool = Field(default=False, description="The detectors' marks stand again.")

    def change(self, entry_id: str) -> Change:
        """Return the change of that entry."""
        spans = None if self.spans is None else [Correction(**each.model_dump()) for each in self.spans]
        return Change(entry_id, self.version, self.status, self.note, spans, self.clear_spans)


class BulkItem(ChangeBody):
    """One change of many."""

    id: str = Field(pattern=f"^{ID_PATTERN}$")


class BulkBody(pydantic.BaseModel):
    """Many changes, each for itself."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    changes: tuple[BulkItem, ...] = Field(min_length=1, max_length=MOST_CHANGED)


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What became of one change: `status` as of a single one (200, 404, 409 or 422), the entry as it is now, and why not."""

    id: str
    status: int
    entry: EntrySummary | None
    problem: str


@dataclass(frozen=True, slots=True)
class BulkReply:
    """What became of each change, in order."""

    results: list[BulkResult]


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    """The figures of the period that begins on day `start` (YYYY-MM-DD, UTC)."""

    start: str
    figures: Accuracy


@dataclass(frozen=True, slots=True)
class Stats:
    """How right the detectors were by the reviewers' decisions, and what awaits them. Times in seconds, shares 0..1."""

    counts: Mapping[ReviewStatus, int]
    backlog: Backlog
    all: Accuracy
    weekly: list[PeriodFigures]
    daily: list[PeriodFigures]
    decision: Mapping[str, Accuracy]
    detector: Mapping[str, Accuracy]
    kind: Mapping[str, Accuracy]


@dataclass(frozen=True, slots=True)
class ErrorText:
    """What is wrong."""

    message: str
    type: str = "invalid_request_error"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request was refused; `entry` is the entry as it is now, where another version of it was to be changed."""

    error: ErrorText
    entry: EntrySummary | None = None


def check_once(query: Iterable[tuple[str, str]]) -> None:
    """Refuse a query that has anything but statuses more than once.

    Raises:
        ValueError: naming it.
    """
    for name, following in pairwise(sorted(name for name, _ in query if name != "status")):
        if name == following:
            raise ValueError(f"{name[:40]} is there more than once")

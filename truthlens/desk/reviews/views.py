"""Build what the review pages show of an entry and of the figures, within bounds; pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, pairwise
from typing import Any

from truthlens.core.records.claims import JudgedClaim
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.core.risk import ClaimLevel
from truthlens.desk.accuracy import Estimate
from truthlens.desk.annotated import AnnotatedAnswer, annotate, visible
from truthlens.desk.reviews.schemas import PeriodFigures
from truthlens.desk.views import levels
from truthlens.review.entry.content import judged_claims, span_of
from truthlens.review.records import Correction, Entry, EntrySummary, ReviewStatus
from truthlens.review.store.changes import MOST_SPANS

WIDTH, HEIGHT = 720, 150
"""Of the drawings of figures."""
_MOST_SHIFTS = 2_000
_MOST_ROWS = 300
_LONGEST_QUESTION = 20_000


@dataclass(frozen=True, slots=True)
class StatusText:
    """A status in words: its name on tabs and badges, what it means, and what somebody did who gave it."""

    name: str
    meaning: str
    done: str


STATUSES: Mapping[ReviewStatus, StatusText] = {
    ReviewStatus.PENDING: StatusText("Pending", "nobody has looked at it yet", "put back"),
    ReviewStatus.REVIEWED: StatusText("Taken up", "somebody is at it", "took up"),
    ReviewStatus.APPROVED: StatusText("Approved", "the answer is right (false alarm)", "approved"),
    ReviewStatus.REJECTED: StatusText("Rejected", "the answer is wrong (hallucination)", "rejected"),
}


@dataclass(frozen=True, slots=True)
class ReviewedChoice:
    """One choice of the answer.

    ``claims`` each have how they are shown. ``view`` is ``None`` where its text was not kept. ``shifts`` (JSON) tells scripts where what is shown is longer or shorter than the
    text: ``[[position in the text, its length there, the length that is shown], …]``; ``None`` where there are too many of these.
    """

    place: int
    content: Mapping[str, Any]
    claims: tuple[tuple[JudgedClaim, ClaimLevel], ...]
    view: AnnotatedAnswer | None
    shifts: str | None


@dataclass(frozen=True, slots=True)
class ShownReview:
    """An entry, ready for its page.

    ``lines`` are the marks in the form's notation, of the reviewer where ``own_marks``, else of the detectors. ``asked_by`` are the
    detectors that asked for a person, whatever the score.
    """

    entry: Entry
    choices: tuple[ReviewedChoice, ...]
    question: str
    passages: tuple[tuple[str, Mapping[str, Any]], ...]
    lines: str
    own_marks: bool
    asked_by: tuple[str, ...]


def shown_review(entry: Entry) -> ShownReview:
    """Return what the page of ``entry`` shows. CPU-bound for long texts."""
    content, summary = entry.content, entry.summary
    texts = content.get("texts") if summary.has_text else None
    threshold = even_threshold(summary)
    passages = list(_passages(content, texts))
    choices = []
    marks: list[Correction] = []
    for place, choice in enumerate(content.get("choices", ())):
        spans = [span_of(each) for each in choice.get("spans", ())]
        claims = judged_claims(choice)
        answers = texts["answers"] if texts else ()
        view = shifts = None
        if place < len(answers):
            view = annotate(answers[place], spans, passages, even_threshold=threshold, claims=claims)
            shifts = _shifts(answers[place], view)
        marks += [Correction(each.start, each.end, place) for each in spans if each.score >= threshold]
        choices.append(ReviewedChoice(place, choice, levels(claims, threshold), view, shifts))
    return ShownReview(
        entry,
        tuple(choices),
        visible(texts["query"][:_LONGEST_QUESTION]) if texts else "",
        tuple((str(at + 1), each) for at, each in enumerate(content.get("passages", ())[:_MOST_ROWS])),
        lines_of(_joined(marks) if entry.spans is None else entry.spans, several=len(choices) > 1),
        entry.spans is not None,
        tuple(
            dict.fromkeys(
                each["name"]
                for choice in choices
                for each in choice.content.get("detectors", ())
                if each.get("for_review")
            )
        ),
    )


def even_threshold(summary: EntrySummary) -> float:
    """Return the entry's threshold at even odds, as scores of spans are: moved as far as the entry's score was."""
    given = (summary.threshold, summary.even_score, summary.score)
    if not all(0.0 < each < 1.0 for each in given):
        return summary.threshold
    threshold, even, score = (math.log(each / (1 - each)) for each in given)
    return 1 / (1 + math.exp(-max(-500.0, min(500.0, threshold + even - score))))


def lines_of(marks: Sequence[Correction], *, several: bool) -> str:
    """Return marks as the form has them, one a line: ``start-end``, with ``choice:`` before it where there are several."""
    return "\n".join(
        f"{each.choice}:{each.start}-{each.end}" if several else f"{each.start}-{each.end}"
        for each in marks[:MOST_SPANS]
    )


def when(seconds: float) -> str:
    """Return a time, seconds since 1970, as people read it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "–"


def lasting(seconds: float | None) -> str:
    """Return a duration in its largest fitting unit."""
    if seconds is None:
        return "–"
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = round(seconds / size, 1)
            return f"{count:g} {unit}{'' if count == 1 else 's'}"
    return f"{max(0, round(seconds))} s"


@dataclass(frozen=True, slots=True)
class Point:
    """An estimate at ``x``; ``y``, ``low`` and ``high`` go down from the top. ``label`` is ``""`` where there is no room for one."""

    x: float
    y: float
    low: float
    high: float
    label: str


@dataclass(frozen=True, slots=True)
class EstimateBar:
    """An estimate on a line that is 100 wide: the dot at ``x`` between ``low`` and ``high``."""

    x: float
    low: float
    high: float


def points_of(periods: Sequence[PeriodFigures]) -> list[Point]:
    """Return the precision of each period that has one, in a drawing of ``WIDTH`` by ``HEIGHT``."""
    step = WIDTH / max(1, len(periods))
    every = -(-len(periods) // 8)
    points = []
    for place, period in enumerate(periods):
        found = period.figures.precision
        if found is None:
            continue
        y, low, high = (round(HEIGHT * (1 - share), 1) for share in (found.share, found.low, found.high))
        # The last one has a label: how it is now is what people look for.
        label = period.start[5:] if (len(periods) - 1 - place) % every == 0 else ""
        points.append(Point(round(step * (place + 0.5), 1), y, low, high, label))
    return points


def bar_of(found: Estimate) -> EstimateBar:
    """Return the drawing of one estimate."""
    return EstimateBar(*(round(100 * share, 1) for share in (found.share, found.low, found.high)))


def _passages(content: Mapping[str, Any], texts: Mapping[str, Any] | None) -> Iterator[Passage]:
    for place, kept in enumerate(content.get("passages", ())):
        text = texts["passages"][place] if texts and place < len(texts["passages"]) else {}
        try:
            provenance = Provenance(kept.get("provenance", ""))
        except ValueError:
            provenance = Provenance.DOCUMENTS
        yield Passage(
            text.get("text", ""), provenance, kept.get("id", ""), text.get("title", ""), kept.get("rule", "")
        )


def _joined(marks: Sequence[Correction]) -> list[Correction]:
    """Join marks that touch, in order."""
    joined: list[Correction] = []
    for each in sorted(marks, key=lambda mark: (mark.choice, mark.start, mark.end)):
        last = joined[-1] if joined else None
        if last and last.choice == each.choice and each.start <= last.end:
            joined[-1] = Correction(last.start, max(last.end, each.end), last.choice)
        else:
            joined.append(each)
    return joined


def _shifts(text: str, view: AnnotatedAnswer) -> str | None:
    """Where the shown text differs in length; the same cuts as the view's, for a line end may stand across one."""
    edges = chain.from_iterable((mark.start, mark.end, *chain(*mark.words)) for mark in view.marks)
    cuts = sorted({0, len(text), *edges})
    found: list[tuple[int, int, int]] = []
    for start, end in pairwise(cuts):
        part = text[start:end]
        if visible(part) == part:
            continue
        at = start
        while at < end:
            size = 2 if text.startswith("\r\n", at, end) else 1
            if (length := len(visible(text[at : at + size]))) != size:
                found.append((at, size, length))
                if len(found) > _MOST_SHIFTS:
                    return None
            at += size
    return json.dumps(found)

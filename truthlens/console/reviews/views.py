"""Build what the review pages show of an entry, within bounds; pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, pairwise
from typing import Any

from truthlens.console.annotated import AnnotatedAnswer, annotate, visible
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import Span
from truthlens.review.records import Correction, Entry, EntrySummary, ReviewStatus
from truthlens.review.store.queue import MOST_SPANS

_MOST_SHIFTS = 2_000
_MOST_ROWS = 300
_LONGEST_QUESTION = 20_000


@dataclass(frozen=True, slots=True)
class StatusText:
    """A status in words: its name on tabs and badges, what it means, and what a button that leads to it says."""

    name: str
    meaning: str
    button: str = ""


STATUSES: Mapping[ReviewStatus, StatusText] = {
    ReviewStatus.PENDING: StatusText("Pending", "nobody has looked at it yet", "Put back"),
    ReviewStatus.REVIEWED: StatusText("Taken up", "somebody is at it", "Take up"),
    ReviewStatus.APPROVED: StatusText("Approved", "the answer is right (false alarm)", "Approve"),
    ReviewStatus.REJECTED: StatusText("Rejected", "the answer is wrong (hallucination)", "Reject"),
}


@dataclass(frozen=True, slots=True)
class ShownChoice:
    """One choice of the answer.

    ``view`` is ``None`` where its text was not kept. ``shifts`` (JSON) tells scripts where what is shown is longer or shorter than the
    text: ``[[position in the text, its length there, the length that is shown], …]``; ``None`` where there are too many of these.
    """

    place: int
    content: Mapping[str, Any]
    view: AnnotatedAnswer | None
    shifts: str | None


@dataclass(frozen=True, slots=True)
class ShownReview:
    """An entry, ready for its page.

    ``lines`` are the marks in the form's notation, of the reviewer where ``own_marks``, else of the detectors.
    """

    entry: Entry
    choices: tuple[ShownChoice, ...]
    question: str
    passages: tuple[tuple[str, Mapping[str, Any]], ...]
    lines: str
    own_marks: bool


def shown_review(entry: Entry) -> ShownReview:
    """Return what the page of ``entry`` shows. CPU-bound for long texts."""
    content, summary = entry.content, entry.summary
    texts = content.get("texts") if summary.has_text else None
    threshold = even_threshold(summary)
    passages = list(_passages(content, texts))
    choices = []
    marks: list[Correction] = []
    for place, choice in enumerate(content.get("choices", ())):
        spans = [_span(each) for each in choice.get("spans", ())]
        answers = texts["answers"] if texts else ()
        view = shifts = None
        if place < len(answers):
            view = annotate(answers[place], spans, passages, even_threshold=threshold)
            shifts = _shifts(answers[place], view)
        marks += [
            Correction(*(each.shown or (each.start, each.end)), place)
            for each in spans
            if each.score >= threshold
        ]
        choices.append(ShownChoice(place, choice, view, shifts))
    return ShownReview(
        entry,
        tuple(choices),
        visible(texts["query"][:_LONGEST_QUESTION]) if texts else "",
        tuple((str(at + 1), each) for at, each in enumerate(content.get("passages", ())[:_MOST_ROWS])),
        lines_of(_joined(marks) if entry.spans is None else entry.spans, several=len(choices) > 1),
        entry.spans is not None,
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


def _span(kept: Mapping[str, Any]) -> Span:
    shown = kept.get("shown")
    return Span(
        kept["start"],
        kept["end"],
        kept["score"],
        kept.get("detector", ""),
        kept.get("passage"),
        _explanation(kept),
        (shown[0], shown[1]) if shown else None,
        kept.get("note", ""),
    )


def _explanation(kept: Mapping[str, Any]) -> Explanation | None:
    try:
        kind = SpanKind(kept.get("kind", ""))
        differences = tuple(
            Difference(DifferenceKind(each["type"]), each["start"], each["end"], _pair(each.get("evidence")))
            for each in kept.get("differences", ())
        )
    except ValueError:
        return None  # another version's kind, or nobody explained it
    sentence = _pair(kept.get("sentence"))
    return Explanation(
        kind, kept.get("confidence", 0.0), kept.get("reason", ""), sentence, differences=differences
    )


def _pair(kept: Sequence[int] | None) -> tuple[int, int] | None:
    return (kept[0], kept[1]) if kept else None


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
    cuts = sorted({0, len(text), *chain.from_iterable((mark.start, mark.end) for mark in view.marks)})
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

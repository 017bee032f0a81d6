"""Build an answer with its marked spans beside the evidence, for any page that shows one; pure, within bounds.

``annotate`` makes the data, ``answer_macros.html.j2`` the HTML, ``static/spans.js`` lights up what belongs together.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from truthlens.core.records.exchange import Passage
from truthlens.core.records.verdict import Mark, Span, marks_by_detector, marks_of

# What a browser shows without trouble, and somebody reads. The marks of the lowest scores are left out first.
_MOST_MARKS = 5_000
_MOST_EXPLAINED = 300
_MOST_DIFFERENCES = 20
_LONGEST_QUOTE = 1_000
_MOST_PASSAGES = 200
_MOST_PASSAGE_CHARS = 300_000
# Around a sentence that is pointed at, where its passage is too long to be shown whole.
_AROUND = 400

# Controls, surrogates, what turns the direction of text, and what has no width. Joiners and the marks of direction stay: scripts
# and emoji need them.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """A value of the answer and what the evidence gives in its place, ``""`` where nothing is comparable."""

    kind: str
    answer: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What one detector says of a marked span; ``score`` 0..1 at even odds.

    ``kind``, ``reason`` and ``nearest`` (the sentence) are ``""``, ``confidence`` (0..1) ``None`` where nobody explained the span.
    ``sentence`` is the (start, end) of the nearest sentence in passage number ``passage``.
    """

    detector: str
    score: float
    kind: str = ""
    confidence: float | None = None
    reason: str = ""
    note: str = ""
    differences: tuple[ShownDifference, ...] = ()
    passage: int | None = None
    sentence: tuple[int, int] | None = None
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """A marked part of the answer; ``score`` is the highest of its findings, ``over`` whether it reaches the threshold.

    ``passage`` and ``sentence`` are those of the finding that says most. ``findings`` is empty beyond the bound.
    """

    id: int
    start: int
    end: int
    score: float
    over: bool
    passage: int | None
    sentence: tuple[int, int] | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A part of the answer's text, and the mark that it is, ``None`` for text between marks."""

    text: str
    mark: MarkedSpan | None = None


@dataclass(frozen=True, slots=True)
class PassagePiece:
    """A part of a passage from character ``start``.

    ``sentence`` says that a finding points at it. ``left`` characters are not shown before it.
    """

    text: str
    start: int
    sentence: bool = False
    left: int = 0


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage of the evidence; ``left`` characters are not shown at its end."""

    index: int
    label: str
    pieces: tuple[PassagePiece, ...]
    left: int = 0


@dataclass(frozen=True, slots=True)
class AnnotatedAnswer:
    """An answer, ready to be shown; ``more_marks`` marks and ``more_passages`` passages are not."""

    pieces: tuple[AnswerPiece, ...]
    passages: tuple[ShownPassage, ...]
    more_marks: int = 0
    more_passages: int = 0

    @property
    def marks(self) -> tuple[MarkedSpan, ...]:
        """The marks, in the answer's order."""
        return tuple(piece.mark for piece in self.pieces if piece.mark is not None)


def annotate(
    text: str, spans: Iterable[Span], passages: Sequence[Passage], *, even_threshold: float
) -> AnnotatedAnswer:
    """Return ``text`` with the marks of ``spans`` and what of ``passages`` they point at.

    Args:
        text: the answer, as the positions of ``spans`` count it.
        spans: what detectors found, in any order; positions outside of the text are not shown.
        passages: the evidence; of a long one only what is around sentences that are pointed at is shown.
        even_threshold: the score at even odds (``Plan.even_threshold``) from which a mark is ``over``.
    """
    marks = marks_of(spans, length=len(text))
    ranked = sorted(range(len(marks)), key=lambda place: -marks[place].score)
    explained = frozenset(ranked[:_MOST_EXPLAINED])
    kept = sorted(ranked[:_MOST_MARKS])
    shown = [
        _marked(place, marks[place], text, passages, even_threshold, explained=place in explained)
        for place in kept
    ]
    pointed: dict[int, set[tuple[int, int]]] = {}
    for mark in shown:
        links = [(mark.passage, mark.sentence), *((each.passage, each.sentence) for each in mark.findings)]
        for passage, sentence in links:
            if passage is not None and sentence is not None:
                pointed.setdefault(passage, set()).add(sentence)
    listed = [index for index in range(len(passages)) if index < _MOST_PASSAGES or index in pointed]
    listed = sorted(sorted(listed, key=lambda index: index not in pointed)[:_MOST_PASSAGES])
    return AnnotatedAnswer(
        pieces=tuple(_answer_pieces(text, shown)),
        passages=tuple(_passages(listed, passages, pointed)),
        more_marks=len(marks) - len(kept),
        more_passages=len(passages) - len(listed),
    )


def visible(text: str) -> str:
    """Return ``text`` with what would be unseen, or change how the rest is read, as a code such as ``[U+202E]``."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.replace("\r\n", "\n"))


def passage_label(index: int, passage: Passage) -> str:
    """Return what stands above a passage: its number from 1, its source and rule, its id and title where it has them."""
    told = (str(index + 1), passage.provenance.value, passage.rule, passage.id, passage.title)
    return visible(" · ".join(each[:200] for each in told if each))


def _marked(
    number: int,
    mark: Mark,
    text: str,
    passages: Sequence[Passage],
    even_threshold: float,
    *,
    explained: bool,
) -> MarkedSpan:
    telling = _finding(mark, text, passages)
    findings = [_finding(each, text, passages) for each in marks_by_detector(mark.spans)] if explained else []
    return MarkedSpan(
        id=number,
        start=mark.start,
        end=mark.end,
        score=mark.score,
        over=mark.score >= even_threshold,
        passage=telling.passage,
        sentence=telling.sentence,
        findings=tuple(sorted(findings, key=lambda each: -each.score)),
    )


def _finding(mark: Mark, text: str, passages: Sequence[Passage]) -> Finding:
    span, explanation = mark.telling, mark.telling.explanation
    known = span.passage is not None and 0 <= span.passage < len(passages)
    passage = passages[span.passage].text if span.passage is not None and known else ""
    note = "; ".join(dict.fromkeys(each.note for each in mark.spans if each.note))[:_LONGEST_QUOTE]
    place = span.passage if known else None
    if explanation is None:
        return Finding(visible(span.detector), mark.score, note=visible(note), passage=place)
    sentence = explanation.sentence if known and explanation.sentence else None
    return Finding(
        detector=visible(span.detector),
        score=mark.score,
        kind=explanation.kind.value,
        confidence=explanation.confidence,
        reason=visible(explanation.reason),
        note=visible(note),
        differences=tuple(
            ShownDifference(
                each.kind.value,
                _quote(text, (each.start, each.end)),
                _quote(passage, each.evidence),
            )
            for each in mark.differences[:_MOST_DIFFERENCES]
        ),
        passage=place,
        sentence=sentence,
        nearest=_quote(passage, sentence),
    )


def _quote(text: str, place: tuple[int, int] | None) -> str:
    return "" if place is None else visible(text[slice(*place)][:_LONGEST_QUOTE])


def _answer_pieces(text: str, marks: Iterable[MarkedSpan]) -> Iterator[AnswerPiece]:
    at = 0
    for mark in marks:
        if mark.start > at:
            yield AnswerPiece(visible(text[at : mark.start]))
        yield AnswerPiece(visible(text[mark.start : mark.end]), mark)
        at = mark.end
    if at < len(text):
        yield AnswerPiece(visible(text[at:]))


def _passages(
    listed: Iterable[int], passages: Sequence[Passage], pointed: dict[int, set[tuple[int, int]]]
) -> Iterator[ShownPassage]:
    room = _MOST_PASSAGE_CHARS
    for index in listed:
        passage, sentences = passages[index], pointed.get(index, set())
        length = len(passage.text)
        windows = [(0, length)] if length <= room else _windows(sentences, length, room)
        shown = sum(end - start for start, end in windows)
        room -= shown
        behind = windows[-1][1] if windows else 0
        yield ShownPassage(
            index,
            passage_label(index, passage),
            tuple(_passage_pieces(passage.text, windows, sentences)),
            left=length - behind,
        )


def _windows(sentences: Iterable[tuple[int, int]], length: int, room: int) -> list[tuple[int, int]]:
    """Return what is shown of a passage that is too long: the surroundings of sentences, or its beginning."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(sentences) or [(0, 0)]:
        start, end = max(0, first - _AROUND), min(length, last + _AROUND)
        if end - start > room:
            break
        if found and start <= found[-1][1]:
            start, end = found[-1][1], max(end, found[-1][1])
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
        room -= end - start
    return found


def _passage_pieces(
    text: str, windows: Iterable[tuple[int, int]], sentences: Iterable[tuple[int, int]]
) -> Iterator[PassagePiece]:
    """Yield the windows of ``text``, cut wherever a sentence begins or ends: sentences may overlap."""
    ordered = sorted(sentences)
    behind = place = reach = 0
    for start, end in windows:
        # A window holds its sentences whole.
        own = ordered[bisect_left(ordered, (start,)) : bisect_left(ordered, (end,))]
        inside = {at for sentence in own for at in sentence if start < at < end}
        left = start - behind
        for first, last in pairwise(sorted({start, end, *inside})):
            while place < len(ordered) and ordered[place][0] <= first:
                reach = max(reach, ordered[place][1])
                place += 1
            yield PassagePiece(visible(text[first:last]), first, sentence=first < reach, left=left)
            left = 0
        behind = end

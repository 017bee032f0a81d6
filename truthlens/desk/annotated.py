"""Build an answer with its marked spans beside the evidence, for any page that shows one; pure, within bounds.

``annotate`` makes the data, ``answer_macros.html.j2`` the HTML, ``static/spans.js`` lights up what belongs together.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType

from truthlens.core.records.claims import JudgedClaim
from truthlens.core.records.exchange import Passage
from truthlens.core.records.verdict import Mark, Span, marks_by_detector, marks_of
from truthlens.core.risk import ClaimLevel, claim_level

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
class SpanFinding:
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
class ShownClaim:
    """What is known of a claim; ``risk`` is ``None`` where nobody judged it, ``detector`` ``""`` where none decided.

    ``passage`` is the place of the one that the deciding finding names, ``None`` where it names none.
    ``sentence`` is the one that the deciding finding names, ``""`` where it names none; then ``nearest`` is
    the one that shares most words with the claim, ``""`` where none does or the findings show it. ``source``
    is the database that decided, ``reason`` what it gives; ``path`` the JSON Pointer of a claim in JSON.
    """

    outcome: str
    risk: float | None
    level: ClaimLevel
    detector: str
    source: str
    sentence: str
    nearest: str
    reason: str
    path: str
    passage: int | None = None


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """A marked part of the answer: a claim, or what detectors marked where no ``claim`` is known.

    ``score`` is the claim's risk or the highest of the findings, ``over`` whether it reaches the threshold. ``words`` are what in it
    stands out, as (start, end). ``passage`` and ``sentence`` are those of the finding that says most. ``findings``, the surest first,
    are empty beyond the bound, where it is not ``listed``.
    """

    id: int
    start: int
    end: int
    score: float
    over: bool
    words: tuple[tuple[int, int], ...]
    passage: int | None
    sentence: tuple[int, int] | None
    findings: tuple[SpanFinding, ...]
    listed: bool
    claim: ShownClaim | None = None


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A part of the answer's text, and the mark that it is, ``None`` for text between marks.

    ``parts`` are the text of a mark, cut around its words; each says whether it is one.
    """

    text: str
    mark: MarkedSpan | None = None
    parts: tuple[tuple[str, bool], ...] = ()


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
    """An answer, ready to be shown; ``more_marks`` marks and ``more_passages`` passages are not.

    ``origins`` has source, id and title of retrieved passages that marks point at, by their place.
    """

    pieces: tuple[AnswerPiece, ...]
    passages: tuple[ShownPassage, ...]
    origins: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    more_marks: int = 0
    more_passages: int = 0

    @property
    def marks(self) -> tuple[MarkedSpan, ...]:
        """The marks, in the answer's order."""
        return tuple(piece.mark for piece in self.pieces if piece.mark is not None)

    @property
    def by_claims(self) -> bool:
        """Whether the answer is shown by claims."""
        return any(mark.claim is not None for mark in self.marks)


def annotate(
    text: str,
    spans: Iterable[Span],
    passages: Sequence[Passage],
    *,
    even_threshold: float,
    claims: Iterable[JudgedClaim] = (),
) -> AnnotatedAnswer:
    """Return ``text`` by ``claims`` with what of ``passages`` they point at; the marks of ``spans`` where there are no claims.

    Args:
        text: the answer, as the positions of ``spans`` count it.
        spans: what detectors found, in any order; positions outside of the text are not shown.
        passages: the evidence; of a long one only what is around sentences that are pointed at is shown.
        even_threshold: the score at even odds (``Plan.even_threshold``) from which a mark is ``over``.
        claims: what is known of each claim of the text, in order.
    """
    marks = _units(text, spans, claims)
    ranked = sorted(range(len(marks)), key=lambda place: -marks[place][0].score)
    explained = frozenset(ranked[:_MOST_EXPLAINED])
    kept = sorted(ranked[:_MOST_MARKS])
    shown = [
        _marked(place, marks[place], text, passages, even_threshold, explained=place in explained)
        for place in kept
    ]
    pointed: dict[int, set[tuple[int, int]]] = {}
    origins: dict[int, str] = {}
    for mark in shown:
        links = [(mark.passage, mark.sentence), *((each.passage, each.sentence) for each in mark.findings)]
        if mark.claim is not None:
            links.append((mark.claim.passage, None))
        for passage, sentence in links:
            if passage is not None and passages[passage].source:
                origins[passage] = origin_of(passages[passage])
            if passage is not None and sentence is not None:
                pointed.setdefault(passage, set()).add(sentence)
    listed = [index for index in range(len(passages)) if index < _MOST_PASSAGES or index in pointed]
    listed = sorted(sorted(listed, key=lambda index: index not in pointed)[:_MOST_PASSAGES])
    return AnnotatedAnswer(
        pieces=tuple(_answer_pieces(text, shown)),
        passages=tuple(_passages(listed, passages, pointed)),
        origins=MappingProxyType(origins),
        more_marks=len(marks) - len(kept),
        more_passages=len(passages) - len(listed),
    )


def visible(text: str) -> str:
    """Return ``text`` with what would be unseen, or change how the rest is read, as a code such as ``[U+202E]``."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.replace("\r\n", "\n"))


def parts_of(
    text: str, start: int, end: int, words: Iterable[tuple[int, int]]
) -> tuple[tuple[str, bool], ...]:
    """Return characters ``start`` to ``end`` of ``text``, cut around ``words`` in it; each part says whether it is one."""
    cuts = [start, *(at for word in words for at in word), end]
    return tuple(
        (visible(text[first:last]), bool(number % 2))
        for number, (first, last) in enumerate(pairwise(cuts))
        if first < last
    )


def passage_label(index: int, passage: Passage) -> str:
    """Return what stands above a passage: number from 1, provenance, source or rule, id, title."""
    by = passage.source or passage.rule
    return _joined(str(index + 1), passage.provenance.value, by, passage.id, passage.title)


def origin_of(passage: Passage) -> str:
    """Return where a retrieved passage is from: its source, its id there, the title of its document."""
    return _joined(passage.source, passage.id, passage.title)


def _joined(*told: str) -> str:
    return visible(" · ".join(each[:200] for each in told if each))


def _units(
    text: str, spans: Iterable[Span], claims: Iterable[JudgedClaim]
) -> list[tuple[Mark, JudgedClaim | None]]:
    """Return what is marked of ``text``, in order: each claim with the spans that touch it, and marks of spans that touch none."""
    known: list[JudgedClaim] = []
    for claim in claims:
        start = max(claim.start, known[-1].end if known else 0)
        if start < min(claim.end, len(text)):
            known.append(replace(claim, start=start, end=min(claim.end, len(text))))
    if not known:
        return [(mark, None) for mark in marks_of(spans, length=len(text))]
    held: list[list[Span]] = [[] for _ in known]
    apart: list[Span] = []
    for span in spans:
        first = bisect_right(known, span.start, key=lambda claim: claim.end)
        touched = held[first : bisect_left(known, span.end, key=lambda claim: claim.start)]
        for each in touched:
            each.append(span)
        if not touched:
            # Of a phrase around it, a claim may have a part.
            apart.append(replace(span, shown=None))
    units: list[tuple[Mark, JudgedClaim | None]] = [
        (Mark(claim.start, claim.end, claim.risk or 0.0, tuple(own)), claim)
        for claim, own in zip(known, held, strict=True)
    ]
    units += [(mark, None) for mark in marks_of(apart, length=len(text))]
    return sorted(units, key=lambda unit: unit[0].start)


def _marked(
    number: int,
    unit: tuple[Mark, JudgedClaim | None],
    text: str,
    passages: Sequence[Passage],
    even_threshold: float,
    *,
    explained: bool,
) -> MarkedSpan:
    mark, claim = unit
    findings = [_finding(each, text, passages) for each in marks_by_detector(mark.spans)] if explained else []
    place, sentence = _pointed_at(mark.telling, passages) if mark.spans else (None, None)
    words, shown = mark.words(even_threshold), None
    if claim is not None:
        level = claim_level(claim.risk, even_threshold)
        words = _differing(mark, even_threshold) if level in (ClaimLevel.FLAGGED, ClaimLevel.DOUBTFUL) else ()
        named = nearest = ""
        near = claim.nearest
        own = claim.passage if claim.passage is not None and 0 <= claim.passage < len(passages) else None
        if own is not None and claim.sentence is not None:
            place, sentence = own, claim.sentence
            named = _quote(passages[place].text, sentence)
        elif near is not None and 0 <= near.passage < len(passages) and sentence is None:
            place, sentence = near.passage, (near.start, near.end)
            nearest = _quote(passages[place].text, sentence)
        shown = ShownClaim(
            outcome=claim.outcome.value,
            risk=claim.risk,
            level=level,
            detector=visible(claim.detector),
            source=visible(claim.source),
            sentence=named,
            nearest=nearest,
            reason=visible(claim.reason[:_LONGEST_QUOTE]),
            path=visible(claim.path[:_LONGEST_QUOTE]),
            passage=own,
        )
    return MarkedSpan(
        id=number,
        start=mark.start,
        end=mark.end,
        score=mark.score,
        over=mark.score >= even_threshold,
        words=words,
        passage=place,
        sentence=sentence,
        findings=tuple(sorted(findings, key=lambda each: -each.score)),
        listed=explained,
        claim=shown,
    )


def _differing(mark: Mark, even_threshold: float) -> tuple[tuple[int, int], ...]:
    """Return what stands out in a claim: what reaches the threshold, and every value that differs from the evidence."""
    differences = (
        Span(each.start, each.end, 1.0)
        for span in mark.spans
        if span.explanation is not None
        for each in span.explanation.differences
    )
    surest = tuple(span for span in mark.spans if span.score >= even_threshold)
    return replace(mark, spans=(*surest, *differences)).words()


def _finding(mark: Mark, text: str, passages: Sequence[Passage]) -> SpanFinding:
    span, explanation = mark.telling, mark.telling.explanation
    place, sentence = _pointed_at(span, passages)
    note = "; ".join(dict.fromkeys(each.note for each in mark.spans if each.note))[:_LONGEST_QUOTE]
    if explanation is None:
        return SpanFinding(visible(span.detector), mark.score, note=visible(note), passage=place)
    passage = "" if place is None else passages[place].text
    return SpanFinding(
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


def _pointed_at(span: Span, passages: Sequence[Passage]) -> tuple[int | None, tuple[int, int] | None]:
    """Return the passage that ``span`` points at and the sentence in it, ``None`` where there is none."""
    if span.passage is None or not 0 <= span.passage < len(passages):
        return None, None
    return span.passage, span.explanation.sentence if span.explanation else None


def _quote(text: str, place: tuple[int, int] | None) -> str:
    return "" if place is None else visible(text[slice(*place)][:_LONGEST_QUOTE])


def _answer_pieces(text: str, marks: Iterable[MarkedSpan]) -> Iterator[AnswerPiece]:
    at = 0
    for mark in marks:
        if mark.start > at:
            yield AnswerPiece(visible(text[at : mark.start]))
        parts = parts_of(text, mark.start, mark.end, mark.words)
        yield AnswerPiece("".join(part for part, _ in parts), mark, parts)
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

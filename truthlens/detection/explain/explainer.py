"""Explain flagged spans: the nearest sentence, what differs from it, and the kind of error.

Word comparison only, no model: it explains what a detector flagged, and flags nothing itself. Nothing is read
before a first span asks, and the evidence is read once for all spans of an exchange.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from truthlens.core.cancellation import checkpoint
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation
from truthlens.core.records.verdict import Span, Verdict
from truthlens.detection.encoder.inputs.lexical import keys_of
from truthlens.detection.explain.differences import SentenceComparison
from truthlens.detection.explain.evidence_search import EvidenceSentences, Match
from truthlens.detection.explain.explanation_text import reason_for
from truthlens.detection.explain.span_kind import Standing, probabilities
from truthlens.text.sentences import sentences
from truthlens.text.words import Word, words

_SPAN_WEIGHT = 2.0
_BEFORE_WEIGHT = 0.25  # the sentence before says what "it" and a bare list item are about
_MOST_PARTS = 12
_TURNED = (DifferenceKind.NEGATION, DifferenceKind.OPPOSITE)
_DENIES = re.compile(
    r"\b(?:passages?|context|documents?|sources?|texts?|information|evidence)\b[^.!?\n]{0,40}?"
    r"\b(?:(?:do|does|did)(?: not|n['’]t)|never|(?:is|are)(?: not|n['’]t)|no)\b"
    r"|\b(?:no|not) (?:specific |explicit(?:ly)? )?(?:mention(?:ed)?|information|details?|stated|specified|provided)\b",
    re.IGNORECASE,
)
_REFERS = re.compile(r"\b(?:passages?|documents?|sources?) \(?\d|\[\d{1,2}\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """Everything that is known of one span before its kind is decided."""

    match: Match | None
    differences: tuple[Difference, ...]
    standing: Standing


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer and the words of its sentences; ``starts`` are the characters where these begin."""

    text: str
    starts: tuple[int, ...]
    sentences: tuple[tuple[Word, ...], ...]

    @classmethod
    def read(cls, text: str) -> _Answer:
        starts = tuple(start for start, _ in sentences(text))
        groups: list[list[Word]] = [[] for _ in starts]
        for word in words(text):
            groups[bisect_right(starts, word.start) - 1].append(word)
        return cls(text, starts, tuple(map(tuple, groups)))


@dataclass(frozen=True, slots=True)
class _Part:
    """One sentence of a span: all of its words, those flagged, and what was found for it."""

    claim: tuple[Word, ...]
    flagged: tuple[Word, ...]
    match: Match | None
    differences: tuple[Difference, ...]


class Explainer:
    """Explains the spans of the answers of one exchange.

    Args:
        passages: the exchange's passages; indices in the explanations are theirs.
        query: what the user asked; a name or number in it is not invented by the answer.
    """

    def __init__(self, passages: Sequence[Passage], *, query: str = "") -> None:
        self._evidence = EvidenceSentences(passages)
        self._query = query

    def explain(self, text: str, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Return ``spans`` of ``text`` with ``passage`` and ``explanation`` set; those that their detector explained stay."""
        if all(span.explanation is not None for span in spans):
            return tuple(spans)
        answer = _Answer.read(text)
        return tuple(self._explained(answer, span) if span.explanation is None else span for span in spans)

    def find(self, text: str, span: Span) -> Finding:
        """Return the material of the explanation of one span of ``text``."""
        return self._find(_Answer.read(text), span)

    def _explained(self, answer: _Answer, span: Span) -> Span:
        finding = self._find(answer, span)
        by_kind = probabilities(finding.standing)
        kind = max(by_kind, key=by_kind.__getitem__)
        match = finding.match
        explanation = Explanation(
            kind=kind,
            confidence=by_kind[kind],
            reason=reason_for(kind, finding.differences, finding.standing),
            sentence=(match.sentence.start, match.sentence.end) if match else None,
            similarity=match.similarity if match else 0.0,
            differences=finding.differences,
        )
        return replace(span, passage=match.sentence.passage if match else None, explanation=explanation)

    def _find(self, answer: _Answer, span: Span) -> Finding:
        parts = self._parts(answer, span)
        if not parts:
            return Finding(None, (), Standing())
        main = max(parts, key=_weight_of)
        passage = main.match.sentence.passage if main.match else None
        differences = [
            each
            for part in parts
            for each in part.differences
            if each.evidence is None
            or (part.match is not None and passage is not None and part.match.sentence.passage == passage)
        ]
        apart = _apart(differences)
        return Finding(
            main.match, apart, self._standing(answer.text[span.start : span.end], parts, main, apart)
        )

    def _parts(self, answer: _Answer, span: Span) -> list[_Part]:
        parts: list[_Part] = []
        first = max(bisect_right(answer.starts, span.start) - 1, 0)
        for number in range(first, len(answer.sentences)):
            if answer.starts[number] >= span.end or len(parts) == _MOST_PARTS:
                break
            claim = answer.sentences[number]
            flagged = tuple(word for word in claim if word.start < span.end and word.end > span.start)
            if flagged:
                before = answer.sentences[number - 1] if number else ()
                parts.append(self._part(answer.text, claim, flagged, before))
        return parts

    def _part(
        self,
        text: str,
        claim: tuple[Word, ...],
        flagged: tuple[Word, ...],
        before: tuple[Word, ...],
    ) -> _Part:
        checkpoint()
        weights = _weighted(claim, 1.0) | _weighted(flagged, _SPAN_WEIGHT)
        match = self._evidence.nearest(weights, context=_weighted(before, _BEFORE_WEIGHT))
        comparison = SentenceComparison(
            text,
            claim,
            span=(flagged[0].start, flagged[-1].end),
            evidence=self._evidence,
            match=match,
            known=self._asked,
        )
        return _Part(claim, flagged, match, comparison.differences())

    @cached_property
    def _asked(self) -> frozenset[str]:
        return frozenset(key for word in words(self._query) for key in keys_of(word))

    def _standing(
        self, shown: str, parts: Sequence[_Part], main: _Part, differences: Sequence[Difference]
    ) -> Standing:
        evidence = self._evidence
        flagged = [word for part in parts for word in part.flagged if not word.stop]
        rest = [word for word in main.claim if not word.stop and word not in main.flagged]
        near = evidence.keys(main.match.number) if main.match else frozenset()
        absent = sum(not evidence.holds(word) for word in flagged)
        pairs = list(zip(main.flagged, main.flagged[1:], strict=False))
        alone = evidence.nearest(_weighted(main.flagged, 1.0))
        invented = [each for each in differences if each.evidence is None]
        count = max(len(flagged), 1)
        content = sum(not word.stop for part in parts for word in part.claim)
        return Standing(
            similarity=main.match.similarity if main.match else 0.0,
            rest=sum(not near.isdisjoint(keys_of(word)) for word in rest) / len(rest) if rest else 0.0,
            absent=absent / count,
            together=alone.similarity if alone else 0.0,
            pairs=sum(evidence.follows(one.stem, other.stem) for one, other in pairs) / max(len(pairs), 1),
            whole=len(flagged) / max(content, 1),
            length=math.log1p(len(flagged)) / 4.0,
            differs=min(
                sum(each.evidence is not None and each.kind not in _TURNED for each in differences), 2
            )
            / 2,
            turned=float(any(each.kind in _TURNED for each in differences)),
            invented=min(len(invented), 3) / 3,
            invented_names=min(sum(each.kind in _NAMED for each in invented), 2) / 2,
            denies=float(_DENIES.search(shown) is not None),
            refers=float(_REFERS.search(shown) is not None),
        )


def explained(
    exchange: Exchange, answers: Sequence[Answer], verdicts: Sequence[Verdict]
) -> tuple[Verdict, ...]:
    """Return ``verdicts`` on ``answers`` with explained spans, whichever detector flagged them.

    A step of its own, because most verdicts are never looked at span by span. CPU-bound; keep it off the
    event loop.
    """
    explainer = Explainer(exchange.passages, query=exchange.query)
    return tuple(
        replace(verdict, spans=explainer.explain(answer.text, verdict.spans))
        for answer, verdict in zip(answers, verdicts, strict=True)
    )


_NAMED = (DifferenceKind.NAME, DifferenceKind.CITATION)


def _weighted(listed: Sequence[Word], weight: float) -> dict[str, float]:
    """Return the content words by the first of their keys, all with the same weight."""
    return {keys_of(word)[0]: weight for word in listed if not word.stop}


def _apart(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """Drop the differences that overlap an earlier one. The year of a citation is not a date of its own."""
    kept: list[Difference] = []
    for each in differences:
        if not any(each.start < other.end and other.start < each.end for other in kept):
            kept.append(each)
    return tuple(kept)


def _weight_of(part: _Part) -> tuple[float, float]:
    """Rank a part by how much it says: differing values first, then flagged content near the evidence."""
    differing = sum(each.evidence is not None for each in part.differences)
    content = sum(not word.stop for word in part.flagged)
    return float(differing), content * (0.2 + (part.match.similarity if part.match else 0.0))

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
from truthlens.core.records.claims import JudgedClaim
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import Span, Verdict
from truthlens.detection.explain.claim_sentences import AnswerWords, with_nearest
from truthlens.detection.explain.differences import SentenceComparison
from truthlens.detection.explain.evidence_search import BEFORE_WEIGHT, EvidenceSentences, Match, weighted
from truthlens.detection.explain.span_kind import Standing, probabilities
from truthlens.detection.models.inputs.lexical import keys_of
from truthlens.detection.plain_answers import PlainAnswers
from truthlens.text.words import Word, words

_ANOTHER = {
    DifferenceKind.NUMBER: "gives another number",
    DifferenceKind.DATE: "gives another date",
    DifferenceKind.NAME: "gives another name",
    DifferenceKind.NEGATION: "is affirmed where this is negated, or the other way round",
    DifferenceKind.OPPOSITE: "says the opposite",
    DifferenceKind.CERTAINTY: "says it with reserve",
}
_NOWHERE = {
    DifferenceKind.NUMBER: "a number",
    DifferenceKind.DATE: "a date",
    DifferenceKind.NAME: "a name",
    DifferenceKind.CITATION: "a citation",
}

_SPAN_WEIGHT = 2.0
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
class SpanFacts:
    """Everything that is known of one span before its kind is decided."""

    match: Match | None
    differences: tuple[Difference, ...]
    standing: Standing
    swapped: bool = False
    """Whether the span says what its nearest sentence says, but for values for which that sentence has others."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """What a detector of values has found of a value of the answer: another one in passage number ``passage``, or none (``None``)."""

    passage: int | None
    difference: Difference


@dataclass(frozen=True, slots=True)
class _Part:
    """One sentence of a span: all of its words, those flagged, and what was found for it."""

    claim: tuple[Word, ...]
    flagged: tuple[Word, ...]
    match: Match | None
    differences: tuple[Difference, ...]

    @property
    def similarity(self) -> float:
        return self.match.similarity if self.match else 0.0


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
        """Return ``spans`` of ``text`` with ``passage`` and ``explanation`` set; those that their detector explained stay.

        A value that one of these has compared is explained alike for all detectors.
        """
        if all(span.explanation is not None for span in spans):
            return tuple(spans)
        answer, compared = AnswerWords(text), _compared(spans)
        found = [
            self._explained(answer, span, compared) if span.explanation is None else span for span in spans
        ]
        is_stated = [span.explanation is not None or span.kind is not None for span in spans]
        stated = [span for span, known in zip(found, is_stated, strict=True) if known]
        return tuple(
            span if known else _as_stated(span, stated) for span, known in zip(found, is_stated, strict=True)
        )

    def claims(
        self, text: str, claims: Sequence[JudgedClaim], spans: Sequence[Span]
    ) -> tuple[JudgedClaim, ...]:
        """Return ``claims`` of ``text``, with ``nearest`` where they name no sentence; ``spans`` are explained."""
        return with_nearest(claims, text, spans, self._evidence)

    def find(self, text: str, span: Span) -> SpanFacts:
        """Return the material of the explanation of one span of ``text``."""
        return self._find(AnswerWords(text), span, ())

    def _explained(self, answer: AnswerWords, span: Span, compared: Sequence[_Compared]) -> Span:
        finding = self._find(answer, span, compared)
        by_kind = probabilities(finding.standing)
        if finding.swapped:
            # The evidence speaks of the matter, and gives another value.
            by_kind = {
                SpanKind.CONTRADICTED: by_kind[SpanKind.CONTRADICTED] / (1.0 - by_kind[SpanKind.UNSUPPORTED])
            }
        kind = span.kind or max(by_kind, key=by_kind.__getitem__)
        match = finding.match
        explanation = Explanation(
            kind=kind,
            confidence=span.score if span.kind else by_kind[kind],
            reason=reason_for(kind, finding.differences, finding.standing, stated=span.kind is not None),
            sentence=(match.sentence.start, match.sentence.end) if match else None,
            similarity=match.similarity if match else 0.0,
            differences=finding.differences,
        )
        return replace(span, passage=match.sentence.passage if match else None, explanation=explanation)

    def _find(self, answer: AnswerWords, span: Span, compared: Sequence[_Compared]) -> SpanFacts:
        parts = self._parts(answer, span, compared)
        if not parts:
            return SpanFacts(None, (), Standing())
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
        standing = self._standing(answer.text[span.start : span.end], parts, main, apart)
        return SpanFacts(main.match, apart, standing, swapped=_is_swapped(parts, apart))

    def _parts(self, answer: AnswerWords, span: Span, compared: Sequence[_Compared]) -> list[_Part]:
        parts: list[_Part] = []
        first = max(bisect_right(answer.starts, span.start) - 1, 0)
        for number in range(first, len(answer.starts)):
            if answer.starts[number] >= span.end or len(parts) == _MOST_PARTS:
                break
            claim = answer.sentence(number)
            flagged = tuple(word for word in claim if word.start < span.end and word.end > span.start)
            if flagged:
                parts.append(self._part(answer.text, claim, flagged, answer.sentence(number - 1), compared))
        return parts

    def _part(
        self,
        text: str,
        claim: tuple[Word, ...],
        flagged: tuple[Word, ...],
        before: tuple[Word, ...],
        compared: Sequence[_Compared],
    ) -> _Part:
        checkpoint()
        weights = weighted(claim, 1.0) | weighted(flagged, _SPAN_WEIGHT)
        low, high = flagged[0].start, flagged[-1].end
        own = [each for each in compared if each.difference.start < high and each.difference.end > low]
        # Where a detector found the value that is meant, the sentence that gives it is the one to show.
        found = ((each.passage, each.difference.evidence) for each in own)
        meant = next(((passage, at[0]) for passage, at in found if passage is not None and at), None)
        match = self._evidence.at(*meant, weights) if meant else None
        match = match or self._evidence.nearest(weights, context=weighted(before, BEFORE_WEIGHT))
        comparison = SentenceComparison(
            text,
            claim,
            span=(low, high),
            evidence=self._evidence,
            match=match,
            known=self._asked,
            compared=[
                each.difference
                for each in own
                if each.difference.evidence is None or (match and each.passage == match.sentence.passage)
            ],
        )
        return _Part(claim, flagged, match, comparison.differences())

    @cached_property
    def _asked(self) -> frozenset[str]:
        return frozenset(key for word in words(self._query) for key in keys_of(word))

    def _standing(
        self, shown: str, parts: Sequence[_Part], main: _Part, differences: Sequence[Difference]
    ) -> Standing:
        evidence = self._evidence
        flagged = [word for part in parts for word in _content(part.flagged)]
        rest = [word for word in _content(main.claim) if word not in main.flagged]
        near = evidence.keys(main.match.number) if main.match else frozenset()
        absent = sum(not evidence.holds(word) for word in flagged)
        pairs = list(zip(main.flagged, main.flagged[1:], strict=False))
        alone = evidence.nearest(weighted(main.flagged, 1.0))
        against = [each.kind for each in differences if each.evidence is not None]
        invented = [each.kind for each in differences if each.evidence is None]
        content = sum(len(_content(part.claim)) for part in parts)
        return Standing(
            similarity=main.similarity,
            rest=sum(not near.isdisjoint(keys_of(word)) for word in rest) / max(len(rest), 1),
            absent=absent / max(len(flagged), 1),
            together=alone.similarity if alone else 0.0,
            pairs=sum(evidence.follows(one.stem, other.stem) for one, other in pairs) / max(len(pairs), 1),
            whole=len(flagged) / max(content, 1),
            length=math.log1p(len(flagged)) / 4.0,
            differs=min(sum(kind not in _TURNED for kind in against), 2) / 2,
            turned=float(any(each.kind in _TURNED for each in differences)),
            invented=min(len(invented), 3) / 3,
            invented_names=min(sum(kind in _NAMED for kind in invented), 2) / 2,
            denies=float(_DENIES.search(shown) is not None),
            refers=float(_REFERS.search(shown) is not None),
        )


def explained(
    exchange: Exchange, answers: Sequence[Answer], verdicts: Sequence[Verdict], *, nearest: bool = True
) -> tuple[Verdict, ...]:
    """Return ``verdicts`` on ``answers`` with explained spans, and claims with their nearest sentences.

    A step of its own, because most verdicts are never looked at span by span. CPU-bound; keep it off the
    event loop. Without ``nearest`` the claims stay as they are.
    """
    explainer = Explainer(exchange.passages, query=exchange.query)
    plain = PlainAnswers(exchange)
    found: list[Verdict] = []
    for answer, verdict in zip(answers, verdicts, strict=True):
        own = plain.of(answer)
        read = [span.moved(own.reading.place, own.reading.place) for span in verdict.spans]
        told = explainer.explain(own.answer.text, read)
        spans = tuple(
            span if span.explanation is not None
            else replace(span, passage=each.passage, explanation=each.moved(own.reading.start, own.reading.end).explanation)
            for span, each in zip(verdict.spans, told, strict=True)
        )  # fmt: skip
        claims = verdict.claims
        if nearest:
            there = [claim.moved(own.reading.place, own.reading.place) for claim in claims]
            near = explainer.claims(own.answer.text, there, told)
            claims = tuple(
                replace(claim, nearest=each.nearest) for claim, each in zip(claims, near, strict=True)
            )
        found.append(replace(verdict, spans=spans, claims=claims))
    return tuple(found)


_VALUES = (DifferenceKind.DATE, DifferenceKind.NUMBER, DifferenceKind.NAME)
_NAMED = (DifferenceKind.NAME, DifferenceKind.CITATION)


def _compared(spans: Sequence[Span]) -> list[_Compared]:
    """Return what detectors that explain themselves have compared, the surest first."""
    return [
        _Compared(span.passage, each)
        for span in sorted(spans, key=lambda span: -span.score)
        if span.explanation is not None
        for each in span.explanation.differences
    ]


def _apart(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """Drop the differences that overlap an earlier one. The year of a citation is not a date of its own."""
    kept: list[Difference] = []
    for each in differences:
        if not any(each.start < other.end and other.start < each.end for other in kept):
            kept.append(each)
    return tuple(kept)


def _is_swapped(parts: Sequence[_Part], differences: Sequence[Difference]) -> bool:
    """Return whether nothing of a span is wrong but values that have another one in the one sentence nearest to it."""
    if len(parts) != 1 or not differences or any(each.evidence is None for each in differences):
        return False
    if any(each.kind not in _VALUES for each in differences) or parts[0].match is None:
        return False
    near = {key for word in parts[0].match.sentence.words for key in keys_of(word)}
    return all(
        word.stop
        or not near.isdisjoint(keys_of(word))
        or any(each.start <= word.start < each.end for each in differences)
        for word in parts[0].claim
    )


def _as_stated(span: Span, stated: Sequence[Span]) -> Span:
    """Return the span as contradicted where its kind is a guess and a detector says so of the same words."""
    found = [
        (other.score, other.explanation)
        for other in stated
        if other.explanation is not None
        and other.explanation.kind is SpanKind.CONTRADICTED
        and other.start < span.end
        and span.start < other.end
    ]
    own = span.explanation
    if not found or own is None or own.kind is SpanKind.CONTRADICTED:
        return span
    _, surest = max(found, key=lambda each: each[0])
    return replace(
        span,
        explanation=replace(own, kind=surest.kind, confidence=surest.confidence, reason=surest.reason),
    )


def _content(listed: Sequence[Word]) -> list[Word]:
    return [word for word in listed if not word.stop]


def _weight_of(part: _Part) -> tuple[float, float]:
    """Rank a part by how much it says: differing values first, then flagged content near the evidence."""
    differing = sum(each.evidence is not None for each in part.differences)
    return float(differing), len(_content(part.flagged)) * (0.2 + part.similarity)


def reason_for(
    kind: SpanKind, differences: Sequence[Difference], standing: Standing, *, stated: bool = False
) -> str:
    """Return one sentence, without full stop, that says what ``kind`` rests on; ``stated``: on what a model was asked."""
    set_against = _listed(_ANOTHER, [each.kind for each in differences if each.evidence is not None])
    nowhere = _listed(_NOWHERE, [each.kind for each in differences if each.evidence is None])
    if kind is SpanKind.CONTRADICTED:
        if set_against:
            return f"the nearest sentence {set_against}"
        if stated:
            return "a model that was asked says that the evidence contradicts it"
        if standing.denies:
            return "it says that the evidence lacks something that the evidence speaks of"
        return "the evidence speaks of this matter in the same words, and puts them together differently"
    if kind is SpanKind.OVER_EXTRAPOLATION:
        return "a model that was asked says that it goes beyond the evidence"
    if kind is SpanKind.FABRICATED:
        if nowhere:
            return f"it gives {nowhere} that stands nowhere in the evidence"
        return "nothing in the evidence comes near"
    if standing.similarity <= 0.0:
        return "no sentence of the evidence shares a word of content with this one"
    if set_against:
        return f"the evidence speaks of the matter, and the nearest sentence {set_against}"
    if nowhere:
        return f"the evidence speaks of the matter, but {nowhere} of it stands nowhere there"
    if standing.absent > 0.0:
        return f"the evidence speaks of the matter, but {standing.absent:.0%} of the words flagged stand nowhere there"
    return "the words stand in the evidence, but no sentence says this"


def _listed(phrases: dict[DifferenceKind, str], kinds: Sequence[DifferenceKind]) -> str:
    return " and ".join(dict.fromkeys(phrases[kind] for kind in kinds if kind in phrases))

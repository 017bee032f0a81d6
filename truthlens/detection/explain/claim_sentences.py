"""Find the sentence of the evidence that is nearest to a claim of which no finding names one.

Word comparison only, no model. It says where to look, not that the sentence supports the claim.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from truthlens.core.cancellation import checkpoint
from truthlens.core.records.claims import ClaimOutcome, JudgedClaim, NearestSentence
from truthlens.core.records.verdict import Span
from truthlens.detection.explain.evidence_search import BEFORE_WEIGHT, EvidenceSentences, weighted
from truthlens.text.sentences import sentences
from truthlens.text.words import Word, words

_MOST_CLAIMS = 300
_FOR = (ClaimOutcome.SUPPORTED, ClaimOutcome.PROVED)


def wants_nearest(claims: Sequence[JudgedClaim]) -> bool:
    """Return whether ``with_nearest`` would look for a sentence for one of them."""
    return any(map(_lacks, claims[:_MOST_CLAIMS]))


def with_nearest(
    claims: Sequence[JudgedClaim], text: str, spans: Sequence[Span], evidence: EvidenceSentences
) -> tuple[JudgedClaim, ...]:
    """Return ``claims`` of ``text``, those of the first 300 that name no sentence with the nearest one, if there is one.

    Of a claim that something is held against it is the sentence that the surest of ``spans`` over it was explained by.
    """
    if not wants_nearest(claims):
        return tuple(claims)
    read = AnswerWords(text)
    return tuple(
        replace(
            claim, nearest=read.nearest(claim, evidence) if claim.outcome in _FOR else _told(claim, spans)
        )
        if place < _MOST_CLAIMS and _lacks(claim)
        else claim
        for place, claim in enumerate(claims)
    )


def _lacks(claim: JudgedClaim) -> bool:
    is_told = claim.sentence is not None or claim.nearest is not None or bool(claim.source)
    return not is_told and claim.outcome is not ClaimOutcome.UNJUDGED


def _told(claim: JudgedClaim, spans: Sequence[Span]) -> NearestSentence | None:
    """Return the sentence of the span over the claim that says most: of the detector that decided, then the surest."""
    over = [span for span in spans if span.start < claim.end and claim.start < span.end]
    for span in sorted(over, key=lambda span: (span.detector != claim.detector, -span.score)):
        why = span.explanation
        if why is not None and why.sentence is not None and span.passage is not None:
            return NearestSentence(span.passage, *why.sentence, why.similarity)
    return None


class AnswerWords:
    """An answer, its words, and the characters where its sentences begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [start for start, _ in sentences(text)]
        self._words = words(text)
        self._places = [word.start for word in self._words]

    def sentence(self, number: int) -> tuple[Word, ...]:
        """Return the words of sentence ``number``, none of one before the first."""
        if number < 0:
            return ()
        ends = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.within(self.starts[number], ends)

    def within(self, start: int, end: int) -> tuple[Word, ...]:
        """Return the words that begin in these characters."""
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        return tuple(self._words[first:last])

    def nearest(self, claim: JudgedClaim, evidence: EvidenceSentences) -> NearestSentence | None:
        """Return the sentence of the evidence that is nearest to a claim of this answer."""
        checkpoint()
        number = bisect_right(self.starts, claim.start) - 1
        before = self.within(self.starts[max(number - 1, 0)], claim.start) if self.starts else ()
        context = self.within(*claim.context) if claim.context is not None else ()
        match = evidence.nearest(
            weighted(self.within(claim.start, claim.end), 1.0),
            context=weighted((*before, *context), BEFORE_WEIGHT),
        )
        if match is None:
            return None
        found = match.sentence
        return NearestSentence(found.passage, found.start, found.end, match.similarity)

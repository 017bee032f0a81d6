"""Find claims that are certain of what the nearest sentence of the evidence says with reserve. Rules, no model.

Source: hallucination-guidelines, over-extrapolation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import StoppedError
from truthlens.core.records.exchange import Passage
from truthlens.detection.citations.report import Report
from truthlens.detection.encoder.inputs.lexical import keys_of
from truthlens.detection.explain.evidence_search import EvidenceSentences
from truthlens.text.claims.hedges import overreach
from truthlens.text.words import words

_MOST_SENTENCES = 200
# Share of a sentence's words that the nearest one must hold: below it, both speak of different things.
_LEAST_SIMILARITY = 0.4


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """A sentence of the answer with the certain word in it, and the sentence of a passage that hedges."""

    start: int
    end: int
    word: tuple[int, int]
    passage: int
    sentence: tuple[int, int]
    hedge: tuple[int, int]
    similarity: float


def extrapolations(
    text: str, report: Report, passages: Sequence[Passage], *, stop: StopCheck
) -> list[Extrapolation]:
    """Return the sentences of ``report`` on ``text`` that claim with certainty what the evidence hedges, in order.

    Raises:
        StoppedError: ``stop`` said true.
    """
    evidence = EvidenceSentences(passages)
    found: list[Extrapolation] = []
    for sentence in [each for each in report.sentences if each.factual][:_MOST_SENTENCES]:
        if stop():
            raise StoppedError
        claim = text[sentence.start : sentence.end]
        weights = {keys_of(word)[0]: 1.0 for word in words(claim) if not word.stop}
        match = evidence.nearest(weights, context={})
        if match is None or match.similarity < _LEAST_SIMILARITY:
            continue
        place = match.sentence
        against = overreach(claim, passages[place.passage].text[place.start : place.end])
        if against is None:
            continue
        found.append(
            Extrapolation(
                sentence.start,
                sentence.end,
                (sentence.start + against.start, sentence.start + against.end),
                place.passage,
                (place.start, place.end),
                (place.start + against.evidence[0], place.start + against.evidence[1]),
                match.similarity,
            )
        )
    return found

"""Read the passages of an exchange into sentences, and find those that share words with a claim."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import StoppedError
from truthlens.core.records.exchange import Passage
from truthlens.detection.detectors.contradictions.reading import Reading, read
from truthlens.detection.detectors.contradictions.tables import OPPOSITES
from truthlens.text.claims.clauses import clauses
from truthlens.text.sentences import sentences

MOST_CHARS, MOST_SENTENCES = 200_000, 6_000
_LONGEST_CHARS = 600  # of a sentence; longer ones are lists without full stops
_RECORD = re.compile(r":\s*(?:true|false|null)\b|[{}\[\]|=<>`]|\?\s*\Z|\?[\"'”’)*_]|\S {2,}\S")
_MOST_POSTINGS = 300
_NEAREST = 6


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters ``start`` to ``end`` of passage number ``passage``, as they are compared."""

    passage: int
    start: int
    end: int
    reading: Reading


class Evidence:
    """The sentences and clauses of passages by their words; what exceeds the bounds is not read.

    Args:
        passages: those of an exchange.
        stop: asked between sentences.
    """

    def __init__(self, passages: Sequence[Passage], *, stop: StopCheck) -> None:
        self.sentences: list[Sentence] = []
        self.complete = True
        self._postings: dict[str, list[int]] = {}
        room = MOST_CHARS
        for number, passage in enumerate(passages):
            text = passage.text[:room]
            self.complete = self.complete and len(text) == len(passage.text)
            room -= len(text)
            for start, end in sentences(text):
                if stop():
                    raise StoppedError
                if len(self.sentences) >= MOST_SENTENCES:
                    self.complete = False
                    return
                self._add(number, text, start, end)

    def _add(self, passage: int, text: str, start: int, end: int) -> None:
        for first, last in pieces(text, start, end):
            reading = read(text, first, last)
            if reading is None:
                continue
            for key in reading.keys:
                self._postings.setdefault(key, []).append(len(self.sentences))
            self.sentences.append(Sentence(passage, first, last, reading))

    def nearest(self, claim: Reading) -> list[Sentence]:
        """Return the few sentences that share most with a claim, weighted by the rarity of its words."""
        scores: dict[int, float] = {}
        for key in sorted(claim.keys):
            for form in (key, *sorted(OPPOSITES.get(key, ()))):
                postings = self._postings.get(form, ())
                weight = math.log(1.0 + len(self.sentences) / max(1, len(postings)))
                for number in postings[:_MOST_POSTINGS]:
                    scores[number] = scores.get(number, 0.0) + weight
        best = heapq.nlargest(_NEAREST, scores, key=lambda number: (round(scores[number], 9), -number))
        return [self.sentences[number] for number in best]


def pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the main clauses of a sentence; nothing of a question, a record, or of one that is too long to be any."""
    if end - start > _LONGEST_CHARS or _RECORD.search(text, start, end):
        return []
    return [(start + first, start + last) for first, last in clauses(text[start:end])]

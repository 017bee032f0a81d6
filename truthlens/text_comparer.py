"""Compares texts with each other: by meaning, and by whether one supports the other.

Meaning is the similarity model's business; support is the plan's own detector, given the other text as the
only evidence: what the detector was trained for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from truthlens.core.records import Answer, AnswerKind, Exchange, Passage, Provenance, Verdict
from truthlens.detection.similarity.model import Similarity

SimilarityLoader = Callable[[], Awaitable[Similarity]]
Detect = Callable[[Exchange, Sequence[Answer]], Awaitable[Sequence[Verdict]]]


@dataclass(frozen=True, slots=True)
class Comparer:
    """Comparisons for one exchange; what ``mitigation.interfaces.Compare`` asks for."""

    load: SimilarityLoader
    detect: Detect
    exchange: Exchange

    async def similar(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the semantic similarity of each left text to each right one, 0..1; shape (left, right)."""
        model = await self.load()
        matrix = await asyncio.to_thread(model.similar, left, right)
        return [[float(value) for value in row] for row in matrix]

    async def support(self, claims: Sequence[str], text: str) -> Sequence[float | None]:
        """Return how far ``text`` supports each claim, 0..1.

        It is ``None`` for a claim that could not be scored.
        """
        if not claims:
            return []
        evidence = replace(self.exchange, passages=(Passage(text, Provenance.DOCUMENTS),))
        answers = [Answer(place, AnswerKind.TEXT, claim) for place, claim in enumerate(claims)]
        verdicts = await self.detect(evidence, answers)
        return [None if verdict.score is None else 1.0 - verdict.score for verdict in verdicts]

"""Which passage a span belongs to: the one that shares most with the sentence around it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from truthlens.core.records import Passage, Span
from truthlens.core.text import sentences
from truthlens.detection.words import words


class NearestPassage:
    """Finds for each span of an answer the passage that contradicts it or comes nearest.

    The whole sentence is compared and not the span alone: what is unsupported ("45 mg") is in no passage, while the
    rest of its sentence tells which passage speaks of the matter. Words of the span itself count double. The
    passages are only read once a span asks.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages

    def of(self, text: str, spans: Sequence[Span]) -> list[int | None]:
        """Per span of ``text`` the index of its passage; ``None`` where none shares a word with its sentence."""
        if not spans:
            return []
        ranges = sentences(text)
        return [self._best(text, span, ranges) for span in spans]

    def _best(self, text: str, span: Span, ranges: Sequence[tuple[int, int]]) -> int | None:
        around = [text[start:end] for start, end in ranges if start < span.end and end > span.start]
        wanted = dict.fromkeys(_stems(" ".join(around)), 1.0)
        wanted.update(dict.fromkeys(_stems(text[span.start : span.end]), 2.0))
        scores = [
            sum(weight * self._idf[stem] for stem, weight in wanted.items() if stem in held)
            for held in self._held
        ]
        best = max(range(len(scores)), key=scores.__getitem__, default=None)
        return best if best is not None and scores[best] > 0.0 else None

    @cached_property
    def _held(self) -> list[frozenset[str]]:
        return [_stems(f"{passage.title}\n{passage.text}") for passage in self._passages]

    @cached_property
    def _idf(self) -> dict[str, float]:
        counts: dict[str, int] = {}
        for held in self._held:
            for stem in held:
                counts[stem] = counts.get(stem, 0) + 1
        return {stem: math.log(1.0 + len(self._held) / count) for stem, count in counts.items()}


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in words(text) if not word.stop)

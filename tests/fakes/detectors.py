"""Detectors that do as they are told: answer, fail, or wait for the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from truthlens.core.records.enums import Aggregation
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import Coverage, DetectorResult, Span


class _Reader:
    """Reads every language."""

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        return True


class FixedDetector(_Reader):
    """Gives every answer the same result."""

    def __init__(self, result: DetectorResult, *, model: str = "fixed") -> None:
        self.model = model
        self.calls = 0
        self._result = result

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None,
        stop: Callable[[], bool],
    ) -> list[DetectorResult]:
        self.calls += 1
        return [self._result for _ in answers]


class FailingDetector(_Reader):
    """Raises what it was given."""

    model = "failing"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None,
        stop: Callable[[], bool],
    ) -> list[DetectorResult]:
        raise self._error


class HeldDetector(_Reader):
    """Waits until the test lets it go on; remembers whether it was told to stop."""

    model = "held"

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.release = threading.Event()
        self.stopped: list[bool] = []

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None,
        stop: Callable[[], bool],
    ) -> list[DetectorResult]:
        self.entered.release()
        self.release.wait(timeout=30)
        self.stopped.append(stop())
        return [scored(0.1) for _ in answers]


def scored(
    score: float, *, detector: str = "encoder", coverage: Coverage | None = None, weight: float = 1.0
) -> DetectorResult:
    """A result with this score that looked at everything."""
    whole = Coverage(4, 4, 8, 8, 8, 1)
    return DetectorResult(detector, score, coverage=coverage or whole, weight=weight)


class WordDetector(_Reader):
    """Scores by words: the score of the highest word that stands in an answer, its span over that word.

    A word that stands in the evidence as well is supported. An answer without any of them scores ``otherwise``; the
    detector abstains where that is ``None``.
    """

    model = "words"

    def __init__(self, words: dict[str, float], *, otherwise: float | None = 0.02) -> None:
        self._words = words
        self._otherwise = otherwise

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None,
        stop: Callable[[], bool],
    ) -> list[DetectorResult]:
        evidence = " ".join(passage.text for passage in exchange.passages)
        return [self._result(answer.text, evidence) for answer in answers]

    def _result(self, text: str, evidence: str) -> DetectorResult:
        found = {word: score for word, score in self._words.items() if word in text and word not in evidence}
        score = max(found.values(), default=self._otherwise)
        if score is None:
            return DetectorResult("words", None, abstained=True)
        spans = tuple(
            Span(text.index(word), text.index(word) + len(word), score, passage=0)
            for word, score in found.items()
        )
        return replace(scored(score), spans=spans)

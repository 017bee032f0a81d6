"""Follow growing answers with rules, which judge any part of an answer from the text near it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import Aggregation
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.interfaces import Follower, Ranges

_Item = TypeVar("_Item")


class RuleDetector(ABC):
    """A detector that judges whole answers as its followers do."""

    @abstractmethod
    def follow(self, exchange: Exchange) -> RuleFollower:
        """Return a follower of the exchange's answers."""

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None,
        stop: StopCheck,
    ) -> list[DetectorResult]:
        """Return one result per answer, as ``Detector.detect_all`` does."""
        return self.follow(exchange).detect_whole(answers, stop=stop)


class RuleFollower(Follower):
    """Judges the answers of one exchange, whole and part by part.

    A detector says how it judges a part of an answer, and a whole one where that is something else. It reads the exchange when it judges first, on a
    worker's thread; the follower itself is made on the event loop.
    """

    def whole(self, answer: Answer, *, stop: StopCheck) -> DetectorResult:
        """Return the result on the answer as if it were whole."""
        return self.part(answer, 0, len(answer.text), stop=stop)

    @abstractmethod
    def part(self, answer: Answer, start: int, end: int, *, stop: StopCheck) -> DetectorResult:
        """Return the result on characters ``start`` to ``end`` of the answer."""

    def ahead(self, answers: Sequence[Answer], *, stop: StopCheck) -> None:
        """Do nothing: there is nothing worth doing ahead."""

    def detect_all(
        self,
        answers: Sequence[Answer],
        ranges: Sequence[Ranges],
        *,
        aggregation: Aggregation | None,
        stop: StopCheck,
    ) -> list[DetectorResult]:
        """Return the results on the answers as if they were whole, then on the parts."""
        whole = self.detect_whole(answers, stop=stop)
        return [*whole, *self.detect_ranges(answers, ranges, aggregation=aggregation, stop=stop)]

    def detect_whole(self, answers: Sequence[Answer], *, stop: StopCheck) -> list[DetectorResult]:
        """Return one result per answer; raise ``StoppedError`` once ``stop`` says true."""
        return [_timed(partial(self.whole, answer, stop=stop)) for answer in _while_wanted(answers, stop)]

    def detect_ranges(
        self,
        answers: Sequence[Answer],
        ranges: Sequence[Ranges],
        *,
        aggregation: Aggregation | None,
        stop: StopCheck,
    ) -> list[DetectorResult]:
        """Return one result per part; raise ``StoppedError`` once ``stop`` says true."""
        parts = [(answer, *part) for answer, own in zip(answers, ranges, strict=True) for part in own]
        return [_timed(partial(self.part, *part, stop=stop)) for part in _while_wanted(parts, stop)]


def _timed(judge: Callable[[], DetectorResult]) -> DetectorResult:
    started = time.perf_counter()
    result = judge()
    return replace(result, duration_s=time.perf_counter() - started)


def _while_wanted(items: Iterable[_Item], stop: StopCheck) -> Iterator[_Item]:
    for item in items:
        if stop():
            raise StoppedError
        yield item

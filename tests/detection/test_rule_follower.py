"""Tests of ``truthlens.detection.rule_follower``: the order of its results, and when it ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from truthlens.core.cancellation import never
from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import AnswerKind
from truthlens.core.records.exchange import Answer
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.rule_follower import RuleFollower

ANSWERS = [Answer(0, AnswerKind.TEXT, "one two"), Answer(1, AnswerKind.TEXT, "three")]
RANGES = [[(0, 3), (4, 7)], [(0, 5)]]


class Repeating(RuleFollower):
    """Says what it was given to judge."""

    def whole(self, answer: Answer, *, stop: Callable[[], bool]) -> DetectorResult:
        return DetectorResult("rules", 0.0, explanation=f"all of {answer.text}")

    def part(self, answer: Answer, start: int, end: int, *, stop: Callable[[], bool]) -> DetectorResult:
        return DetectorResult("rules", 0.0, explanation=answer.text[start:end])


def told(results: list[DetectorResult]) -> list[str]:
    return [each.explanation for each in results]


def test_answers_come_first_then_their_parts_in_order() -> None:
    """The parts of the first answer, then those of the second."""
    follower = Repeating()
    found = told(follower.detect_all(ANSWERS, RANGES, aggregation=None, stop=never))
    assert found == ["all of one two", "all of three", "one", "two", "three"]
    assert told(follower.detect_ranges(ANSWERS, RANGES, aggregation=None, stop=never)) == found[2:]
    assert told(follower.detect_whole(ANSWERS, stop=never)) == found[:2]
    assert not follower.due(ANSWERS)


@pytest.mark.parametrize("judged", range(5))
def test_it_ends_before_the_next_one(judged: int) -> None:
    """However many answers and parts were judged before."""
    said = iter([False] * judged + [True])
    with pytest.raises(StoppedError):
        Repeating().detect_all(ANSWERS, RANGES, aggregation=None, stop=lambda: next(said))
    assert not list(said)


def test_each_result_says_how_long_it_took() -> None:
    """What the console and the body show as a detector's time."""
    found = Repeating().detect_all(ANSWERS, RANGES, aggregation=None, stop=never)
    assert all(each.duration_s > 0.0 for each in found)

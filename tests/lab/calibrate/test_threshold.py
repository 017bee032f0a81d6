"""From labelled answers to a threshold for a goal, with a detector that says what it is told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.lab.calibrate.conformal import UNSCORED, UnattainableError
from truthlens.lab.calibrate.threshold import choose, score_labelled
from truthlens.lab.data.dataset import Example
from truthlens.policy.plans.threshold_record import CostGoal, MissRateGoal


def example(label: int, group: str, score: float | None) -> Example:
    """The answer is its own score, for ``judge`` to read."""
    return Example(group, "made", "qa", "q", ("c",), str(score), label, None, group)


def scorer(query: str, passages: Sequence[str], answer: str) -> Verdict:
    assert (query, list(passages)) == ("q", ["c"])
    if answer == "None":
        return unchecked(Reason.NO_CONTEXT)
    return Verdict(Status.CHECKED, score=float(answer))


ROWS = [
    *[example(1, f"text {n // 2}", 0.5 + n / 100) for n in range(20)],
    *[example(0, f"text {n}", n / 20) for n in range(10)],
    example(0, "text 11", None),
]


def test_scores_labels_and_reasons() -> None:
    """What has no score is told by its reason and never flagged."""
    scored = score_labelled(ROWS, scorer)
    assert scored.labels.sum() == 20
    assert scored.base_rate == pytest.approx(20 / 31)
    assert (scored.unscored, scored.scores[-1]) == ({"no-context": 1}, UNSCORED)
    assert score_labelled([], scorer).base_rate == 0.0


@pytest.mark.parametrize("reason", [Reason.DETECTOR_ERROR, Reason.TIMEOUT, Reason.OVERLOADED])
@pytest.mark.parametrize("score", [None, 0.5])
def test_a_failing_detector_stops_it(reason: Reason, score: float | None) -> None:
    """A threshold from scores that the plan would not give is none; the message names row and reason, no text."""
    status = Status.UNCHECKED if score is None else Status.PARTIAL

    def failing(query: str, passages: Sequence[str], answer: str) -> Verdict:
        return Verdict(status, reason, score) if answer == "0.51" else scorer(query, passages, answer)

    with pytest.raises(DetectorError, match=rf"on row 2 \({reason.value}\)"):
        score_labelled(ROWS, failing)


def test_a_miss_rate_counts_texts() -> None:
    """Ten texts of two answers: at 0.2 (eleven times that, less one, is 1.2) two answers may be missed."""
    choice = choose(score_labelled(ROWS, scorer), MissRateGoal(max_miss_rate=0.2), others={"half": 0.5})
    assert choice.threshold == 0.52
    assert (choice.counts.unsupported, choice.counts.unsupported_texts, choice.counts.supported) == (
        20,
        10,
        11,
    )
    assert choice.counts.unscored == 1
    assert choice.measured.miss_rate == pytest.approx(0.1)
    assert choice.measured.miss_bound == pytest.approx(2 / 11)
    assert choice.measured.supported_flagged == 0.0
    assert {name: point.miss_rate for name, point in choice.compared.items()} == {"chosen": 0.1, "half": 0.0}


def test_costs_are_measured_and_by_formula() -> None:
    """Here the measured minimum is the lowest unsupported score; the formula knows nothing of it."""
    choice = choose(score_labelled(ROWS, scorer), CostGoal(cost_ratio=4, prior=0.5))
    assert choice.threshold == 0.5
    assert (choice.measured.miss_rate, choice.measured.miss_bound) == (0.0, None)
    assert choice.compared["least cost"].threshold == 0.5
    assert choice.compared["proposition 1"].threshold == pytest.approx(0.2)
    assert choice.compared["proposition 1"].cost > choice.compared["least cost"].cost
    assert choice.compared["flag everything"].false_alarm_rate == pytest.approx(10 / 11)


def test_one_kind_of_answers() -> None:
    """Without supported answers nothing is compared; without unsupported ones there is no threshold."""
    unsupported, supported = score_labelled(ROWS[:20], scorer), score_labelled(ROWS[20:], scorer)
    choice = choose(unsupported, MissRateGoal(max_miss_rate=0.2))
    assert (choice.measured.supported_flagged, choice.compared) == (None, {})
    with pytest.raises(UnattainableError, match="no unsupported answers"):
        choose(supported, MissRateGoal(max_miss_rate=0.2))
    for scored in (unsupported, supported):
        with pytest.raises(UnattainableError, match="cannot be measured"):
            choose(scored, CostGoal(cost_ratio=1, prior=0.5))

"""The scores of the last 24 hours, by decision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from truthlens.core.records.enums import Reason, Status
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.score_history import BINS, ScoreFigures, ScoreHistory

HOUR = 3600.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def outcome(
    *scores: float | None, decision: str = "d", status: Status = Status.CHECKED, rate: float = 0.5
) -> Outcome:
    """An exchange whose choices score so."""
    verdicts = tuple(
        unchecked(Reason.NO_CONTEXT)
        if score is None
        else Verdict(status, None if status is Status.CHECKED else Reason.TIMEOUT, score=score, threshold=0.5)
        for score in scores
    )
    return Outcome(Plan(decision, expected_rate=rate), verdicts[0], verdicts, first=verdicts)


def test_each_choice_is_counted_as_the_backend_gave_it() -> None:
    """A correction does not hide that the answer was flagged; what has no score is counted by its reason."""
    history = ScoreHistory(Clock())
    corrected = replace(outcome(0.9, None), verdicts=(Verdict(Status.CHECKED, score=0.1),))
    history.observe(corrected)
    history.observe(outcome(0.2, status=Status.PARTIAL))
    figures = history.figures("d")
    assert (figures.scored, figures.flagged) == (2, 1)
    assert dict(figures.unchecked) == {"no-context": 1}
    assert dict(figures.partial) == {"timeout": 1}
    assert figures.bins[45] == figures.bins[10] == 1


@pytest.mark.parametrize("step", range(10))
def test_scores_at_a_tenth_reach_it(step: int) -> None:
    """However the number is computed; a score just below does not."""
    history = ScoreHistory(Clock())
    for score in (step / 10, step * 0.1, 1.0 - (10 - step) / 10, step / 10 + 0.019, step / 10 - 0.001):
        history.observe(outcome(max(0.0, min(1.0, score))))
    assert history.figures("d").reaching(step / 10) == (4 if step else 5)
    assert history.figures("d").reaching(0.0) == 5


def test_the_ends_of_the_scale_are_counted() -> None:
    """0 in the first part, 1 in the last; nothing is above 1."""
    history = ScoreHistory(Clock())
    history.observe(outcome(0.0, 1.0))
    figures = history.figures("d")
    assert (figures.bins[0], figures.bins[-1], len(figures.bins)) == (1, 1, BINS)
    assert (figures.reaching(1.0), figures.reaching(1.01)) == (1, 0)


def test_what_is_older_than_a_day_is_forgotten() -> None:
    """Also where nothing comes after it, and after a long time without traffic."""
    clock = Clock()
    history = ScoreHistory(clock)
    for _ in range(30):
        history.observe(outcome(0.9))
        clock.now += HOUR
    assert history.figures("d").scored == 23
    history.observe(outcome(0.9))
    assert history.figures("d").scored == 24
    clock.now += 100 * HOUR
    assert history.figures("d") == ScoreFigures()
    history.observe(outcome(0.1))
    assert history.figures("d").scored == 1


def test_decisions_are_bounded_and_go_with_the_policy() -> None:
    """A reload forgets those that the new policy has not; names beyond the bound are not counted."""
    history = ScoreHistory(Clock())
    for number in range(1_100):
        history.observe(outcome(0.9, decision=f"d{number}"))
    assert sum(history.figures(f"d{number}").scored for number in range(1_100)) == 1_000
    history.keep(["d1", "other"])
    assert [history.figures(name).scored for name in ("d1", "d2", "other")] == [1, 0, 0]


def test_scores_at_another_rate_are_not_mixed() -> None:
    """Those of before an edit of ``expected_rate`` are on another scale."""
    history = ScoreHistory(Clock())
    history.observe(outcome(0.9))
    history.observe(outcome(0.3, rate=0.2))
    assert (history.figures("d").scored, history.figures("d").reaching(0.8)) == (1, 0)


def test_the_metrics_feed_it() -> None:
    """Whatever is counted for Prometheus is counted here."""
    signals = Metrics()
    signals.observe(outcome(0.9), request_s=0.0, response_s=0.0)
    assert signals.score_history.figures("d").flagged == 1
    assert signals.last_hour.figures().flagged == 1

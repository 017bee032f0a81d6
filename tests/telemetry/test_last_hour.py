"""What the exchanges of the last hour came to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.telemetry.test_score_history import Clock, outcome
from truthlens.core.records.calls import CallRecord, Role, Usage
from truthlens.core.records.enums import Action
from truthlens.telemetry.last_hour import HourFigures, LastHour


def test_exchanges_are_counted_by_what_became_of_them() -> None:
    """An exchange with several choices is one; it is flagged by any, and checked by any."""
    hour = LastHour(Clock())
    hour.observe(replace(outcome(0.9, 0.1), action=Action.REFINE))
    hour.observe(outcome(0.2))
    hour.observe(replace(outcome(None), action=Action.BLOCK))
    hour.observe(outcome(None, 0.3))
    found = hour.figures()
    assert (found.exchanges, found.checked, found.flagged) == (4, 3, 1)
    assert (found.corrected, found.blocked, dict(found.unchecked)) == (1, 1, {"no-context": 1})


def test_calls_are_counted_with_tokens_and_cost() -> None:
    """A call that was refused before it began costs nothing; one without a price is told apart."""
    hour = LastHour(Clock())
    calls = (
        CallRecord("a", Role.JUDGE, Usage(20, 5), 0.25),
        CallRecord("b", Role.REFINER, Usage(1, 1)),
        CallRecord("c", Role.JUDGE, Usage(9, 9), 9.0, attempts=0),
    )
    hour.observe(replace(outcome(0.9), calls=calls))
    found = hour.figures()
    assert (found.calls, found.tokens, found.cost_usd, found.unpriced) == (2, 27, 0.25, 1)


@pytest.mark.parametrize("seconds", [0.0008, 0.012, 0.25, 7.0, 60.0])
def test_quantiles_of_latency_are_near_the_true_ones(seconds: float) -> None:
    """To a twentieth, over the whole range."""
    hour = LastHour(Clock())
    for number in range(100):
        hour.observe(replace(outcome(0.1), latency_s=seconds * (4 if number >= 90 else 1)))
    found = hour.figures()
    assert found.p50_s == pytest.approx(seconds, rel=0.06)
    assert found.p95_s == pytest.approx(4 * seconds, rel=0.06)


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e9])
def test_any_latency_can_be_counted(seconds: float) -> None:
    """Nothing at all, and what no step is for."""
    hour = LastHour(Clock())
    hour.observe(replace(outcome(0.1), latency_s=seconds))
    assert hour.figures().p50_s is not None


def test_what_is_older_than_an_hour_is_forgotten() -> None:
    """Minute by minute, and after hours of silence."""
    clock = Clock()
    hour = LastHour(clock)
    for _ in range(100):
        hour.observe(outcome(0.9))
        clock.now += 60
    assert hour.figures().exchanges == 59
    clock.now += 7_200
    assert hour.figures() == HourFigures()
